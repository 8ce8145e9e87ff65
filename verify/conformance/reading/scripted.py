"""The scripted assigner and trigger of the contract tests: each element says its windows, the script says the answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from verify.conformance.reading.fields import Json, NotUnderstoodError, read_window, require_known
from windowpane.windowing.assigners import AssignerContext, MergingWindowAssigner, WindowAssigner
from windowpane.windowing.triggers import (
    EventTimeTrigger,
    MergeContext,
    ProcessingTimeTrigger,
    Trigger,
    TriggerContext,
    TriggerResult,
)
from windowpane.windowing.windows import TimeWindow, Window

CALLBACKS = ("on_element", "on_event_time", "on_processing_time", "on_merge", "clear")
_ACTIONS = {
    "result",
    "result_at",
    "register_event_time",
    "register_processing_time",
    "delete_event_time",
    "delete_processing_time",
    "set_state",
    "clear_state",
}
_STATE = "scripted"


@dataclass
class Script:
    """What a scripted trigger's callbacks do; a ``set_trigger`` step replaces the named ones."""

    callbacks: dict[str, Json] = field(default_factory=dict)
    clears: list[Window] = field(default_factory=list)
    merges: int = 0

    def replace(self, callbacks: Mapping[str, Json]) -> None:
        """Take over the named callbacks, and keep the others."""
        require_known(callbacks, CALLBACKS, "set_trigger")
        for name, actions in callbacks.items():
            require_known(actions, _ACTIONS, f"scripted {name}")
            self.callbacks[name] = dict(actions)


class ScriptedTrigger(Trigger):
    """Answers as its script says. It can merge, as Flink's mock can."""

    def __init__(self, script: Script, mergeable: bool = True) -> None:
        """Follow ``script``."""
        self.script = script
        self._mergeable = mergeable

    def on_element(self, element: Any, timestamp: int, window: Window, context: TriggerContext) -> TriggerResult:
        """Follow the script."""
        return self._run("on_element", timestamp, window, context)

    def on_event_time(self, time: int, window: Window, context: TriggerContext) -> TriggerResult:
        """Follow the script."""
        return self._run("on_event_time", time, window, context)

    def on_processing_time(self, time: int, window: Window, context: TriggerContext) -> TriggerResult:
        """Follow the script."""
        return self._run("on_processing_time", time, window, context)

    def can_merge(self) -> bool:
        """Return what the vector says."""
        return self._mergeable

    def on_merge(self, window: Window, context: MergeContext) -> None:
        """Follow the script."""
        self.script.merges += 1
        self._run("on_merge", 0, window, context)

    def clear(self, window: Window, context: TriggerContext) -> None:
        """Follow the script."""
        self.script.clears.append(window)
        self._run("clear", 0, window, context)

    def _run(self, callback: str, time: int, window: Window, context: TriggerContext) -> TriggerResult:
        actions = self.script.callbacks.get(callback, {})
        _set_timers(actions, window, context)
        if actions.get("set_state"):
            context.value_state(_STATE).update(True)
        if actions.get("clear_state"):
            context.value_state(_STATE).clear()
        answers = {int(at): str(result) for at, result in actions.get("result_at", {}).items()}
        return TriggerResult[answers.get(time, str(actions.get("result", "CONTINUE")))]

    def __repr__(self) -> str:
        """Return the script."""
        return f"ScriptedTrigger({self.script.callbacks})"


def _set_timers(actions: Json, window: Window, context: TriggerContext) -> None:
    calls = {
        "register_event_time": context.register_event_time_timer,
        "register_processing_time": context.register_processing_time_timer,
        "delete_event_time": context.delete_event_time_timer,
        "delete_processing_time": context.delete_processing_time_timer,
    }
    for name, call in calls.items():
        for time in actions.get(name, ()):
            call(_end_of(window) if time == "window_end" else time)


def _end_of(window: Window) -> int:
    return window.end if isinstance(window, TimeWindow) else window.max_timestamp


@dataclass(frozen=True)
class ScriptedAssigner(WindowAssigner):
    """Returns the windows that the element itself carries."""

    is_event_time: bool = True
    windows: tuple[Window, ...] | None = None

    def assign_windows(self, element: Any, timestamp: int, context: AssignerContext) -> Sequence[Window]:
        """Return the element's windows, or else those of the assigner."""
        if "windows" in element:
            return [read_window(window) for window in element["windows"]]
        if self.windows is None:
            raise NotUnderstoodError("a scripted assigner met an element without windows")
        return self.windows

    def default_trigger(self) -> Trigger:
        """Return the trigger of the time domain."""
        return EventTimeTrigger() if self.is_event_time else ProcessingTimeTrigger()


@dataclass(frozen=True)
class ScriptedMergingAssigner(ScriptedAssigner, MergingWindowAssigner):
    """Merges what ``pending`` says: the runner puts the current element's merge there."""

    pending: list[Json] = field(default_factory=list)

    def merge_windows(self, windows: Iterable[Any]) -> list[tuple[Window, list[Window]]]:
        """Return the merges of the current element."""
        merges = []
        for merge in self.pending:
            require_known(merge, {"from", "into"}, "merge")
            merges.append((read_window(merge["into"]), [read_window(window) for window in merge["from"]]))
        return merges
