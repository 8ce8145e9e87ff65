"""Numbering that continues from counters: ``row_number``, ``rank`` and ``dense_rank`` need no more once earlier rows are evicted.

Source: the intermediate state of RisingWave's EOWC operator.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class RunningNumbers:
    """The numbers of the last row that was emitted: 0 before the first."""

    row_number: int = 0  # its position in the partition
    rank: int = 0  # the position of its first peer
    dense_rank: int = 0  # the number of its group of peers
    order: tuple[Any, ...] = ()  # its ORDER BY values

    def next(self, order: tuple[Any, ...]) -> RunningNumbers:
        number = self.row_number + 1
        if number > 1 and order == self.order:
            return RunningNumbers(number, self.rank, self.dense_rank, order)
        return RunningNumbers(number, number, self.dense_rank + 1, order)

    def of(self, function: str) -> int:
        return int(getattr(self, function))
