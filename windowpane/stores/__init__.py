"""Stores: tables elsewhere that a changelog is applied to, exactly once.

A batch of changes and its number are written in one transaction, so a batch that is repeated after a crash changes nothing.
``open_store`` finds the store for an address: a path is a DuckDB file, ``postgresql://...`` a PostgreSQL server.
"""

from __future__ import annotations

from windowpane.stores.batches import Batch
from windowpane.stores.duck import DuckStore
from windowpane.stores.postgres import PostgresStore
from windowpane.stores.protocol import Store

__all__ = ["Batch", "DuckStore", "PostgresStore", "Store", "open_store"]


def open_store(address: str) -> Store:
    """Return the store at an address.

    Args:
        address: path of a DuckDB file, or a ``postgresql://`` URL.

    Example:
        >>> open_store(":memory:")
        DuckStore(':memory:')
    """
    if address.startswith(("postgresql://", "postgres://")):
        return PostgresStore(address)
    return DuckStore(address)
