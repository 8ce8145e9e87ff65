"""Windowed programs: the engine that the planner chooses gives what the reference does, batch by batch.

Both engines are given the same batches; the columnar one is also stopped and made anew from bytes now and then, and its rows
fold before the shuffle where the plan allows. Some programs run again under the watermarks of a random strategy, and with windows
that close in the batch that completes them. Compared are results, late rows, the counters of late elements and firings, and
errors, which end a program. Sizes and thresholds are drawn, too, so that few rows take the ways of many; a warning is a failure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Sequence
from functools import partial, reduce
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from verify.fuzz.comparison import difference, with_one_zero
from verify.fuzz.outcome import Outcome, differences_of
from verify.fuzz.windowed_programs import random_program, with_engine
from verify.fuzz.windowed_streams import Batch, random_stream, under_strategy
from windowpane.engines.combiner import Combiner, always_together
from windowpane.engines.common.arrival import in_order
from windowpane.engines.panes.engine import Kind, PanesEngine
from windowpane.engines.program import MAIN, WINDOW_END, WINDOW_START, Program, Upstream
from windowpane.engines.protocol import BucketOutput, Clock
from windowpane.errors import WindowpaneError
from windowpane.hidden_columns import PARTITION, POSITION, TIME
from windowpane.kernels.keys.coded_texts import spelled
from windowpane.planning.engines import combiner_of, make_engine
from windowpane.planning.windows import describe
from windowpane.state.compact import from_stream, to_stream
from windowpane.state.memory import MemoryBlobStore
from windowpane.windowing.times import MAX, MIN

REFERENCE = "reference"
_LEFT_OUT = 0.95
"""The share of programs that do not run again: to run again costs more than the program."""
Outcoming = BucketOutput | WindowpaneError
"""What a batch comes to."""


def run(seed: int) -> Outcome:
    """Make the program of a seed, run it on both engines, and compare."""
    draw = Random(seed)
    program, columns = columnar_program(draw)
    stream = random_stream(draw, program, columns)

    def compare() -> list[str]:
        return _Race(program, draw).run(stream) or _watermark_differences(program, stream, Random(f"marks {seed}"))

    return Outcome(seed, text_of(program), program.engine, differences_of(seed, compare))


def _watermark_differences(program: Program, stream: Sequence[Batch], draw: Random) -> list[str]:
    """Return what differs under the watermarks of a random strategy; for some of the programs whose rows come from a source."""
    if program.upstream is not Upstream.SOURCE or draw.random() < _LEFT_OUT:
        return []
    marked = under_strategy(draw, stream)
    differences = _Race(program, draw).run(marked) or _differences_at_once(program, marked, draw)
    return [f"under a strategy: {each}" for each in differences]


def _differences_at_once(program: Program, stream: Sequence[Batch], draw: Random) -> list[str]:
    """Return what differs if the watermark that a batch makes is in force at its end, and not at the begin of the next."""
    spec = program.spec
    if (
        spec.trigger.uses_processing_time or not spec.assigner.is_event_time
    ):  # what the clock of the next batch fires is then behind what its watermark closes
        return []
    plain, at_once, expected, got = _Bucket(program), _Bucket(program), list[BucketOutput](), list[BucketOutput]()
    following = [batch.watermark for batch in stream[1:]] + [stream[-1].watermark]
    for batch, made in zip(stream, following, strict=True):
        outputs = [
            plain.run(partial(list, batch.parts), Clock(batch.watermark, batch.processing_time)),
            at_once.run(partial(list, batch.parts), Clock(batch.watermark, batch.processing_time)),
            at_once.run(list, Clock(made, batch.processing_time)),
        ]
        for output, kept in zip(outputs, (expected, got, got), strict=True):
            if isinstance(output, WindowpaneError):  # the races compare errors
                return []
            kept.append(output)
        if draw.random() < 0.3:
            at_once.restart()
    one, other = (reduce(BucketOutput.followed_by, outputs) for outputs in (expected, got))
    return [f"at once: {each}" for each in _differences(program, one, other)]


def columnar_program(draw: Random) -> tuple[Program, pa.Schema]:
    """Draw until the planner takes another engine than the reference, which would only be compared with itself."""
    while True:
        try:
            program, columns = random_program(draw)
        except WindowpaneError:
            continue
        if program.engine != REFERENCE:
            return program, columns


def text_of(program: Program) -> str:
    """Return a program as text."""
    spec = program.spec
    aggregates = ", ".join(f"{name} = {aggregate}" for name, aggregate, _ in program.aggregates)
    parts = {
        "keys": ", ".join(program.keys.names) or "none",
        "assigner": describe(spec.assigner),
        "trigger": describe(spec.trigger),
        "panes": describe(spec.panes),
        "evictor": describe(spec.evictor),
        "lateness": f"{spec.allowed_lateness}, refine {spec.refine}",
        "late rows": "side output" if program.late_output else "dropped",
        "order by": ", ".join(map(str, program.order_by)) or "arrival",
        "upstream": program.upstream.name,
        "aggregates": aggregates,
        "engine": program.engine,
    }
    return "\n".join(f"    {name:<10} {value}" for name, value in parts.items())


class _Bucket:
    """An engine and its state, called as Spark does: without rows only if it is not idle."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._engine = make_engine(program)
        self._store = MemoryBlobStore()
        self._is_idle = True

    def run(self, parts: Callable[[], Sequence[pa.Table]], clock: Clock) -> Outcoming:
        """Return the results of a batch, an error included."""
        try:
            rows = parts()
            if self._is_idle and not any(part.num_rows for part in rows):
                return BucketOutput()
            output = self._engine.run(self._store, rows, clock)
        except WindowpaneError as error:
            return error
        self._is_idle = output.is_idle
        return output

    def snapshot(self) -> bytes:
        """Return the state as bytes."""
        return self._store.snapshot()

    def restart(self, snapshot: bytes | None = None) -> None:
        """Make the engine and its state anew from bytes, those of now if none are given."""
        held, self._store = self._store.snapshot() if snapshot is None else snapshot, MemoryBlobStore()
        self._store.restore(held)
        self._engine = make_engine(self._program)
        self._is_idle = self._is_idle and snapshot is None


