"""The slices engine equals the row engine on random programs, batch by batch, with a restart after every batch."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import assume, given, note, settings
from hypothesis import strategies as st

import windowpane as wp
from tests.engines.programs import LATE, Batch, batches
from windowpane.engines.program import JUDGED, PARTITION, POSITION, TIME, Program, Upstream
from windowpane.engines.protocol import BucketOutput, Clock
from windowpane.engines.row import RowEngine
from windowpane.engines.slices import SLICE, SlicesEngine, refusal
from windowpane.errors import AggregateOverflowError, MissingTimestampError, TimestampOverflowError
from windowpane.plan import FunctionPlan, InputTypes, WindowPlan, compile_program
from windowpane.state.memory import MemoryBlobStore
from windowpane.windowing.times import MAX

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

small = st.integers(1, 12)
assigners = st.one_of(
    st.builds(lambda size, offset: wp.TumblingEventTimeWindows(size, offset % size), small, small),
    st.builds(lambda size, slide: wp.SlidingEventTimeWindows(max(size, slide), min(size, slide)), small, small),
    st.builds(lambda step, steps: wp.CumulateEventTimeWindows(step * steps, step), small, st.integers(1, 4)),
    st.builds(lambda size, gap, offset: wp.SlidingEventTimeWindows(size, size + gap, offset % size), small, small, small),
    st.builds(lambda size, offset: wp.TumblingEventTimeWindows(size, offset % size, wp.WindowStagger.NATURAL), small, small),
    st.builds(lambda size, offset: wp.TumblingProcessingTimeWindows(size, offset % size), small, small),
    st.builds(lambda size: wp.TumblingProcessingTimeWindows(size, 0, wp.WindowStagger.NATURAL), small),
    st.builds(wp.SlidingProcessingTimeWindows, small, small),
)
purges = st.booleans()


def trigger_of(assigner, purges):
    """Return the assigner's default trigger (``None``), or the purging form of it."""
    return wp.PurgingTrigger.of(assigner.default_trigger()) if purges else None


def program_of(assigner, trigger=None, lateness=0, keyed=True, late=True, aggregates=None) -> Program:
    aggregates = AGGREGATES if aggregates is None else aggregates
    function = FunctionPlan("aggregate", aggregates=tuple(aggregates.items()))
    keys = ("k",) if keyed else ()
    plan = WindowPlan(keys, assigner, function, trigger, None, lateness, LATE if late else None, event_time="t")
    slots = {name: tuple(aggregate.arguments) for name, aggregate in aggregates.items()}
    types = InputTypes(COLUMNS, pa.schema([("k", pa.string())][: len(keys)]), keys, TIMESTAMP, slots)
    return compile_program(plan, types, ("k", "v", "w"))


def table_of(batch: Batch) -> pa.Table:
    rows = batch.rows
    return pa.table(
        {
            "k": pa.array([k for k, _, _ in rows], pa.string()),
            "v": pa.array([None if v == 0 else v * 2**58 for _, v, _ in rows], pa.int64()),
            "w": pa.array([v for _, v, _ in rows], pa.int32()),
            TIME: pa.array([t for _, _, t in rows], pa.int64()),
            PARTITION: pa.array([0] * len(rows), pa.int32()),
            POSITION: pa.array(range(len(rows)), pa.int64()),
        }
    )


def rows_of(output: BucketOutput, number: int) -> list[str]:
    found = [table for which, table in output.tables if which == number]
    return sorted(repr(row) for table in found for row in table.to_pylist())


def same(left: BucketOutput, right: BucketOutput) -> None:
    assert rows_of(left, 0) == rows_of(right, 0)
    assert rows_of(left, 1) == rows_of(right, 1)
    assert left.counters.late_elements == right.counters.late_elements
    assert left.counters.late_dropped == right.counters.late_dropped
    assert left.counters.firings == right.counters.firings
    if left.next_processing_time is not None or right.counters.open_windows:
        assert left.next_processing_time == right.next_processing_time


def run_both(program: Program, stores, batch: Batch, tables: list[pa.Table]) -> None:
    clock = Clock(batch.watermark, batch.processing_time)
    outcomes = [
        outcome(lambda: RowEngine(program).run(stores[0], tables, clock)),
        outcome(lambda: SlicesEngine(program).run(stores[1], tables, clock)),
    ]
    if any(isinstance(each, AggregateOverflowError) for each in outcomes):
        assert {str(each).split(" is ")[0] for each in outcomes} == {"the result of sum('v')"}
        raise OverflowedError
    same(outcomes[1], outcomes[0])


class OverflowedError(Exception):
    """Both engines refused a sum beyond 64 bits."""


