"""Which cases cannot be replayed by a streaming query, and why."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from verify.conformance.engines.spark_scale import LARGEST, times_of
from verify.conformance.reading.fields import Json, NotUnderstoodError
from verify.conformance.reading.vectors import Case
from windowpane.windowing.times import MAX


def refuse(case: Case, stages: Sequence[Json], steps: Sequence[Json]) -> None:
    """Raise for a case that no query can replay.

    Raises:
        NotUnderstoodError: with the reason.
    """
    if any("session" in stage["assigner"]["type"] for stage in stages[1:]):
        raise NotUnderstoodError(f"engine spark: {_OTHER_UNITS}")
    for reason, applies in _REFUSALS.items():
        if any(applies(stage, steps) for stage in stages):
            if reason == _NO_END and case.get("input_sorted_by_ts", False):
                continue
            raise NotUnderstoodError(f"engine spark: {reason}")


def _triggers(stage: Json) -> Iterator[Json]:
    """Yield the trigger, and those it wraps."""
    trigger = stage.get("trigger")
    while trigger is not None:
        yield trigger
        trigger = trigger.get("inner")


def _types(stage: Json) -> Iterator[str]:
    """Yield the types of assigner and triggers."""
    yield stage["assigner"]["type"]
    yield from (trigger["type"] for trigger in _triggers(stage))


def _needs_the_clock(stage: Json, steps: Sequence[Json]) -> bool:
    return any("processing_time" in step for step in steps) or any("processing_time" in kind for kind in _types(stage))


def _is_scripted(stage: Json, steps: Sequence[Json]) -> bool:
    return "scripted" in _types(stage) or any("set_trigger" in step or "build" in step for step in steps)


def _fires_at_the_end(stage: Json, steps: Sequence[Json]) -> bool:
    kinds = set(_types(stage))
    waits = {"event_time", "timer_at", "early_late"} if "global" in kinds else set()
    return bool(kinds & {"end_of_stream", *waits}) and any(step.get("watermark") == MAX for step in steps)


def _depends_on_the_unit(stage: Json, steps: Sequence[Json]) -> bool:
    """Whether an interval ends at the last instant of a window, which is one timer in whole units and two on a finer clock.

    Intervals before 0 are left out as well: Java's remainder rounds them the other way than those that are moved forward.
    """
    intervals = [trigger["interval_ms"] for trigger in _triggers(stage) if trigger["type"] == "continuous_event_time"]
    results = [record for step in steps for record in step.get("expect", {}).get("output", ())]
    return bool(intervals) and (
        any(time < 0 for time in times_of(steps)) or any(record["ts"] % intervals[0] == 0 for record in results)
    )


def _has_no_time(stage: Json, steps: Sequence[Json]) -> bool:
    return any("element" in step and step["element"].get("ts") is None for step in steps)


def _is_far(stage: Json, steps: Sequence[Json]) -> bool:
    return any(abs(time) > LARGEST for time in times_of(steps))


def _other_types(stage: Json, steps: Sequence[Json]) -> bool:
    elements = [step["element"] for step in steps if "element" in step]
    known = [isinstance(e["key"], str | None) and isinstance(e["value"], int) for e in elements]
    return not all(known)


_OTHER_UNITS = "a session of results begins with their last instant, which is a microsecond there and a whole unit in the case"
_NO_END = "a stream has no end, so what fires at watermark MAX never does"
_REFUSALS: dict[str, Callable[[Json, Sequence[Json]], bool]] = {
    "processing time cannot be set": _needs_the_clock,
    "scripted parts": _is_scripted,
    "a function cannot be shown to fail from inside a query": lambda stage, steps: any("expect_error" in s for s in steps),
    _NO_END: _fires_at_the_end,
    "intervals that end at the last instant of a window depend on the unit of time": _depends_on_the_unit,
    "an event time is never missing in a stream": _has_no_time,
    "times at the limits of int64": _is_far,
    "keys that are no strings, values that are no integers": _other_types,
}
