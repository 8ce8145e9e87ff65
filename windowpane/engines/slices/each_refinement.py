"""Refinements one by one: windows that have fired fire again for each late row, with their contents of its key by then."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from windowpane.arrays import Integers
from windowpane.kernels.grouping.grouped_fold import GroupedFold
from windowpane.kernels.grouping.range_merge import Ranges, fold_groups, merge_ranges
from windowpane.kernels.grouping.running_positions import grouped, run_starts
from windowpane.kernels.keys.dense_codes import dense_codes, places_in
from windowpane.windowing.windows import TimeWindow

_NOT_IN = -1
"""The rank of a window among those of a slice that is not in it."""


class Refinements(NamedTuple):
    """Firings: the bounds of the window of each, keys and partials."""

    starts: Integers
    ends: Integers
    partials: pa.Table


@dataclass(frozen=True)
class EachRefinement:
    """How windows fire for late rows."""

    fold: GroupedFold  # the aggregates
    groups: Sequence[str]  # the key columns
    purges: bool  # whether a firing drops the contents of the window
    # the windows of a slice in the assigner's order, ``None`` in the place of those that do not fire again
    refined: Callable[[int], Sequence[TimeWindow | None]]
    # the contents of a window before, keys and partials, one row a key; ``None`` for none. Not read where a firing purges.
    held: Callable[[TimeWindow], pa.Table | None]

    def firings(self, rows: pa.Table, slices: Integers) -> Refinements | None:
        """Return the firings for rows in order of arrival, given the slice of each; ``None`` for none.

        They are in the order of the rows, and for each row in that of its windows.
        """
        present, places = np.unique(slices, return_inverse=True)
        ranks: dict[TimeWindow, Integers] = {}
        for place, start in enumerate(present.tolist()):
            for rank, window in enumerate(self.refined(start)):
                if window is not None:
                    ranks.setdefault(window, np.full(len(present), _NOT_IN))[place] = rank
        if not ranks:
            return None
        late = [np.flatnonzero(rank[places] != _NOT_IN) for rank in ranks.values()]
        fired = [self._of_window(window, rows.take(pa.array(at))) for window, at in zip(ranks, late, strict=True)]
        counts, windows = [len(at) for at in late], list(ranks)
        among = np.concatenate([rank[places][at] for rank, at in zip(ranks.values(), late, strict=True)])
        order = np.lexsort((among, np.concatenate(late)))
        starts = np.repeat(np.array([window.start for window in windows]), counts)[order]
        ends = np.repeat(np.array([window.end for window in windows]), counts)[order]
        return Refinements(starts, ends, pa.concat_tables(fired).take(pa.array(order)))

    def _of_window(self, window: TimeWindow, rows: pa.Table) -> pa.Table:
        """Return for each row keys and partials of all that its key holds up to it."""
        names, keys = list(self.groups), rows.select(list(self.groups))
        partials = fold_groups(self.fold, rows, np.arange(rows.num_rows)).select(list(self.fold.columns))
        held = None if self.purges else self.held(window)
        if held is not None:
            held = held.filter(pa.array(places_in(held.select(names), keys) >= 0))
            partials = pa.concat_tables([held.select(partials.column_names), partials])
            keys = pa.concat_tables([held.select(names), keys])
        by_key = grouped(dense_codes(keys.columns, keys.num_rows).codes)
        lasts = np.empty(keys.num_rows, np.int64)
        lasts[by_key.order] = np.arange(keys.num_rows)
        lasts = lasts[keys.num_rows - rows.num_rows :]
        firsts = lasts if self.purges else run_starts(by_key.groups)[lasts]
        merged = merge_ranges(self.fold, partials.take(pa.array(by_key.order)), Ranges(firsts, lasts))
        return pa.table({**{name: rows[name] for name in names}, **{name: merged[name] for name in self.fold.columns}})
