"""The results of firings: of contents or of nothing, numbers of panes, and where panes take rows back, those they replace.

One entry a firing, in the order in which firings are emitted; those of one pane are in the order in which they happen. A pane is
before the end of its window, or behind it, for all firings of one step.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from windowpane.arrays import Integers, Mask
from windowpane.engines.common.pane_numbers import PaneNumbers
from windowpane.engines.common.results import Results
from windowpane.errors import MistakeError
from windowpane.kernels.grouping.running_positions import grouped, run_ends, run_starts
from windowpane.windowing.changes import INSERT, UPDATE_POSTIMAGE, UPDATE_PREIMAGE
from windowpane.windowing.panes import NO_PANES, PaneOptions

NONE, OF_CONTENTS, OF_NOTHING = range(3)
"""What a pane has shown last: nothing yet, the result of rows, or that of no rows."""


@dataclass(frozen=True)
class Firings:
    """Firings of one step.

    Args:
        panes: the pane of each.
        partials: what it shows, one row each; any row where that is nothing.
        shown: ``OF_CONTENTS`` or ``OF_NOTHING``.
        is_on_time: whether it is the firing of the window's end.
        is_last: whether no other can follow.
    """

    panes: Integers
    partials: pa.Table
    shown: Integers
    is_on_time: Mask
    is_last: Mask


@dataclass(frozen=True)
class Shown:
    """What panes have emitted: how many panes there were, and the last one where rows are taken back. One entry a pane.

    Args:
        numbers: how many.
        kinds: ``NONE``, ``OF_CONTENTS`` or ``OF_NOTHING``.
        partials: of the last one, any row where that is nothing; ``None`` where rows are not taken back.
    """

    numbers: PaneNumbers
    kinds: Integers
    partials: pa.Table | None


class PaneResults:
    """Emits the firings of one program."""

    def __init__(self, results: Results, options: PaneOptions) -> None:
        """Emit to ``results``, as ``options`` ask for."""
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
        """Emit firings, and return what panes have emitted by then.

        Args:
            keys: keys of each pane.
            starts: the start of the window of each pane; ``None`` for the global window.
            ends: its end.
            firings: the firings.
            before: what each pane had emitted.
            is_early: whether the end of the window of each pane is not reached.
            fired_under: the watermark under which they fire.
        """
        if not len(firings.panes):
            return before
        if self._options == NO_PANES:
            self._emit_plain(keys, starts, ends, firings, fired_under)
            return before
        by_pane = grouped(firings.panes)
        at = np.empty(len(firings.panes), np.int64)
        at[by_pane.order] = np.arange(len(at))
        numbers = self._numbered(by_pane.groups, firings, by_pane.order, before.numbers, is_early)
        lasts = run_ends(by_pane.groups)
        last_firings, fired_panes = by_pane.order[lasts], by_pane.groups[lasts]
        after = Shown(
            before.numbers.replaced(fired_panes, numbers.at(lasts)),
            _replaced(before.kinds, fired_panes, firings.shown[last_firings]),
            None if before.partials is None else _rows_replaced(before.partials, fired_panes, firings.partials, last_firings),
        )
        self._emit(keys, starts, ends, firings, before, numbers.at(at), by_pane.order, at, fired_under)
        return after

    def _numbered(self, panes: Integers, firings: Firings, order: Integers, before: PaneNumbers, is_early: Mask) -> PaneNumbers:
        """Return the numbers of panes after each firing, by pane and in order."""
        begins, had, early = run_starts(panes), before.at(panes), is_early[panes]
        counts = np.arange(len(panes)) - begins + 1
        others = had.others + np.where(early, 0, counts)
        is_on_time = np.where(had.others > 0, had.first_on_time(), firings.is_on_time[order][begins])
        return PaneNumbers(had.all + counts, others, is_on_time & ~early, firings.is_last[order])

    def _emit_plain(self, keys: pa.Table, starts: Integers | None, ends: Integers, firings: Firings, fired_under: int) -> None:
        panes, is_empty = firings.panes, firings.shown == OF_NOTHING
        bounds = None if starts is None else starts[panes]
        rows = _beside(keys.take(pa.array(panes)), firings.partials)
        self._results.emit_firings(bounds, ends[panes], rows, fired_under, [], is_empty, len(panes))

    def _emit(
        self,
        keys: pa.Table,
        starts: Integers | None,
        ends: Integers,
        firings: Firings,
        before: Shown,
        numbers: PaneNumbers,
        order: Integers,
        at: Integers,
        fired_under: int,
    ) -> None:
        count, panes, words = len(firings.panes), firings.panes, None
        partials, kinds = firings.partials, firings.shown
        if self._options.retracts:
            if before.partials is None:
                raise MistakeError("the last pane is kept where it is taken back")
            # Each firing follows the result it replaces: that of the firing before it of its pane, or of an earlier batch.
            is_first = (numbers.all - before.numbers.all[panes]) == 1
            source = np.where(is_first, count + panes, order[np.maximum(at - 1, 0)])
            partials = pa.concat_tables([partials, before.partials.select(partials.column_names)])
            all_kinds, all_numbers = np.append(kinds, before.kinds), numbers.followed_by(before.numbers)
            is_again = all_kinds[source] != NONE
            rows = np.stack([source, np.arange(count)], axis=1)[np.stack([is_again, np.ones(count, bool)], axis=1)]
            words = np.stack([np.full(count, UPDATE_PREIMAGE), np.where(is_again, UPDATE_POSTIMAGE, INSERT)], axis=1)
            words = words[np.stack([is_again, np.ones(count, bool)], axis=1)]
            panes = np.repeat(panes, 1 + is_again)
            partials, kinds, numbers = partials.take(pa.array(rows)), all_kinds[rows], all_numbers.at(rows)
        named = _beside(keys.take(pa.array(panes)), partials)
        columns = numbers.last_panes() if self._options.shows_info else []
        columns += [] if words is None else [pa.array(words, pa.string())]
        bounds = None if starts is None else starts[panes]
        self._results.emit_firings(bounds, ends[panes], named, fired_under, columns, kinds == OF_NOTHING, count)


def _beside(keys: pa.Table, partials: pa.Table) -> pa.Table:
    for name in partials.column_names:
        keys = keys.append_column(name, partials[name])
    return keys


def _replaced(values: Integers, at: Integers, by: Integers) -> Integers:
    replaced = values.copy()
    replaced[at] = by
    return replaced


def _rows_replaced(table: pa.Table, at: Integers, others: pa.Table, rows: Integers) -> pa.Table:
    """Return a table with the rows ``at`` replaced by some of another table."""
    places = np.arange(table.num_rows)
    places[at] = table.num_rows + rows
    return pa.concat_tables([table, others.select(table.column_names)]).take(pa.array(places))