class _Race:
    """The two engines on the same batches."""

    def __init__(self, program: Program, draw: Random) -> None:
        self._program = program
        self._draw = draw
        self._combine = combiner_of(program)
        self._watermark = MIN
        self._reference = _Bucket(with_engine(program, REFERENCE))
        self._bucket = _Bucket(program)

    def run(self, stream: Sequence[Batch]) -> list[str]:
        """Return what differs in the first batch where something does."""
        for number, batch in enumerate(stream):
            clock = Clock(batch.watermark, batch.processing_time)
            self._watermark = max(self._watermark, batch.watermark)
            combine = self._combine if self._draw.random() < 0.5 and not self._is_late_by_order(batch) else None
            by_time = (
                combine is not None and self._program.engine == PanesEngine.name and Kind.of(self._program.spec) is Kind.CLOCKS
            )
            before = [bucket.snapshot() for bucket in (self._reference, self._bucket)]
            expected = self._reference.run(partial(_taken, batch.parts, by_time), clock)
            got = self._bucket.run(partial(self._sent, batch.parts, combine), clock)
            found = _differences(self._program, expected, got)
            if found and isinstance(expected, WindowpaneError) and isinstance(got, WindowpaneError):
                found = self._errors_one_by_one(in_order(self._program, batch.parts), clock, before)
            if found:
                return [f"batch {number}, {clock}: {each}" for each in (*found, _shown(batch))]
            if isinstance(expected, WindowpaneError):
                return []
            if self._draw.random() < 0.5:
                self._bucket.restart()
        return []

    @property
    def _is_fired_by_clocks(self) -> bool:
        """Whether folded rows are taken in order of their time."""
        return self._program.engine == PanesEngine.name and Kind.of(self._program.spec) is Kind.CLOCKS

    def _errors_one_by_one(self, rows: pa.Table | None, clock: Clock, before: Sequence[bytes]) -> list[str]:
        """Return what differs up to the first row that fails: of several errors in a batch either may be raised."""
        count = 0 if rows is None else rows.num_rows
        for end in range(count + 1):
            parts = [] if rows is None else [rows.slice(0, end)]
            for bucket, snapshot in zip((self._reference, self._bucket), before, strict=True):
                bucket.restart(snapshot)
            expected, got = (bucket.run(partial(list, parts), clock) for bucket in (self._reference, self._bucket))
            if isinstance(expected, WindowpaneError):
                return _differences(self._program, expected, got)
        return ["an error that only all rows together make"]

    def _is_late_by_order(self, batch: Batch) -> bool:
        """Whether a row may be late or not, as another of its session comes before it or not."""
        times = (time for part in batch.parts for time in part[TIME].drop_null().to_pylist())
        return self._program.spec.merges and any(time <= batch.watermark for time in times)

    def _sent(self, parts: Sequence[pa.Table], combine: Combiner | None) -> list[pa.Table]:
        """Return the parts as they arrive from the encoder: if folded, without numbers of rows where no aggregate needs an order.

        Where late rows are an output, rows keep their numbers, and those that may be late stay whole.
        """
        if combine is None:
            return list(parts)
        return [from_stream(to_stream(part, lists=True)) for part in self._folded(parts, combine)]

    def _folded(self, parts: Sequence[pa.Table], combine: Combiner) -> list[pa.Table]:
        parts = [self._coded(part, combine.coded) for part in parts]
        parts = [each for part in parts for each in _by_task(part)] if combine.is_ordered else parts
        if combine.punctual is not None:
            bound = min(MAX, self._watermark + self._draw.choice([0, 0, 1, 10, 1000]))
            pieces = [combine.parted(part, bound) for part in parts]
            folded = [spelled(rows) if self._draw.random() < 0.2 else combine(rows) for rows, _ in pieces if rows.num_rows]
            return [*folded, *(whole for _, whole in pieces if whole.num_rows)]
        stays = [combine.folding is not always_together and self._draw.random() < 0.5 for _ in parts]
        rows = parts if combine.is_ordered else [part.drop_columns([PARTITION, POSITION]) for part in parts]
        return [spelled(part) if stay else combine(part) for part, stay in zip(rows, stays, strict=True) if part.num_rows]

    def _coded(self, part: pa.Table, columns: Container[str]) -> pa.Table:
        """Return rows, texts of these columns now and then coded, as a file may hold them."""
        for place, name in enumerate(part.column_names):
            if name in columns and self._draw.random() < 0.5:
                part = part.set_column(place, name, part[name].dictionary_encode())
        return part


