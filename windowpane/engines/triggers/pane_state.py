"""The panes that triggers fire, as they are stored: the standing of each, its contents, and what was emitted of it.

A row of the pane store is a pane: the standing of its trigger, whether it holds something, and the partials; with ``pane_info``
how many panes there were; where panes are taken back, the partials of the last one, too.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from windowpane.arrays import Integers, Mask
from windowpane.engines.common.columnar import key_names
from windowpane.engines.common.pane_numbers import PaneNumbers
from windowpane.engines.panes.store import PaneStore
from windowpane.engines.panes.touched import TouchedPanes
from windowpane.engines.program import Program
from windowpane.engines.triggers.due_timers import DueTimers
from windowpane.engines.triggers.pane_results import NONE, OF_CONTENTS, Shown
from windowpane.engines.triggers.standings import Standings
from windowpane.errors import MistakeError
from windowpane.hidden_columns import FILLED, SEGMENT, hidden
from windowpane.kernels.grouping.grouped_fold import GroupedFold
from windowpane.state.blob_store import BlobStore
from windowpane.windowing.assigners import GlobalWindows
from windowpane.windowing.times import MAX

STANDING, SHOWN = hidden("standing"), hidden("shown")
"""The state of a pane's trigger, and which kind of pane was emitted last."""
_BEFORE = hidden("before_")
"""Before the name of a partial: that of the last pane."""
_ALL_SHARDS = 0


class Panes(NamedTuple):
    """What panes hold after a step, one entry a pane, and whether anything is left of each.

    Args:
        keys: keys and segment.
        standings: the numbers of their standings.
        filled: whether they hold something.
        partials: that; any row where it is nothing.
        shown: what they have emitted.
    """

    keys: pa.Table
    standings: Integers
    filled: Mask
    partials: pa.Table
    shown: Shown


def with_added_columns(change: Callable[[Any], Any], held: pa.Table) -> pa.Table:
    """Return the rows of panes with what a function makes of the values that triggers keep."""
    standings = [pickle.dumps(change(pickle.loads(each)), protocol=5) for each in held[STANDING].to_pylist()]
    return held.set_column(held.column_names.index(STANDING), STANDING, pa.array(standings, pa.binary()))


class PaneState:
    """The panes of a bucket, and when their first timers are due.

    Attributes:
        rows: the rows of the panes.
        due: when timers are due, by segment.
        filled: how many panes hold something.
    """

    def __init__(self, program: Program, fold: GroupedFold, store: BlobStore, standings: Standings, filled: int) -> None:
        """Open the state."""
        self._keys, self._names = list(key_names(program)), list(fold.columns)
        self._options = program.spec.panes
        self._is_global = isinstance(program.spec.assigner, GlobalWindows)
        self._standings = standings
        self.rows = PaneStore(store, self._keys, self._is_global)
        self.due = DueTimers(store)
        self.filled = filled

    def read(self, held: pa.Table) -> Panes:
        """Return the panes of rows that ``write`` gave."""
        standings = self._standings.of(held[STANDING])
        kinds, last = np.full(held.num_rows, NONE), None
        if self._options.retracts:
            kinds = held[SHOWN].to_numpy()
            last = held.select([_BEFORE + name for name in self._names]).rename_columns(self._names)
        shown = Shown(PaneNumbers.kept(held), kinds, last)
        partials = held.select(self._names)
        return Panes(held.select([*self._keys, SEGMENT]), standings, held[FILLED].to_numpy(), partials, shown)

    def met(self, touched: TouchedPanes, nothing: Callable[[int], pa.Table]) -> Panes:
        """Return the panes by their codes, with their contents before the batch: ``nothing`` of so many where all are new."""
        count = touched.count
        if touched.held is None:
            partials = nothing(count)
            shown = Shown(
                PaneNumbers.none(count, has_flags=True), np.full(count, NONE), partials if self._options.retracts else None
            )
            return Panes(touched.keys, np.zeros(count, np.int64), np.zeros(count, bool), partials, shown)
        held, places = self.read(touched.held), np.full(count, -1)
        places[touched.held_panes] = np.arange(touched.held.num_rows)
        is_held = places >= 0
        rows = pa.array(np.maximum(places, 0), mask=~is_held)
        numbers = PaneNumbers.none(count).replaced(np.flatnonzero(is_held), held.shown.numbers.at(places[is_held]))
        last = None if held.shown.partials is None else held.shown.partials.take(rows)
        shown = Shown(numbers, np.where(is_held, held.shown.kinds[places], NONE), last)
        standings, filled = np.where(is_held, held.standings[places], 0), is_held & held.filled[places]
        return Panes(touched.keys, standings, filled, held.partials.take(rows), shown)

    def write(self, panes: Panes, segments: list[int], before: Panes) -> None:
        """Put panes in place of the contents of segments; panes that hold nothing are removed."""
        numbers, codes = np.unique(panes.standings, return_inverse=True)
        is_nothing = np.array([self._standings.is_nothing(number) for number in numbers.tolist()], bool)
        stays = np.flatnonzero(panes.filled | ~is_nothing[codes] | (panes.shown.numbers.all > 0))
        kept, filled = panes.keys.take(pa.array(stays)), panes.filled[stays]
        rows = pa.array(stays, mask=~filled)
        kept = kept.append_column(STANDING, self._standings.column(panes.standings[stays]))
        kept = kept.append_column(FILLED, pa.array(filled))
        for name in self._names:
            kept = kept.append_column(name, panes.partials[name].take(rows))
        if self._options.shows_info or self._options.retracts:
            kept = panes.shown.numbers.at(stays).beside(kept)
        if self._options.retracts:
            if panes.shown.partials is None:
                raise MistakeError("the last pane is kept where it is taken back")
            kinds = panes.shown.kinds[stays]
            kept = kept.append_column(SHOWN, pa.array(kinds))
            rows = pa.array(stays, mask=kinds != OF_CONTENTS)
            for name in self._names:
                kept = kept.append_column(_BEFORE + name, panes.shown.partials[name].take(rows))
        self.filled += int(filled.sum()) - int(before.filled.sum())
        self._note_due(kept, panes.standings[stays], segments)
        self.rows.write(kept, segments)

    def _note_due(self, kept: pa.Table, standings: Integers, segments: list[int]) -> None:
        """Note when the first timers of the segments are due."""
        if self._is_global:
            self._note_due_in_shards(standings, segments)
            return
        kept_segments = kept[SEGMENT].to_numpy()
        firsts = self._firsts(standings, kept_segments - 1)
        for segment in segments:
            here = kept_segments == segment
            if here.any():
                self.due.note(segment, *(int(times[here].min()) for times in firsts))
            else:
                self.due.drop(segment)

    def _note_due_in_shards(self, standings: Integers, shards: list[int]) -> None:
        """Note when the first timers of the global window are due: one entry, for shards are cut anew."""
        is_everything = not set(self.rows.segments()) - set(shards)
        if is_everything:
            self.due.drop(_ALL_SHARDS)
        if len(standings):
            firsts = self._firsts(standings, np.full(len(standings), MAX))
            self.due.bring_forward(_ALL_SHARDS, *(int(times.min()) for times in firsts))

    def _firsts(self, standings: Integers, last_instants: Integers) -> list[Integers]:
        return [self._standings.first_times(standings, last_instants, event_time) for event_time in (True, False)]

    def flush(self) -> None:
        """Write what changed."""
        self.rows.flush()
        self.due.flush()
