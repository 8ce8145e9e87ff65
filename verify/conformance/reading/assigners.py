"""A program's assigner as windowpane's. Durations in vectors have no unit: they are taken as microseconds."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from verify.conformance.reading.fields import Json, NotUnderstoodError, read_window, require_known
from verify.conformance.reading.scripted import ScriptedAssigner, ScriptedMergingAssigner
from windowpane.windowing.assigners import (
    AssignerContext,
    CumulateEventTimeWindows,
    EventTimeSessionWindows,
    GlobalWindows,
    MergingWindowAssigner,
    ProcessingTimeSessionWindows,
    SlidingEventTimeWindows,
    SlidingProcessingTimeWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
    WindowAssigner,
    WindowStagger,
)
from windowpane.windowing.triggers import EventTimeTrigger, Trigger
from windowpane.windowing.windows import TimeWindow, Window


@dataclass(frozen=True)
class GapTable:
    """The gap of an element: that of the first row whose ``key`` and ``value``, where given, are the element's."""

    rows: tuple[tuple[tuple[tuple[str, Any], ...], int], ...]

    def __call__(self, element: Any) -> int:
        """Return the gap."""
        for conditions, gap in self.rows:
            if all(element.get(name) == wanted for name, wanted in conditions):
                return gap
        raise NotUnderstoodError(f"no row of the gap_table fits {element!r}")

    @classmethod
    def parse(cls, rows: list[Json]) -> GapTable:
        """Read a ``gap_table``."""
        for row in rows:
            require_known(row, {"key", "value", "gap_ms"}, "gap_table row")
        return cls(tuple((tuple((n, row[n]) for n in ("key", "value") if n in row), row["gap_ms"]) for row in rows))


@dataclass(frozen=True)
class PointSessions(MergingWindowAssigner):
    """Sessions in which an element of value 33 is a point: its window is empty."""

    gap: int

    def assign_windows(self, element: Any, timestamp: int, context: AssignerContext) -> Sequence[Window]:
        """Return the session, or the empty window."""
        return (TimeWindow(timestamp, timestamp if element["value"] == 33 else timestamp + self.gap),)

    def default_trigger(self) -> Trigger:
        """Return the event-time trigger."""
        return EventTimeTrigger()


@dataclass(frozen=True)
class NonEagerMerge(MergingWindowAssigner):
    """A merger that misbehaves: it looks only at the windows that start inside the first one, and covers one more instant."""

    def assign_windows(self, element: Any, timestamp: int, context: AssignerContext) -> Sequence[Window]:
        """Refuse: only its merging is used."""
        raise NotUnderstoodError("non_eager_merge assigns no windows")

    def merge_windows(self, windows: Iterable[Any]) -> list[tuple[Window, list[Window]]]:
        """Merge the windows that start inside the earliest one."""
        first, *rest = sorted(windows)
        joined = [first, *(window for window in rest if first.start <= window.start < first.end)]
        return [(TimeWindow(first.start, first.end + 1), joined)] if len(joined) > 1 else []

    def default_trigger(self) -> Trigger:
        """Return the event-time trigger."""
        return EventTimeTrigger()


_GAP_RULE = re.compile(r"any|always (\d+)")


def _tumbling(kind: type[TumblingEventTimeWindows] | type[TumblingProcessingTimeWindows]) -> Callable[[Json], WindowAssigner]:
    def parse(fields: Json) -> WindowAssigner:
        require_known(fields, {"type", "size_ms", "offset_ms", "stagger"}, "tumbling assigner")
        stagger = WindowStagger[fields.get("stagger", "ALIGNED").upper()]
        return kind.of(fields["size_ms"], fields.get("offset_ms", 0), stagger)

    return parse


def _sliding(kind: type[SlidingEventTimeWindows] | type[SlidingProcessingTimeWindows]) -> Callable[[Json], WindowAssigner]:
    def parse(fields: Json) -> WindowAssigner:
        require_known(fields, {"type", "size_ms", "slide_ms", "offset_ms"}, "sliding assigner")
        return kind.of(fields["size_ms"], fields["slide_ms"], fields.get("offset_ms", 0))

    return parse


