"""The slices engine equals the reference on random programs, batch by batch, with a restart after every batch."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import assume, given, note, settings
from hypothesis import strategies as st

import windowpane as wp
from tests.engines.columnar_programs import (
    AGGREGATES,
    KEPT,
    Pair,
    batches,
    event_time_assigners,
    fixed_assigners,
    lateness,
    program_of,
    rows_of,
    table_of,
)
from tests.examples import examples
from verify.fuzz.windowed_streams import SmallBatch as Batch
from windowpane.engines.program import Upstream
from windowpane.engines.protocol import Clock
from windowpane.engines.row.reference import ReferenceEngine
from windowpane.engines.slices.engine import SlicesEngine
from windowpane.errors import MissingTimestampError, TimestampOverflowError
from windowpane.hidden_columns import SLICE, TIME
from windowpane.planning.engines import combiner_refusal
from windowpane.state.memory import MemoryBlobStore
from windowpane.windowing.times import MAX

purges = st.booleans()


def trigger_of(assigner, purges):
    """Return the assigner's default trigger (``None``), or the purging form of it."""
    return wp.PurgingTrigger.of(assigner.default_trigger()) if purges else None


def engine_pair(program) -> Pair:
    """Return the pair; keys of one window are emitted in any order."""
    return Pair(program, SlicesEngine, in_order=False)


@settings(max_examples=examples(100), deadline=None, print_blob=True)
@given(fixed_assigners, purges, lateness, st.booleans(), batches())
def test_random_programs_agree_with_the_reference_batch_by_batch(assigner, purges, late, keyed, stream):
    program = program_of(assigner, trigger_of(assigner, purges), None, late, keyed)
    note(repr(program.spec))
    assert SlicesEngine.refusal(program) is None
    engine_pair(program).run_all(stream)


@settings(max_examples=examples(60), deadline=None, print_blob=True)
@given(event_time_assigners, purges, st.sampled_from([3, 20]), st.booleans(), batches(), st.sampled_from([AGGREGATES, KEPT]))
def test_windows_that_have_fired_fire_for_each_late_row_where_that_is_asked(assigner, purges, late, keyed, stream, aggregates):
    program = program_of(assigner, trigger_of(assigner, purges), None, late, keyed, aggregates=aggregates, refine="each")
    assert program.engine == "slices"
    assert combiner_refusal(replace(program, side_outputs=())) is not None
    engine_pair(program).run_all(stream)


@settings(max_examples=examples(25), deadline=None, print_blob=True)
@given(fixed_assigners, purges, lateness, batches())
def test_aggregates_that_keep_values_see_them_in_order_of_arrival(assigner, purges, late, stream):
    program = program_of(assigner, trigger_of(assigner, purges), None, late, aggregates=KEPT)
    assert SlicesEngine.refusal(program) is None
    pair = engine_pair(program)
    for batch in stream:
        rows = table_of(batch)
        pair.run(batch, [rows.slice(2), rows.slice(0, 2)])


@settings(max_examples=examples(25), deadline=None, print_blob=True)
@given(fixed_assigners, purges, st.sampled_from([0, 3]), batches())
def test_rows_folded_before_the_shuffle_give_the_same_results(assigner, purges, late, stream):
    aggregates = {"n": wp.count(), "high": wp.max("w")}
    program = program_of(assigner, trigger_of(assigner, purges), None, late, late=False, aggregates=aggregates)
    engine, stores = SlicesEngine(program), (MemoryBlobStore(), MemoryBlobStore())
    assume(combiner_refusal(program) is None)
    for batch in stream:
        rows, clock = table_of(batch), Clock(batch.watermark, batch.processing_time)
        folded = [engine.folding.fold_rows(rows.slice(start, 2)) for start in range(0, rows.num_rows, 2)]
        expected, got = (
            ReferenceEngine(program).run(stores[0], [rows], clock),
            SlicesEngine(program).run(stores[1], folded, clock),
        )
        assert sorted(rows_of(got, 0)) == sorted(rows_of(expected, 0))
        for counter in ("late_elements", "late_dropped", "firings"):
            assert getattr(got.counters, counter) == getattr(expected.counters, counter)


@settings(max_examples=examples(25), deadline=None)
@given(fixed_assigners, batches(), st.sampled_from([Upstream.WINDOW_WITH_WATERMARKS, Upstream.WINDOW]))
def test_rows_of_an_earlier_window_are_late_alike(assigner, stream, upstream):
    engine_pair(replace(program_of(assigner), upstream=upstream)).run_all(stream)


def test_the_bucket_asks_for_the_clock_at_the_end_of_its_first_window():
    engine, store = SlicesEngine(program_of(wp.SlidingProcessingTimeWindows.of(10, 5))), MemoryBlobStore()
    assert engine.run(store, [table_of(Batch(0, 7, (("a", 1, 5),)))], Clock(0, 7)).next_processing_time == 9
    assert engine.run(store, [], Clock(0, 9)).next_processing_time == 14
    assert engine.run(store, [], Clock(0, 14)).next_processing_time is None


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"assigner": wp.EventTimeSessionWindows.with_gap(5)}, "no shared slices"),
        ({"assigner": wp.TumblingEventTimeWindows.of(5), "trigger": wp.CountTrigger.of(3)}, "key by key"),
        ({"assigner": wp.TumblingEventTimeWindows.of(5), "aggregates": {"m": wp.sum("u")}}, "no columnar form"),
    ],
)
def test_what_it_cannot_run_exactly_it_refuses_with_the_reason(change, reason):
    assert reason in (SlicesEngine.refusal(program_of(**change)) or "")


def test_bad_rows_are_refused_as_by_the_reference():
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
    folded = engine.folding.fold_rows(table_of(Batch(0, 0, (("a", 1, 5), ("a", 2, 5), ("b", 1, -1)))))
    assert sorted(zip(folded[SLICE].to_pylist(), folded["k"].to_pylist(), strict=True)) == [(-2, "b"), (4, "a")]
