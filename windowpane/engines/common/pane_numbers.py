"""How many panes windows have had, for the windows of many keys at once, and the pane information of the last one.

Triggers that fire at no fixed instant, ``EachBatch``, have no pane that is on time, or known to be the last: their numbers
leave that out.
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
_TIMINGS = (PaneTiming.EARLY.value, PaneTiming.ON_TIME.value, PaneTiming.LATE.value)
_ON_TIME, _LAST = hidden("pane_was_on_time"), hidden("pane_is_last")


@dataclass(frozen=True)
class PaneNumbers:
    """One entry a window."""

    all: Integers  # how many panes it has had
    others: Integers  # how many of these were not early
    was_on_time: Mask | None = None  # whether the first of those was on time; ``None`` where none can be
    is_last: Mask | None = None  # whether no other pane can follow; ``None`` where that is not known

    @classmethod
    def none(cls, count: int, has_flags: bool = False) -> Self:
        """Return the numbers of windows that have not fired yet; ``has_flags`` if panes may be on time, or last."""
        flags = [np.zeros(count, bool) if has_flags else None for _ in range(2)]
        return cls(np.zeros(count, np.int64), np.zeros(count, np.int64), *flags)

    @classmethod
    def kept(cls, table: pa.Table) -> Self:
        """Return the numbers that ``beside`` put into a table; none where it has not."""
        if _ALL not in table.column_names:
            return cls.none(table.num_rows)
        flags = (table[name].to_numpy() if name in table.column_names else None for name in (_ON_TIME, _LAST))
        return cls(table[_ALL].to_numpy(), table[_OTHERS].to_numpy(), *flags)

    def beside(self, table: pa.Table) -> pa.Table:
        table = table.append_column(_ALL, pa.array(self.all)).append_column(_OTHERS, pa.array(self.others))
        for name, flags in ((_ON_TIME, self.was_on_time), (_LAST, self.is_last)):
            table = table if flags is None else table.append_column(name, pa.array(flags))
        return table

    def spread(self, count: int, at: Integers) -> PaneNumbers:
        """Return the numbers of ``count`` windows: these at the places ``at``, none elsewhere."""
        spread = self.none(count)
        spread.all[at], spread.others[at] = self.all, self.others
        return spread

    def at(self, places: Integers) -> PaneNumbers:
        flags = (None if each is None else each[places] for each in (self.was_on_time, self.is_last))
        return PaneNumbers(self.all[places], self.others[places], *flags)

    def first_on_time(self) -> Mask:
        """Return whether the first pane of each that was not early was on time."""
        return np.zeros(len(self.all), bool) if self.was_on_time is None else self.was_on_time

    def last_ones(self) -> Mask:
        """Return whether no other pane of each can follow, as far as that is known."""
        return np.zeros(len(self.all), bool) if self.is_last is None else self.is_last

    def followed_by(self, others: PaneNumbers) -> PaneNumbers:
        counts = np.append(self.all, others.all), np.append(self.others, others.others)
        if self.was_on_time is None and others.was_on_time is None:
            return PaneNumbers(*counts)
        flags = (self.first_on_time(), others.first_on_time()), (self.last_ones(), others.last_ones())
        return PaneNumbers(*counts, *map(np.concatenate, flags))

    def replaced(self, places: Integers, by: PaneNumbers) -> PaneNumbers:
        at = np.arange(len(self.all))
        at[places] = len(self.all) + np.arange(len(places))
        return self.followed_by(by).at(at)

    def following(self, is_early: Mask) -> PaneNumbers:
        """Return the numbers after one more pane of each."""
        return PaneNumbers(self.all + 1, self.others + ~is_early)

    def last_panes(self) -> list[pa.Array]:
        """Return the columns of ``pane_info`` of the last pane of each: early ones come before all others."""
        is_early, indices = self.others == 0, self.all - 1
        timings = np.where(is_early, 0, np.where((self.others == 1) & self.first_on_time(), 1, 2))
        return [
            pa.array(indices),
            pa.array(self.others - 1),
            pa.array(_TIMINGS).take(pa.array(timings)),
            pa.array(indices == 0),
            pa.array(self.last_ones()),
        ]
