"""Evictors on sessions: a session keeps its elements, and fires with those that an evictor leaves.

What is evicted at a firing leaves the session where a later one could see it: where late rows may fire the session again, and its
trigger does not purge.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from windowpane.aggregates.user_code import KeptRows
from windowpane.arrays import Mask
from windowpane.arrays.columns import replaced
from windowpane.engines.common.columnar import fold_of, group_columns
from windowpane.engines.common.evicting import argument_columns, empties, evictor_refusal, survivors_of
from windowpane.engines.program import Program
from windowpane.errors import present
from windowpane.hidden_columns import ARRIVAL, TIME, hidden
from windowpane.kernels.aggregates.lists import Lists, by_arrival
from windowpane.kernels.eviction import Firings
from windowpane.kernels.grouping.grouped_fold import GroupedFold
from windowpane.kernels.grouping.range_merge import fold_groups
from windowpane.windowing.times import MIN

_PREFIX = hidden("kept_")


def eviction_refusal(program: Program) -> str | None:
    """Return why sessions cannot evict as a program asks, ``None`` if they can."""
    spec = program.spec
    if spec.evictor is None:
        return None
    if program.arrow is not None:
        return "an evictor leaves few rows to a function on tables of many keys"
    if empties(spec.evictor):
        return f"{spec.evictor!r} leaves nothing"
    return evictor_refusal(program)


class Evictions:
    """Keeps elements in place of partials, and folds what an evictor leaves when they fire."""

    def __init__(self, program: Program) -> None:
        fold = present(fold_of(program), "the planner checked")
        evictor = present(program.spec.evictor, "the planner checked")
        self.results_fold = fold
        self._columns = tuple(dict.fromkeys([*(name for name in argument_columns(program, fold) if name != ARRIVAL), TIME]))
        self.kept_fold = GroupedFold((KeptRows(_PREFIX, self._columns),))
        self._survivors = None if program.spec.evicts_after else survivors_of(evictor)
        self._kept = survivors_of(evictor)
        self._groups = group_columns(program)

    def left(self, sessions: pa.Table, has_fired: Mask) -> pa.Table:
        """Return sessions, of which some have fired, with the elements that this has left."""
        if not has_fired.any():
            return sessions
        values, arrivals = by_arrival(*(Lists.of(sessions[name]) for name in self.kept_fold.columns))
        firings = Firings(values.offsets[:-1][has_fired], values.offsets[1:][has_fired] - 1)
        times = values.values.field(self._columns.index(TIME)).fill_null(MIN).to_numpy()
        stays = np.flatnonzero(~has_fired[values.numbers] | self._kept.kept(times, firings))
        for name, lists in zip(self.kept_fold.columns, (values, arrivals), strict=True):
            sessions = replaced(sessions, name, lists.chosen(stays).to_arrow())
        return sessions

    def fired(self, sessions: pa.Table) -> pa.Table:
        """Return keys and partials of sessions that fire, none of them empty."""
        lists = Lists.of(self.kept_fold.finish(sessions)[0])
        rows = pa.table({name: lists.values.field(at) for at, name in enumerate(self._columns)})
        if self.results_fold.is_ordered:
            rows = rows.append_column(ARRIVAL, pa.array(np.arange(rows.num_rows)))
        times, firings = rows[TIME].fill_null(MIN).to_numpy(), Firings(lists.offsets[:-1], lists.offsets[1:] - 1)
        if self._survivors is None:
            partials = fold_groups(self.results_fold, rows, lists.numbers)
            self._kept.kept(times, firings)  # the evictor reads them afterwards, and may refuse them
        else:
            partials = self._survivors.fold(self.results_fold, rows, times, firings)
        return pa.table({name: sessions[name] for name in self._groups} | {n: partials[n] for n in self.results_fold.columns})
