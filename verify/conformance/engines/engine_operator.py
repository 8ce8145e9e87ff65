"""One window operator of an engine under a replay: rows and clocks in, what it shows out.

A step is a batch: of one row, or of none and a later clock. Or all rows between two steps of a clock are one batch; it ends where
the case reads results, too.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from verify.conformance.engines.engine_programs import COLUMNS, Compile
from verify.conformance.reading.fields import Json, NotUnderstoodError, require_known
from verify.conformance.reading.json_results import CLEARS, SIDES
from verify.conformance.replay.refinements import RefiningBatch
from verify.conformance.replay.verdicts import Options
from windowpane.engines.batch.late_rows import DROPPED
from windowpane.engines.program import MAIN, WINDOW_END, WINDOW_START
from windowpane.engines.protocol import Clock
from windowpane.hidden_columns import PARTITION, POSITION, TIME
from windowpane.planning.engines import make_engine
from windowpane.state.memory import MemoryBlobStore
from windowpane.testing.records import OutputRecord
from windowpane.windowing.times import MAX, MIN
from windowpane.windowing.windows import GLOBAL_WINDOW, TimeWindow, Window

_UNSEEN = frozenset(
    {
        "state_entries",
        "event_time_timers",
        "processing_time_timers",
        "window_contents",
        "current_watermark",
        "current_processing_time",
    }
)
"""Fields of an ``expect`` that only the reference operator shows; they are not compared here."""


class EngineOperator:
    """A program on an engine."""

    def __init__(self, compiled: Compile, fields: Json, options: Options) -> None:
        """Start the program; it is restarted from its bytes after every batch if the options say so.

        Raises:
            NotUnderstoodError: the engine does not run it; the message is the reason.
        """
        self.keyed = fields.get("keyed", True)
        self._options = options
        self._keeps_late = fields.get("late_side_output", False)
        self._compiled = compiled(fields, options)
        self._program = self._compiled.program
        self._engine = make_engine(self._program)
        self._store = MemoryBlobStore()
        self._watermark, self._now, self._position = MIN, 0, 0
        self._is_read = False
        self._dropped = 0
        self._arrived: list[Json] = []
        self.results: list[OutputRecord] = []
        self._late: list[Json] = []
        self._watermarks: list[int] = []
        self._clears: list[Any] = []
        self._sides: dict[str, list[Json]] = {}
        self._batch: list[Json] = []
        self._refined_by = MIN

    # Steps.

    def element(self, element: Json) -> None:
        """Take an element of a vector, into a batch of its own or into that of the step."""
        require_known(element, {"key", "value", "ts"}, "element")
        if not isinstance(element["key"], str | None) or not isinstance(element["value"], int):
            raise NotUnderstoodError("engines: keys that are no strings, values that are no integers")
        if element.get("ts") is None and self._program.spec.merges and self._program.spec.assigner.is_event_time:
            raise NotUnderstoodError("engines: a row without an event time has no session, Flink's is at the first instant")
        self._arrived.append({"key": element["key"], "value": element["value"], "ts": element.get("ts")})
        if not self._options.batches_steps:
            self.settle()

    def settle(self) -> None:
        """End the batch of elements, if there is one."""
        if not self._arrived:
            return
        rows = pa.Table.from_pylist(self._arrived, COLUMNS)
        count, self._batch, self._arrived = rows.num_rows, self._arrived, []
        places = pa.array(range(self._position, self._position + count), pa.int64())
        self._position += count
        rows = rows.append_column(TIME, rows["ts"]).append_column(PARTITION, pa.array([0] * count, pa.int32()))
        self._refined_by = self._watermark
        self._run([rows.append_column(POSITION, places)])

    def watermark(self, watermark: int) -> None:
        """Move the watermark."""
        self.settle()
        self._watermark = max(self._watermark, watermark)
        self._run([])
        self._watermarks.append(watermark)

    def processing_time(self, time: int) -> None:
        """Set the clock."""
        self.settle()
        self._now, self._is_read = max(self._now, time), False
        self._run([])

    def snapshot_restore(self) -> None:
        """Stop and restore from bytes. Spark keeps the watermark across a restart, where Flink begins without one."""
        self.settle()
        if self._watermark != MIN:
            raise NotUnderstoodError("engines: the watermark outlives a restart, as on Spark")
        self._remake()

    def set_trigger(self, callbacks: Json) -> None:
        """Refuse: no scripted trigger gets here."""
        raise NotUnderstoodError("engines: scripted parts")

    def _run(self, rows: list[pa.Table]) -> None:
        output = self._engine.run(self._store, rows, Clock(self._watermark, MIN if self._is_read else self._now))
        self._is_read = True  # timers fire when a step moves the clock: elements and watermarks do not look at it
        self._dropped += output.counters.late_dropped
        for number, table in output.tables:
            for row in table.to_pylist():
                if number == MAIN:
                    self._take(row)
                elif number == self._program.output_of(CLEARS):
                    self._clears.append(json.loads(row["json"]))
                elif number == self._program.output_of(SIDES):
                    tag, value, time = json.loads(row["json"])
                    self._sides.setdefault(tag, []).append({"value": value, "ts": time})
                elif row[DROPPED]:
                    self._late.append({"key": row["key"], "value": row["value"], "ts": row["ts"]})
        if self._options.restart:
            self._remake()

    def _remake(self) -> None:
        snapshot, self._store = self._store.snapshot(), MemoryBlobStore()
        self._store.restore(snapshot)
        self._engine = make_engine(self._program)

    def _take(self, row: Json) -> None:
        start, end = row[WINDOW_START], row[WINDOW_END]
        window: Window = GLOBAL_WINDOW if end is None else TimeWindow(start, end)
        shown = "GLOBAL" if end is None else [start, end]
        for value in self._compiled.show({**row, "window": shown}):
            self.results.append(OutputRecord(value.get("key"), window, value, MAX if end is None else row[TIME]))

    # What is shown.

    def mark(self) -> None:
        """Forget what was emitted: the next expectation is relative to this one."""
        self.results, self._late, self._watermarks, self._sides = [], [], [], {}

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
        """Return Flink's counter, which leaves out rows of a late output."""
        return 0 if self._keeps_late else self._dropped

    def side(self) -> dict[str, list[Json]]:
        """Return the side outputs of the function."""
        return self._sides

    def function_clears(self) -> list[Any]:
        """Return the windows that ``clear`` of the function was called for since the last call of this."""
        if self._program.output_of(CLEARS) is None:
            raise NotUnderstoodError("engine columnar: functions that are cleared")
        taken, self._clears = self._clears, []
        return taken

    def adapted(self, expect: Json, field: str = "output") -> Json:
        """Return an expectation as this operator meets it: of the refinements in ``field`` the last one, if it coalesces.

        Raises:
            NotUnderstoodError: the results cannot be derived from Flink's refinements.
        """
        is_batch = self._options.batches_steps and field in expect
        if not is_batch or not self._compiled.coalesces or not self._program.spec.allowed_lateness:
            return expect
        spec, gives_rows = self._program.spec, self._compiled.gives_rows
        batch = RefiningBatch(spec, self.keyed, gives_rows, self._refined_by, self._batch, self.results)
        return batch.last_of(expect, field)

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
            "function_clears": self.function_clears,
            "side": self.side,
            "accepted": lambda: True,
        }
        if field in _UNSEEN or (field == "function_clears" and self._program.output_of(CLEARS) is None):
            return expect[field]
        if field not in readers:
            raise NotUnderstoodError(f"engines: expect field {field!r} is not shown")
        return readers[field]()
