"""Numbering that continues from counters: ``row_number``, ``rank`` and ``dense_rank`` need no more once earlier rows are evicted.

Source: the intermediate state of RisingWave's EOWC operator.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class RunningNumbers:
    """The numbers of the last row that was emitted: 0 before the first.

    Args:
        row_number: its position in the partition.
        rank: the position of its first peer.
        dense_rank: the number of its group of peers.
        order: its ORDER BY values.
    """

    row_number: int = 0
    rank: int = 0
    dense_rank: int = 0
    order: tuple[Any, ...] = ()

    def next(self, order: tuple[Any, ...]) -> RunningNumbers:
        """Return the numbers of the next row."""
        number = self.row_number + 1
        if number > 1 and order == self.order:
            return RunningNumbers(number, self.rank, self.dense_rank, order)
        return RunningNumbers(number, number, self.dense_rank + 1, order)

    def of(self, function: str) -> int:
        """Return the number that a numbering function gives."""
        return int(getattr(self, function))