def outcome(run):
    """Return what ``run`` returns, or the overflow it raises."""
    try:
        return run()
    except AggregateOverflowError as overflow:
        return overflow


@settings(max_examples=150, deadline=None, print_blob=True)
@given(assigners, purges, st.sampled_from([0, 0, 3, 20]), st.booleans(), batches())
def test_random_programs_agree_with_the_row_engine_batch_by_batch(assigner, purges, lateness, keyed, stream):
    program = program_of(assigner, trigger_of(assigner, purges), lateness, keyed)
    note(repr(program.spec))
    assert refusal(program) is None
    stores = MemoryBlobStore(), MemoryBlobStore()
    for batch in stream:
        try:
            run_both(program, stores, batch, [table_of(batch)])
        except OverflowedError:
            return


@settings(max_examples=40, deadline=None, print_blob=True)
@given(assigners, purges, st.sampled_from([0, 3, 20]), batches())
def test_aggregates_that_keep_values_see_them_in_order_of_arrival(assigner, purges, lateness, stream):
    program = program_of(assigner, trigger_of(assigner, purges), lateness, aggregates=KEPT)
    assert refusal(program) is None
    stores = MemoryBlobStore(), MemoryBlobStore()
    for batch in stream:
        rows = table_of(batch)
        run_both(program, stores, batch, [rows.slice(2), rows.slice(0, 2)])


@settings(max_examples=40, deadline=None, print_blob=True)
@given(assigners, purges, st.sampled_from([0, 3]), batches())
def test_rows_folded_before_the_shuffle_give_the_same_results(assigner, purges, lateness, stream):
    program = program_of(
        assigner, trigger_of(assigner, purges), lateness, late=False, aggregates={"n": wp.count(), "high": wp.max("w")}
    )
    engine, stores = SlicesEngine(program), (MemoryBlobStore(), MemoryBlobStore())
    assume(engine.can_fold_before_shuffle)
    for batch in stream:
        rows, clock = table_of(batch), Clock(batch.watermark, batch.processing_time)
        folded = [engine.fold_rows(rows.slice(start, 2)) for start in range(0, rows.num_rows, 2)]
        expected = RowEngine(program).run(stores[0], [rows], clock)
        same(SlicesEngine(program).run(stores[1], folded, clock), expected)


@settings(max_examples=40, deadline=None)
@given(assigners, batches(), st.sampled_from([Upstream.JUDGED_WINDOW, Upstream.WINDOW]))
def test_rows_of_an_earlier_window_are_judged_alike(assigner, stream, upstream):
    program = replace(program_of(assigner), upstream=upstream)
    stores, before = (MemoryBlobStore(), MemoryBlobStore()), -31
    for batch in stream:
        judged = [before if n % 2 else batch.watermark for n in range(len(batch.rows))]
        before = batch.watermark
        try:
            run_both(program, stores, batch, [table_of(batch).append_column(JUDGED, pa.array(judged, pa.int64()))])
        except OverflowedError:
            return


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"assigner": wp.EventTimeSessionWindows.with_gap(5)}, "no shared slices"),
        ({"assigner": wp.TumblingEventTimeWindows.of(5), "trigger": wp.CountTrigger.of(3)}, "key by key"),
        ({"assigner": wp.TumblingEventTimeWindows.of(5), "aggregates": {"m": wp.sum("u")}}, "no columnar form"),
    ],
)
def test_what_it_cannot_run_exactly_it_refuses_with_the_reason(change, reason):
    assert reason in (refusal(program_of(**change)) or "")


def test_bad_rows_are_refused_as_by_the_row_engine():
    engine = SlicesEngine(program_of(wp.TumblingEventTimeWindows.of(10)))
    rows = table_of(Batch(0, 0, (("a", 7, 5),)))
    nulls = rows.set_column(rows.column_names.index(TIME), TIME, pa.nulls(1, pa.int64()))
    with pytest.raises(MissingTimestampError, match="key 'a'"):
        engine.run(MemoryBlobStore(), [nulls], Clock(0, 0))
    beyond = rows.set_column(rows.column_names.index(TIME), TIME, pa.array([MAX - 3], pa.int64()))
    with pytest.raises(TimestampOverflowError, match=str(MAX - 3)):
        engine.run(MemoryBlobStore(), [beyond], Clock(0, 0))


def test_a_folded_table_names_its_slices():
    engine = SlicesEngine(program_of(wp.SlidingEventTimeWindows(10, 4)))
    folded = engine.fold_rows(table_of(Batch(0, 0, (("a", 1, 5), ("a", 2, 5), ("b", 1, -1)))))
    assert sorted(zip(folded[SLICE].to_pylist(), folded["k"].to_pylist(), strict=True)) == [(-2, "b"), (4, "a")]
