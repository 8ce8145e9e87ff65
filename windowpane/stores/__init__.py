"""Stores: tables elsewhere that a changelog is applied to, exactly once; views as such tables.

A batch of changes and its number are written in one transaction, so a batch that is repeated after a crash changes nothing.
Redis keeps the newest row of a key (``redis``), which needs no number.

``open_store`` finds the store for an address: a path is a DuckDB file, ``postgresql://...`` a PostgreSQL server.
"""

from __future__ import annotations

from windowpane.errors import InvalidSpecError
from windowpane.stores.batches import Batch, Store
from windowpane.stores.duck import DuckStore, check_path
from windowpane.stores.postgres import PostgresStore
from windowpane.stores.postgres_views import Owner, PostgresViews

__all__ = ["Batch", "DuckStore", "Owner", "PostgresStore", "PostgresViews", "Store", "check_address", "is_server", "open_store"]


def is_server(address: str) -> bool:
    """Whether an address is that of a PostgreSQL server, not the path of a file."""
    return address.startswith(("postgresql://", "postgres://"))


def check_address(address: str) -> None:
    """Refuse an address that is neither of a PostgreSQL server nor the path of a file, where a sink keeps its table.

    Raises:
        InvalidSpecError: saying its scheme, or that the database would be gone after each batch.
    """
    if is_server(address):
        return
    check_path(address)
    if not address or address.startswith(":memory:"):
        raise InvalidSpecError(
            f"store={address!r} is a database in memory, which would be gone after each batch, with the rows that later changes "
            "replace. Give the path of a file."
        )


def open_store(address: str) -> Store:
    """Return the store at an address.

    Args:
        address: path of a DuckDB file, or a ``postgresql://`` URL.

    Example:
        >>> open_store(":memory:")
        DuckStore(':memory:')
    """
    if is_server(address):
        return PostgresStore(address)
    return DuckStore(address)
