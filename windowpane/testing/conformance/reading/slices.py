"""The part of kind ``assigner`` that is about slices: types ``slice_tumbling``, ``slice_hopping``, ``slice_cumulative``."""

from __future__ import annotations

from typing import Any

from windowpane.testing.conformance.reading.fields import Json, NotUnderstoodError, require_known
from windowpane.testing.conformance.replay.verdicts import Difference
from windowpane.windowing.slices import CumulativeSlices, HoppingSlices, Slices, TumblingSlices

_CALL = {"op", "is", "ts", "window_end", "window_empty", "result_slice", "to_be_merged"}


def is_slicing(fields: Json) -> bool:
    """Return whether an assigner's JSON is about slices."""
    return str(fields["type"]).startswith("slice_")


def parse_slices(fields: Json) -> Slices:
    """Return the slices.

    Raises:
        NotUnderstoodError: an unknown type or field.
        InvalidSpecError: parameters that windowpane refuses.
    """
    known = {"type", "size_ms", "slide_ms", "max_size_ms", "step_ms", "offset_ms"}
    require_known(fields, known, "slice assigner")
    offset = fields.get("offset_ms", 0)
    if fields["type"] == "slice_tumbling":
        return TumblingSlices(fields["size_ms"], offset)
    if fields["type"] == "slice_hopping":
        return HoppingSlices(fields["size_ms"], fields["slide_ms"], offset)
    if fields["type"] == "slice_cumulative":
        return CumulativeSlices(fields["max_size_ms"], fields["step_ms"], offset)
    raise NotUnderstoodError(f"assigner type {fields['type']!r} is not understood")


def compare_slices(fields: Json, calls: list[Json]) -> list[Difference]:
    """Compare every call on the slices."""
    if not calls:
        return []
    slices = parse_slices(fields)
    differences = []
    for call in calls:
        require_known(call, _CALL, "slice call")
        expected = [call["result_slice"], call["to_be_merged"]] if call["op"] == "merge" else call["is"]
        got = _answer(slices, call)
        if got != expected:
            differences.append(Difference(f"slice call {call}", expected, got))
    return differences


def _answer(slices: Slices, call: Json) -> Any:
    if call["op"] == "slice_end":
        return slices.slice_end(call["ts"])
    if call["op"] == "window_start":
        return slices.window_start(call["window_end"])
    if call["op"] == "expired_slices":
        return slices.expired(call["window_end"])
    if call["op"] == "merge":
        return list(slices.merge(call["window_end"]))
    if call["op"] == "next_trigger_window":
        return slices.next_window(call["window_end"], call["window_empty"])
    raise NotUnderstoodError(f"slice call {call['op']!r} is not understood")
