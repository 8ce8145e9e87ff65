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
            ChangedViewSchemaError: the table has other columns; nothing was written.
        """

    def read(self, query: str) -> list[tuple[Any, ...]]:
        """Return the rows of a query on the store."""

    def close(self) -> None:
        """Close the connection."""
