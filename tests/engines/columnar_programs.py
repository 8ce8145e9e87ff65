"""Programs of built-in aggregates, their streams as tables, and the comparison of a columnar engine with the reference."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
from hypothesis import strategies as st

import windowpane as wp
from verify.fuzz.windowed_programs import LATE, random_fixed_assigner
from verify.fuzz.windowed_streams import SmallBatch as Batch
from verify.fuzz.windowed_streams import small_stream
from windowpane.engines.over.program import OverProgram
from windowpane.engines.over.reference import OverReferenceEngine
from windowpane.engines.program import Program, Upstream
from windowpane.engines.protocol import BucketOutput, Clock, Engine
from windowpane.engines.row.reference import ReferenceEngine
from windowpane.errors import AggregateOverflowError, EvictionTimeError
from windowpane.hidden_columns import FIRING_WATERMARK, PARTITION, POSITION, TIME
from windowpane.planning.engines import make_engine, with_engine
from windowpane.planning.settings import Settings
from windowpane.planning.window_programs import InputTypes, compile_program
from windowpane.planning.windows import FunctionPlan, WindowPlan
from windowpane.state.memory import MemoryBlobStore

TIMESTAMP = pa.timestamp("us", tz="UTC")
COLUMNS = pa.schema([("k", pa.string()), ("v", pa.int64()), ("w", pa.int32()), ("u", pa.uint64())])
AGGREGATES = {
    "n": wp.count(),
    "present": wp.count("v"),
    "total": wp.sum("v"),
    "low": wp.min("v"),
    "high": wp.max("w"),
    "mean": wp.avg("v"),
}
KEPT = {
    "all": wp.collect_list("w"),
    "kinds": wp.collect_set("w"),
    "first": wp.first("v"),
    "last": wp.last("v", ignore_nulls=True),
    "beside": wp.arg_max("v", by="w"),
    "middle": wp.median("v"),
    "usual": wp.mode("w"),
    "different": wp.count_distinct("v", "w"),
    "estimated": wp.approx_count_distinct("w"),
    "around": wp.approx_quantile("w", 0.5),
}
"""Aggregates that carry values along, some of them in order of arrival."""

small = st.integers(1, 12)
event_time_assigners = st.builds(random_fixed_assigner, st.randoms(use_true_random=False), st.just("event time"))
processing_time_assigners = st.builds(random_fixed_assigner, st.randoms(use_true_random=False), st.just("processing time"))
fixed_assigners = st.builds(random_fixed_assigner, st.randoms(use_true_random=False))
evictors = st.one_of(
    st.none(),
    st.builds(wp.CountEvictor.of, st.integers(0, 5), st.booleans()),
    st.builds(wp.TimeEvictor.of, small, st.booleans()),
)
lateness = st.sampled_from([0, 0, 3, 20])


@st.composite
def batches(draw: st.DrawFn, most_rows: int = 6) -> list[Batch]:
    """Return a small stream of the fuzz, drawn so that hypothesis can make it smaller."""
    return small_stream(draw(st.randoms(use_true_random=False)), most_rows)


def program_of(assigner, trigger=None, evictor=None, lateness=0, keyed=True, late=True, aggregates=None, **rest) -> Program:
    """Return a program over rows (k, v, w), keyed by k unless ``keyed`` is false."""
    aggregates = AGGREGATES if aggregates is None else aggregates
    function = FunctionPlan("aggregate", aggregates=tuple(aggregates.items()))
    keys = ("k",) if keyed else ()
    parts = Settings.among({"allowed_lateness": lateness, "late_tag": LATE if late else None, **rest})
    plan = WindowPlan(keys, assigner, function, trigger, evictor, event_time="t", **parts)
    slots = {name: tuple(aggregate.arguments) for name, aggregate in aggregates.items()}
    types = InputTypes(COLUMNS, pa.schema([("k", pa.string())][: len(keys)]), keys, TIMESTAMP, slots)
    return compile_program(plan, types, ("k", "v", "w"))


def table_of(batch: Batch, timeless: int | None = None) -> pa.Table:
    """Return the rows of a batch; every ``timeless``-th without an event time."""
    rows = batch.rows
    times = [None if timeless and n % timeless == 0 else t for n, (_, _, t) in enumerate(rows)]
    return pa.table(
        {
            "k": pa.array([k for k, _, _ in rows], pa.string()),
            "v": pa.array([None if v == 0 else v * 2**58 for _, v, _ in rows], pa.int64()),
            "w": pa.array([v for _, v, _ in rows], pa.int32()),
            TIME: pa.array(times, pa.int64()),
            PARTITION: pa.array([0] * len(rows), pa.int32()),
            POSITION: pa.array(range(len(rows)), pa.int64()),
        }
    )


def rows_of(output: BucketOutput, number: int) -> list[str]:
    """Return the rows of an output, in order."""
    return [repr(row) for which, table in output.tables if which == number for row in table.to_pylist()]


class RefusedError(Exception):
    """Both engines refused the same: a sum beyond 64 bits, or times that an evictor cannot compare."""


def outcome(run: Callable[[], BucketOutput]) -> BucketOutput | AggregateOverflowError | EvictionTimeError:
    """Return what ``run`` returns, or what it refuses."""
    try:
        return run()
    except (AggregateOverflowError, EvictionTimeError) as refusal:
        return refusal


class Pair:
    """The reference and a columnar engine on the same program, each with a store of its own.

    ``in_order`` compares the order of results, too; ``counts_panes`` the number of open windows, key by key.
    """

    def __init__(self, program: Program, engine: Callable[[Program], Engine], in_order: bool, counts_panes: bool = False) -> None:
        self._program = program
        self._engine = engine
        self._counters = ["late_elements", "late_dropped", "firings", *(["open_windows"] if counts_panes else [])]
        self._arranged: Callable[[list[str]], list[str]] = list if in_order else sorted
        self._stores = MemoryBlobStore(), MemoryBlobStore()

    def run(self, batch: Batch, tables: list[pa.Table]) -> BucketOutput:
        """Run a batch with new engines, so that nothing survives but the stores; both must do the same."""
        clock = Clock(batch.watermark, batch.processing_time, 5, "partition 3")
        expected = outcome(lambda: ReferenceEngine(self._program).run(self._stores[0], tables, clock))
        got = outcome(lambda: self._engine(self._program).run(self._stores[1], tables, clock))
        if isinstance(expected, AggregateOverflowError) or isinstance(got, AggregateOverflowError):
            assert {str(each).split(" is ")[0] for each in (expected, got)} == {"the result of sum('v')"}
            raise RefusedError
        if isinstance(expected, EvictionTimeError) or isinstance(got, EvictionTimeError):
            assert type(expected) is type(got)
            assert str(expected).startswith(str(got))
            raise RefusedError
        for number in (0, 1):
            assert self._arranged(rows_of(got, number)) == self._arranged(rows_of(expected, number))
        for counter in self._counters:
            assert getattr(got.counters, counter) == getattr(expected.counters, counter)
        return got

    def run_all(self, stream: list[Batch], timeless: int | None = None) -> None:
        """Run batches until both engines refuse one; every other row of a window upstream fired under the watermark before."""
        before = -31
        try:
            for batch in stream:
                rows = table_of(batch, timeless)
                if self._program.upstream is not Upstream.SOURCE:
                    rows = rows.append_column(FIRING_WATERMARK, pa.array(_fired_under(before, batch), pa.int64()))
                before = batch.watermark
                self.run(batch, [rows])
        except RefusedError:
            return


def _fired_under(before: int, batch: Batch) -> list[int]:
    return [before if n % 2 else batch.watermark for n in range(len(batch.rows))]


def columnar_engine(program: OverProgram) -> Engine:
    """Return the columnar engine of an OVER program, which must not need the reference."""
    chosen = with_engine(program)
    assert chosen.engine != OverReferenceEngine.name, chosen.engine_reason
    return make_engine(chosen)
