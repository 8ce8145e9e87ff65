"""Kind ``assigner``: which windows elements get, what merges, what is refused, and the slices of the Table runtime."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from verify.conformance.reading.assigners import parse_assigner
from verify.conformance.reading.fields import Json, NotUnderstoodError, read_window, require_known, write_window
from verify.conformance.reading.slices import compare_slices, is_slicing, parse_sliced
from verify.conformance.reading.triggers import TRIGGER_NAMES
from verify.conformance.reading.vectors import Case
from verify.conformance.replay.verdicts import Difference, Options
from windowpane.errors import WindowpaneError
from windowpane.windowing.assigners import MergingWindowAssigner, WindowAssigner
from windowpane.windowing.times import MIN

_CASE = {"id", "kind", "assigner", "calls", "errors", "accepted", "merges", "properties", "slices", "windows_order"}


class AssigningContext:
    """The context of an assigner, with a clock that the vector sets."""

    def __init__(self) -> None:
        """Start with nothing remembered."""
        self.current_processing_time = MIN
        self.current_key: Any = None
        self._remembered: dict[str, int] = {}

    def remember(self, name: str, make: Callable[[], int]) -> int:
        """Return the number kept under ``name``."""
        if name not in self._remembered:
            self._remembered[name] = make()
        return self._remembered[name]


def replay(case: Case, options: Options) -> list[Difference]:
    """Compare every call, merge, refusal, property and slice of the case."""
    require_known(case.body, _CASE, "case")
    fields = case.get("assigner")
    differences = _compare_errors(fields, case.get("errors", [])) + _compare_accepted(fields, case.get("accepted", []))
    if is_slicing(fields):
        return differences + compare_slices(fields, case.get("slices", []))
    if "slices" in case.body:
        raise NotUnderstoodError(f"slices of assigner type {fields['type']!r} are not understood")
    if any(name in case.body for name in ("calls", "merges", "properties")):
        assigner = parse_assigner(fields)
        differences += _compare_calls(assigner, case.get("calls", []), case.get("windows_order", "exact"))
        differences += _compare_merges(assigner, case.get("merges", []))
        differences += _compare_properties(assigner, case.get("properties", {}))
    return differences


def _compare_calls(assigner: WindowAssigner, calls: list[Json], order: str) -> list[Difference]:
    context = AssigningContext()
    differences = []
    for call in calls:
        require_known(call, {"ts", "processing_time", "windows", "value", "key"}, "assigner call")
        got = [write_window(window) for window in _assign(assigner, call, context)]
        expected = call["windows"]
        same = sorted(map(repr, expected)) == sorted(map(repr, got)) if order == "any" else expected == got
        if not same:
            differences.append(Difference(f"call {call}", expected, got))
    return differences


def _assign(assigner: WindowAssigner, call: Json, context: AssigningContext) -> Any:
    if call.get("processing_time") is not None:
        context.current_processing_time = call["processing_time"]
    context.current_key = call.get("key")
    element = {"key": call.get("key"), "value": call.get("value")}
    timestamp = call.get("ts")
    return assigner.assign_windows(element, MIN if timestamp is None else timestamp, context)


def _compare_merges(assigner: WindowAssigner, merges: list[Json]) -> list[Difference]:
    differences = []
    for merge in merges:
        require_known(merge, {"windows", "merged"}, "merge")
        if not isinstance(assigner, MergingWindowAssigner):
            return [Difference("merges", merge["merged"], f"{assigner!r} does not merge")]
        groups = assigner.merge_windows([read_window(window) for window in merge["windows"]])
        got = sorted((write_window(into), sorted(map(write_window, members))) for into, members in groups)
        expected = sorted((group["into"], sorted(group["from"])) for group in merge["merged"])
        if expected != got:
            differences.append(Difference(f"merge of {merge['windows']}", expected, got))
    return differences


def _compare_properties(assigner: WindowAssigner, properties: Json) -> list[Difference]:
    default = assigner.default_trigger()
    actual: Json = {
        "event_time": assigner.is_event_time,
        "merging": isinstance(assigner, MergingWindowAssigner),
        "default_trigger": next((name for name, kind in TRIGGER_NAMES.items() if type(default) is kind), repr(default)),
    }
    require_known(properties, set(actual), "properties")
    return [Difference(name, wanted, actual[name]) for name, wanted in properties.items() if actual[name] != wanted]


def _compare_errors(fields: Json, errors: list[Json]) -> list[Difference]:
    differences = []
    for error in errors:
        require_known(error, {"params", "message_contains", "refused_on", "call", "ts"}, "error")
        at = _refused_at({**fields, **error.get("params", {})}, error)
        if at != error.get("refused_on", "construct"):
            differences.append(Difference(f"refusal of {error}", error.get("refused_on", "construct"), at))
    return differences


def _refused_at(fields: Json, error: Json) -> str:
    try:
        assigner = parse_sliced(fields) if is_slicing(fields) else parse_assigner(fields)
    except WindowpaneError:
        return "construct"
    if isinstance(assigner, WindowAssigner):
        try:
            _assign(assigner, error.get("call", {"ts": error.get("ts", 1)}), AssigningContext())
        except WindowpaneError:
            return "assign"
    return "accepted"


def _compare_accepted(fields: Json, accepted: list[Json]) -> list[Difference]:
    refused = []
    for params in accepted:
        at = _refused_at({**fields, **params}, {})
        if at != "accepted":
            refused.append(Difference(f"parameters {params}", "accepted", f"refused on {at}"))
    return refused
