"""Kind ``trigger``: one trigger alone, on a ``TriggerTestHarness``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from verify.conformance.reading.fields import Json, NotUnderstoodError, read_window, require_known, write_window
from verify.conformance.reading.scripted import Script
from verify.conformance.reading.triggers import parse_trigger, script_of
from verify.conformance.reading.vectors import Case
from verify.conformance.replay.comparison import frozen
from verify.conformance.replay.verdicts import Difference, Options
from windowpane.testing.trigger_harness import Firing, TriggerTestHarness
from windowpane.windowing.triggers import TriggerResult
from windowpane.windowing.windows import Window

_CASE = {"id", "kind", "trigger", "steps", "can_merge"}
_FIRINGS = {"firings", "firings_of", "firings_include"}


def replay(case: Case, options: Options) -> list[Difference]:
    """Run the steps; triggers keep nothing themselves, so a restart has nothing to show."""
    require_known(case.body, _CASE, "case")
    trigger = parse_trigger(case.get("trigger"))
    differences = []
    if "can_merge" in case.body and trigger.can_merge() != case.get("can_merge"):
        differences.append(Difference("can_merge", case.get("can_merge"), trigger.can_merge()))
    replayed = _Replay(TriggerTestHarness(trigger), script_of(trigger))
    for number, step in enumerate(case.get("steps", [])):
        found = replayed.step(step)
        differences += [Difference(f"step {number} {each.where}", each.expected, each.got) for each in found]
    return differences


class _Replay:
    def __init__(self, harness: TriggerTestHarness, script: Script | None) -> None:
        self._harness = harness
        self._script = script

    def step(self, step: Json) -> list[Difference]:
        steps: dict[str, Callable[[Json], list[Difference]]] = {
            "element": self._element,
            "advance_watermark": self._advance_watermark,
            "advance_processing_time": self._advance_processing_time,
            "on_event_time": self._on_event_time,
            "on_processing_time": self._on_processing_time,
            "merge": self._merge,
            "clear": self._clear,
            "set_trigger": self._set_trigger,
            "expect": self._expect,
        }
        names = set(step) & set(steps)
        if len(names) != 1:
            raise NotUnderstoodError(f"trigger step {sorted(step)} is not understood")
        return steps[names.pop()](step)

    def _element(self, step: Json) -> list[Difference]:
        require_known(step, {"element", "result"}, "element step")
        element = step["element"]
        require_known(element, {"window", "value", "ts", "key"}, "element")
        row = {"key": element.get("key"), "value": element.get("value")}
        got = self._harness.process_element(row, read_window(element["window"]), element.get("ts"))
        return _compare_result(step, got)

    def _advance_watermark(self, step: Json) -> list[Difference]:
        require_known(step, {"advance_watermark", *_FIRINGS}, "advance_watermark step")
        return _compare_firings(step, self._harness.advance_watermark(step["advance_watermark"]))

    def _advance_processing_time(self, step: Json) -> list[Difference]:
        require_known(step, {"advance_processing_time", *_FIRINGS}, "advance_processing_time step")
        return _compare_firings(step, self._harness.advance_processing_time(step["advance_processing_time"]))

    def _on_event_time(self, step: Json) -> list[Difference]:
        return self._invoke(step, "on_event_time", self._harness.invoke_on_event_time)

    def _on_processing_time(self, step: Json) -> list[Difference]:
        return self._invoke(step, "on_processing_time", self._harness.invoke_on_processing_time)

    def _invoke(self, step: Json, name: str, invoke: Callable[[int, Window], TriggerResult]) -> list[Difference]:
        require_known(step, {name, "result", "no_error"}, f"{name} step")
        require_known(step[name], {"time", "window"}, name)
        return _compare_result(step, invoke(step[name]["time"], read_window(step[name]["window"])))

    def _merge(self, step: Json) -> list[Difference]:
        require_known(step, {"merge"}, "merge step")
        require_known(step["merge"], {"into", "from"}, "merge")
        sources = [read_window(window) for window in step["merge"]["from"]]
        self._harness.merge_windows(read_window(step["merge"]["into"]), sources)
        return []

    def _clear(self, step: Json) -> list[Difference]:
        require_known(step, {"clear"}, "clear step")
        self._harness.clear(read_window(step["clear"]))
        return []

    def _set_trigger(self, step: Json) -> list[Difference]:
        require_known(step, {"set_trigger"}, "set_trigger step")
        self._required_script().replace(step["set_trigger"])
        return []

    def _required_script(self) -> Script:
        if self._script is None:
            raise NotUnderstoodError("the step needs a scripted trigger")
        return self._script

    # Expectations.

    def _expect(self, step: Json) -> list[Difference]:
        require_known(step, {"expect"}, "expect step")
        differences = []
        for name, expected in step["expect"].items():
            got = self._read(name, expected)
            if got != expected:
                differences.append(Difference(name, expected, got))
        return differences

    def _read(self, name: str, expected: Any) -> Any:
        if name.endswith("_of"):
            return [{**one, "is": self._count(name.removesuffix("_of"), read_window(one["window"]))} for one in expected]
        return self._count(name, None)

    def _count(self, name: str, window: Window | None) -> int:
        if name == "state_entries":
            return len(self._harness.state_entries(window))
        if name == "event_time_timers":
            return len(self._harness.event_time_timers(window))
        if name == "processing_time_timers":
            return len(self._harness.processing_time_timers(window))
        if name == "inner_merge_calls" and window is None:
            return self._required_script().merges
        if name == "inner_clear_calls":
            clears = self._required_script().clears
            return len(clears) if window is None else clears.count(window)
        raise NotUnderstoodError(f"expect field {name!r} of a trigger is not understood")


def _compare_result(step: Json, got: TriggerResult) -> list[Difference]:
    if "result" not in step or got.name == step["result"]:
        return []
    return [Difference("result", step["result"], got.name)]


def _compare_firings(step: Json, firings: list[Firing]) -> list[Difference]:
    got = [{"window": write_window(firing.window), "result": firing.result.name} for firing in firings]
    shown = Counter(frozen(firing) for firing in got)
    differences = []
    if "firings" in step and Counter(frozen(firing) for firing in step["firings"]) != shown:
        differences.append(Difference("firings", step["firings"], got))
    if "firings_include" in step and Counter(frozen(firing) for firing in step["firings_include"]) - shown:
        differences.append(Difference("firings_include", step["firings_include"], got))
    if "firings_of" in step:
        expected = step["firings_of"] if isinstance(step["firings_of"], list) else [step["firings_of"]]
        differences += [Difference("firings_of", one, got) for one in expected if not _every_result(one, got)]
    return differences


def _every_result(expected: Json, got: list[Json]) -> bool:
    require_known(expected, {"window", "every_result", "at_least"}, "firings_of")
    results = [firing["result"] for firing in got if firing["window"] == expected["window"]]
    return len(results) >= expected.get("at_least", 0) and all(result == expected["every_result"] for result in results)
