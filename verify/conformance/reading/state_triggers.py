"""Triggers of the vectors that keep state of their own; each may answer at the window's end as well."""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from verify.conformance.reading.fields import Json, require_known
from windowpane.windowing.triggers import MergeContext, Trigger, TriggerContext, TriggerResult
from windowpane.windowing.windows import Window

CONTINUE = TriggerResult.CONTINUE


@dataclass(frozen=True)
class StateTrigger(Trigger):
    """Waits for the window's end if it is to answer there.

    Args:
        end: the answer at the end, ``None`` for a trigger that does not wait for it.
        result: the answer when what it waits for happens.
    """

    end: TriggerResult | None
    result: TriggerResult

    def wait(self, window: Window, context: TriggerContext) -> None:
        """Register the timer of the end, unless the watermark is already there."""
        if self.end is not None and window.max_timestamp > context.current_watermark:
            context.register_event_time_timer(window.max_timestamp)

    def on_event_time(self, time: int, window: Window, context: TriggerContext) -> TriggerResult:
        """Answer at the end."""
        return CONTINUE if self.end is None or time != window.max_timestamp else self.end

    def can_merge(self) -> bool:
        """Return true."""
        return True

    def on_merge(self, window: Window, context: MergeContext) -> None:
        """Wait for the end of the merged window."""
        self.wait(window, context)

    def clear(self, window: Window, context: TriggerContext) -> None:
        """Take the timer of the end back."""
        if self.end is not None:
            context.delete_event_time_timer(window.max_timestamp)


_EVENT_TIME, _CLOCK = "deadline", "clock"
_DOMAINS = {"event": (_EVENT_TIME,), "processing": (_CLOCK,), "both": (_EVENT_TIME, _CLOCK)}
"""The deadlines that a debounce trigger watches, by the names of their states."""


@dataclass(frozen=True)
class Debounce(StateTrigger):
    """Answers ``gap_ms`` after the first element, or with ``reset`` the last one, in event time, on the clock, or either."""

    gap_ms: int
    domain: str
    reset: bool

    @property
    def uses_processing_time(self) -> bool:
        """Whether the clock is looked at."""
        return _CLOCK in _DOMAINS[self.domain]

    def on_element(self, element: Any, timestamp: int, window: Window, context: TriggerContext) -> TriggerResult:
        """Set the deadlines, or move them."""
        self.wait(window, context)
        for name in _DOMAINS[self.domain]:
            deadline = context.reducing_state(name, max)
            if self.reset or deadline.get() is None:
                _forget(name, context)
                deadline.add((timestamp if name == _EVENT_TIME else context.current_processing_time) + self.gap_ms)
                _register(name, context)
        return CONTINUE

    def on_event_time(self, time: int, window: Window, context: TriggerContext) -> TriggerResult:
        """Answer at the deadline, or at the end."""
        is_due = self._is_due(_EVENT_TIME, time, context)
        return self.result if is_due else super().on_event_time(time, window, context)

    def on_processing_time(self, time: int, window: Window, context: TriggerContext) -> TriggerResult:
        """Answer at the deadline."""
        return self.result if self._is_due(_CLOCK, time, context) else CONTINUE

    def on_merge(self, window: Window, context: MergeContext) -> None:
        """Wait for the later deadline."""
        super().on_merge(window, context)
        for name in _DOMAINS[self.domain]:
            context.merge_reducing_state(name, max)
            _register(name, context)

    def clear(self, window: Window, context: TriggerContext) -> None:
        """Drop deadlines and timers."""
        self._drop(context)
        super().clear(window, context)

    def _is_due(self, name: str, time: int, context: TriggerContext) -> bool:
        is_due = bool(context.reducing_state(name, max).get() == time)
        if is_due:
            self._drop(context)
        return is_due

    def _drop(self, context: TriggerContext) -> None:
        for name in _DOMAINS[self.domain]:
            _forget(name, context)
            context.reducing_state(name, max).clear()


def _register(name: str, context: TriggerContext) -> None:
    time = context.reducing_state(name, max).get()
    if time is not None:
        (context.register_event_time_timer if name == _EVENT_TIME else context.register_processing_time_timer)(time)


def _forget(name: str, context: TriggerContext) -> None:
    time = context.reducing_state(name, max).get()
    if time is not None:
        (context.delete_event_time_timer if name == _EVENT_TIME else context.delete_processing_time_timer)(time)


@dataclass(frozen=True)
class SumLimit(StateTrigger):
    """Answers ``result`` when the sum of the values reaches ``limit``, ``late`` to an element behind the end."""

    limit: int
    late: TriggerResult

    def on_element(self, element: Any, timestamp: int, window: Window, context: TriggerContext) -> TriggerResult:
        """Add the value up."""
        total = context.reducing_state("sum", operator.add)
        total.add(element["value"])
        if total.get() >= self.limit:
            total.clear()
            return self.result
        if window.max_timestamp <= context.current_watermark:
            return self.late
        self.wait(window, context)
        return CONTINUE

    def on_merge(self, window: Window, context: MergeContext) -> None:
        """Add the sums up."""
        context.merge_reducing_state("sum", operator.add)
        super().on_merge(window, context)

    def clear(self, window: Window, context: TriggerContext) -> None:
        """Drop the sum."""
        context.reducing_state("sum", operator.add).clear()
        super().clear(window, context)


