"""A program of panes under a transcript: elements and clocks in, panes out; on the reference operator, or on an engine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Protocol

import pyarrow as pa

from verify.conformance.engines.engine_programs import BY_ROW
from verify.conformance.reading.fields import Json, LeftToRowsError
from verify.conformance.replay.verdicts import Options
from windowpane.aggregates import collect_list
from windowpane.engines.program import MAIN, WINDOW_END, WINDOW_START, Program
from windowpane.engines.protocol import Clock
from windowpane.hidden_columns import PARTITION, POSITION, TIME
from windowpane.planning.engines import make_engine
from windowpane.planning.settings import Settings
from windowpane.planning.window_programs import InputTypes, compile_program
from windowpane.planning.windows import FunctionPlan, WindowPlan
from windowpane.state.memory import MemoryBlobStore
from windowpane.testing.harness import ListElements, WindowTestHarness
from windowpane.testing.records import OutputRecord
from windowpane.windowing.assigners import WindowAssigner
from windowpane.windowing.functions import WindowFunctionSpec
from windowpane.windowing.outputs import CHANGE_TYPE
from windowpane.windowing.panes import (
    PANE_INDEX,
    PANE_IS_FIRST,
    PANE_IS_LAST,
    PANE_NONSPECULATIVE_INDEX,
    PANE_TIMING,
    Pane,
    PaneTiming,
)
from windowpane.windowing.spec import PaneSettings, WindowSpec
from windowpane.windowing.times import MIN
from windowpane.windowing.triggers.composable import ComposableTrigger
from windowpane.windowing.windows import TimeWindow


class PaneRun(Protocol):
    """What a transcript is replayed on."""

    def element(self, element: Json) -> None:
        """Take an element."""

    def watermark(self, watermark: int) -> None:
        """Move the watermark."""

    def processing_time(self, time: int) -> None:
        """Set the clock."""

    def settle(self) -> None:
        """End the step: whatever waits for more elements runs now."""

    def take(self) -> list[OutputRecord]:
        """Return what was emitted since the last call of this; the value of a record is the list of its rows' values."""

    def counted(self) -> Counter[str]:
        """Return how many elements were dropped, by the names that vectors have for it."""


MakeRun = Callable[[WindowAssigner, ComposableTrigger, PaneSettings, int, Options], PaneRun]


class HarnessRun:
    """The reference operator."""

    def __init__(
        self, assigner: WindowAssigner, trigger: ComposableTrigger, panes: PaneSettings, lateness: int, options: Options
    ) -> None:
        function, running = WindowFunctionSpec.full(ListElements()), panes.trigger(trigger, assigner, None, lateness)
        self._spec = WindowSpec(assigner, function, running, None, lateness, panes=panes.options)
        self._harness = WindowTestHarness(self._spec)
        self._restarts = options.restart
        self._dropped: Counter[str] = Counter()
        self._emitted: list[OutputRecord] = []

    def element(self, element: Json) -> None:
        """Take an element."""
        self._harness.process_element(element["value"], element["ts"], element["key"])
        self._restart()

    def watermark(self, watermark: int) -> None:
        """Move the watermark."""
        self._harness.process_watermark(watermark)
        self._restart()

    def processing_time(self, time: int) -> None:
        """Set the clock."""
        self._harness.set_processing_time(time)
        self._restart()

    def settle(self) -> None:
        """Nothing waits."""

    def take(self) -> list[OutputRecord]:
        """Return the panes."""
        emitted, self._emitted = [*self._emitted, *self._harness.take_output()], []
        return emitted

    def counted(self) -> Counter[str]:
        """Return what was dropped."""
        return self._dropped + self._counted()

    def _counted(self) -> Counter[str]:
        counters = self._harness.counters
        return Counter(
            late_records_dropped=counters.late_dropped, dropped_by_finished_trigger=counters.dropped_by_finished_trigger
        )

    def _restart(self) -> None:
        if not self._restarts:
            return
        before = self._harness
        self._emitted += before.take_output()
        self._dropped += self._counted()
        self._harness = WindowTestHarness.restore(before.snapshot(), self._spec)
        self._harness.restore_clocks(before.watermark, before.processing_time)