def _by_task(part: pa.Table) -> list[pa.Table]:
    """Return the rows of each input partition, which a task of its own folds."""
    partitions = sorted(set(part[PARTITION].to_pylist()))
    return [part.filter(pc.equal(part[PARTITION], partition)).sort_by(POSITION) for partition in partitions]


def _taken(parts: Sequence[pa.Table], by_time: bool) -> Sequence[pa.Table]:
    return _by_time(parts) if by_time and parts else parts


def _by_time(parts: Sequence[pa.Table]) -> list[pa.Table]:
    """Return rows in order of their time: the order of arrival of rows that were folded before the shuffle."""
    rows = pa.concat_tables(parts)
    order = pc.sort_indices(rows[TIME])
    arrival = [(PARTITION, pa.array([0] * rows.num_rows, pa.int32())), (POSITION, pa.array(range(rows.num_rows), pa.int64()))]
    rows = rows.take(order).drop_columns([PARTITION, POSITION])
    for name, numbers in arrival:
        rows = rows.append_column(name, numbers)
    return [rows]


def _differences(program: Program, expected: Outcoming, got: Outcoming) -> list[str]:
    if isinstance(expected, WindowpaneError) or isinstance(got, WindowpaneError):
        same_error = type(expected) is type(got)
        return [] if same_error else [f"expected {expected!r}\n    got      {got!r}"]
    found = []
    for number in range(1 + len(program.side_outputs)):
        rows = [_rows(output, number) for output in (expected, got)]
        differs = difference(*([_numbered(program, each) for each in rows] if number == MAIN else rows))
        found += [] if differs is None else [f"output {number}: {differs}"]
    for name in ("late_elements", "late_dropped", "dropped_by_finished_trigger", "firings"):
        wanted, shown = getattr(expected.counters, name), getattr(got.counters, name)
        found += [] if wanted == shown else [f"counter {name}: expected {wanted}, got {shown}"]
    return found


def _rows(output: BucketOutput, number: int) -> list[dict[str, Any]]:
    return [row for which, table in output.tables if which == number for row in table.to_pylist()]


def _numbered(program: Program, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return rows with their number among those of the same key and window, whose order says which result is the latest."""
    seen: Counter[str] = Counter()
    numbered = []
    for row in rows:
        pane = repr([with_one_zero(row[name]) for name in (*program.keys.names, WINDOW_START, WINDOW_END)])
        seen[pane] += 1
        numbered.append({**row, "number in its window": seen[pane]})
    return numbered


def _shown(batch: Batch) -> str:
    rows = [row for part in batch.parts for row in part.to_pylist()]
    return "\n".join(["rows of that batch:", *(f"      {row}" for row in rows)])
