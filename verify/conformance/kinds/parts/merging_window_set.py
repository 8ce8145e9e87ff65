"""Kind ``merging_window_set``: which windows are live, what merges, and where contents are kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from verify.conformance.reading.assigners import parse_assigner
from verify.conformance.reading.fields import Json, NotUnderstoodError, read_window, require_known, write_window
from verify.conformance.reading.vectors import Case
from verify.conformance.replay.comparison import frozen
from verify.conformance.replay.verdicts import Difference, Options
from windowpane.operators.window.placement import Merge, MergingWindowSet
from windowpane.windowing.assigners import MergingWindowAssigner
from windowpane.windowing.windows import Window

_CASE = {"id", "kind", "assigner", "calls", "initial", "interpretation"}
_ADD = {
    "add_window",
    "returns",
    "merged",
    "has_merged",
    "merged_state_windows",
    "merged_state_windows_exclude_target",
    "state_window_of_result",
}


def replay(case: Case, options: Options) -> list[Difference]:
    """Run the calls; with ``restart`` the set is persisted and read back after each."""
    require_known(case.body, _CASE, "case")
    assigner = parse_assigner(case.get("assigner"))
    if not isinstance(assigner, MergingWindowAssigner):
        return [Difference("assigner", "one that merges", assigner)]
    initial = {read_window(entry["window"]): read_window(entry["state_window"]) for entry in case.get("initial", [])}
    replayed = _Replay(assigner, initial, case.get("interpretation", {}))
    differences = []
    persists = any("persist" in call for call in case.get("calls"))
    for number, call in enumerate(case.get("calls")):
        found = replayed.call(call)
        differences += [Difference(f"call {number} {each.where}", each.expected, each.got) for each in found]
        if options.restart and not persists:  # what is counted are the writes of one set
            replayed.restart()
    return differences


class _Replay:
    def __init__(self, assigner: MergingWindowAssigner, initial: dict[Window, Window], interpretation: Json) -> None:
        require_known(interpretation, {"merged_state_windows_any_of"}, "interpretation")
        self._assigner = assigner
        self._persisted: dict[Any, Any] | None = initial
        self._windows = MergingWindowSet(assigner, initial)
        self._merged_state_windows = interpretation.get("merged_state_windows_any_of", [])

    def restart(self) -> None:
        self._windows.persist(self._write)
        self._windows = MergingWindowSet(self._assigner, self._persisted or {})

    def _write(self, mapping: dict[Any, Any] | None) -> None:
        self._persisted = mapping

    def call(self, call: Json) -> list[Difference]:
        calls: dict[str, Callable[[Json], list[Difference]]] = {
            "add_window": self._add,
            "state_window_of": self._state_window_of,
            "retire": self._retire,
            "persist": self._persist,
        }
        names = set(call) & set(calls)
        if len(names) != 1:
            raise NotUnderstoodError(f"call {sorted(call)} of a merging window set is not understood")
        return calls[names.pop()](call)

    def _add(self, call: Json) -> list[Difference]:
        require_known(call, _ADD, "add_window")
        merges: list[Merge] = []
        result = self._windows.add(read_window(call["add_window"]), merges.append)
        differences = []
        if "returns" in call and write_window(result) != call["returns"]:
            differences.append(Difference("returns", call["returns"], write_window(result)))
        if "state_window_of_result" in call and self._windows.state_window(result) is None:
            differences.append(Difference("state_window_of_result", call["state_window_of_result"], None))
        if call.get("has_merged", False) and not merges:
            differences.append(Difference("has_merged", True, False))
        if "merged" in call:
            differences += _compare_merge(call["merged"], merges)
        return differences + self._compare_state_windows(call, merges)

    def _compare_state_windows(self, call: Json, merges: list[Merge]) -> list[Difference]:
        differences = []
        if "merged_state_windows" in call:
            got = [write_window(window) for merge in merges for window in merge.merged_state_windows]
            allowed = _alternatives(call["merged_state_windows"]) + self._merged_state_windows
            if not _is_one_of(got, allowed):
                differences.append(Difference("merged_state_windows", call["merged_state_windows"], got))
        if call.get("merged_state_windows_exclude_target", False):
            both = [merge for merge in merges if merge.state_window in merge.merged_state_windows]
            differences += [Difference("merged_state_windows", "without the state window", merge) for merge in both]
        return differences

    def _state_window_of(self, call: Json) -> list[Difference]:
        require_known(call, {"state_window_of", "is"}, "state_window_of")
        window = self._windows.state_window(read_window(call["state_window_of"]))
        got = None if window is None else write_window(window)
        if got in _alternatives(call["is"]):
            return []
        return [Difference(f"state_window_of {call['state_window_of']}", call["is"], got)]

    def _retire(self, call: Json) -> list[Difference]:
        require_known(call, {"retire"}, "retire")
        self._windows.retire(read_window(call["retire"]))
        return []

    def _persist(self, call: Json) -> list[Difference]:
        require_known(call, {"persist", "writes", "written"}, "persist")
        written: list[dict[Any, Any] | None] = []
        self._windows.persist(written.append)
        mapping = (written[-1] if written else None) or {}
        pairs = [{"window": write_window(w), "state_window": write_window(s)} for w, s in mapping.items()]
        differences = []
        # One entry holds the whole mapping here; what matters is whether anything is written at all.
        if "writes" in call and bool(call["writes"]) != bool(written):
            differences.append(Difference("writes", call["writes"], len(written)))
        if "written" in call and {frozen(pair) for pair in call["written"]} != {frozen(pair) for pair in pairs}:
            differences.append(Difference("written", call["written"], pairs))
        return differences


def _alternatives(expected: Any) -> list[Any]:
    if isinstance(expected, dict):
        require_known(expected, {"any_of"}, "alternatives")
        return list(expected["any_of"])
    return [expected]


def _is_one_of(got: list[Any], allowed: list[Any]) -> bool:
    return sorted(got) in [sorted(alternative) for alternative in allowed]


def _compare_merge(expected: Json | None, merges: list[Merge]) -> list[Difference]:
    if expected is None or not merges:
        return [] if expected is None and not merges else [Difference("merged", expected, merges)]
    require_known(expected, {"target", "state_window", "sources", "merged_state_windows"}, "merged")
    merge = merges[-1]
    got = {
        "target": write_window(merge.target),
        "state_window": write_window(merge.state_window),
        "sources": [write_window(window) for window in merge.sources],
        "merged_state_windows": [write_window(window) for window in merge.merged_state_windows],
    }
    return [Difference(f"merged {name}", expected[name], got[name]) for name in expected if not _fits(name, expected, got)]


def _fits(name: str, expected: Json, got: Json) -> bool:
    if name in ("sources", "merged_state_windows"):
        return _is_one_of(got[name], _alternatives(expected[name]))
    return got[name] in _alternatives(expected[name])
