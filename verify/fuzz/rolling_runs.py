"""Running programs of rolling features in the fuzz: steps, runs on state that is made anew from bytes, results in order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from verify.fuzz.comparison import difference, with_one_zero
from windowpane.arrays.values import Row
from windowpane.engines.program import LATE, MAIN
from windowpane.engines.protocol import Clock
from windowpane.engines.rolling.program import AS_OF, RollingCounters, RollingProgram
from windowpane.hidden_columns import PARTITION, POSITION, TIME
from windowpane.planning.engines import make_engine
from windowpane.state.memory import MemoryBlobStore
from windowpane.windowing.rolling import RollingEmit

REFERENCE = "rolling reference"
COLUMNS = pa.schema(
    [("n", pa.int64()), ("d", pa.decimal128(8, 2)), ("x", pa.float64()), ("s", pa.string()), ("b", pa.bool_()), ("c", pa.bool_())]
)


@dataclass
class Step:
    """A batch: its watermark and its rows."""

    watermark: int
    rows: list[Row]


@dataclass
class Run:
    """A program on its state, and its results."""

    program: RollingProgram
    store: MemoryBlobStore = field(default_factory=MemoryBlobStore)
    position: int = 0

    def step(self, step: Step) -> tuple[list[Row], list[int], tuple[int, ...]]:
        """Run a batch and return the results, the late rows and the counters."""
        restored = MemoryBlobStore()
        restored.restore(self.store.snapshot())
        self.store = restored
        table = table_of(self.program, step.rows, self.position)
        self.position += len(step.rows)
        output = make_engine(self.program).run(restored, [table], Clock(step.watermark, 0))
        results = [row for number, table in output.tables if number == MAIN for row in table.to_pylist()]
        late = sorted(each for number, table in output.tables if number == LATE for each in table["id"].to_pylist())
        counted = output.counters
        assert isinstance(counted, RollingCounters)
        emitted = counted.firings, counted.emitted_by_row, counted.emitted_by_tick
        return results, late, (counted.late_dropped, counted.before_cut, *emitted, counted.keys, int(output.is_idle))


def table_of(program: RollingProgram, rows: Sequence[Row], position: int) -> pa.Table:
    """Return rows as an engine is given them, arriving from ``position`` on."""
    table = pa.Table.from_pylist(rows, pa.schema([*program.keys, *COLUMNS, ("id", pa.int64()), (TIME, pa.int64())]))
    table = table.append_column(PARTITION, pa.array([0] * len(rows), pa.int32()))
    return table.append_column(POSITION, pa.array(range(position, position + len(rows)), pa.int64()))


def in_order(program: RollingProgram, wanted: list[Row], got: list[Row]) -> str | None:
    """Return what differs between results, which are in order for each key; ticks are in order for all."""
    if program.spec.emit is RollingEmit.TICK and [row[AS_OF] for row in got] != sorted(row[AS_OF] for row in got):
        return f"ticks in disorder: {got}"
    return difference(_numbered(program, wanted), _numbered(program, got))


def _numbered(program: RollingProgram, rows: list[Row]) -> list[Row]:
    """Return rows with their place among those of their key; rows of one instant of ``each`` have no order."""
    if program.spec.emit is RollingEmit.EACH:
        return rows
    seen: dict[str, int] = {}
    numbered: list[Row] = []
    for row in rows:
        key = key_text(program, row)
        seen[key] = seen.get(key, 0) + 1
        numbered.append({**row, "place": seen[key]})
    return numbered


def key_text(program: RollingProgram, row: Row) -> str:
    """Return the key of a row as text, the same for equal keys."""
    return repr([with_one_zero(row[name]) for name in program.keys.names])
