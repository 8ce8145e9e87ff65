"""A program's trigger as windowpane's, and the triggers that only the vectors know, written as a user would write them."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from verify.conformance.reading.fields import Json, NotUnderstoodError, require_known
from verify.conformance.reading.scripted import CALLBACKS, Script, ScriptedTrigger
from verify.conformance.reading.state_triggers import PARSERS as STATE_TRIGGERS
from windowpane.windowing.times import wrap_int64
from windowpane.windowing.triggers import (
    ContinuousEventTimeTrigger,
    ContinuousProcessingTimeTrigger,
    CountTrigger,
    DeltaTrigger,
    EndOfStreamTrigger,
    EventTimeTrigger,
    MergeContext,
    NeverTrigger,
    ProcessingTimeoutTrigger,
    ProcessingTimeTrigger,
    PurgingTrigger,
    Trigger,
    TriggerContext,
    TriggerResult,
)
from windowpane.windowing.windows import Window


def new_minus_old(old: Any, new: Any) -> float:
    """Return the growth of ``value``."""
    return float(new["value"] - old["value"])


def absolute_difference(old: Any, new: Any) -> float:
    """Return the change of ``value``."""
    return float(abs(new["value"] - old["value"]))


DELTAS: dict[str, Callable[[Any, Any], float]] = {"new_minus_old": new_minus_old, "abs": absolute_difference}


def parse_delta(fields: Json) -> Callable[[Any, Any], float]:
    """Return the delta function of a trigger or evictor: ``delta_fn``, or Flink's test function, described in words."""
    name = fields.get("delta_fn")
    if name is None and "delta" in fields:
        name = "new_minus_old" if "newest (last) element minus" in fields["delta"] else fields["delta"]
    if name not in DELTAS:
        raise NotUnderstoodError(f"delta function {name!r} is not understood")
    return DELTAS[name]


@dataclass(frozen=True)
class EarlyLateTrigger(Trigger):
    """Answers ``early`` at every so many elements, ``end`` at the window's end, ``late`` to each element behind it."""

    every: int
    early: TriggerResult
    end: TriggerResult
    late: TriggerResult

    def on_element(self, element: Any, timestamp: int, window: Window, context: TriggerContext) -> TriggerResult:
        """Count the element, or answer that it is late."""
        if window.max_timestamp <= context.current_watermark:
            return self.late
        context.register_event_time_timer(window.max_timestamp)
        count = context.reducing_state("count", operator.add)
        count.add(1)
        if count.get() >= self.every:
            count.clear()
            return self.early
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: Window, context: TriggerContext) -> TriggerResult:
        """Answer at the end."""
        return self.end if time == window.max_timestamp else TriggerResult.CONTINUE

    def can_merge(self) -> bool:
        """Return true."""
        return True

    def on_merge(self, window: Window, context: MergeContext) -> None:
        """Add the counts up and wait for the end, unless the watermark is already there."""
        context.merge_reducing_state("count", operator.add)
        if window.max_timestamp > context.current_watermark:
            context.register_event_time_timer(window.max_timestamp)

    def clear(self, window: Window, context: TriggerContext) -> None:
        """Drop count and timer."""
        context.reducing_state("count", operator.add).clear()
        context.delete_event_time_timer(window.max_timestamp)


@dataclass(frozen=True)
class TimerAtTrigger(Trigger):
    """Fires at a fixed distance from the window's end, also when that lies in the past."""

    offset: int
    check_time: bool
    keep_timer: bool

    def _time(self, window: Window) -> int:
        return wrap_int64(window.max_timestamp + self.offset)  # the oracle's trigger is Java

    def on_element(self, element: Any, timestamp: int, window: Window, context: TriggerContext) -> TriggerResult:
        """Wait for the time."""
        context.register_event_time_timer(self._time(window))
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: Window, context: TriggerContext) -> TriggerResult:
        """Fire: on every timer, or only on its own."""
        fires = not self.check_time or time == self._time(window)
        return TriggerResult.FIRE if fires else TriggerResult.CONTINUE

    def can_merge(self) -> bool:
        """Return true."""
        return True

    def on_merge(self, window: Window, context: MergeContext) -> None:
        """Wait for the time of the merged window."""
        context.register_event_time_timer(self._time(window))

    def clear(self, window: Window, context: TriggerContext) -> None:
        """Take the timer back, unless it is to be left over."""
        if not self.keep_timer:
            context.delete_event_time_timer(self._time(window))


@dataclass(frozen=True)
class FireOnEverything(Trigger):
    """Fires at every callback and registers nothing."""

    def on_element(self, element: Any, timestamp: int, window: Window, context: TriggerContext) -> TriggerResult:
        """Fire."""
        return TriggerResult.FIRE

    def on_event_time(self, time: int, window: Window, context: TriggerContext) -> TriggerResult:
        """Fire."""
        return TriggerResult.FIRE

    def on_processing_time(self, time: int, window: Window, context: TriggerContext) -> TriggerResult:
        """Fire."""
        return TriggerResult.FIRE

    def can_merge(self) -> bool:
        """Return true: there is nothing to carry over."""
        return True

    def on_merge(self, window: Window, context: MergeContext) -> None:
        """Do nothing."""

    def clear(self, window: Window, context: TriggerContext) -> None:
        """Do nothing."""


