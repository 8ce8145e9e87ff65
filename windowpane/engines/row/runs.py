"""Runs: the elements of one key after the other, for triggers that may answer to each as they like.

Contents stay in a buffer between two firings, so that state is read and written once a window and firing.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from windowpane.engines.row.assigning import Assigned, assigns_by_time
from windowpane.engines.row.contents import Buffer
from windowpane.engines.row.elements import Elements
from windowpane.engines.row.grouped import PlainWindowsOperator
from windowpane.operators.window.contexts import OperatorTriggerContext
from windowpane.operators.window.timer_service import TimerService
from windowpane.state.keyed import KeyedState
from windowpane.windowing.spec import WindowSpec
from windowpane.windowing.triggers import TriggerResult
from windowpane.windowing.triggers.base import ValueState, checked_result
from windowpane.windowing.triggers.composable.pane_trigger import PaneTrigger
from windowpane.windowing.windows import Window


class _Context(OperatorTriggerContext):
    """The context of one window of the current key: a state is made once, and found from then on."""

    def __init__(self, state: KeyedState, timers: TimerService) -> None:
        super().__init__(state, timers)
        self._values: dict[str, ValueState] = {}

    def value_state(self, name: str) -> ValueState:
        found = self._values.get(name)
        if found is None:
            found = self._values[name] = super().value_state(name)
        return found


class _Live(NamedTuple):
    window: Window
    buffer: Buffer
    context: OperatorTriggerContext


class RunOperator(PlainWindowsOperator):
    """Takes elements by key."""

    @staticmethod
    def covers(spec: WindowSpec) -> bool:
        """Return whether windows are plain, every firing is emitted at once, and no trigger is ever finished."""
        waits = spec.coalesces_refinements or spec.fires_each_batch
        return assigns_by_time(spec.assigner) and not waits and not isinstance(spec.trigger, PaneTrigger)

    def take(self, elements: Elements) -> None:
        assigned = self._assigned(elements)
        numbers = np.arange(len(elements.codes))
        if assigned is None:
            self.take_one_by_one(elements, numbers)
            return
        self.counters.elements += len(numbers)
        self._report_all_late(elements, assigned, numbers)
        for key, run in elements.by_key(numbers):
            self._enter(key.value, key.encoded)
            self._guarded(partial(self._take_run, elements, assigned, run))

    def _take_run(self, elements: Elements, assigned: Assigned, run: Sequence[int]) -> None:
        lives: dict[int, _Live] = {}
        on_element, kinds = self._trigger.on_element, assigned.kinds[run].tolist()
        for number, kind in zip(run, kinds, strict=True):
            value, timestamp = elements.values[number], elements.instants[number]
            for place in assigned.live[kind]:
                live = lives.get(place)
                if live is None:
                    self._element = (value,)
                    live = lives[place] = self._open(assigned.windows[place])
                scope = self._in_accumulator
                try:
                    live.buffer.add(value, timestamp)
                    scope = self._in_trigger
                    answer = on_element(value, timestamp, live.window, live.context)
                except Exception as error:
                    self._fail(scope, live.window, value, error)
                if answer is not TriggerResult.CONTINUE:
                    self._element, self._at.row_number = (value,), elements.first + number
                    self._answer(answer, live)
        for live in lives.values():
            live.buffer.store()
            self._register_cleanup(live.window)

    def _open(self, window: Window) -> _Live:
        with self._in_trigger.of(window):
            self._trigger.check_window(window)
        context = _Context(self._state, self.timers).at(window)
        return _Live(window, self._buffer(window), context)

    def _answer(self, answer: TriggerResult, live: _Live) -> None:
        checked_result(self._trigger, answer, live.window)
        firing = live.context.announced()
        if firing is not None:
            self._trigger_context.announce(firing)
        live.buffer.store()
        self._act(answer, live.window, live.window)
        live.buffer.reload()
