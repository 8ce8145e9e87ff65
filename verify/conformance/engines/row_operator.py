"""The reference operator of windows under a replay: steps in, what it shows out, restarts in between."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from verify.conformance.reading.fields import Json, NotUnderstoodError, read_window, require_known
from verify.conformance.reading.programs import Program
from verify.conformance.reading.scripted import ScriptedMergingAssigner
from verify.conformance.reading.triggers import TRIGGER_NAMES
from verify.conformance.replay.recorder import Recorder
from verify.conformance.replay.verdicts import MismatchError
from windowpane.errors import UserFunctionError
from windowpane.testing.harness import WindowTestHarness
from windowpane.testing.records import Emitted, LateRecord, OutputRecord, SideRecord, WatermarkRecord

_ELEMENT = {"key", "value", "ts", "windows", "merge"}


class RowOperator:
    """A program on a harness.

    ``log`` holds what was emitted since the last ``mark``. Counters continue across restarts the runner inserts.
    """

    def __init__(self, program: Program, restart: bool) -> None:
        """Start the program; with ``restart`` it is stopped and restored after every step."""
        self._program = program
        self._restart = restart
        self._recorder = Recorder()
        self._spec = program.recorded(self._recorder).spec
        self._harness = WindowTestHarness(self._spec)
        self._dropped_before = 0
        self._clears_read = 0
        self.log: list[Emitted] = []

    # Steps.

    def element(self, element: Json) -> None:
        """Process an element of a vector."""
        require_known(element, _ELEMENT, "element")
        self._script_merge(element)
        row = {name: element[name] for name in ("key", "value", "windows") if name in element}
        ts = element.get("ts")
        self._guarded(lambda: self._harness.process_element(row, ts, self._program.key_of(element)))

    def _script_merge(self, element: Json) -> None:
        assigner = self._program.spec.assigner
        merge = element.get("merge")
        if isinstance(assigner, ScriptedMergingAssigner):
            assigner.pending[:] = [] if merge is None else merge if isinstance(merge, list) else [merge]
        elif merge is not None:
            raise NotUnderstoodError("a merge is scripted, but the assigner is not a scripted one that merges")

    def settle(self) -> None:
        """Do nothing: no element is held back."""

    def watermark(self, watermark: int) -> None:
        """Move the watermark; what it causes must come before it."""
        self._guarded(lambda: self._harness.process_watermark(watermark))
        passed_on = WatermarkRecord(watermark)
        if passed_on in self.log and self.log[-1] != passed_on:
            raise MismatchError(f"watermark {watermark}", "after its results", self.log)

    def processing_time(self, time: int) -> None:
        """Set the clock."""
        self._guarded(lambda: self._harness.set_processing_time(time))

    def set_trigger(self, callbacks: Json) -> None:
        """Replace the named callbacks of the scripted trigger."""
        script = self._program.script
        if script is None:
            raise NotUnderstoodError("set_trigger needs a scripted trigger")
        script.replace(callbacks)

    @property
    def keyed(self) -> bool:
        """Whether windows are kept by key."""
        return self._program.keyed

    def snapshot_restore(self) -> None:
        """Stop and restore, as Flink does: clocks and counters start afresh."""
        self._harness = WindowTestHarness.restore(self._harness.snapshot(), self._spec)
        self._recorder.reset()
        self._dropped_before = 0
        self._clears_read = 0

    def _guarded(self, work: Callable[[], None]) -> None:
        try:
            work()
        except UserFunctionError as error:
            if isinstance(error.__cause__, NotUnderstoodError):
                raise error.__cause__ from None
            raise
        finally:
            self.log += self._harness.take_emitted()
        if self._restart:
            self._restore()

    def _restore(self) -> None:
        before = self._harness
        self._dropped_before += before.counters.late_dropped
        self._harness = WindowTestHarness.restore(before.snapshot(), self._spec)
        self._harness.restore_clocks(before.watermark, before.processing_time)

    # What is shown.

    def mark(self) -> None:
        """Forget what was emitted: the next expectation is relative to this one."""
        self.log = []

    @property
    def results(self) -> list[OutputRecord]:
        """The results since the mark."""
        return [record for record in self.log if isinstance(record, OutputRecord)]

    def output(self) -> list[Json]:
        """Return the results as vectors list them."""
        return [{**record.value, "ts": record.timestamp} for record in self.results]

    def late(self) -> list[Json]:
        """Return the late output: Flink's has the elements that no window accepted, if there is one."""
        if not self._program.late_side_output:
            return []
        records = [record for record in self.log if isinstance(record, LateRecord) and record.dropped]
        return [{"key": r.value["key"], "value": r.value["value"], "ts": r.timestamp} for r in records]

    def watermarks(self) -> list[int]:
        """Return the watermarks passed on."""
        return [record.watermark for record in self.log if isinstance(record, WatermarkRecord)]

    def side(self) -> dict[str, list[Json]]:
        """Return the side outputs of the function."""
        sides: dict[str, list[Json]] = {}
        for record in self.log:
            if isinstance(record, SideRecord):
                shown = {"value": record.value, "ts": record.timestamp}
                sides.setdefault(record.tag.name, []).append(shown)
        return sides

    def late_records_dropped(self) -> int:
        """Return Flink's counter, which leaves out rows of a late output."""
        if self._program.late_side_output:
            return 0
        return self._dropped_before + self._harness.counters.late_dropped

    def function_clears(self) -> list[Any]:
        """Return the windows that ``clear`` of the function was called for since the last call of this."""
        taken = self._recorder.function_clears[self._clears_read :]
        self._clears_read = len(self._recorder.function_clears)
        return taken

    def default_trigger_name(self) -> str:
        """Return the trigger the assigner would take, as vectors call it."""
        trigger = self._program.spec.assigner.default_trigger()
        return next((name for name, kind in TRIGGER_NAMES.items() if type(trigger) is kind), repr(trigger))

    def contents(self, expected: Json) -> Json:
        """Return the values kept for the key and window of a ``window_contents`` expectation."""
        require_known(expected, {"key", "window", "values"}, "window_contents")
        key = expected.get("key") if self._program.keyed else None
        rows = self._harness.window_contents(key, read_window(expected["window"]))
        return {**expected, "values": [row["value"] for row in rows]}

    def adapted(self, expect: Json, field: str = "output") -> Json:
        """Return an expectation as it is: this operator gives each firing of Flink's."""
        return expect

    def read(self, field: str, expect: Json) -> Any:
        """Return what the operator shows for a field of ``expect``.

        Raises:
            NotUnderstoodError: an unknown field.
        """
        if field == "window_contents":
            expected = expect[field]
            return [self.contents(one) for one in expected] if isinstance(expected, list) else self.contents(expected)
        reader = self._readers().get(field)
        if reader is None:
            raise NotUnderstoodError(f"expect field {field!r} is not understood")
        return reader()

    def _readers(self) -> dict[str, Callable[[], Any]]:
        calls, harness = self._recorder, self._harness
        return {
            "output": self.output,
            "late": self.late,
            "watermarks": self.watermarks,
            "side": self.side,
            "late_records_dropped": self.late_records_dropped,
            "function_clears": self.function_clears,
            "accepted": lambda: True,
            "default_trigger": self.default_trigger_name,
            "assigner_calls": lambda: calls.assigner_calls,
            "trigger_on_element_calls": lambda: calls.on_element,
            "trigger_on_time_calls": lambda: calls.on_time,
            "trigger_on_time_times": lambda: calls.on_time,
            "trigger_on_merge_windows": lambda: calls.on_merge,
            "trigger_on_merge_calls": lambda: calls.on_merge,
            "trigger_clear_calls": lambda: calls.trigger_clears,
            "function_calls": lambda: calls.function_calls,
            "function_clear_calls": lambda: calls.function_clears,
            "context_times": lambda: calls.context_times,
            "state_entries": lambda: len(harness.state_entries()),
            "event_time_timers": lambda: len(harness.event_time_timers),
            "processing_time_timers": lambda: len(harness.processing_time_timers),
            "current_watermark": lambda: harness.watermark,
            "current_processing_time": lambda: harness.processing_time,
        }
