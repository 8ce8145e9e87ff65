"""The panes engine equals the reference on random programs, batch by batch, with a restart after every batch."""

from __future__ import annotations

from dataclasses import replace

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
    evictors,
    fixed_assigners,
    lateness,
    processing_time_assigners,
    program_of,
    rows_of,
    small,
    table_of,
)
from tests.examples import examples
from verify.fuzz.windowed_streams import SmallBatch as Batch
from windowpane.engines.common.evicting import refinement_refusal
from windowpane.engines.panes.engine import PanesEngine
from windowpane.engines.program import Upstream
from windowpane.engines.protocol import Clock
from windowpane.engines.row.reference import ReferenceEngine
from windowpane.planning.engines import combiner_refusal
from windowpane.state.memory import MemoryBlobStore
from windowpane.windowing.times import MAX

kinds = st.sampled_from(["end", "event time", "processing time", "never"])


@st.composite
def timed(draw: st.DrawFn, assigners=fixed_assigners):
    """Draw an assigner and a trigger that its clock, or that of early results, fires."""
    assigner, kind, interval = draw(assigners), draw(kinds), draw(small)
    trigger = assigner.default_trigger() if kind == "end" else wp.ContinuousProcessingTimeTrigger(interval)
    if kind == "event time" and assigners is fixed_assigners:
        assigner, trigger = draw(event_time_assigners), wp.ContinuousEventTimeTrigger(interval)
    if kind == "never":
        trigger = wp.NeverTrigger()
    return assigner, wp.PurgingTrigger.of(trigger) if draw(st.booleans()) else trigger


def runs(program) -> bool:
    """Return whether the engine runs a program: all but those whose evictor has to look at each late row."""
    assert PanesEngine.refusal(program) == refinement_refusal(program.spec)
    return PanesEngine.refusal(program) is None


def pair_of(program) -> Pair:
    """Return the pair; keys that fire at one instant are emitted in any order."""
    return Pair(program, PanesEngine, in_order=False)


@settings(max_examples=examples(60), deadline=None, print_blob=True)
@given(timed(), st.sampled_from([3, 20]), st.booleans(), batches(), st.sampled_from([AGGREGATES, KEPT]))
def test_windows_that_have_ended_fire_for_each_late_row_where_that_is_asked(parts, late, keyed, stream, aggregates):
    program = program_of(parts[0], parts[1], None, late, keyed, aggregates=aggregates, refine="each")
    assert PanesEngine.refusal(program) is None
    pair_of(program).run_all(stream)


@settings(max_examples=examples(60), deadline=None, print_blob=True)
@given(timed(), lateness, st.booleans(), batches())
def test_rows_folded_before_the_shuffle_come_in_the_order_of_their_time(parts, late, keyed, stream):
    aggregates = {"n": wp.count(), "high": wp.max("w")}
    program = program_of(parts[0], parts[1], None, late, keyed, late=False, aggregates=aggregates)
    assume(program.engine == "panes" and combiner_refusal(program) is None)
    engine, stores = PanesEngine(program), (MemoryBlobStore(), MemoryBlobStore())
    for batch in stream:
        in_time = table_of(replace(batch, rows=tuple(sorted(batch.rows, key=lambda row: row[2]))))
        rows, clock = table_of(batch), Clock(batch.watermark, batch.processing_time)
        folded = [engine.folding.fold_rows(rows.slice(start, 3)) for start in range(0, rows.num_rows, 3)]
        expected, got = ReferenceEngine(program).run(stores[0], [in_time], clock), engine.run(stores[1], folded, clock)
        assert sorted(rows_of(got, 0)) == sorted(rows_of(expected, 0))
        for counter in ("late_elements", "late_dropped", "firings"):
            assert getattr(got.counters, counter) == getattr(expected.counters, counter)


@settings(max_examples=examples(50), deadline=None, print_blob=True)
@given(timed(), evictors, lateness, st.booleans(), batches())
def test_random_programs_agree_with_the_reference_batch_by_batch(parts, evictor, late, keyed, stream):
    program = program_of(parts[0], parts[1], evictor, late, keyed)
    note(repr(program.spec))
    assume(runs(program))
    pair_of(program).run_all(stream)


@settings(max_examples=examples(25), deadline=None, print_blob=True)
@given(timed(), evictors, lateness, batches())
def test_without_keys_results_come_in_the_order_of_the_reference(parts, evictor, late, stream):
    program = program_of(parts[0], parts[1], evictor, late, keyed=False)
    assume(runs(program))
    Pair(program, PanesEngine, in_order=True).run_all(stream)


