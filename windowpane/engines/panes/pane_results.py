"""The results of firings: of contents or of nothing, numbers of panes, and where panes take rows back, those they replace.

One entry a firing, in the order in which firings are emitted; those of one pane are in the order in which they happen. A pane is
before the end of its window, or behind it, for all firings of one step.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from windowpane.arrays import Integers, Mask
from windowpane.arrays.columns import side_by_side
from windowpane.engines.common.pane_numbers import PaneNumbers
from windowpane.engines.common.results import Results
from windowpane.kernels.grouping.running_positions import grouped, run_ends, run_starts
from windowpane.windowing.outputs import INSERT, UPDATE_POSTIMAGE, UPDATE_PREIMAGE
from windowpane.windowing.panes import NO_PANES, PaneOptions

NONE, OF_CONTENTS, OF_NOTHING = range(3)
"""What a pane has shown last: nothing yet, the result of rows, or that of no rows."""

_CHANGES = (INSERT, UPDATE_PREIMAGE, UPDATE_POSTIMAGE)


@dataclass(frozen=True)
class Firings:
    """Firings of one step."""

    panes: Integers  # the pane of each
    partials: pa.Table  # what it shows, one row each; any row where that is nothing
    kinds: Integers  # ``OF_CONTENTS`` or ``OF_NOTHING``
    is_on_time: Mask  # whether it is the firing of the window's end
    is_last: Mask  # whether no other can follow

    def at(self, places: Integers) -> Firings:
        """Return some of them."""
        partials = self.partials.take(pa.array(places))
        return Firings(self.panes[places], partials, self.kinds[places], self.is_on_time[places], self.is_last[places])


@dataclass(frozen=True)
class Shown:
    """What panes have emitted: how many panes there were, and the last one where rows are taken back. One entry a pane."""

    numbers: PaneNumbers  # how many
    kinds: Integers  # ``NONE``, ``OF_CONTENTS`` or ``OF_NOTHING``
    # partials, among them those of the last panes; ``None`` where there are none, or rows are not taken back
    partials: pa.Table | None
    at: Integers  # which of these are of the last one, where that is ``OF_CONTENTS``


class PaneResults:
    def __init__(self, results: Results, options: PaneOptions) -> None:
        self._results = results
        self._options = options

    def put_out(
        self,
        keys: pa.Table,
        starts: Integers | None,
        ends: Integers,
        firings: Firings,
        before: Shown,
        is_early: Mask,
        fired_under: int,
    ) -> Shown:
        """Emit firings of panes with these keys and windows, and return what panes have emitted by then, with what was before."""
        panes, count = firings.panes, len(firings.panes)

        def emit(of: Integers, partials: pa.Table, kinds: Integers, columns: list[pa.Array]) -> None:
            named, bounds = keys.take(pa.array(of)), None if starts is None else starts[of]
            named = side_by_side(named, partials)
            self._results.emit_firings(bounds, ends[of], named, fired_under, columns, kinds == OF_NOTHING, count)

        if not count or self._options == NO_PANES:
            emit(panes, firings.partials, firings.kinds, [])
            return before
        sequence = _Sequence.of(panes)
        numbers = _numbers(firings, sequence, before.numbers.at(panes), is_early[panes])
        after, fired = sequence.lasts, panes[sequence.lasts]
        kinds = np.append(firings.kinds, before.kinds)
        shown, partials, columns, of, rows = numbers, firings.partials, list[pa.Array](), panes, np.arange(count)
        places = np.append(rows, before.at + count)
        if self._options.retracts:
            # Each firing follows the result it replaces: that of the firing before it of its pane, or of an earlier batch.
            source = np.where(sequence.previous < 0, count + panes, sequence.previous)
            is_again = kinds[source] != NONE
            is_row = np.stack([is_again, np.ones(count, bool)], axis=1)
            rows = np.stack([source, rows], axis=1)[is_row]
            words = np.stack([np.ones(count, np.int64), 2 * is_again], axis=1)[is_row]
            of, shown = np.repeat(panes, 1 + is_again), numbers.followed_by(before.numbers).at(rows)
            if before.partials is not None:
                partials = pa.concat_tables([partials, before.partials.select(partials.column_names)])
        if self._options.shows_info:
            columns += shown.last_panes()
        if self._options.retracts:
            columns.append(pa.array(_CHANGES).take(pa.array(words)))
            emit(of, partials.take(pa.array(places[rows], mask=kinds[rows] == OF_NOTHING)), kinds[rows], columns)
        else:
            emit(of, partials, firings.kinds, columns)
        return Shown(
            before.numbers.replaced(fired, numbers.at(after)),
            _replaced(before.kinds, fired, firings.kinds[after]),
            partials if self._options.retracts else None,
            _replaced(places[count:], fired, after),
        )


class _Sequence(NamedTuple):
    """Firings among those of their panes."""

    among: Integers  # how many of its pane's are before each
    firsts: Integers  # the first one of its pane
    previous: Integers  # the one before it of its pane, -1 for none
    lasts: Integers  # the last of each pane

    @classmethod
    def of(cls, panes: Integers) -> _Sequence:
        count = len(panes)
        if np.bincount(panes).max() == 1:
            return cls(np.zeros(count, np.int64), np.arange(count), np.full(count, -1), np.arange(count))
        order, groups, positions = grouped(panes)
        among, firsts, previous = np.empty((3, count), np.int64)
        among[order], firsts[order] = positions, order[run_starts(groups)]
        previous[order] = np.where(positions > 0, np.roll(order, 1), -1)
        return cls(among, firsts, previous, order[run_ends(groups)])


def _numbers(firings: Firings, sequence: _Sequence, had: PaneNumbers, is_early: Mask) -> PaneNumbers:
    """Return the numbers of panes after each firing, given those before them."""
    counts = sequence.among + 1
    others = had.others + np.where(is_early, 0, counts)
    if had.was_on_time is None:
        return PaneNumbers(had.all + counts, others)
    is_on_time = np.where(had.others > 0, had.was_on_time, firings.is_on_time[sequence.firsts])
    return PaneNumbers(had.all + counts, others, is_on_time & ~is_early, firings.is_last)


def _replaced(values: Integers, at: Integers, by: Integers) -> Integers:
    replaced = values.copy()
    replaced[at] = by
    return replaced
