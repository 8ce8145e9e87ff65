"""Panes that rows fire, or timers of their own: clocks and rows in, firings out, whatever the trigger program."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
import pyarrow as pa

from windowpane.arrays import Integers, Mask
from windowpane.arrays.columns import side_by_side
from windowpane.engines.batch.driver import Left
from windowpane.engines.changes import begins_anew
from windowpane.engines.common.columnar import key_names, keyed, with_plain_keys
from windowpane.engines.common.columnar_batch import ColumnarBatch
from windowpane.engines.common.held_panes import ELEMENTS, KNOWN, NEXT, PaneTables, Wanted
from windowpane.engines.common.pane_numbers import PaneNumbers
from windowpane.engines.messages import Message, Partials
from windowpane.engines.panes.called import Called, kinds_of, standings_with_columns_of_now
from windowpane.engines.panes.folded_contents import Contents, Taken
from windowpane.engines.panes.pane_results import NONE, OF_CONTENTS, OF_NOTHING, Firings, PaneResults, Shown
from windowpane.engines.panes.pane_state import Panes, PaneState
from windowpane.engines.panes.standings import Advance
from windowpane.engines.panes.store import touched_panes
from windowpane.engines.panes.trigger_program import (
    FIRES,
    IS_CLEARED,
    IS_DROPPED,
    IS_LAST,
    IS_ON_TIME,
    MAY_BE_EMPTY,
    PURGES,
    Arrived,
    TriggerProgram,
)
from windowpane.engines.panes.windows import Elements, PaneWindows
from windowpane.engines.program import Program
from windowpane.engines.row.reference import ColumnsOfNow
from windowpane.engines.rows import python_keys
from windowpane.engines.spec import BucketEngine
from windowpane.errors import EndlessTimerError, present
from windowpane.hidden_columns import SEGMENT, SLICE, TIME
from windowpane.kernels.grouping.range_merge import Ranges, exploded, fold_groups
from windowpane.kernels.grouping.running_positions import Grouped, run_ends, run_starts
from windowpane.kernels.keys.dense_codes import dense_codes, first_rows
from windowpane.state.blob_store import BlobStore
from windowpane.windowing.arrow_functions import ArrowWindowFunction
from windowpane.windowing.times import MAX
from windowpane.windowing.triggers import ContinuousProcessingTimeTrigger, NeverTrigger
from windowpane.windowing.windows import GLOBAL_WINDOW, TimeWindow


class FiredPanes(ColumnarBatch):
    def __init__(self, engine: BucketEngine[Program], store: BlobStore, triggers: TriggerProgram, contents: Contents) -> None:
        super().__init__(engine, contents.fold, store)
        program = self.program
        self._keys, self._triggers, self._contents = list(key_names(program)), triggers, contents
        self._windows = PaneWindows(self)
        self._state = PaneState(program, triggers, contents, store, self.header.open_windows)
        self.widen(self._state.rows)
        if begins_anew(self.header.description, program.description):
            triggers.set_clocks(self.watermark, self.now)
            self._state.begin_anew(triggers.begun(GLOBAL_WINDOW))
        if self.header.added and isinstance(triggers, Called):
            added = ColumnsOfNow(self.header.columns, program.values)
            self._state.rows.rewrite(partial(standings_with_columns_of_now, added))
        self._put_out = PaneResults(self.results, program.spec.panes)

    # The clocks.

    def on_watermark(self, before: int) -> None:
        if self._triggers.has_timers:
            if self.watermark != before:
                self._advance(event_time=True, fired_under=before)
        elif self.is_event_time:
            self._drop_ended()

    def on_processing_time(self, before: int) -> None:
        if self._triggers.has_timers:
            self._advance(event_time=False, fired_under=self.watermark)
        elif not self.is_event_time and not self._windows.is_global:
            self._drop_ended()

    def _drop_ended(self) -> None:
        for end in self._state.rows.segments():
            if self.is_late(self._windows.window(end)):
                self._state.drop_ended(end)

    def _advance(self, event_time: bool, fired_under: int) -> None:
        clock = self.watermark if event_time else self.now
        segments = self._state.due.segments(clock, event_time)
        if self._triggers.appends and event_time and self.is_event_time:
            segments = self._without_ended(segments, fired_under)
        if self._windows.is_global and segments:
            segments = self._state.rows.segments()
        rows = self._state.rows.read(segments) if segments else None
        if rows is None or not isinstance(self._triggers, Called):
            return
        standings = self._triggers.standings
        standings.set_clocks(self.watermark, self.now)
        panes = self._state.read(rows)
        ends = self._ends(panes)
        first_times = standings.first_times(panes.numbers, self._last_instants(ends), event_time)
        due = np.flatnonzero(first_times <= clock)
        kinds = kinds_of(panes.numbers[due], ends[due])
        at = due[first_rows(kinds)]
        advances = [
            standings.advanced(number, self._windows.window(end), event_time)
            for number, end in zip(panes.numbers[at].tolist(), ends[at].tolist(), strict=True)
        ]
        self._check_ends(advances, panes.keys.take(pa.array(at)), ends[at])
        after = self._fired_by_clock(panes, ends, due, advances, kinds, fired_under)
        self._state.write(after, panes, segments, None, by_clock=True)

    def _without_ended(self, segments: list[int], before: int) -> list[int]:
        """Drop, unread, windows that are over and in which the watermark, which was ``before``, fires nothing any more."""
        by_clock = isinstance(self.program.spec.firing_trigger, ContinuousProcessingTimeTrigger)
        lasts = {end: self._windows.window(end).max_timestamp for end in segments}
        ended = {
            end: last for end, last in lasts.items() if self.lateness.cleanup_time(last) < MAX and (by_clock or last <= before)
        }
        over = {end for end, last in ended.items() if self.lateness.is_over(last, self.watermark)}
        self._state.drop(sorted(over))
        return [end for end in segments if end not in over]

    def _check_ends(self, advances: list[Advance], keys: pa.Table, ends: Integers) -> None:
        for place, advance in enumerate(advances):
            if advance.is_endless:
                (key,) = python_keys(keys.slice(place, 1), self._keys)
                window = self._windows.window(int(ends[place]))
                raise EndlessTimerError(self.program.spec.trigger, key, window, len(advance.steps))

    def _fired_by_clock(
        self, panes: Panes, ends: Integers, due: Integers, advances: list[Advance], kinds: Integers, fired_under: int
    ) -> Panes:
        """Emit the firings of the panes that are ``due``, and return all panes after them."""
        offsets = np.cumsum([0, *(len(each.steps) for each in advances)])
        times = np.array([step.time for each in advances for step in each.steps], np.int64)
        bits = np.array([step.bits for each in advances for step in each.steps], np.int64)
        numbers = np.array([each.number for each in advances], np.int64)
        steps = exploded(Ranges(offsets[kinds], offsets[kinds + 1] - 1))
        of = np.repeat(due, np.diff(offsets)[kinds])
        times, bits = times[steps], bits[steps]
        filled = panes.filled[of] & ~_purged_before(bits, of)
        fires = (bits & FIRES > 0) & (filled | (bits & MAY_BE_EMPTY > 0))
        order = self._by_time(times, ends[of], of)
        at = order[fires[order]]
        partials, left = self._contents.fire(panes.contents, of[at], filled[at])
        kinds_shown = np.where(filled[at], OF_CONTENTS, OF_NOTHING)
        firings = Firings(of[at], partials, kinds_shown, bits[at] & IS_ON_TIME > 0, bits[at] & IS_LAST > 0)
        if isinstance(self.program.arrow, ArrowWindowFunction):  # it sees one firing of a key at a time
            for here in np.split(np.arange(len(at)), np.flatnonzero(np.diff(times[at]) | np.diff(ends[of[at]])) + 1):
                self._emit(panes.keys, ends, firings.at(here), panes.shown, fired_under)
            shown = panes.shown
        else:
            shown = self._emit(panes.keys, ends, firings, panes.shown, fired_under)
        after, is_over, stays = panes.numbers.copy(), np.zeros(len(ends), bool), np.ones(len(ends), bool)
        after[due] = numbers[kinds]
        stays[of[bits & (PURGES | IS_CLEARED) > 0]] = False
        is_over[of[bits & IS_CLEARED > 0]] = True
        return Panes(panes.keys, after, left.of(stays), _forgotten(shown, is_over))

    def _by_time(self, times: Integers, ends: Integers, panes: Integers) -> Integers:
        """Return steps in the order in which timers fire: by time and window, those of a pane in their present order."""
        starts = ends if self._windows.is_global else self._windows.starts(ends)
        order: Integers = np.lexsort((np.arange(len(times)), ends, starts, _latest(times, panes)))
        return order

    # Looking.

    def held(self, wanted: Wanted) -> Iterator[pa.Table]:
        rows, tables = self._state.rows, PaneTables(self.program, self.fold, wanted, self.watermark)
        for segment in rows.segments():
            window = self._windows.window(segment)
            if isinstance(window, TimeWindow) and (not wanted.takes_window(window.start, window.end) or self.is_late(window)):
                continue
            panes = self._state.each(present(rows.read([segment]), "the segment holds something"))
            filled = np.flatnonzero(panes.filled)
            ends = np.full(len(filled), segment if isinstance(window, TimeWindow) else MAX)
            held = panes.keys.take(pa.array(filled))
            if wanted.results and len(filled) and self._contents.fires_at_any_time:
                seen, _ = self._contents.fire(panes.contents, filled, np.ones(len(filled), np.bool_))
                held = side_by_side(held, seen.select(self.fold.columns))
            last_instants = ends - isinstance(window, TimeWindow)
            times = [self._triggers.first_times(panes.numbers[filled], last_instants, each) for each in (True, False)]
            due = np.minimum(*times)
            known: dict[str, Integers | pa.Array] = {
                NEXT: pa.array(due, pa.int64(), mask=due == MAX),
                KNOWN: self._triggers.in_words(panes.numbers[filled]),
            }
            if not self._contents.has_one_row:
                known[ELEMENTS] = np.bincount(panes.contents.panes, minlength=len(panes.numbers))[filled]
            starts = np.full(len(filled), window.start) if isinstance(window, TimeWindow) else None
            yield tables.of(held, starts, ends, rows.size_of(segment), known)

    # The rows.

    def take(self, messages: Sequence[Message]) -> None:
        """Take rows in order of arrival; where their order does not matter, as partials by slice and key."""
        triggers, tables = self._triggers, [message.table for message in messages]
        if are_partials := all(isinstance(message, Partials) for message in messages):
            partials = pa.concat_tables(tables)
            whole, starts = self._windows.folded(partials.sort_by(TIME) if TIME in partials.column_names else partials)
            rows = whole
        else:
            whole, starts = self._windows.sliced(keyed(self.program, self.arrived(tables, triggers.is_ordered)))
            rows = with_plain_keys(self.program, whole)
            if triggers.folds_rows:
                rows = self.fold.fold(rows.append_column(SLICE, pa.array(starts)), [SLICE, *self._keys])
                starts = rows[SLICE].to_numpy()
        triggers.set_clocks(self.watermark, self.now)
        if triggers.appends:
            if rows.num_rows and not isinstance(self.program.spec.firing_trigger, NeverTrigger):  # nobody would see what it holds
                self._append(rows, starts, are_partials)
            return
        elements = self._windows.in_open_windows(rows, starts)
        if len(elements.numbers):
            self._take(elements, whole)

    def _append(self, rows: pa.Table, starts: Integers, are_partials: bool) -> None:
        """Append what only waits for clocks; take the rows that fire windows that have ended."""
        reduced, slices = rows, starts
        if self._contents.has_one_row and not are_partials:
            reduced, slices = self._by_slice_and_key(rows, starts)
        elements = self._windows.in_open_windows(reduced, slices)
        if not len(elements.numbers):
            return
        opened = self._triggers.opened(elements, self._windows.window)
        fires = opened.bits > 0
        if not fires.any():
            self._state.append(elements, opened)
            return
        waiting, late = elements.where(~fires), elements.where(fires)
        if self.program.spec.refines_each and reduced is not rows:
            each = self._windows.in_open_windows(rows, starts)
            late = each.where(self._triggers.opened(each, self._windows.window).bits > 0)
        self._take(late, rows)
        if len(waiting.numbers):
            self._state.append(waiting, self._triggers.opened(waiting, self._windows.window))

    def _by_slice_and_key(self, rows: pa.Table, starts: Integers) -> tuple[pa.Table, Integers]:
        """Return partials by slice and key, each with the time of its first row."""
        codes, firsts = dense_codes([rows[name] for name in self._keys], rows.num_rows, starts)
        partials, named = fold_groups(self.fold, rows, codes), rows.select([*self._keys, TIME]).take(pa.array(firsts))
        named = side_by_side(named, partials.select(self.fold.columns))
        return named.append_column(SLICE, pa.array(starts[firsts])), starts[firsts]

    def _take(self, elements: Elements, whole: pa.Table) -> None:
        """Take elements, whose rows are ``whole`` as they arrived."""
        touched = touched_panes(self._state.rows, elements)
        before = self._state.met(touched)
        arrived = Arrived(elements, touched.element_panes, self._ends(before), self._windows.window)
        bits, numbers = self._triggers.take(arrived, before.numbers)
        spec = self.program.spec
        evicts_behind_each = spec.evicts_after and not spec.purges
        if spec.coalesces_refinements and not evicts_behind_each:
            bits = _held_back(arrived.by_pane, bits)
        if (bits & IS_DROPPED).any():
            self._report_finished(elements, whole, arrived.by_pane.order[bits & IS_DROPPED > 0])
        taken = self._contents.take(before.contents, arrived, bits, before.numbers)
        if spec.coalesces_refinements and evicts_behind_each:
            taken = taken.at(run_ends(taken.panes))
        panes, partials, is_last = taken.panes, taken.partials, taken.bits & IS_LAST > 0
        if (order := self._order_of_firing(arrived, taken)) is not None:
            panes, partials, is_last = panes[order], partials.take(pa.array(order)), is_last[order]
        firings = Firings(panes, partials, np.full(len(panes), OF_CONTENTS), np.zeros(len(panes), bool), is_last)
        shown = self._emit(before.keys, arrived.ends, firings, before.shown, self.watermark)
        self._state.write(Panes(before.keys, numbers, taken.kept, shown), before, touched.segments, touched.others)

    def _report_finished(self, elements: Elements, rows: pa.Table, at: Integers) -> None:
        at = np.sort(at)
        self.missed.finish(rows, elements.numbers[at], [self._windows.window(end) for end in elements.ends[at].tolist()])

    def _order_of_firing(self, arrived: Arrived, taken: Taken) -> Integers | None:
        """Return firings in the order of the elements that they are at, ``None`` where they are.

        Where they are held back, those are the first of each pane.
        """
        at = taken.elements
        if self.program.spec.coalesces_refinements and len(at):
            begins = np.unique(run_starts(arrived.by_pane.groups))
            at = arrived.by_pane.order[begins][np.searchsorted(arrived.by_pane.groups[begins], taken.panes)]
        return None if (at[1:] >= at[:-1]).all() else np.argsort(at, kind="stable")

    # What both use.

    def _ends(self, panes: Panes) -> Integers:
        ends: Integers = panes.keys[SEGMENT].to_numpy()
        return np.full(len(ends), MAX) if self._windows.is_global else ends

    def _last_instants(self, ends: Integers) -> Integers:
        return ends if self._windows.is_global else ends - 1

    def _emit(self, keys: pa.Table, ends: Integers, firings: Firings, before: Shown, fired_under: int) -> Shown:
        starts = None if self._windows.is_global else self._windows.starts(ends)
        is_early = self._last_instants(ends) > self.watermark
        return self._put_out.put_out(keys.select(self._keys), starts, ends, firings, before, is_early, fired_under)

    def close(self) -> Left:
        self._state.flush()
        segments, following = self._state.rows.segments(), self._state.due.next_processing_time
        if not self._triggers.has_timers and not self.is_event_time and not self._windows.is_global:
            following = min((end - 1 for end in segments), default=None)
        is_counted = not self._triggers.appends  # a pane that rows are appended to may have held some before
        return self.left(self._state.filled if is_counted else len(segments), self._state.rows.byte_size, not segments, following)


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
    return Shown(numbers, np.where(over, NONE, shown.kinds), shown.partials, shown.at)
