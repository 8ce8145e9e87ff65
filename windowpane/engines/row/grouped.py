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
from windowpane.engines.row.elements import Elements
from windowpane.engines.row.holding import Holding, holding
from windowpane.operators.window.operator import WindowOperator
from windowpane.operators.window.timer_service import TimerService
from windowpane.operators.window.user_code import UserCode
from windowpane.state.keyed import KeyedState
from windowpane.windowing.spec import WindowSpec
from windowpane.windowing.windows import Window


class GroupedOperator(WindowOperator, ABC):
    """Takes the elements of a batch by key."""

    def __init__(self, spec: WindowSpec, state: KeyedState, timers: TimerService, collector: OutputCollector) -> None:
        """Run ``spec`` as the operator does, and say to ``collector`` at which row it is."""
        super().__init__(spec, state, timers, collector)
        self._at = collector

    @staticmethod
    @abstractmethod
    def covers(spec: WindowSpec) -> bool:
        """Return whether this way is one for a computation."""

    @abstractmethod
    def take(self, elements: Elements) -> None:
        """Take the elements of a batch."""

    def take_one_by_one(self, elements: Elements, numbers: Integers) -> None:
        """Take some elements as the operator does."""
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

    def _holding(self, state_window: Window) -> Holding:
        return holding(self._contents, self.counters, state_window)

    def _fail(self, scope: UserCode, window: Window, value: object, error: Exception) -> None:
        """Raise what a call of users' code raised at an element.

        Raises:
            WindowpaneError: always.
        """
        self._element = (value,)
        with scope.of(window):
            raise error
