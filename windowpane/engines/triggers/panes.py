"""Windows of fixed size, and the global window, whose triggers are called: clocks and rows in, firings and panes out."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from windowpane.arrays import Integers, Mask
from windowpane.engines.batch.driver import Left
from windowpane.engines.common.columnar import keyed, with_plain_keys
from windowpane.engines.common.pane_numbers import PaneNumbers
from windowpane.engines.messages import Message, Partials
from windowpane.engines.panes.panes import Elements, PaneWindows
from windowpane.engines.panes.touched import TouchedPanes, touched_panes
from windowpane.engines.program import Program
from windowpane.engines.row.reference import AddedColumns
from windowpane.engines.rows import python_keys
from windowpane.engines.triggers.asked_rows import AskedRows
from windowpane.engines.triggers.pane_results import NONE, OF_CONTENTS, OF_NOTHING, Firings, PaneResults, Shown
from windowpane.engines.triggers.pane_state import Panes, PaneState, with_added_columns
from windowpane.engines.triggers.standings import (
    FIRES,
    IS_CLEARED,
    IS_DROPPED,
    IS_LAST,
    IS_ON_TIME,
    MAY_BE_EMPTY,
    PURGES,
    Advance,
    row_reader,
)
from windowpane.engines.triggers.triggered_batch import TriggeredBatch
from windowpane.errors import EndlessTimerError
from windowpane.hidden_columns import SEGMENT, SLICE
from windowpane.kernels.grouping.grouped_fold import GroupedFold
from windowpane.kernels.grouping.range_merge import Ranges, exploded, fold_groups, merge_ranges
from windowpane.kernels.grouping.running_positions import Grouped, grouped, run_ends, run_starts
from windowpane.kernels.keys.dense_codes import combined, dense_codes, first_rows
from windowpane.kernels.sorting.packed_order import stable_order
from windowpane.state.blob_store import BlobStore
from windowpane.windowing.times import MAX


class _Cut(NamedTuple):
    """The rows of a batch in pieces behind what panes held, by pane and in order.

    Args:
        atoms: partials.
        panes: the pane of each.
        begins: the atom at which the contents begin that a firing at each would show.
        bits: what happens behind each.
        elements: the last element of each; -1 for contents before the batch.
    """

    atoms: pa.Table
    panes: Integers
    begins: Integers
    bits: Integers
    elements: Integers


class TriggeredPanes(TriggeredBatch):
    """Moves clocks and takes rows."""

    def __init__(self, program: Program, fold: GroupedFold, store: BlobStore) -> None:
        """Open the state."""
        super().__init__(program, fold, store)
        self._windows = PaneWindows(self)
        self._state = PaneState(program, fold, store, self._standings, self.header.open_windows)
        if self.header.added:
            self._state.rows.rewrite(partial(with_added_columns, AddedColumns(self.header.added, program.values)))
        self._put_out = PaneResults(self.results, program.spec.panes)

    # The clocks.

    def _advance(self, event_time: bool, fired_under: int) -> None:
        clock = self.watermark if event_time else self.now
        segments = self._state.due.segments(clock, event_time)
        if self._windows.is_global and segments:
            segments = self._state.rows.segments()
        held = self._state.rows.read(segments) if segments else None
        if held is None:
            return
        self._standings.set_clocks(self.watermark, self.now)
        panes = self._state.read(held)
        ends = self._ends(panes)
        first_times = self._standings.first_times(panes.standings, self._last_instants(ends), event_time)
        due = np.flatnonzero(first_times <= clock)
        kinds = combined(panes.standings[due], dense_codes([pa.chunked_array([pa.array(ends[due])])], len(due)).codes)
        at = due[first_rows(kinds)]
        advances = [
            self._standings.advanced(number, self._windows.window(end), event_time)
            for number, end in zip(panes.standings[at].tolist(), ends[at].tolist(), strict=True)
        ]
        self._check_ends(advances, panes.keys.take(pa.array(at)), ends[at])
        self._state.write(self._fired_by_clock(panes, ends, due, advances, kinds, fired_under), segments, panes)

    def _check_ends(self, advances: list[Advance], keys: pa.Table, ends: Integers) -> None:
        for place, advance in enumerate(advances):
            if advance.is_endless:
                (key,) = python_keys(keys.slice(place, 1), self._keys)
                window = self._windows.window(int(ends[place]))
                raise EndlessTimerError(self.program.spec.trigger, key, window, len(advance.steps))

    def _fired_by_clock(
        self, panes: Panes, ends: Integers, due: Integers, advances: list[Advance], kinds: Integers, fired_under: int
    ) -> Panes:
        """Emit the firings of the panes that are ``due``, and return the contents of all panes after them."""
        offsets = np.cumsum([0, *(len(each.steps) for each in advances)])
        times = np.array([step.time for each in advances for step in each.steps], np.int64)
        bits = np.array([step.bits for each in advances for step in each.steps], np.int64)
        numbers = np.array([each.number for each in advances], np.int64)
        steps = exploded(Ranges(offsets[kinds], offsets[kinds + 1] - 1))
        of = np.repeat(due, np.diff(offsets)[kinds])
        purged = _purged_before(bits[steps], of)
        filled = panes.filled[of] & ~purged
        fires = (bits[steps] & FIRES > 0) & (filled | (bits[steps] & MAY_BE_EMPTY > 0))
        order = self._by_time(times[steps], ends[of], of)
        at = order[fires[order]]
        firings = Firings(
            of[at],
            panes.partials.take(pa.array(of[at])),
            np.where(filled[at], OF_CONTENTS, OF_NOTHING),
            bits[steps][at] & IS_ON_TIME > 0,
            bits[steps][at] & IS_LAST > 0,
        )
        shown = self._emit(panes.keys, ends, firings, panes.shown, fired_under)
        after, left = panes.standings.copy(), panes.filled.copy()
        after[due] = numbers[kinds]
        left[of[bits[steps] & (PURGES | IS_CLEARED) > 0]] = False
        over = np.zeros(len(after), bool)
        over[of[bits[steps] & IS_CLEARED > 0]] = True
        return Panes(panes.keys, after, left, panes.partials, _forgotten(shown, over))

    def _by_time(self, times: Integers, ends: Integers, panes: Integers) -> Integers:
        """Return steps in the order in which timers fire: by time and window, those of a pane in their present order."""
        starts = ends if self._windows.is_global else self._windows.starts(ends)
        order: Integers = np.lexsort((np.arange(len(times)), ends, starts, _latest(times, panes)))
        return order

    # The rows.

    def take(self, messages: Sequence[Message]) -> None:
        tables = [message.table for message in messages]
        if all(isinstance(message, Partials) for message in messages):
            rows, starts = self._windows.folded(pa.concat_tables(tables))
            elements = self._windows.in_open_windows(rows, starts)
        else:
            rows, starts = self._windows.sliced(keyed(self.program, self.arrived(tables, always_in_order=True)))
            elements = self._windows.in_open_windows(with_plain_keys(self.program, rows), starts)
        if len(elements.numbers):
            self._take(elements, rows)

    def _take(self, elements: Elements, rows: pa.Table) -> None:
        """Take elements, whose ``rows`` are as they arrived."""
        touched = touched_panes(self._state.rows, elements)
        before = self._state.met(touched, partial(self._nothing, touched.elements))
        ends = self._ends(before)
        by_pane = grouped(touched.element_panes)
        self._standings.set_clocks(self.watermark, self.now)
        if row_reader(self.program.spec.trigger) is None:
            bits, standings = self._answers(by_pane, before.standings, ends)
        else:
            bits, standings = self._answers_row_by_row(elements, by_pane, before.standings, ends)
        if self.program.spec.coalesces_refinements:
            bits = _held_back(by_pane, bits)
        self._report_finished(elements, rows, by_pane.order[bits & IS_DROPPED > 0])
        cut = self._cut(touched, before, by_pane, bits)
        fired = np.flatnonzero(cut.bits & FIRES > 0)
        fired = fired[np.argsort(self._order_of_firing(by_pane, cut, fired), kind="stable")]
        lasts = run_ends(cut.panes)
        lasts = lasts[cut.bits[lasts] & PURGES == 0]
        ranges = Ranges(np.append(cut.begins[fired], cut.begins[lasts]), np.append(fired, lasts))
        merged = merge_ranges(self.fold, cut.atoms, ranges)
        firings = Firings(
            cut.panes[fired],
            merged.slice(0, len(fired)),
            np.full(len(fired), OF_CONTENTS),
            np.zeros(len(fired), bool),
            cut.bits[fired] & IS_LAST > 0,
        )
        shown = self._emit(before.keys, ends, firings, before.shown, self.watermark)
        filled, places = np.zeros(touched.count, bool), np.zeros(touched.count, np.int64)
        filled[cut.panes[lasts]] = True
        places[cut.panes[lasts]] = len(fired) + np.arange(len(lasts))
        partials = merged if merged.num_rows else before.partials
        after = Panes(before.keys, standings, filled, partials.take(pa.array(places)), shown)
        self._state.write(after, touched.segments, before)

    def _answers(self, by_pane: Grouped, standings: Integers, ends: Integers) -> tuple[Integers, Integers]:
        """Return what happens at each element, by pane and in order, and the standing of each pane afterwards."""
        if not len(by_pane.groups):
            return np.zeros(0, np.int64), standings
        lasts = run_ends(by_pane.groups)
        panes, counts = by_pane.groups[lasts], by_pane.positions[lasts] + 1
        kinds = combined(standings[panes], dense_codes([pa.chunked_array([pa.array(ends[panes])])], len(panes)).codes)
        at = first_rows(kinds)
        most = np.zeros(len(at), np.int64)
        np.maximum.at(most, kinds, counts)
        numbers, bits = list[int](), list[int]()
        for first, count in zip(panes[at].tolist(), most.tolist(), strict=True):
            window = self._windows.window(int(ends[first]))
            answered = self._standings.after_rows(int(standings[first]), window, count)
            numbers += answered[0]
            bits += answered[1]
        offsets = np.cumsum(most) - most
        after = standings.copy()
        after[panes] = np.array(numbers, np.int64)[offsets[kinds] + counts - 1]
        of = np.repeat(offsets[kinds], counts)
        return np.array(bits, np.int64)[of + by_pane.positions], after

    def _answers_row_by_row(
        self, elements: Elements, by_pane: Grouped, standings: Integers, ends: Integers
    ) -> tuple[Integers, Integers]:
        """Return the same where the trigger looks at rows, or at their times."""
        rows, after, bits = AskedRows(self.program, elements.rows), standings.copy(), np.zeros(len(by_pane.order), np.int64)
        numbers = elements.numbers[by_pane.order]
        for at, (pane, row) in enumerate(zip(by_pane.groups.tolist(), numbers.tolist(), strict=True)):
            window = self._windows.window(int(ends[pane]))
            with rows.asking(row, window):
                after[pane], bits[at] = self._standings.after_row(int(after[pane]), window, rows.times[row], rows.values[row])
        return bits, after

    def _report_finished(self, elements: Elements, rows: pa.Table, at: Integers) -> None:
        """Report the elements of panes whose trigger is finished."""
        if len(at):
            at = np.sort(at)
            ends = elements.ends[at]
            windows = [self._windows.window(end) for end in ends.tolist()]
            self.missed.finish(rows, elements.numbers[at], windows)

    def _order_of_firing(self, by_pane: Grouped, cut: _Cut, fired: Integers) -> Integers:
        """Return the elements by which firings are in order: where they are held back, the first of each pane."""
        if not self.program.spec.coalesces_refinements or not len(fired):
            return cut.elements[fired]
        begins = np.unique(run_starts(by_pane.groups))
        return by_pane.order[begins][np.searchsorted(by_pane.groups[begins], cut.panes[fired])]

    def _cut(self, touched: TouchedPanes, before: Panes, by_pane: Grouped, bits: Integers) -> _Cut:
        is_taken = bits & IS_DROPPED == 0
        order, panes, bits = by_pane.order[is_taken], by_pane.groups[is_taken], bits[is_taken]
        ends_piece = bits & (FIRES | PURGES) > 0
        begins = run_starts(panes) == np.arange(len(panes))
        begins[1:] |= ends_piece[:-1]
        pieces = np.cumsum(begins) - 1
        lasts = run_ends(pieces)
        partials = before.partials.slice(0, 0)
        if len(order):
            partials = self._partials(touched.elements, order, pieces)
        held = np.flatnonzero(before.filled)
        all_panes = np.append(held, panes[lasts])
        in_order = stable_order(all_panes)
        atoms = pa.concat_tables([before.partials.take(pa.array(held)), partials]).take(pa.array(in_order))
        all_bits = np.append(np.zeros(len(held), np.int64), bits[lasts])[in_order]
        all_panes = all_panes[in_order]
        elements = np.append(np.full(len(held), -1), order[lasts])[in_order]
        return _Cut(atoms, all_panes, run_starts(all_panes, all_bits & PURGES > 0), all_bits, elements)

    def _partials(self, elements: Elements, order: Integers, pieces: Integers) -> pa.Table:
        """Return the partials of each piece: of elements in ``order``, whose piece is in ``pieces``, ascending."""
        if SLICE in elements.rows.column_names:
            folded = elements.columns(self._names).take(pa.array(order))
            return merge_ranges(self.fold, folded, Ranges(np.unique(run_starts(pieces)), run_ends(pieces)))
        rows = elements.columns(self._arguments).take(pa.array(order))
        return fold_groups(self.fold, rows, pieces).select(self._names)

    # What both use.

    def _ends(self, panes: Panes) -> Integers:
        ends: Integers = panes.keys[SEGMENT].to_numpy()
        return np.full(len(ends), MAX) if self._windows.is_global else ends

    def _last_instants(self, ends: Integers) -> Integers:
        return ends if self._windows.is_global else ends - 1

    def _emit(self, keys: pa.Table, ends: Integers, firings: Firings, before: Shown, fired_under: int) -> Shown:
        starts = None if self._windows.is_global else self._windows.starts(ends)
        last_instants = ends if starts is None else ends - 1
        return self._put_out.put_out(
            keys.select(self._keys), starts, ends, firings, before, last_instants > self.watermark, fired_under
        )

    def _nothing(self, elements: Elements, count: int) -> pa.Table:
        """Return rows of partials that say nothing, of the types that elements fold to."""
        zero = np.zeros(1, np.int64)
        first = Elements(elements.rows.slice(int(elements.numbers[0]), 1), zero, elements.ends[:1])
        return self._partials(first, zero, zero).take(pa.nulls(count, pa.int64()))

    def close(self) -> Left:
        self._state.flush()
        return self.left(
            self._state.filled, self._state.rows.byte_size, not self._state.rows.segments(), self._state.due.next_processing_time
        )


def _held_back(by_pane: Grouped, bits: Integers) -> Integers:
    """Return what happens at each element, where of the firings of late elements of a pane only the last is made."""
    lasts = run_ends(by_pane.groups)
    held_back = bits & ~(FIRES | PURGES)
    held_back[lasts] = bits[lasts]
    return held_back


def _purged_before(bits: Integers, panes: Integers) -> Mask:
    """Return whether the contents of the pane of each step were dropped by a step before it; steps of a pane are neighbours."""
    drops = (bits & (PURGES | IS_CLEARED) > 0).astype(np.int64)
    sums, begins = np.cumsum(drops) - drops, run_starts(panes)
    purged: Mask = sums > sums[begins]
    return purged


def _latest(times: Integers, panes: Integers) -> Integers:
    """Return, for each step, the latest time of its pane so far: a timer that was set for an earlier time fires no earlier."""
    latest = times.copy()
    behind = np.flatnonzero((panes[1:] == panes[:-1]) & (times[1:] < times[:-1])) + 1
    for at in behind.tolist():
        latest[at] = max(latest[at - 1], latest[at])
    return latest


def _forgotten(shown: Shown, over: Mask) -> Shown:
    """Return what panes have emitted, with nothing for those that are over."""
    closed = np.flatnonzero(over)
    numbers = shown.numbers.replaced(closed, PaneNumbers.none(len(closed)))
    return Shown(numbers, np.where(over, NONE, shown.kinds), shown.partials)
