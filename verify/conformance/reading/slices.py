"""The part of kind ``assigner`` that is about slices: types ``slice_tumbling``, ``slice_hopping``, ``slice_cumulative``.

They are read as the assigners whose windows the engines cut into slices, and answered by these slices. Flink names a slice by
its end, the engines by its start.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from verify.conformance.reading.fields import Json, NotUnderstoodError, require_known
from verify.conformance.replay.verdicts import Difference
from windowpane.engines.common.slicing import SharedSlices
from windowpane.windowing.assigners import (
    CumulateEventTimeWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
    WindowAssigner,
)

_CALL = {"op", "is", "ts", "window_end", "window_empty", "result_slice", "to_be_merged"}
_FOLDED = "Flink SQL folds cumulating windows into their first slice: slices here stay apart until the last window ends"
_TIMERS = "Flink SQL sets the timer of the next window: windows here are due as the watermark passes them"
_PARTS = "windows here may slide by any part of their size"


def is_slicing(fields: Json) -> bool:
    """Return whether an assigner's JSON is about slices."""
    return str(fields["type"]).startswith("slice_")


def parse_sliced(fields: Json) -> WindowAssigner:
    """Return the assigner whose windows are cut.

    Raises:
        NotUnderstoodError: an unknown type or field, or parameters that Flink SQL refuses and windowpane takes.
        InvalidSpecError: parameters that windowpane refuses.
    """
    known = {"type", "size_ms", "slide_ms", "max_size_ms", "step_ms", "offset_ms"}
    require_known(fields, known, "slice assigner")
    offset = fields.get("offset_ms", 0)
    if fields["type"] == "slice_tumbling":
        return TumblingEventTimeWindows(fields["size_ms"], offset)
    if fields["type"] == "slice_hopping":
        assigner = SlidingEventTimeWindows(fields["size_ms"], fields["slide_ms"], offset)
        if assigner.size % assigner.slide:
            raise NotUnderstoodError(_PARTS)
        return assigner
    if fields["type"] == "slice_cumulative":
        return CumulateEventTimeWindows(fields["max_size_ms"], fields["step_ms"], offset)
    raise NotUnderstoodError(f"assigner type {fields['type']!r} is not understood")


def compare_slices(fields: Json, calls: list[Json]) -> list[Difference]:
    """Compare every call on the slices."""
    if not calls:
        return []
    slices = SharedSlices.of(parse_sliced(fields))
    assert slices is not None, "windows of fixed size have slices"
    is_cumulating = fields["type"] == "slice_cumulative"
    differences = []
    for call in calls:
        require_known(call, _CALL, "slice call")
        expected = sorted(_expected(call)) if call["op"] == "merge" else call["is"]
        got = _answer(slices, call, is_cumulating)
        if got != expected:
            differences.append(Difference(f"slice call {call}", expected, got))
    return differences


def _expected(call: Json) -> set[int]:
    """Return the slices that a window is made of, by their ends."""
    return {*call["to_be_merged"], *([] if call["result_slice"] is None else [call["result_slice"]])}


def _answer(slices: SharedSlices, call: Json, is_cumulating: bool) -> Any:
    if call["op"] == "slice_end":
        return int(slices.starts(np.array([call["ts"]]))[0]) + slices.length
    if call["op"] == "next_trigger_window":
        raise NotUnderstoodError(_TIMERS)
    start = int(slices.window_starts(np.array([call["window_end"]]))[0])
    if call["op"] == "window_start":
        return start
    if is_cumulating:
        raise NotUnderstoodError(_FOLDED)
    held = list(slices.between(start, call["window_end"]))
    if call["op"] == "merge":
        return [each + slices.length for each in held]
    if call["op"] == "expired_slices":
        over = [each for each in held if all(window.end <= call["window_end"] for window in slices.windows_of(each))]
        return [each + slices.length for each in over]
    raise NotUnderstoodError(f"slice call {call['op']!r} is not understood")
