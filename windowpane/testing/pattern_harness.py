"""A harness for row patterns: rows and watermarks one by one, on the matcher that backtracks, without Spark."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from windowpane.arrays.values import Row
from windowpane.engines.patterns.program import PatternProgram
from windowpane.engines.patterns.reference import PatternReferenceEngine
from windowpane.engines.program import MAIN, Upstream
from windowpane.engines.protocol import Clock
from windowpane.engines.rows import python_keys, python_rows
from windowpane.hidden_columns import PARTITION, POSITION, PREFIX, TIME, hidden
from windowpane.inspect.holders import Holder
from windowpane.state.memory import MemoryBlobStore
from windowpane.testing.holding import held_by_patterns
from windowpane.testing.records import ElementRecord, Emitted, Given, OutputRecord, WatermarkRecord
from windowpane.testing.timeline import Timeline
from windowpane.windowing.patterns.spec import Measure
from windowpane.windowing.patterns.values import Began, MatchTime
from windowpane.windowing.times import MIN
from windowpane.windowing.windows import TimeWindow

_BEGAN, _UNTIL = hidden("began"), hidden("until")


class PatternTestHarness:
    """Runs a row pattern on rows that are given one by one.

    A result is a record whose window is the span of the match: from its first row to its last one; of an absence or a timeout, to
    the end of its bound.

    Args:
        program: the pattern, one row a match or not: here it is always one.

    Example:
        >>> harness.process_row({"key": "a", "at": 0, "kind": "order"}, 0)
        >>> harness.process_watermark(30 * 60_000_000)
        >>> [record.value for record in harness.output]
    """

    def __init__(self, program: PatternProgram) -> None:
        spans = (Measure(_BEGAN, Began(program.event_time), True), Measure(_UNTIL, MatchTime(), True))
        kind = program.columns.field(program.event_time).type
        measures = pa.schema([*program.measures, (_BEGAN, kind), (_UNTIL, kind)])
        spec = replace(program.spec, rows="one", measures=(*program.spec.measures, *spans))
        self._program = replace(program, spec=spec, measures=measures, upstream=Upstream.WINDOW, has_late_output=False)
        self._engine, self._store, self._rows, self._watermark = PatternReferenceEngine(self._program), MemoryBlobStore(), 0, MIN
        self.history: list[Given | Emitted] = []

    @property
    def output(self) -> list[OutputRecord]:
        """The results so far."""
        return [record for record in self.history if isinstance(record, OutputRecord)]

    def process_row(self, row: Row, timestamp: int) -> None:
        """Take a row, at an instant in microseconds."""
        program = self._program
        columns = {field.name: pa.array([row[field.name]], field.type) for field in program.columns}
        places = {PARTITION: pa.array([0], pa.int32()), POSITION: pa.array([self._rows], pa.int64())}
        table = pa.table({**columns, TIME: pa.array([timestamp], pa.int64()), **places})
        self._rows += 1
        hides = {*program.keys, program.event_time}
        shown = [value for name, value in row.items() if name not in hides and not name.startswith(PREFIX)]
        key = python_keys(table, program.keys)[0]
        self.history.append(ElementRecord(key, " ".join(map(str, shown if key is None else [key, *shown])), timestamp))
        self._run([table])

    def process_watermark(self, watermark: int) -> None:
        """Advance the watermark."""
        self._watermark = watermark
        self.history.append(WatermarkRecord(watermark))
        self._run([])

    def holder(self) -> Holder:
        """Return what it holds now, for ``wp.inspect(harness)``."""
        return held_by_patterns(self._program, self._store, self._engine.name)

    def timeline(self) -> Timeline:
        """Return the picture of what happened so far: rows, the watermark, and matches over their spans."""
        return Timeline(self.history)

    def _run(self, tables: list[pa.Table]) -> None:
        program = self._program
        for number, table in self._engine.run(self._store, tables, Clock(self._watermark, 0)).tables:
            spans = zip(*(table[name].cast(pa.int64()).to_pylist() for name in (_BEGAN, _UNTIL)), strict=True)
            names = [name for name in program.measures.names if name not in (_BEGAN, _UNTIL)]
            keys, values = python_keys(table, program.keys), python_rows(table.select(names))
            for key, value, (began, until) in zip(keys, values, spans, strict=True):
                if number != MAIN:
                    value = {**value, "timed out": True}
                self.history.append(OutputRecord(key, TimeWindow(began, until + 1), value, until))
