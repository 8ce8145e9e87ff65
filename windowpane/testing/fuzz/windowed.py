"""Windowed programs: the engine that the planner chooses gives what the row engine does, batch by batch.

Both engines are given the same batches; the columnar one is also stopped and made anew from bytes now and then, and its rows
fold before the shuffle where the plan allows. Compared are results, late rows, the counters of late elements and firings, and
errors, which end a program.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from windowpane.engines.combiner import Combiner, always_together
from windowpane.engines.combining import combiner_of
from windowpane.engines.panes.timed import TimedPanesEngine
from windowpane.engines.program import PARTITION, POSITION, TIME, Program
from windowpane.engines.protocol import BucketOutput, Clock, Engine
from windowpane.errors import WindowpaneError
from windowpane.plan import describe, make_engine
from windowpane.state.memory import MemoryBlobStore
from windowpane.testing.fuzz.comparison import difference
from windowpane.testing.fuzz.outcome import Outcome
from windowpane.testing.fuzz.windowed_programs import Batch, random_program, random_stream, with_engine

REFERENCE = "row"
_DRAWS = 40


def run(seed: int) -> Outcome:
    """Make the program of a seed, run it on both engines, and compare."""
    draw = Random(seed)
    program = _columnar_program(draw)
    stream = random_stream(draw, program)
    return Outcome(seed, text_of(program), program.engine, _Race(program, draw).run(stream))


def _columnar_program(draw: Random) -> Program:
    """Draw until the planner takes a columnar engine: the row engine would only be compared with itself."""
    for _ in range(_DRAWS):
        program = random_program(draw)
        if program.engine != REFERENCE:
            return program
    return program


def text_of(program: Program) -> str:
    """Return a program as text."""
    spec = program.spec
    aggregates = ", ".join(f"{name} = {aggregate}" for name, aggregate, _ in program.aggregates)
    parts = {
        "keys": ", ".join(program.keys.names) or "none",
        "assigner": describe(spec.assigner),
        "trigger": describe(spec.trigger),
        "evictor": describe(spec.evictor),
        "lateness": f"{spec.allowed_lateness}, refine {spec.refine}",
        "late rows": "side output" if program.late_output else "dropped",
        "order by": ", ".join(map(str, program.order_by)) or "arrival",
        "upstream": program.upstream.name,
        "aggregates": aggregates,
        "engine": program.engine,
    }
    return "\n".join(f"    {name:<10} {value}" for name, value in parts.items())


class _Race:
    """The two engines on the same batches."""

    def __init__(self, program: Program, draw: Random) -> None:
        self._program = program
        self._draw = draw
        self._combine = combiner_of(program)
        self._reference = make_engine(with_engine(program, REFERENCE))
        self._engine = make_engine(program)
        self._stores = MemoryBlobStore(), MemoryBlobStore()

    def run(self, stream: Sequence[Batch]) -> list[str]:
        """Return what differs in the first batch where something does."""
        for number, batch in enumerate(stream):
            clock = Clock(batch.watermark, batch.processing_time)
            combine = self._combine if self._draw.random() < 0.5 and not self._tells_late_by_order(batch) else None
            sent = batch.parts if combine is None else [self._sent(combine, part) for part in batch.parts if part.num_rows]
            is_by_time = combine is not None and self._program.engine == TimedPanesEngine.name
            taken = _by_time(batch.parts) if is_by_time and batch.parts else batch.parts
            expected = _outcome(self._reference, self._stores[0], taken, clock)
            got = _outcome(self._engine, self._stores[1], sent, clock)
            found = _differences(self._program, expected, got)
            if found:
                return [f"batch {number}, {clock}: {each}" for each in (*found, _shown(batch))]
            if isinstance(expected, WindowpaneError):
                return []
            if self._draw.random() < 0.5:
                self._restart()
        return []

    def _tells_late_by_order(self, batch: Batch) -> bool:
        """Whether a row may be late or not, as another of its session comes before it or not."""
        times = (time for part in batch.parts for time in part[TIME].drop_null().to_pylist())
        return self._program.spec.merges and any(time <= batch.watermark for time in times)

    def _sent(self, combine: Combiner, part: pa.Table) -> pa.Table:
        """Return a part as the encoder sends it: without the numbers of its rows, folded where that may pay."""
        rows = part.drop_columns([PARTITION, POSITION])
        stays = combine.folding is not always_together and self._draw.random() < 0.5
        return rows if stays else combine(rows)

    def _restart(self) -> None:
        """Make the engine and its state anew from bytes."""
        store = MemoryBlobStore()
        store.restore(self._stores[1].snapshot())
        self._stores = self._stores[0], store
        self._engine = make_engine(self._program)


def _by_time(parts: Sequence[pa.Table]) -> list[pa.Table]:
    """Return rows in order of their time: the order of arrival that rows folded before the shuffle stand for."""
    rows = pa.concat_tables(parts)
    order = pc.sort_indices(rows[TIME])
    positions = rows.column_names.index(POSITION)
    return [rows.take(order).set_column(positions, POSITION, pa.array(range(rows.num_rows), pa.int64()))]


def _outcome(engine: Engine, store: MemoryBlobStore, parts: Sequence[pa.Table], clock: Clock) -> BucketOutput | WindowpaneError:
    try:
        return engine.run(store, parts, clock)
    except WindowpaneError as error:
        return error


def _differences(program: Program, expected: BucketOutput | WindowpaneError, got: BucketOutput | WindowpaneError) -> list[str]:
    if isinstance(expected, WindowpaneError) or isinstance(got, WindowpaneError):
        same_error = type(expected) is type(got)
        return [] if same_error else [f"expected {expected!r}\n    got      {got!r}"]
    found = []
    for number in range(1 + len(program.side_outputs)):
        differs = difference(_rows(expected, number), _rows(got, number))
        found += [] if differs is None else [f"output {number}: {differs}"]
    for name in ("late_elements", "late_dropped", "firings"):
        wanted, shown = getattr(expected.counters, name), getattr(got.counters, name)
        found += [] if wanted == shown else [f"counter {name}: expected {wanted}, got {shown}"]
    return found


def _rows(output: BucketOutput, number: int) -> list[dict[str, Any]]:
    return [row for which, table in output.tables if which == number for row in table.to_pylist()]


def _shown(batch: Batch) -> str:
    rows = [row for part in batch.parts for row in part.to_pylist()]
    return "\n".join(["rows of that batch:", *(f"      {row}" for row in rows)])