_NUMBERS, _TEXTS = pa.int64(), pa.string()


class EngineRun:
    """The columnar engine that the planner chooses; elements of a step are batches of their own, or one if the options say so."""

    def __init__(
        self, assigner: WindowAssigner, trigger: ComposableTrigger, panes: PaneSettings, lateness: int, options: Options
    ) -> None:
        """Compile the program.

        Raises:
            LeftToRowsError: the planner leaves it to rows, with its reason.
        """
        self._parts = assigner, trigger, panes, lateness
        self._options = options
        self._compile(_NUMBERS)
        self._store = MemoryBlobStore()
        self._watermark, self._now, self._is_read = MIN, 0, False
        self._position = 0
        self._arrived: list[Json] = []
        self._emitted: list[OutputRecord] = []
        self._dropped: Counter[str] = Counter()

    def _compile(self, kind: pa.DataType) -> None:
        assigner, trigger, panes, lateness = self._parts
        self._columns = pa.schema([("key", pa.string()), ("value", kind), ("ts", pa.int64())])
        aggregates = (("values", collect_list("value")),)
        function, settings = FunctionPlan("aggregate", aggregates=aggregates), Settings(lateness)
        plan = WindowPlan(("key",), assigner, function, trigger, None, settings, panes=panes, event_time="ts", refine="each")
        types = InputTypes(self._columns, pa.schema([("key", pa.string())]), ("key",), pa.int64(), {"values": ("value",)})
        self._program: Program = compile_program(plan, types, self._columns.names)
        if self._program.engine in BY_ROW:
            raise LeftToRowsError(f"engine columnar: {self._program.engine_reason}")
        self._engine = make_engine(self._program)

    def element(self, element: Json) -> None:
        """Take an element."""
        if isinstance(element["value"], str) and self._columns.field("value").type == _NUMBERS:
            self._compile(_TEXTS)  # a case has values of one type
        self._arrived.append({name: element[name] for name in self._columns.names})
        if not self._options.batches_steps:
            self.settle()

    def settle(self) -> None:
        """End the batch of elements, if there is one."""
        if not self._arrived:
            return
        rows, count = pa.Table.from_pylist(self._arrived, self._columns), len(self._arrived)
        places, self._arrived = pa.array(range(self._position, self._position + count), pa.int64()), []
        self._position += count
        rows = rows.append_column(TIME, rows["ts"]).append_column(PARTITION, pa.array([0] * count, pa.int32()))
        self._run([rows.append_column(POSITION, places)])

    def watermark(self, watermark: int) -> None:
        """Move the watermark."""
        self.settle()
        self._watermark = watermark
        self._run([])

    def processing_time(self, time: int) -> None:
        """Set the clock."""
        self.settle()
        self._now, self._is_read = time, False
        self._run([])

    def take(self) -> list[OutputRecord]:
        """Return the panes."""
        emitted, self._emitted = self._emitted, []
        return emitted

    def counted(self) -> Counter[str]:
        """Return what was dropped."""
        return self._dropped

    def _run(self, rows: list[pa.Table]) -> None:
        """Run a batch; after a step of the clock, whose timers fire there, others do not look at it."""
        output = self._engine.run(self._store, rows, Clock(self._watermark, MIN if self._is_read else self._now))
        self._is_read = True
        self._dropped["late_records_dropped"] += output.counters.late_dropped
        self._dropped["dropped_by_finished_trigger"] += output.counters.dropped_by_finished_trigger
        for number, table in output.tables:
            self._emitted += map(_record, table.to_pylist()) if number == MAIN else ()
        if self._options.restart:
            snapshot, self._store = self._store.snapshot(), MemoryBlobStore()
            self._store.restore(snapshot)
            self._engine = make_engine(self._program)


def _record(row: Json) -> OutputRecord:
    pane = Pane(
        row[PANE_INDEX],
        row[PANE_NONSPECULATIVE_INDEX],
        PaneTiming(row[PANE_TIMING]),
        row[PANE_IS_FIRST],
        row[PANE_IS_LAST],
    )
    window = TimeWindow(row[WINDOW_START], row[WINDOW_END])
    return OutputRecord(row["key"], window, row["values"], row[TIME], pane, row.get(CHANGE_TYPE))