@dataclass(frozen=True)
class ListCount(StateTrigger):
    """Answers when ``n`` values were seen, or as many different ones; ``forget_at_merge``: those before a merge do not count."""

    n: int
    distinct: bool
    forget_at_merge: bool

    def on_element(self, element: Any, timestamp: int, window: Window, context: TriggerContext) -> TriggerResult:
        """Note the value."""
        self.wait(window, context)
        seen = context.reducing_state("seen", operator.add)
        seen.add([element["value"]])
        values = seen.get()
        if len(set(values) if self.distinct else values) < self.n:
            return CONTINUE
        seen.clear()
        return self.result

    def on_merge(self, window: Window, context: MergeContext) -> None:
        """Join the lists, or let them go."""
        if not self.forget_at_merge:
            context.merge_reducing_state("seen", operator.add)
        super().on_merge(window, context)

    def clear(self, window: Window, context: TriggerContext) -> None:
        """Drop the list."""
        context.reducing_state("seen", operator.add).clear()
        super().clear(window, context)


_COMPARED: dict[str, Callable[[int, int], bool]] = {"drop": operator.lt, "rise": operator.gt, "same": operator.eq}


@dataclass(frozen=True)
class ValueFlag(StateTrigger):
    """Answers when a value compares so with the one before it; the state is lost at a merge, and kept by ``clear`` if asked."""

    when: str
    keep_state: bool

    def on_element(self, element: Any, timestamp: int, window: Window, context: TriggerContext) -> TriggerResult:
        """Compare the value with the last one."""
        self.wait(window, context)
        last = context.value_state("last")
        before, value = last.get(), element["value"]
        last.update(value)
        return self.result if before is not None and _COMPARED[self.when](value, before) else CONTINUE

    def on_merge(self, window: Window, context: MergeContext) -> None:
        """Wait for the end; the last value is lost."""
        super().on_merge(window, context)

    def clear(self, window: Window, context: TriggerContext) -> None:
        """Drop the last value."""
        if not self.keep_state:
            context.value_state("last").clear()
        super().clear(window, context)


@dataclass(frozen=True)
class Repeat(StateTrigger):
    """Answers ``times`` times, ``every_ms`` apart, from its first element on: a timer that registers itself again."""

    every_ms: int
    times: int
    domain: str

    @property
    def uses_processing_time(self) -> bool:
        """Whether its timers are those of the clock."""
        return self.domain == "processing"

    def on_element(self, element: Any, timestamp: int, window: Window, context: TriggerContext) -> TriggerResult:
        """Begin."""
        self.wait(window, context)
        count = context.value_state("n")
        if count.get() is None:
            count.update(0)
            self._register(context.current_processing_time if self.uses_processing_time else timestamp, context)
        return CONTINUE

    def on_event_time(self, time: int, window: Window, context: TriggerContext) -> TriggerResult:
        """Answer at the end, or as often as asked."""
        if self.uses_processing_time or (self.end is not None and time == window.max_timestamp):
            return super().on_event_time(time, window, context)
        return self._again(time, context)

    def on_processing_time(self, time: int, window: Window, context: TriggerContext) -> TriggerResult:
        """Answer as often as asked."""
        return self._again(time, context) if self.uses_processing_time else CONTINUE

    def on_merge(self, window: Window, context: MergeContext) -> None:
        """Wait for the end; the count is lost."""
        super().on_merge(window, context)

    def clear(self, window: Window, context: TriggerContext) -> None:
        """Drop the count."""
        context.value_state("n").clear()
        super().clear(window, context)

    def _again(self, time: int, context: TriggerContext) -> TriggerResult:
        count = context.value_state("n")
        if count.get() is None:
            return CONTINUE
        if count.get() + 1 < self.times:
            count.update(count.get() + 1)
            self._register(time, context)
        else:
            count.clear()
        return self.result

    def _register(self, time: int, context: TriggerContext) -> None:
        register = context.register_processing_time_timer if self.uses_processing_time else context.register_event_time_timer
        register(time + self.every_ms)


def _parse(kind: type[StateTrigger], fields: Json) -> Trigger:
    given = {"end": None, **fields, **({"result": fields["over"]} if "over" in fields else {})}
    require_known(fields, {"type", "over", *(each.name for each in dataclasses.fields(kind))}, f"{fields['type']} trigger")
    answers = {name: TriggerResult[given[name]] for name in ("end", "result", "late") if given.get(name) is not None}
    return kind(**{name: value for name, value in given.items() if name not in ("type", "over")} | answers)


PARSERS: dict[str, Callable[[Json], Trigger]] = {
    "debounce": partial(_parse, Debounce),
    "sum_limit": partial(_parse, SumLimit),
    "list_count": partial(_parse, ListCount),
    "value_flag": partial(_parse, ValueFlag),
    "repeat": partial(_parse, Repeat),
}
"""A parser for each type; the fields of a trigger are those of its class, and ``over`` is an answer, too."""
