"""Kinds ``trigger_transcript`` and ``trigger_refusal``: composable triggers and their panes, and those that would lose rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from verify.conformance.reading.assigners import parse_assigner
from verify.conformance.reading.composable_triggers import parse_composable
from verify.conformance.reading.fields import Json, NotUnderstoodError, require_known, write_window
from verify.conformance.reading.vectors import Case
from verify.conformance.replay.pane_runs import HarnessRun, MakeRun
from verify.conformance.replay.verdicts import Difference, Options
from windowpane.errors import InvalidSpecError
from windowpane.testing.records import OutputRecord
from windowpane.windowing.assigners import TumblingEventTimeWindows
from windowpane.windowing.outputs import DELETE, UPDATE_PREIMAGE
from windowpane.windowing.spec import PaneSettings

_CASE = {"id", "kind", "program", "steps", "cut_before", "evaluate", "collect", "beam_timestamp_combiner"}
_PROGRAM = {"assigner", "trigger", "accumulation", "allowed_lateness_ms", "on_time_behavior", "closing_behavior"}
_STEPS = ("element", "bundle", "watermark", "processing_time", "expect")
_INFORMATION = {"cause"}


def replay(case: Case, options: Options, run: MakeRun = HarnessRun) -> list[Difference]:
    """Run the case and compare its panes."""
    require_known(case.body, _CASE, "case")
    if case.get("evaluate", "each") != "each":
        raise NotUnderstoodError("Beam asked the trigger once a bundle, windowpane once a row")
    return _Transcript(case, options, run).run()


def replay_refusal(case: Case, options: Options) -> list[Difference]:
    """Build the trigger, and a program of it, and compare what is refused."""
    require_known(case.body, {"id", "kind", "trigger", "allowed_lateness_ms", "may_lose_data", "refused_at_construction"}, "case")
    try:
        trigger = parse_composable(case.get("trigger"))
    except InvalidSpecError as error:
        wanted = case.get("refused_at_construction", False)
        return [] if wanted else [Difference("construction", "accepted", error)]
    if case.get("refused_at_construction", False):
        return [Difference("construction", "refused", trigger)]
    loses = _is_refused(trigger, int(case.get("allowed_lateness_ms")))
    return [] if loses == case.get("may_lose_data") else [Difference("may_lose_data", case.get("may_lose_data"), loses)]


def _is_refused(trigger: Any, allowed_lateness: int) -> bool:
    settings = PaneSettings("accumulating")
    try:
        settings.trigger(trigger, TumblingEventTimeWindows(10), None, allowed_lateness)
    except InvalidSpecError:
        return True
    return False


class _Transcript:
    def __init__(self, case: Case, options: Options, run: MakeRun) -> None:
        program: Json = case.get("program")
        require_known(program, _PROGRAM, "program")
        settings = PaneSettings(
            program["accumulation"], program["on_time_behavior"], program["closing_behavior"], True, allows_unsafe_triggers=True
        )
        assigner, lateness = parse_assigner(program["assigner"]), int(program["allowed_lateness_ms"])
        self._run = run(assigner, parse_composable(program["trigger"]), settings, lateness, options)
        self._collects = bool(case.get("collect", False))
        self._steps: list[Json] = case.get("steps")
        self._is_cut = "cut_before" in case.body
        self._all: list[OutputRecord] = []

    def run(self) -> list[Difference]:
        differences: list[Difference] = []
        seen: list[OutputRecord] = []
        for number, step in enumerate(self._steps):
            require_known(step, _STEPS, "step")
            if "expect" in step:
                differences += self._compared(f"step {number}", step["expect"], seen)
                seen = []
                continue
            if seen and not self._collects:
                differences.append(Difference(f"step {number - 1}", "no panes", seen))
                seen = []
            seen += self._acted(step)
        if seen and not self._is_cut:
            differences.append(Difference(f"step {len(self._steps) - 1}", "no panes", seen))
        return differences

    def _acted(self, step: Json) -> list[OutputRecord]:
        for element in step.get("bundle", [step["element"]] if "element" in step else []):
            self._run.element(element)
        self._run.settle()
        if "watermark" in step:
            self._run.watermark(step["watermark"])
        if "processing_time" in step:
            self._run.processing_time(step["processing_time"])
        emitted = self._run.take()
        self._all += emitted
        return emitted

    # What is compared.

    def _compared(self, where: str, expect: Json, seen: list[OutputRecord]) -> list[Difference]:
        readers: dict[str, Callable[[], bool]] = {
            "panes": lambda: _same_panes(expect["panes"], _panes(seen)),
            "changes": lambda: _same_multiset(expect["changes"], list(map(_change, seen))),
            "panes_by_window": lambda: self._same_by_window(expect["panes_by_window"]),
            "values_in_order": lambda: [_values(record) for record in self._all] == expect["values_in_order"],
        }
        found = []
        if seen and not {"panes", "changes", "panes_by_window", "values_in_order"} & expect.keys():
            found.append(Difference(where, "no panes", seen))
        for name, expected in expect.items():
            if name in ("late_records_dropped", "dropped_by_finished_trigger"):
                total = self._run.counted()[name]
                is_same, got = total == expected, str(total)
            elif name in readers:
                is_same, got = readers[name](), str(seen)
            else:
                raise NotUnderstoodError(f"expect field {name!r} is not understood")
            if not is_same:
                found.append(Difference(f"{where} {name}", expected, got))
        return found

    def _same_by_window(self, expected: list[Json]) -> bool:
        """Whether the panes of each window that is named held these values; Beam's tests leave out what closing releases."""
        got: dict[str, list[Any]] = {}
        for record in self._all:
            got.setdefault(str(write_window(record.window)), []).append(_values(record))
        return all(got.get(str(each["window"])) == [sorted(values) for values in each["values"]] for each in expected)


