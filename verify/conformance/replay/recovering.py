"""The state of an operator under test: committed at barriers, thrown away and taken up again at recovery."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from windowpane.state.entries import MemoryEntries

Operator = TypeVar("Operator")


class Recovering(Generic[Operator]):
    """An operator over entries in memory.

    Args:
        build: makes the operator on its entries.
        flush: writes what the operator holds outside its entries, at the end of a batch.
    """

    def __init__(self, build: Callable[[MemoryEntries], Operator], flush: Callable[[Operator], None] | None = None) -> None:
        self._build = build
        self._flush = flush
        self._committed: dict[bytes, bytes] = {}
        self.recover()

    def commit(self) -> None:
        """Make the state that which a recovery takes up."""
        if self._flush is not None:
            self._flush(self.operator)
        self._committed = self._entries.copy()

    def recover(self) -> None:
        """Throw the operator away and build a new one on the committed state."""
        self._entries = MemoryEntries(self._committed)
        self.operator = self._build(self._entries)

    def restart(self) -> None:
        """Commit and recover: the restart that may happen after any step."""
        kept = self._committed
        self.commit()
        self.recover()
        self._committed = kept
