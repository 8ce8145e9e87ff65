"""Tags on tables: what a table is, beside its rows, on its way from stage to stage. They travel with the table's schema."""

from __future__ import annotations

import pyarrow as pa

_PREFIX = "windowpane."


def tagged(table: pa.Table, **tags: str) -> pa.Table:
    """Return a table with these tags and no others."""
    return table.replace_schema_metadata({f"{_PREFIX}{name}": value for name, value in tags.items()})


def tag(table: pa.Table, name: str) -> str | None:
    """Return a tag of a table, ``None`` if it has none of that name."""
    found = (table.schema.metadata or {}).get(f"{_PREFIX}{name}".encode())
    return None if found is None else found.decode()