def _values(record: OutputRecord) -> list[Any]:
    return sorted(record.value)


def _panes(records: list[OutputRecord]) -> list[Json]:
    shown = []
    for record in records:
        if record.change in (DELETE, UPDATE_PREIMAGE):
            continue
        pane = record.pane
        assert pane is not None, "the program has panes"
        shown.append(
            {
                "window": write_window(record.window),
                "values": _values(record),
                "timing": pane.timing.value,
                "index": pane.index,
                "nonspeculative_index": pane.nonspeculative_index,
                "is_first": pane.is_first,
                "is_last": pane.is_last,
                "timestamp": record.timestamp,
            }
        )
    return shown


def _change(record: OutputRecord) -> Json:
    assert record.pane is not None, "the program has panes"
    return {
        "_change_type": record.change,
        "window": write_window(record.window),
        "values": _values(record),
        "index": record.pane.index,
    }


def _same_panes(expected: list[Json], got: list[Json]) -> bool:
    """Whether the panes of each window are the expected ones, in order, in the fields that are given."""
    by_window: dict[str, list[Json]] = {}
    for pane in got:
        by_window.setdefault(str(pane["window"]), []).append(pane)
    wanted: dict[str, list[Json]] = {}
    for pane in expected:
        wanted.setdefault(str(pane["window"]), []).append(pane)
    if by_window.keys() != wanted.keys():
        return False
    return all(
        len(panes) == len(by_window[window]) and all(map(_is_same, panes, by_window[window])) for window, panes in wanted.items()
    )


def _is_same(expected: Json, got: Json) -> bool:
    fields = expected.keys() - _INFORMATION
    if not fields <= got.keys():
        raise NotUnderstoodError(f"pane fields {sorted(fields - got.keys())} are not understood")
    return all((sorted(expected[name]) if name == "values" else expected[name]) == got[name] for name in fields)


def _same_multiset(expected: list[Json], got: list[Json]) -> bool:
    def spelled(changes: list[Json]) -> list[str]:
        return sorted(str(sorted({**change, "values": sorted(change["values"])}.items())) for change in changes)

    return spelled(expected) == spelled(got)
