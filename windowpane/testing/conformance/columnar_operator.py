"""One window operator of a columnar engine under a replay: each step is a batch of one row, or of none and a later clock.

The planner chooses the engine. A case whose program it leaves to the row engine is skipped with the planner's reason.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from windowpane.engines.late_rows import DROPPED
from windowpane.engines.program import MAIN, PARTITION, POSITION, TIME, WINDOW_END, WINDOW_START, Program
from windowpane.engines.protocol import Clock
from windowpane.plan import FunctionPlan, WindowPlan
from windowpane.planner import InputTypes, choose_engine, compile_program, make_engine
from windowpane.state.memory import MemoryBlobStore
from windowpane.testing.conformance.built_in import KEY, built_in
from windowpane.testing.conformance.fields import Json, NotUnderstoodError, require_known
from windowpane.testing.conformance.programs import parse_program
from windowpane.testing.records import OutputRecord
from windowpane.windowing.tags import OutputTag
from windowpane.windowing.times import MAX, MIN
from windowpane.windowing.windows import GLOBAL_WINDOW, TimeWindow, Window

_LATE = OutputTag("late")
_COLUMNS = pa.schema([("key", pa.string()), ("value", pa.int64()), ("ts", pa.int64())])
_INT64 = pa.int64()
_UNSEEN = frozenset(
    {
        "function_clears",
        "state_entries",
        "event_time_timers",
        "processing_time_timers",
        "window_contents",
        "current_watermark",
        "current_processing_time",
    }
)
"""Fields of an ``expect`` that only the reference operator shows; they are not compared here."""


class ColumnarOperator:
    """A program on the engine that the planner gives it."""

    def __init__(self, fields: Json, restart: bool) -> None:
        """Start the program; with ``restart`` engine and state are made anew from their bytes after every step.

        Raises:
            NotUnderstoodError: no columnar engine runs it; the message is the reason.
        """
        self.keyed = fields.get("keyed", True)
        self._restart = restart
        self._keeps_late = fields.get("late_side_output", False)
        self._function = built_in(fields["function"]["type"])
        self._program = _compiled(fields, self._function.named(self.keyed))
        self._engine = make_engine(self._program)
        self._store = MemoryBlobStore()
        self._watermark, self._now, self._position = MIN, 0, 0
        self._dropped = 0
        self.results: list[OutputRecord] = []
        self._late: list[Json] = []
        self._watermarks: list[int] = []

    # Steps.

    def element(self, element: Json) -> None:
        """Process an element of a vector, a batch of its own."""
        require_known(element, {"key", "value", "ts"}, "element")
        if not isinstance(element["key"], str | None) or not isinstance(element["value"], int):
            raise NotUnderstoodError("engine columnar: keys that are no strings, values that are no integers")
        ts = element.get("ts")
        columns = {"key": element["key"], "value": element["value"], "ts": ts, TIME: ts}
        types = {**dict(zip(_COLUMNS.names, _COLUMNS.types, strict=True)), TIME: _INT64}
        arrays = {name: pa.array([value], types[name]) for name, value in columns.items()}
        arrays |= {PARTITION: pa.array([0], pa.int32()), POSITION: pa.array([self._position], _INT64)}
        self._position += 1
        self._run([pa.table(arrays)])

    def watermark(self, watermark: int) -> None:
        """Move the watermark."""
        self._watermark = max(self._watermark, watermark)
        self._run([])
        self._watermarks.append(watermark)

    def processing_time(self, time: int) -> None:
        """Set the clock."""
        self._now = max(self._now, time)
        self._run([])

    def snapshot_restore(self) -> None:
        """Stop and restore from bytes. Spark keeps the watermark across a restart, where Flink begins without one."""
        if self._watermark != MIN:
            raise NotUnderstoodError("engine columnar: the watermark outlives a restart, as on Spark")
        self._remake()

    def set_trigger(self, callbacks: Json) -> None:
        """Refuse: no scripted trigger gets here."""
        raise NotUnderstoodError("engine columnar: scripted parts")

    def _run(self, rows: list[pa.Table]) -> None:
        output = self._engine.run(self._store, rows, Clock(self._watermark, self._now))
        self._dropped += output.counters.late_dropped
        for number, table in output.tables:
            for row in table.to_pylist():
                if number == MAIN:
                    self._take(row)
                elif row[DROPPED]:
                    self._late.append({"key": row["key"], "value": row["value"], "ts": row["ts"]})
        if self._restart:
            self._remake()

    def _remake(self) -> None:
        snapshot, self._store = self._store.snapshot(), MemoryBlobStore()
        self._store.restore(snapshot)
        self._engine = make_engine(self._program)

    def _take(self, row: Json) -> None:
        start, end = row[WINDOW_START], row[WINDOW_END]
        window: Window = GLOBAL_WINDOW if end is None else TimeWindow(start, end)
        shown = "GLOBAL" if end is None else [start, end]
        key = row["key"] if self.keyed else row[KEY] or ""
        for value in self._function.show({**row, "key": key, "window": shown}):
            self.results.append(OutputRecord(key, window, value, MAX if end is None else row[TIME]))

    # What is shown.

    def mark(self) -> None:
        """Forget what was emitted: the next expectation is relative to this one."""
        self.results, self._late, self._watermarks = [], [], []

    def output(self) -> list[Json]:
        """Return the results as vectors list them."""
        return [{**record.value, "ts": record.timestamp} for record in self.results]

    def late(self) -> list[Json]:
        """Return the late output: Flink's has the elements that no window accepted, if there is one."""
        return self._late if self._keeps_late else []

    def watermarks(self) -> list[int]:
        """Return the watermarks passed on."""
        return self._watermarks

    def late_records_dropped(self) -> int:
        """Return Flink's counter, which leaves out what went to a late output."""
        return 0 if self._keeps_late else self._dropped

    def function_clears(self) -> list[Any]:
        """Refuse: aggregates are not cleared by name."""
        raise NotUnderstoodError("engine columnar: functions that are cleared")

    def read(self, field: str, expect: Json) -> Any:
        """Return what the operator shows for a field of ``expect``, the expectation itself for what it does not show.

        Raises:
            NotUnderstoodError: an unknown field.
        """
        readers: dict[str, Callable[[], Any]] = {
            "output": self.output,
            "late": self.late,
            "watermarks": self.watermarks,
            "late_records_dropped": self.late_records_dropped,
            "accepted": lambda: True,
        }
        if field in _UNSEEN:
            return expect[field]
        if field not in readers:
            raise NotUnderstoodError(f"engine columnar: expect field {field!r} is not shown")
        return readers[field]()


def _compiled(fields: Json, aggregates: tuple[tuple[str, Any], ...]) -> Program:
    """Return the program as the planner makes it.

    Raises:
        NotUnderstoodError: it would run on the row engine.
    """
    parsed = parse_program(fields)
    spec, keys = parsed.spec, ("key",) if parsed.keyed else ()
    function = FunctionPlan("aggregate", aggregates=aggregates)
    plan = WindowPlan(keys, spec.assigner, function, spec.trigger, spec.evictor, spec.allowed_lateness, _LATE, event_time="ts")
    slots = {name: tuple(aggregate.arguments) for name, aggregate in aggregates}
    types = InputTypes(_COLUMNS, pa.schema([("key", pa.string())][: len(keys)]), keys, _INT64, slots)
    program = compile_program(plan, types, _COLUMNS.names)
    if program.engine == "row":
        raise NotUnderstoodError(f"engine columnar: {choose_engine(program).reason}")
    return program
