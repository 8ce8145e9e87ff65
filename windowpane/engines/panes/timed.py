"""Panes that clocks fire, key by key, or with an evictor, or that never fire: a kind of trigger program of its own.

For early results (continuous triggers, purging or not), and for evictors under the windows' own triggers: built-in aggregates
only. A pane, what one window holds of one key, is appended to in each batch and evaluated when it fires. What never fires is not
kept.

State, by name in the bucket's blob store, with one segment a window, named by its end: a segment log ``c`` of contents (see
``timed_contents``); for early results the ``fire_times`` of panes; for staggered windows their ``stagger``; and the ``header``.
Who may mutate: this engine, once a batch. Recovery: read them back.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from windowpane.arrays import Integers, Mask
from windowpane.engines.batch.driver import Left
from windowpane.engines.common.columnar import common_refusal, key_names, keyed, with_plain_keys
from windowpane.engines.common.columnar_batch import ColumnarBatch
from windowpane.engines.common.each_refinement import EachRefinement
from windowpane.engines.common.evicting import evictor_refusal, refinement_refusal, survivors_of
from windowpane.engines.messages import Message, Partials
from windowpane.engines.panes.fire_times import FireTimes
from windowpane.engines.panes.store import split
from windowpane.engines.panes.timed_contents import AppendedElements, AppendedPartials, EvaluatedPanes, TimedContents
from windowpane.engines.panes.windows import Elements, PaneWindows
from windowpane.engines.program import Program
from windowpane.errors import present
from windowpane.hidden_columns import END, TIME
from windowpane.kernels.grouping.grouped_fold import GroupedFold
from windowpane.kernels.keys.dense_codes import places_in
from windowpane.state.blob_store import BlobStore
from windowpane.windowing.arrow_functions import ArrowWindowFunction
from windowpane.windowing.assigners import GlobalWindows
from windowpane.windowing.spec import WindowSpec
from windowpane.windowing.times import MAX
from windowpane.windowing.triggers import (
    ContinuousEventTimeTrigger,
    ContinuousProcessingTimeTrigger,
    EndOfStreamTrigger,
    NeverTrigger,
)
from windowpane.windowing.windows import TimeWindow, Window


class Rule(NamedTuple):
    """When panes fire: at the end of their window, each ``interval`` microseconds of a clock, both, or never."""

    at_end: bool
    interval: int | None
    by_event_time: bool


def refusal(program: Program) -> str | None:
    """Return why clocks cannot run a program by a rule, ``None`` if it can."""
    spec = program.spec
    if not _fires(spec):
        return common_refusal(program)
    if (refused := refinement_refusal(spec)) is not None:
        return refused
    if spec.refines_each and isinstance(program.arrow, ArrowWindowFunction):
        return "a function on tables of many keys would see several firings of a key at once"
    return evictor_refusal(program) or common_refusal(program)


def rule_of(spec: WindowSpec) -> Rule | None:
    """Return when the clocks of a trigger fire, ``None`` where more than a clock does."""
    inner = spec.firing_trigger
    is_event_time = spec.assigner.is_event_time
    if not _fires(spec):
        return Rule(False, None, is_event_time)
    if isinstance(spec.assigner, GlobalWindows):
        return Rule(True, None, True) if type(inner) is EndOfStreamTrigger else None
    if spec.fires_at_window_end:
        return Rule(True, None, is_event_time)
    if type(inner) is ContinuousProcessingTimeTrigger:
        return Rule(False, inner.interval, False)
    if type(inner) is ContinuousEventTimeTrigger and is_event_time:
        return Rule(True, inner.interval, True)
    return None


def _fires(spec: WindowSpec) -> bool:
    return type(spec.firing_trigger) is not NeverTrigger


class _Firing(NamedTuple):
    """Panes of one window that fire at one instant of a clock."""

    time: int
    end: int
    results: pa.Table


class TimedPanes(ColumnarBatch):
    """One batch of one bucket: state opened, run, written back."""

    def __init__(self, program: Program, fold: GroupedFold, store: BlobStore) -> None:
        super().__init__(program, fold, store)
        rule = present(rule_of(program.spec), "the planner checked")
        self._rule, self._fires = rule, _fires(program.spec)
        self._purges = program.spec.purges
        self._keys = list(key_names(program))
        self._windows = PaneWindows(self)
        self._refines_each = rule.by_event_time and program.spec.refines_each and not self._windows.is_global
        self._contents = _contents(program, fold, store, self._keys)
        self.widen(self._contents)
        self._fire_times = None if rule.interval is None else FireTimes(store, self._keys, rule.interval)

    # The clocks.

    def on_watermark(self, before: int) -> None:
        if self.watermark == before:
            return  # a fire time behind the watermark waits for its next move
        if self._rule.by_event_time:
            self._fire_due(before, self.watermark, fired_under=before)
        if self.is_event_time:
            self._drop_ended()

    def on_processing_time(self, before: int) -> None:
        if not self._rule.by_event_time:
            self._fire_due(before, self.now, fired_under=self.watermark)
        if not self.is_event_time and not self._windows.is_global:
            self._drop_ended()

    def _drop_ended(self) -> None:
        for end in self._contents.ends():
            if self._is_over(self._windows.window(end)):
                self._contents.drop(end)
        if self._fire_times is not None:
            for end in self._fire_times.ends():
                if self._is_over(self._windows.window(end)):
                    self._fire_times.drop(end)

    def _is_over(self, window: Window) -> bool:
        """Whether a window is cleaned up: never where that would be at ``MAX``, so that the clock may fire it still."""
        by_clock = self.is_event_time and not self._rule.by_event_time
        never = by_clock and self.lateness.cleanup_time(window.max_timestamp) == MAX
        return self.is_late(window) and not never

    def _fire_due(self, before: int, now: int, fired_under: int) -> None:
        """Fire the panes that are due up to ``now``, earliest first."""
        ends = {*self._contents.ends(), *([] if self._fire_times is None else self._fire_times.ends())}
        due = [firing for end in sorted(ends) for firing in self._due(end, before, now)]
        for firing in sorted(due, key=lambda firing: (firing.time, self._bounds(firing.end))):
            self.results.emit(self._windows.window(firing.end), firing.results, fired_under)

    def _bounds(self, end: int) -> tuple[int, int]:
        return getattr(self._windows.window(end), "start", end), end

    def _due(self, end: int, before: int, now: int) -> Iterator[_Firing]:
        """Yield the firings of one window; its contents are then those that the firings leave."""
        last = self._windows.window(end).max_timestamp
        is_ending = self._rule.at_end and last <= now and (before < last or not self._rule.by_event_time)
        pending = None if self._fire_times is None else self._fire_times.advance(end, last, now, is_ending)
        if pending is None and not is_ending:
            return
        panes = self._contents.evaluate(end)
        if panes is None:
            return
        results = panes.results
        has_fired = np.zeros(results.num_rows, bool)
        if pending is not None:
            first_times = pending.times_of(results.select(self._keys))
            for time in pending.ticks:
                fires = (first_times <= time) & ~(has_fired & self._purges)
                yield _Firing(time, end, _fired(panes, fires, has_fired))
                has_fired |= fires
        if is_ending:
            fires = ~(has_fired & self._purges)
            yield _Firing(last, end, _fired(panes, fires, has_fired))
            has_fired |= fires
        self._contents.keep(end, panes.left(has_fired, self._purges))

    # The rows.

    def take(self, messages: Sequence[Message]) -> None:
        tables = [message.table for message in messages]
        if all(isinstance(message, Partials) for message in messages):
            self._take_folded(pa.concat_tables(tables))
            return
        always_in_order = self._fires and (
            self.program.spec.evictor is not None or self._fire_times is not None or self._refines_each
        )
        rows, starts = self._windows.sliced(keyed(self.program, self.arrived(tables, always_in_order)))
        if rows.num_rows and self._fires:  # what never fires need not be kept: it would never be seen
            rows = with_plain_keys(self.program, rows)
            if self._refines_each:
                self._refine_each(rows, starts)
            self._add(self._windows.in_open_windows(*self._contents.reduced(rows, starts)))

    def _take_folded(self, folded: pa.Table) -> None:
        rows, starts = self._windows.folded(folded.sort_by(TIME))
        if rows.num_rows and self._fires:
            self._add(self._windows.in_open_windows(rows, starts))

    def _add(self, elements: Elements) -> None:
        taken = elements.columns(list(dict.fromkeys([*self._keys, TIME, *self._contents.columns])))
        parts = dict(split(taken.append_column(END, pa.array(elements.ends)), END))
        for end in dict.fromkeys(elements.ends.tolist()):  # in the assigner's order, as Flink fires for a late element
            self._add_to(end, parts[end])

    def _add_to(self, end: int, rows: pa.Table) -> None:
        window = self._windows.window(end)
        contents = rows.select(list(dict.fromkeys([*self._keys, *self._contents.columns])))
        if self._is_refined(window):
            self._refine(end, window, contents)
            return
        self._contents.append(end, contents)
        if self._fire_times is not None:
            times = rows[TIME].to_numpy() if self._rule.by_event_time else np.full(rows.num_rows, self.now)
            self._fire_times.start(end, rows.select(self._keys), times, window.max_timestamp)

    def _is_refined(self, window: Window) -> bool:
        """Whether a window fires for each element that arrives, since it has ended."""
        return self._rule.by_event_time and window.max_timestamp <= self.watermark and not self._windows.is_global

    def _refine_each(self, rows: pa.Table, starts: Integers) -> None:
        """Fire again for late rows, once for each."""
        each = EachRefinement(self.fold, self._keys, self._purges, self._refined_windows, self._held)
        fired = each.firings(rows, starts)
        if fired is not None:
            self.results.emit_panes(fired.starts, fired.ends, fired.partials, self.watermark)

    def _refined_windows(self, start: int) -> list[TimeWindow | None]:
        windows = self._windows.open_windows(start)
        return [window if self._is_refined(window) else None for window in windows]

    def _held(self, window: TimeWindow) -> pa.Table | None:
        panes = self._contents.evaluate(window.end)
        return None if panes is None else panes.results

    def _refine(self, end: int, window: Window, rows: pa.Table) -> None:
        """Fire again for late rows: their contents if the trigger purges, else all contents of the touched keys."""
        if self._refines_each:
            if not self._purges:
                self._contents.append(end, rows)
            return
        self._contents.append(end, rows)
        panes = present(self._contents.evaluate(end), "rows were just added")
        touched: Mask = places_in(panes.results.select(self._keys), rows.select(self._keys)) >= 0
        refined = panes.results if self._purges else panes.refined(rows.num_rows)
        self.results.emit(window, refined.filter(pa.array(touched)), self.watermark)
        self._contents.keep(end, panes.left(touched, self._purges))

    def close(self) -> Left:
        self._contents.flush()
        if self._fire_times is not None:
            self._fire_times.flush()
        ends = self._contents.ends()
        is_idle = not ends and not (self._fire_times is not None and self._fire_times.ends())
        return self.left(len(ends), self._byte_size(), is_idle, self._next_processing_time(ends))

    def _byte_size(self) -> int:
        return self._contents.byte_size + (0 if self._fire_times is None else self._fire_times.byte_size)

    def _next_processing_time(self, ends: list[int]) -> int | None:
        by_clock = [] if self.is_event_time or self._windows.is_global else [end - 1 for end in ends]
        if self._fire_times is not None and not self._rule.by_event_time:
            by_clock += self._fire_times.due_times()
        return min(by_clock, default=None)


def _fired(panes: EvaluatedPanes, fires: Mask, has_fired: Mask) -> pa.Table:
    """Return the results of panes that fire, some of them again."""
    if not (fires & has_fired).any() or panes.again is panes.results:
        return panes.results.filter(pa.array(fires))
    anew, again = panes.results.filter(pa.array(fires & ~has_fired)), panes.again.filter(pa.array(fires & has_fired))
    return pa.concat_tables([anew, again])


def _contents(program: Program, fold: GroupedFold, store: BlobStore, keys: list[str]) -> TimedContents:
    if program.spec.evictor is None or not _fires(program.spec):
        return AppendedPartials(store, keys, fold)
    return AppendedElements(store, keys, program, fold, survivors_of(program.spec.evictor))