def _session(kind: type[EventTimeSessionWindows] | type[ProcessingTimeSessionWindows]) -> Callable[[Json], WindowAssigner]:
    def parse(fields: Json) -> WindowAssigner:
        require_known(fields, {"type", "gap_ms"}, "session assigner")
        return kind.with_gap(fields["gap_ms"])

    return parse


def _dynamic(kind: type[EventTimeSessionWindows] | type[ProcessingTimeSessionWindows]) -> Callable[[Json], WindowAssigner]:
    def parse(fields: Json) -> WindowAssigner:
        require_known(fields, {"type", "gap_rule", "gap_table", "gap_ms"}, "dynamic session assigner")
        if "gap_table" in fields:
            return kind.with_dynamic_gap(GapTable.parse(fields["gap_table"]))
        if "gap_ms" in fields:
            return kind.with_dynamic_gap(GapTable.parse([{"gap_ms": fields["gap_ms"]}]))
        gap = _GAP_RULE.fullmatch(str(fields.get("gap_rule", "any")))
        if gap is None:
            raise NotUnderstoodError(f"gap_rule {fields.get('gap_rule')!r} without a gap_table is not understood")
        return kind.with_dynamic_gap(GapTable.parse([{"gap_ms": int(gap.group(1) or 1)}]))

    return parse


def _global(fields: Json) -> WindowAssigner:
    require_known(fields, {"type", "default_trigger"}, "global assigner")
    default = fields.get("default_trigger", "never")
    if default == "end_of_stream":
        return GlobalWindows.create_with_end_of_stream_trigger()
    if default != "never":
        raise NotUnderstoodError(f"global windows with the default trigger {default!r} are not understood")
    return GlobalWindows.create()


def _cumulate(fields: Json) -> WindowAssigner:
    require_known(fields, {"type", "max_size_ms", "step_ms", "offset_ms"}, "cumulate assigner")
    return CumulateEventTimeWindows.of(fields["max_size_ms"], fields["step_ms"], fields.get("offset_ms", 0))


def _scripted(fields: Json) -> WindowAssigner:
    require_known(fields, {"type", "event_time", "merging", "windows"}, "scripted assigner")
    event_time = fields.get("event_time", True)
    windows = fields.get("windows")
    fixed = None
    if windows is not None:
        fixed = (read_window(windows),) if windows == "GLOBAL" else tuple(read_window(window) for window in windows)
    if fields.get("merging", False):
        return ScriptedMergingAssigner(event_time, fixed)
    return ScriptedAssigner(event_time, fixed)


def _custom(fields: Json) -> WindowAssigner:
    known = {"type", "name", "gap_ms", "event_time", "merging", "custom_rule"}
    require_known(fields, known, "custom assigner")
    if fields.get("name") == "point_session":
        return PointSessions(fields["gap_ms"])
    if fields.get("name") == "non_eager_merge":
        return NonEagerMerge()
    raise NotUnderstoodError(f"custom assigner {fields.get('name')!r} is not understood: {fields.get('custom_rule')}")


_PARSERS: dict[str, Callable[[Json], WindowAssigner]] = {
    "tumbling_event_time": _tumbling(TumblingEventTimeWindows),
    "tumbling_processing_time": _tumbling(TumblingProcessingTimeWindows),
    "sliding_event_time": _sliding(SlidingEventTimeWindows),
    "sliding_processing_time": _sliding(SlidingProcessingTimeWindows),
    "session_event_time": _session(EventTimeSessionWindows),
    "session_processing_time": _session(ProcessingTimeSessionWindows),
    "dynamic_session_event_time": _dynamic(EventTimeSessionWindows),
    "dynamic_session_processing_time": _dynamic(ProcessingTimeSessionWindows),
    "global": _global,
    "cumulate_event_time": _cumulate,
    "scripted": _scripted,
    "custom": _custom,
}


def parse_assigner(fields: Json) -> WindowAssigner:
    """Return the assigner.

    Raises:
        NotUnderstoodError: an unknown type or field.
        WindowpaneError: parameters that windowpane refuses.
    """
    parser = _PARSERS.get(fields["type"])
    if parser is None:
        raise NotUnderstoodError(f"assigner type {fields['type']!r} is not understood")
    return parser(fields)
