"""The protocol of stores."""

from __future__ import annotations

from typing import Any, Protocol

from windowpane.stores.batches import Batch


class Store(Protocol):
    """Tables that changelogs are applied to."""

    def apply(self, batch: Batch) -> bool:
        """Apply a batch to its table in one transaction; say whether it was new.

        The table is created if it does not exist. A batch whose number is not above the last one of its source changes nothing.

        Raises:
            AbsentRowError: a row is taken back that the table does not have; nothing was written, here and below.
            ChangedViewSchemaError: the table has other columns.
            MisplacedStateError: the batch names the one before it, and this is not the last one that the table has.
        """

    def taken(self, source: str) -> int:
        """Return the number of the last batch of a source, ``pairs.NONE`` if there is none."""

    def read(self, query: str) -> list[tuple[Any, ...]]:
        """Return the rows of a query on the store."""

    def close(self) -> None:
        """Close the connection."""
