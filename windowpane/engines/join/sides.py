"""The side of a table of input, in the metadata of its schema: alone here, since every worker that encodes imports it."""

from __future__ import annotations

import pyarrow as pa

_SIDE = b"windowpane.side"


def tagged(table: pa.Table, side: str) -> pa.Table:
    return table.replace_schema_metadata({_SIDE: side.encode()})


def side_of(table: pa.Table) -> str:
    return str((table.schema.metadata or {})[_SIDE].decode())
