"""The window operator, which takes the elements of a batch by key: what all ways to do so share.

Why that is allowed: while elements are taken no clock advances, and no key sees what another one does. So the result of a batch
is that of the operator, which takes elements in order of arrival, for every order that keeps that of each key. Results are put in
the order of the rows that caused them.

Elements that a way does not cover are taken by the operator itself, one by one, with all others of their key.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from windowpane.arrays import Integers, Mask
from windowpane.engines.collecting import OutputCollector
from windowpane.engines.row.assigning import Assigned, windows_by_time
from windowpane.engines.row.contents import Buffer, EvictingRunContents, RunContents, buffer_of
from windowpane.engines.row.elements import Elements
from windowpane.operators.window.contents import contents_for
from windowpane.operators.window.contexts import UserCode
from windowpane.operators.window.operator import WindowOperator
from windowpane.operators.window.timer_service import TimerService
from windowpane.state.keyed import KeyedState
from windowpane.windowing.spec import WindowSpec
from windowpane.windowing.windows import Window


class GroupedOperator(WindowOperator, ABC):
    """Takes the elements of a batch by key."""

    def __init__(self, spec: WindowSpec, state: KeyedState, timers: TimerService, collector: OutputCollector) -> None:
        super().__init__(spec, state, timers, collector)
        self._contents = contents_for(spec, state, self._process_context, RunContents, EvictingRunContents)
        self._at = collector

    @staticmethod
    @abstractmethod
    def covers(spec: WindowSpec) -> bool:
        """Return whether this way is one for a computation."""

    @abstractmethod
    def take(self, elements: Elements) -> None:
        """Take the elements of a batch."""

    def take_one_by_one(self, elements: Elements, numbers: Integers) -> None:
        for number in numbers.tolist():
            key = elements.keys[elements.codes[number]]
            self._at.row_number = elements.first + number
            self.process_element(key.value, elements.values[number], elements.instants[number], key.encoded)

    def _without(self, elements: Elements, apart: Mask) -> Integers:
        """Take the keys that have elements set apart one by one; return the elements of the others."""
        if not apart.any():
            return np.arange(len(elements.codes))
        of_key = np.zeros(len(elements.keys), np.bool_)
        of_key[elements.codes[apart]] = True
        self.take_one_by_one(elements, np.flatnonzero(of_key[elements.codes]))
        return np.flatnonzero(~of_key[elements.codes])

    @property
    def _fires_at_once(self) -> bool:
        """Whether an element that arrives after the end of its window makes it fire there and then."""
        spec = self.spec
        held_back = spec.fires_each_batch or (spec.coalesces_refinements and not spec.evicts_after)
        return spec.fires_for_late_elements and not held_back

    def _buffer(self, state_window: Window) -> Buffer:
        return buffer_of(self._contents, self.counters, state_window)

    def _fail(self, scope: UserCode, window: Window, value: object, error: Exception) -> None:
        """Raise what a call of users' code raised at an element.

        Raises:
            WindowpaneError: always.
        """
        self._element = (value,)
        with scope.of(window):
            raise error


class PlainWindowsOperator(GroupedOperator):
    """Takes the elements of windows that do not merge."""

    def _assigned(self, elements: Elements) -> Assigned | None:
        """Return the windows of elements, ``None`` where they are to be taken one by one."""
        found = windows_by_time(self._assigner, elements, self)
        if found is None:
            return None
        windows, kinds, members = found
        watermark = self.timers.watermark
        return Assigned(windows, kinds, members, [self._lateness.is_late(each.max_timestamp, watermark) for each in windows])

    def _report_all_late(self, elements: Elements, assigned: Assigned, numbers: Integers) -> None:
        for number in numbers[assigned.are_late()[numbers]].tolist():
            key, kind = elements.keys[elements.codes[number]], assigned.kinds[number]
            self._at.row_number = elements.first + number
            missed, accepted = assigned.missed[kind], bool(assigned.live[kind])
            # The collector has the row by its number, so its value is not made.
            self._report_late(key.value, None, elements.instants[number], missed, accepted)
