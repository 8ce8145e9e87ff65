"""Sessions by key: the windows of a key grow in memory while its elements are taken, and are written once.

Between two elements of a key the operator has a window for each session, with its timers. Only those that the last element leaves
are seen by anybody, so they alone are written: timers of windows that merged away are taken back, those of windows that are
there now are set. Contents stay under the state window of the earliest session, as in the merging window set.

Worked example, gap 3, elements at 1, 3, 5: ``[1, 4)``, ``[1, 6)``, ``[1, 8)``. The operator sets six timers and takes four back.
Here ``[1, 8)`` alone is known to state, with its contents under ``[1, 4)``.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from functools import partial
from operator import attrgetter
from typing import NamedTuple

import numpy as np

from windowpane.engines.row.cells import STEADY
from windowpane.engines.row.contents import Buffer
from windowpane.engines.row.elements import Elements, Key
from windowpane.engines.row.grouped import GroupedOperator
from windowpane.errors import MistakeError
from windowpane.operators.window.placement import MERGING_WINDOW_SET
from windowpane.windowing.assigners import EventTimeSessionWindows, ProcessingTimeSessionWindows
from windowpane.windowing.panes import NO_PANES
from windowpane.windowing.spec import WindowSpec
from windowpane.windowing.times import MAX
from windowpane.windowing.triggers import TriggerResult
from windowpane.windowing.windows import TimeWindow, Window

_SESSIONS = (EventTimeSessionWindows, ProcessingTimeSessionWindows)
_start, _end = attrgetter("start"), attrgetter("end")


class _Session:
    """A live session of the current key."""

    __slots__ = ("buffer", "end", "has_grown", "known", "last", "since", "start", "state_window")

    def __init__(self, start: int, end: int, state_window: Window, known: list[Window]) -> None:
        self.start = start  # where it begins
        self.end = end  # where it ends
        self.state_window = state_window  # the window its contents are stored under
        self.known = known  # the windows that state holds it under: those it was before this batch
        self.buffer: Buffer | None = None
        self.has_grown = False
        self.last = self.since = -1  # the last element of this batch, and the first one that these bounds took

    @property
    def window(self) -> Window:
        window, state_window = TimeWindow(self.start, self.end), self.state_window
        return state_window if window == state_window else window

    def grow(self, start: int, end: int) -> None:
        self.start, self.end = min(self.start, start), max(self.end, end)
        self.has_grown, self.since = True, -1


class _HeldBack(NamedTuple):
    since: int
    key: Key
    window: Window
    answer: TriggerResult


class SessionOperator(GroupedOperator):
    """Takes elements of sessions by key."""

    @staticmethod
    def covers(spec: WindowSpec) -> bool:
        """Return whether windows are sessions of one gap and the trigger answers to all elements of one alike."""
        is_session = type(spec.assigner) in _SESSIONS and not callable(spec.assigner.gap)  # type: ignore[attr-defined]
        return is_session and type(spec.firing_trigger) in STEADY and spec.panes == NO_PANES

    def take(self, elements: Elements) -> None:
        gap: int = self._assigner.gap  # type: ignore[attr-defined]
        latest = int(elements.times.max()) if self._assigner.is_event_time else self.timers.processing_time
        if latest + gap + self.spec.allowed_lateness > MAX:
            self.take_one_by_one(elements, np.arange(len(elements.codes)))
            return
        starts = elements.times if self._assigner.is_event_time else np.full(len(elements.codes), latest)
        ended = starts + gap - 1 <= self.timers.watermark
        numbers = self._without(elements, ended if self._fires_at_once else np.zeros(len(ended), np.bool_))
        self.counters.elements += len(numbers)
        held_back: list[_HeldBack] = []
        for key, run in elements.by_key(numbers):
            self._enter(key.value, key.encoded)
            held_back += self._guarded(partial(self._take_run, elements, key, run, starts[run].tolist(), gap))
        for each in sorted(held_back, key=attrgetter("since")):
            self._refinements[each.key.encoded, each.window] = (each.key.value, each.answer)

    def _take_run(self, elements: Elements, key: Key, run: Sequence[int], starts: Sequence[int], gap: int) -> list[_HeldBack]:
        known: dict[TimeWindow, Window] = self._state.get(None, MERGING_WINDOW_SET) or {}
        sessions = [_Session(each.start, each.end, known[each], [each]) for each in sorted(known)]
        for number, start in zip(run, starts, strict=True):
            value, timestamp = elements.values[number], elements.instants[number]
            self._element = (value,)
            session = self._placed(sessions, start, start + gap)
            if session is None:
                self._at.row_number = elements.first + number
                self._report_late(key.value, value, timestamp, [TimeWindow(start, start + gap)], accepted=False)
                continue
            if session.buffer is None:
                session.buffer = self._buffer(session.state_window)
            try:
                session.buffer.add(value, timestamp)
            except Exception as error:
                self._fail(self._in_accumulator, session.window, value, error)
            session.last = number
            if session.since < 0:
                session.since = number
        touched = [session for session in sessions if session.last >= 0]
        answers = [(session, self._settled(session, elements)) for session in touched]
        placed = {session.window: session.state_window for session in sessions}
        if placed != known:
            self._state.put(None, MERGING_WINDOW_SET, placed)
        return [_HeldBack(session.since, key, session.window, answer) for session, answer in answers if answer.is_fire]

    def _placed(self, sessions: list[_Session], start: int, end: int) -> _Session | None:
        """Return the session that takes an element, ``None`` if it is late. Live sessions neither overlap nor touch."""
        low = bisect_left(sessions, start, key=_end)
        high = bisect_right(sessions, end, lo=low, key=_start)
        if low == high:
            if self._lateness.is_late(end - 1, self.timers.watermark):
                return None
            sessions.insert(low, _Session(start, end, TimeWindow(start, end), []))
            return sessions[low]
        session = sessions[low]
        if high - low > 1:
            self._join(session, sessions[low + 1 : high], start, end)
            del sessions[low + 1 : high]
        elif start < session.start or end > session.end:
            session.grow(start, end)
            self.counters.merges += 1
        return session

    def _join(self, session: _Session, others: Sequence[_Session], start: int, end: int) -> None:
        """Let ``others`` become part of a session that begins before them, with an element from ``start`` to ``end`` between."""
        for each in (session, *others):
            if each.buffer is not None:
                each.buffer.store()
        session.grow(start, max(end, others[-1].end))
        session.known += [window for each in others for window in each.known]
        self.counters.merges += 1
        with self._in_accumulator.of(session.window):
            state_windows = [each.state_window for each in others]
            self.counters.windows_closed += self._contents.merge(session.state_window, state_windows)
        if session.buffer is not None:
            session.buffer.reload()

    def _settled(self, session: _Session, elements: Elements) -> TriggerResult:
        """Write the contents of a session, and set the timers of its present window; return the answer of its trigger."""
        if session.buffer is None:
            raise MistakeError("an element was added")
        session.buffer.store()
        window, value = session.window, elements.values[session.last]
        self._element = (value,)
        if session.has_grown:
            self._check_merge(window)
        with self._in_trigger.of(window):
            for merged in session.known:
                if merged != window:
                    self._trigger.clear(merged, self._trigger_context.at(merged))
                    self._delete_cleanup(merged)
            context = self._trigger_context.at(window)
            answer = self._trigger.on_element(value, elements.instants[session.last], window, context)
        self._register_cleanup(window)
        return answer
