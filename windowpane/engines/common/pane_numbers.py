"""How many panes windows have had, for the windows of many keys at once, and what that says of the last one.

For triggers that fire at no fixed instant, ``EachBatch``: none of their panes is on time, or known to be the last.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
import pyarrow as pa

from windowpane.arrays import Integers, Mask
from windowpane.hidden_columns import hidden
from windowpane.windowing.panes import PaneTiming

_ALL, _OTHERS = hidden("panes"), hidden("panes_not_early")


@dataclass(frozen=True)
class PaneNumbers:
    """One entry a window: how many panes it has had, and how many of these were not early."""

    all: Integers
    others: Integers

    @classmethod
    def none(cls, count: int) -> Self:
        """Return the numbers of windows that have not fired yet."""
        return cls(np.zeros(count, np.int64), np.zeros(count, np.int64))

    @classmethod
    def kept(cls, table: pa.Table) -> Self:
        """Return the numbers that ``beside`` put into a table; none where it has not."""
        if _ALL not in table.column_names:
            return cls.none(table.num_rows)
        return cls(table[_ALL].to_numpy(), table[_OTHERS].to_numpy())

    def beside(self, table: pa.Table) -> pa.Table:
        """Return a table, one row a window, with the numbers as columns."""
        return table.append_column(_ALL, pa.array(self.all)).append_column(_OTHERS, pa.array(self.others))

    def spread(self, count: int, at: Integers) -> PaneNumbers:
        """Return the numbers of ``count`` windows: these at the places ``at``, none elsewhere."""
        spread = self.none(count)
        spread.all[at], spread.others[at] = self.all, self.others
        return spread

    def at(self, places: Integers) -> PaneNumbers:
        """Return those at some places."""
        return PaneNumbers(self.all[places], self.others[places])

    def following(self, is_early: Mask) -> PaneNumbers:
        """Return the numbers after one more pane of each."""
        return PaneNumbers(self.all + 1, self.others + ~is_early)

    def last_panes(self) -> list[pa.Array]:
        """Return the columns of ``pane_info`` of the last pane of each: early ones come before all others."""
        is_early, indices = self.others == 0, self.all - 1
        timing = np.where(is_early, PaneTiming.EARLY.value, PaneTiming.LATE.value)
        return [
            pa.array(indices),
            pa.array(self.others - 1),
            pa.array(timing, pa.string()),
            pa.array(indices == 0),
            pa.array(np.zeros(len(indices), bool)),
        ]
