"""The calls that Flink's contract tests count: wrappers that write down each call and forward it.

A recorder lives beside the operator, outside of its state, so it counts on across the restarts a runner inserts; an explicit
``snapshot_restore`` step starts it anew, as Flink's own counters do.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from verify.conformance.reading.fields import write_window
from windowpane.windowing.assigners import AssignerContext, MergingWindowAssigner, WindowAssigner
from windowpane.windowing.functions import ProcessContext, ProcessWindowFunction
from windowpane.windowing.triggers import MergeContext, Trigger, TriggerContext, TriggerResult
from windowpane.windowing.windows import Window


@dataclass
class Recorder:
    """The calls since the start, each list in order."""

    assigner_calls: list[Any] = field(default_factory=list)
    on_element: list[Any] = field(default_factory=list)
    on_time: list[int] = field(default_factory=list)
    on_merge: list[Any] = field(default_factory=list)
    trigger_clears: list[Any] = field(default_factory=list)
    function_calls: list[Any] = field(default_factory=list)
    function_clears: list[Any] = field(default_factory=list)
    context_times: list[Any] = field(default_factory=list)

    def reset(self) -> None:
        """Forget all calls."""
        for calls in vars(self).values():
            calls.clear()


class RecordedAssigner(WindowAssigner):
    """Writes down the calls of an assigner whose windows do not merge."""

    def __init__(self, inner: WindowAssigner, recorder: Recorder) -> None:
        """Wrap ``inner``."""
        self.inner = inner
        self._recorder = recorder
        self.is_event_time = inner.is_event_time

    def assign_windows(self, element: Any, timestamp: int, context: AssignerContext) -> Sequence[Window]:
        """Record and forward."""
        self._recorder.assigner_calls.append({"value": element["value"], "ts": timestamp})
        return self.inner.assign_windows(element, timestamp, context)

    def default_trigger(self) -> Trigger:
        """Forward."""
        return self.inner.default_trigger()

    def __repr__(self) -> str:
        """Return that of the assigner: messages are about it."""
        return repr(self.inner)


class RecordedMergingAssigner(RecordedAssigner, MergingWindowAssigner):
    """Writes down the calls of an assigner whose windows merge."""

    inner: MergingWindowAssigner

    def merge_windows(self, windows: Iterable[Any]) -> list[tuple[Window, list[Window]]]:
        """Forward."""
        return self.inner.merge_windows(windows)


def recorded_assigner(inner: WindowAssigner, recorder: Recorder) -> WindowAssigner:
    """Return ``inner`` with its calls written down."""
    kind = RecordedMergingAssigner if isinstance(inner, MergingWindowAssigner) else RecordedAssigner
    return kind(inner, recorder)


class RecordedTrigger(Trigger):
    """Writes down the calls of a trigger."""

    def __init__(self, inner: Trigger, recorder: Recorder) -> None:
        """Wrap ``inner``."""
        self.inner = inner
        self._recorder = recorder

    def on_element(self, element: Any, timestamp: int, window: Window, context: TriggerContext) -> TriggerResult:
        """Record and forward."""
        call = {"value": element["value"], "ts": timestamp, "window": write_window(window)}
        self._recorder.on_element.append(call)
        return self.inner.on_element(element, timestamp, window, context)

    def on_event_time(self, time: int, window: Window, context: TriggerContext) -> TriggerResult:
        """Record and forward."""
        self._recorder.on_time.append(time)
        return self.inner.on_event_time(time, window, context)

    def on_processing_time(self, time: int, window: Window, context: TriggerContext) -> TriggerResult:
        """Record and forward."""
        self._recorder.on_time.append(time)
        return self.inner.on_processing_time(time, window, context)

    def can_merge(self) -> bool:
        """Forward."""
        return self.inner.can_merge()

    def on_merge(self, window: Window, context: MergeContext) -> None:
        """Record and forward."""
        self._recorder.on_merge.append(write_window(window))
        self.inner.on_merge(window, context)

    def clear(self, window: Window, context: TriggerContext) -> None:
        """Record and forward."""
        self._recorder.trigger_clears.append(write_window(window))
        self.inner.clear(window, context)

    def check_window(self, window: Window) -> None:
        """Forward."""
        self.inner.check_window(window)

    def __repr__(self) -> str:
        """Return that of the trigger: messages are about it."""
        return repr(self.inner)


class RecordedFunction(ProcessWindowFunction):
    """Writes down the calls of a process function."""

    def __init__(self, inner: ProcessWindowFunction, recorder: Recorder) -> None:
        """Wrap ``inner``."""
        self.inner = inner
        self._recorder = recorder

    def process(self, key: Any, context: ProcessContext, elements: Sequence[Any]) -> Iterable[Any] | None:
        """Record and forward."""
        values = [element["value"] if isinstance(element, dict) else element for element in elements]
        call = {"key": key, "window": write_window(context.window), "contents": values}
        self._recorder.function_calls.append(call)
        self._record_time("process", context)
        return self.inner.process(key, context, elements)

    def clear(self, context: ProcessContext) -> None:
        """Record and forward."""
        self._recorder.function_clears.append(write_window(context.window))
        self._record_time("clear", context)
        self.inner.clear(context)

    def _record_time(self, call: str, context: ProcessContext) -> None:
        domain = getattr(self.inner, "time_domain", None)
        if domain is not None:
            event_time = domain == "event_time"
            time = context.current_watermark if event_time else context.current_processing_time
            self._recorder.context_times.append([call, time])