@dataclass(frozen=True)
class NonMergingTrigger(Trigger):
    """Never fires and cannot merge."""

    def on_element(self, element: Any, timestamp: int, window: Window, context: TriggerContext) -> TriggerResult:
        """Continue."""
        return TriggerResult.CONTINUE

    def clear(self, window: Window, context: TriggerContext) -> None:
        """Do nothing."""


_CUSTOM: dict[str, Callable[[], Trigger]] = {
    "fire_on_everything": FireOnEverything,
    "non_merging": NonMergingTrigger,
}


def _custom(fields: Json) -> Trigger:
    require_known(fields, {"type", "name", "custom_rule", "can_merge"}, "custom trigger")
    trigger = _CUSTOM.get(fields.get("name", ""))
    if trigger is None:
        raise NotUnderstoodError(f"custom trigger {fields.get('name')!r} is not understood: {fields.get('custom_rule')}")
    return trigger()


def _purging(fields: Json) -> Trigger:
    require_known(fields, {"type", "inner"}, "purging trigger")
    return PurgingTrigger.of(parse_trigger(fields["inner"]))


def _timeout(fields: Json) -> Trigger:
    known = {"type", "inner", "timeout_ms", "reset_on_new_record", "clear_on_timeout"}
    require_known(fields, known, "processing_timeout trigger")
    reset, clear = fields.get("reset_on_new_record", False), fields.get("clear_on_timeout", True)
    return ProcessingTimeoutTrigger.of(parse_trigger(fields["inner"]), fields["timeout_ms"], reset, clear)


def _early_late(fields: Json) -> Trigger:
    require_known(fields, {"type", "every", "early", "end", "late"}, "early_late trigger")
    answers = (TriggerResult[fields[name]] for name in ("early", "end", "late"))
    return EarlyLateTrigger(fields["every"], *answers)


def _timer_at(fields: Json) -> Trigger:
    require_known(fields, {"type", "offset_ms", "check_time", "keep_timer"}, "timer_at trigger")
    return TimerAtTrigger(fields["offset_ms"], fields["check_time"], fields["keep_timer"])


def _scripted(fields: Json) -> Trigger:
    require_known(fields, {"type", "can_merge", *CALLBACKS}, "scripted trigger")
    script = Script()
    script.replace({name: fields[name] for name in CALLBACKS if name in fields})
    return ScriptedTrigger(script, fields.get("can_merge", True))


def _counting(fields: Json) -> Trigger:
    require_known(fields, {"type", "count"}, "count trigger")
    return CountTrigger.of(fields["count"])


def _delta(fields: Json) -> Trigger:
    require_known(fields, {"type", "threshold", "delta_fn", "delta"}, "delta trigger")
    return DeltaTrigger.of(fields["threshold"], parse_delta(fields))


def _continuous(kind: type[ContinuousEventTimeTrigger] | type[ContinuousProcessingTimeTrigger]) -> Callable[[Json], Trigger]:
    def parse(fields: Json) -> Trigger:
        require_known(fields, {"type", "interval_ms"}, "continuous trigger")
        return kind.of(fields["interval_ms"])

    return parse


def _plain(kind: Callable[[], Trigger]) -> Callable[[Json], Trigger]:
    def parse(fields: Json) -> Trigger:
        require_known(fields, {"type"}, f"{fields['type']} trigger")
        return kind()

    return parse


_PARSERS: dict[str, Callable[[Json], Trigger]] = {
    "event_time": _plain(EventTimeTrigger),
    "processing_time": _plain(ProcessingTimeTrigger),
    "never": _plain(NeverTrigger),
    "end_of_stream": _plain(EndOfStreamTrigger),
    "non_merging": _plain(NonMergingTrigger),
    "count": _counting,
    "delta": _delta,
    "purging": _purging,
    "continuous_event_time": _continuous(ContinuousEventTimeTrigger),
    "continuous_processing_time": _continuous(ContinuousProcessingTimeTrigger),
    "processing_timeout": _timeout,
    "early_late": _early_late,
    "timer_at": _timer_at,
    "scripted": _scripted,
    "custom": _custom,
    **STATE_TRIGGERS,
}


def parse_trigger(fields: Json) -> Trigger:
    """Return the trigger.

    Raises:
        NotUnderstoodError: an unknown type or field.
        WindowpaneError: parameters that windowpane refuses.
    """
    parser = _PARSERS.get(fields["type"])
    if parser is None:
        raise NotUnderstoodError(f"trigger type {fields['type']!r} is not understood")
    return parser(fields)


def script_of(trigger: Trigger) -> Script | None:
    """Return the script inside a trigger, through wrappers; ``None`` if there is none."""
    inner: Any = trigger
    while not isinstance(inner, ScriptedTrigger):
        if not hasattr(inner, "inner"):
            return None
        inner = inner.inner
    return inner.script


TRIGGER_NAMES: dict[str, type[Trigger]] = {
    "event_time": EventTimeTrigger,
    "processing_time": ProcessingTimeTrigger,
    "never": NeverTrigger,
    "end_of_stream": EndOfStreamTrigger,
}
"""The default triggers, as vectors call them."""