@settings(max_examples=examples(12), deadline=None, print_blob=True)
@given(timed(), evictors, lateness, batches(most_rows=12))
def test_aggregates_that_keep_values_see_them_in_order_of_arrival(parts, evictor, late, stream):
    program = program_of(parts[0], parts[1], evictor, late, aggregates=KEPT)
    assume(runs(program))
    pair = pair_of(program)
    for batch in stream:
        rows = table_of(batch)
        pair.run(batch, [rows.slice(2), rows.slice(0, 2)])


@settings(max_examples=examples(25), deadline=None, print_blob=True)
@given(timed(), evictors, batches(), st.sampled_from([Upstream.WINDOW_WITH_WATERMARKS, Upstream.WINDOW]))
def test_rows_of_an_earlier_window_are_late_alike(parts, evictor, stream, upstream):
    pair_of(replace(program_of(parts[0], parts[1], evictor), upstream=upstream)).run_all(stream)


@settings(max_examples=examples(12), deadline=None, print_blob=True)
@given(timed(processing_time_assigners), evictors, batches(), st.integers(1, 3))
def test_processing_time_windows_take_rows_without_a_time(parts, evictor, stream, timeless):
    pair_of(program_of(parts[0], parts[1], evictor)).run_all(stream, timeless)


@settings(max_examples=examples(12), deadline=None, print_blob=True)
@given(evictors, st.booleans(), batches(), st.sampled_from(["last", "each"]))
def test_global_windows_fire_at_the_end_of_the_stream(evictor, purges, stream, refine):
    trigger = wp.PurgingTrigger.of(wp.EndOfStreamTrigger()) if purges else None
    program = program_of(wp.GlobalWindows.create_with_end_of_stream_trigger(), trigger, evictor, refine=refine)
    pair_of(program).run_all([*stream, Batch(MAX, MAX, ()), Batch(MAX, MAX, (("a", 1, 1),))])


def test_a_batch_that_nothing_is_due_in_reads_no_panes():
    program = program_of(wp.TumblingEventTimeWindows.of(1000), wp.ContinuousEventTimeTrigger.of(100))
    engine, store = PanesEngine(program), MemoryBlobStore()
    engine.run(store, [table_of(Batch(-1, 0, (("a", 1, 5), ("b", 1, 205))))], Clock(-1, 0))
    before = store.reads
    engine.run(store, [table_of(Batch(50, 0, (("c", 1, 60),)))], Clock(50, 0))
    assert store.reads - before == 3, "the header, the index of the panes, and when their timers are due"


def test_the_bucket_asks_for_the_clock_at_the_next_fire_time():
    program = program_of(wp.TumblingEventTimeWindows.of(1000), wp.ContinuousProcessingTimeTrigger.of(10))
    engine, store = PanesEngine(program), MemoryBlobStore()
    assert engine.run(store, [table_of(Batch(-1, 7, (("a", 1, 5),)))], Clock(-1, 7)).next_processing_time == 10
    assert engine.run(store, [], Clock(-1, 25)).next_processing_time == 30
    last = engine.run(store, [], Clock(2000, 26))
    assert last.next_processing_time is None
    assert last.is_idle


def test_a_window_that_is_never_cleaned_up_fires_by_the_clock_also_at_the_end_of_the_stream():
    program = program_of(wp.TumblingEventTimeWindows.of(10), wp.ContinuousProcessingTimeTrigger.of(5), lateness=MAX)
    assert program.engine == "panes"
    batches = [Batch(-1, 1, (("a", 1, 5),)), Batch(MAX, 6, ()), Batch(MAX, 20, ())]
    pair = pair_of(program)
    assert [pair.run(batch, [table_of(batch)]).counters.firings for batch in batches] == [0, 1, 1]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"assigner": wp.EventTimeSessionWindows.with_gap(5)}, "neither global nor of fixed size"),
        ({"refine": "each", "lateness": 3, "evictor": wp.CountEvictor.of(2)}, "at every late row"),
        ({"aggregates": {"m": wp.sum("u")}}, "no columnar form"),
    ],
)
def test_what_it_cannot_run_exactly_it_refuses_with_the_reason(change, reason):
    plain = {"assigner": wp.TumblingEventTimeWindows.of(5), "trigger": wp.ContinuousEventTimeTrigger.of(3)}
    assert reason in (PanesEngine.refusal(program_of(**plain | change)) or "")


def test_the_planner_takes_it_for_early_results_and_evictors():
    tumbling = wp.TumblingEventTimeWindows.of(5)
    assert program_of(tumbling, wp.ContinuousEventTimeTrigger.of(3)).engine == "panes"
    assert program_of(tumbling, None, wp.CountEvictor.of(3)).engine == "panes"
    assert program_of(tumbling).engine == "slices"
