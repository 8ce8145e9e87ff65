"""Triggers that are called once for windows that are alike: on random programs the engine does what the reference does."""

from __future__ import annotations

from random import Random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given, note, settings
from hypothesis import strategies as st

import windowpane as wp
from tests.engines.columnar_programs import (
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
from verify.fuzz.windowed_programs import random_clock_tree, random_composable_panes, random_timeout, random_tree
from verify.fuzz.windowed_streams import SmallBatch as Batch
from verify.sizes import given_sizes
from windowpane.engines.panes.engine import Kind
from windowpane.engines.panes.standings import Standings
from windowpane.engines.panes.store import SHARD_ROWS
from windowpane.engines.panes.trigger_program import FIRES, IS_DROPPED, IS_LAST, PURGES
from windowpane.engines.program import Upstream
from windowpane.engines.protocol import Clock
from windowpane.engines.row.reference import ReferenceEngine
from windowpane.engines.sessions.engine import rule_refusal
from windowpane.errors import AggregateOverflowError, EndlessTimerError, InvalidSpecError, UserFunctionError
from windowpane.planning.engines import combiner_of, combiner_refusal, make_engine
from windowpane.state.memory import MemoryBlobStore
from windowpane.windowing.spec import PaneSettings
from windowpane.windowing.times import MAX, MIN

event_time_sessions = st.one_of(
    st.integers(1, 12).map(wp.EventTimeSessionWindows.with_gap),
    st.just(wp.EventTimeSessionWindows.with_dynamic_gap(lambda row: 1 + abs(row["w"] or 0))),
)
sessions = st.one_of(event_time_sessions, st.integers(1, 12).map(wp.ProcessingTimeSessionWindows.with_gap))
event_time_windows = st.one_of(event_time_assigners, event_time_sessions)
assigners = st.one_of(st.just(wp.GlobalWindows.create()), event_time_windows)


class OfTheUser(wp.CountTrigger):
    """A trigger of the user's."""


TEN = wp.TumblingEventTimeWindows.of(10)
EARLY = wp.AfterWatermark(early=wp.AfterProcessingTime(5), late=wp.AfterCount(1))


def calls_trigger(program):
    """Whether a columnar engine runs a program by calling its trigger."""
    if program.engine == "sessions":
        return rule_refusal(program) is not None
    return program.engine == "panes" and Kind.of(program.spec) is Kind.CALLED


def called_engine(program):
    """Return the columnar engine that calls the trigger of a program."""
    assert calls_trigger(program)
    return make_engine(program)


@st.composite
def trees(draw: st.DrawFn):
    """Return a composable trigger and what results show of panes, as the fuzz draws them."""
    random = draw(st.randoms(use_true_random=False))
    return random_tree(random), random_composable_panes(random)


@settings(max_examples=examples(250), deadline=None, print_blob=True)
@given(assigners, trees(), lateness, st.booleans(), batches())
def test_random_trees_agree_with_the_reference_batch_by_batch(assigner, tree, late, keyed, stream):
    trigger, panes = tree
    program = program_of(assigner, trigger, None, late, keyed, panes=panes)
    note(repr(program.spec))
    if program.engine not in ("slices", "sessions"):  # AfterWatermark() alone
        Pair(program, called_engine, in_order=False, counts_panes=True).run_all(stream)


@settings(max_examples=examples(100), deadline=None, print_blob=True)
@given(assigners, trees(), batches())
def test_aggregates_that_keep_values_agree(assigner, tree, stream):
    trigger, panes = tree
    program = program_of(assigner, trigger, None, 20, aggregates=KEPT, panes=panes)
    Pair(program, called_engine, in_order=False).run_all(stream)


@settings(max_examples=examples(100), deadline=None, print_blob=True)
@given(assigners, trees(), batches(), st.sampled_from([Upstream.WINDOW_WITH_WATERMARKS, Upstream.WINDOW]))
def test_rows_of_an_earlier_window_are_late_alike(assigner, tree, stream, upstream):
    program = program_of(assigner, tree[0], None, 3, upstream=upstream, panes=tree[1])
    if calls_trigger(program):
        Pair(program, called_engine, in_order=False, counts_panes=True).run_all(stream)


@settings(max_examples=examples(150), deadline=None, print_blob=True)
@given(fixed_assigners, st.integers(0, 3), st.integers(0, 2**32), st.sampled_from([0, 3]), batches())
def test_timeouts_agree(assigner, kind, seed, late, stream):
    of_clock = wp.ContinuousProcessingTimeTrigger.of(7)
    inner = (wp.CountTrigger.of(3), of_clock, assigner.default_trigger(), wp.ProcessingTimeTrigger())[kind]
    program = program_of(assigner, random_timeout(Random(seed), wp.PurgingTrigger.of(inner)), None, late)
    assert calls_trigger(program)
    Pair(program, called_engine, in_order=False, counts_panes=True).run_all(stream)


@settings(max_examples=examples(200), deadline=None, print_blob=True)
@given(sessions, st.integers(0, 4), st.booleans(), st.sampled_from(["each", "last"]), st.sampled_from([0, 3, 20]), batches())
def test_flinks_triggers_on_sessions_agree(assigner, kind, purges, refine, late, stream):
    of_clock, of_watermark = wp.ContinuousProcessingTimeTrigger.of(7), wp.ContinuousEventTimeTrigger.of(6)
    inner = (wp.CountTrigger.of(3), of_clock, of_watermark, assigner.default_trigger(), wp.ProcessingTimeTrigger())[kind]
    trigger = wp.PurgingTrigger.of(inner) if purges else inner
    program = program_of(assigner, trigger, None, late, refine=refine, aggregates=KEPT)
    assert program.engine == "sessions"
    Pair(program, make_engine, in_order=False, counts_panes=calls_trigger(program)).run_all(stream)


def test_a_session_that_has_put_out_panes_is_deleted_where_it_merges():
    trigger, panes = wp.Repeatedly(wp.AfterCount(1)), PaneSettings("retracting", shows_info=True)
    program = program_of(wp.EventTimeSessionWindows.with_gap(3), trigger, None, panes=panes, aggregates={"n": wp.count()})
    assert calls_trigger(program)
    stream = [Batch(0, 0, rows_at(1)), Batch(0, 0, rows_at(5)), Batch(0, 0, rows_at(3))]
    assert counts_of(program, stream) == [
        ("insert", 1, "EARLY", 0, False),
        ("insert", 1, "EARLY", 0, False),
        ("delete", 1, "EARLY", 0, False),
        ("delete", 1, "EARLY", 0, False),
        ("insert", 3, "EARLY", 0, False),
    ]


@settings(max_examples=examples(100), deadline=None, print_blob=True)
@given(event_time_windows, trees(), lateness, batches(), st.data())
def test_where_batches_end_does_not_matter(assigner, tree, late, stream, data):
    """Rows under one reading of the clocks, in one batch or in several: the same panes are emitted."""
    program = program_of(assigner, tree[0], None, late, panes=tree[1])
    cut: list[Batch] = []
    for batch in stream:
        at = data.draw(st.integers(0, len(batch.rows)))
        cut += [Batch(batch.watermark, batch.processing_time, rows) for rows in (batch.rows[:at], batch.rows[at:])]
    assert sorted(put_out(program, stream)) == sorted(put_out(program, cut))


def put_out(program, stream):
    """Return the rows of the main output of all batches, each as text."""
    engine, store = make_engine(program), MemoryBlobStore()
    shown = []
    seen = None
    for batch in stream:
        # A clock that has been read fires nothing twice: between the parts of a batch it does not advance.
        now = batch.processing_time if batch.processing_time != seen else wp.MIN
        seen = batch.processing_time
        output = engine.run(store, [table_of(batch)], Clock(batch.watermark, now))
        shown += [repr(row) for number, table in output.tables if number == 0 for row in table.to_pylist()]
    return shown


def rows_at(*times):
    return tuple(("a", 1, time) for time in times)


def counts_of(program, stream):
    """Return what results show of each pane, and how many rows it holds."""
    engine, store, shown = make_engine(program), MemoryBlobStore(), []
    for batch in stream:
        output = engine.run(store, [table_of(batch)] if batch.rows else [], Clock(batch.watermark, batch.processing_time))
        for row in (row for number, table in output.tables if number == 0 for row in table.to_pylist()):
            shown.append((row.get("_change_type"), row["n"], row["pane_timing"], row["pane_index"], row["pane_is_last"]))
    return shown


STREAM = [
    Batch(0, 0, rows_at(1, 2)),
    Batch(0, 5, rows_at(3)),
    Batch(9, 6, ()),
    Batch(9, 7, rows_at(4, 5)),
    Batch(14, 8, ()),
]


def test_early_on_time_and_late_panes_of_one_window():
    program = program_of(TEN, EARLY, None, 5, panes=PaneSettings("accumulating", shows_info=True), aggregates={"n": wp.count()})
    assert calls_trigger(program)
    assert counts_of(program, STREAM) == [
        (None, 2, "EARLY", 0, False),
        (None, 3, "ON_TIME", 1, False),
        (None, 4, "LATE", 2, False),
        (None, 5, "LATE", 3, False),
    ]


def test_panes_that_are_taken_back():
    program = program_of(TEN, EARLY, None, 5, panes=PaneSettings("retracting", shows_info=True), aggregates={"n": wp.count()})
    assert counts_of(program, STREAM) == [
        ("insert", 2, "EARLY", 0, False),
        ("update_preimage", 2, "EARLY", 0, False),
        ("update_postimage", 3, "ON_TIME", 1, False),
        ("update_preimage", 3, "ON_TIME", 1, False),
        ("update_postimage", 4, "LATE", 2, False),
        ("update_preimage", 4, "LATE", 2, False),
        ("update_postimage", 5, "LATE", 3, False),
    ]


def test_a_batch_of_many_rows_fires_at_each_count():
    trigger, panes = wp.Repeatedly(wp.AfterCount(10)), PaneSettings("discarding", shows_info=True)
    program = program_of(TEN, trigger, None, 0, panes=panes, aggregates={"n": wp.count()})
    stream = [Batch(0, 0, rows_at(*[1] * 25)), Batch(9, 0, ())]
    assert counts_of(program, stream) == [
        (None, 10, "EARLY", 0, False),
        (None, 10, "EARLY", 1, False),
        (None, 5, "ON_TIME", 2, True),
    ]


def test_rows_that_a_finished_trigger_drops_are_counted_and_late_data():
    panes = PaneSettings("discarding", allows_unsafe_triggers=True)
    program = program_of(TEN, wp.AfterCount(2), None, 0, panes=panes, aggregates={"n": wp.count()})
    output = make_engine(program).run(MemoryBlobStore(), [table_of(Batch(0, 0, rows_at(1, 2, 3)))], Clock(0, 0))
    (late,) = (table for number, table in output.tables if number == program.late_output)
    assert output.counters.dropped_by_finished_trigger == 1
    assert late.select(["dropped", "reason"]).to_pylist() == [{"dropped": True, "reason": "finished"}]


def test_nothing_is_left_of_a_window_that_is_over():
    program = program_of(TEN, EARLY, None, 5, panes=PaneSettings("retracting"))
    engine, store = make_engine(program), MemoryBlobStore()
    for batch in STREAM:
        output = engine.run(store, [table_of(batch)] if batch.rows else [], Clock(batch.watermark, batch.processing_time))
    assert (output.is_idle, output.counters.open_windows, output.counters.state_bytes) == (True, 0, 0)


def test_the_clock_is_waited_for():
    program = program_of(TEN, EARLY, None, 5, panes=PaneSettings("accumulating"))
    output = make_engine(program).run(MemoryBlobStore(), [table_of(Batch(0, 7, rows_at(1)))], Clock(0, 7))
    assert output.next_processing_time == 12


@pytest.mark.parametrize(
    ("trigger", "evictor", "reason"),
    [
        (wp.ProcessingTimeoutTrigger.of(OfTheUser(1), 5), None, "OfTheUser is no trigger of windowpane's"),
        (wp.ProcessingTimeoutTrigger.of(wp.CountTrigger.of(2), 5), wp.CountEvictor.of(2), "an evictor needs every row"),
    ],
)
def test_what_is_refused_is_refused_by_name(trigger, evictor, reason):
    program = program_of(TEN, trigger, evictor)
    assert program.engine == "row"
    assert reason in program.engine_reason
    with pytest.raises(InvalidSpecError, match="cannot run this program"):
        program_of(TEN, trigger, evictor, engine="panes")


def test_timers_of_global_windows_wait_while_other_keys_come():
    """The keys of a bucket are in several shards, and a batch touches a few: the others are due all the same."""
    trigger, panes = wp.Repeatedly(wp.AfterProcessingTime(5)), PaneSettings("discarding")
    program = program_of(wp.GlobalWindows.create(), trigger, None, panes=panes, aggregates={"n": wp.count()})
    assert calls_trigger(program)
    engine, store, outputs = make_engine(program), MemoryBlobStore(), []
    with given_sizes({SHARD_ROWS: 2}):
        for clock in range(5):
            rows = tuple((f"{key} of {clock}", 1, 1) for key in range(1 if clock else 40))
            outputs.append(engine.run(store, [table_of(Batch(0, clock, rows))], Clock(0, clock)))
        outputs += [engine.run(store, [], Clock(0, clock)) for clock in range(5, 10)]
    assert [output.next_processing_time for output in outputs] == [5, 5, 5, 5, 5, 6, 7, 8, 9, None]
    assert [output.counters.firings for output in outputs] == [0, 0, 0, 0, 0, 40, 1, 1, 1, 1]


def test_fire_times_before_1970_are_further_from_the_end_of_the_global_window_than_int64_reaches():
    """Flink's ContinuousEventTimeTrigger: the interval is rounded toward zero, so a row at -25 waits for -10."""
    trigger = wp.ContinuousEventTimeTrigger.of(10)
    program = program_of(wp.GlobalWindows.create(), trigger, None, aggregates={"n": wp.count()})
    assert calls_trigger(program)
    engine, store = make_engine(program), MemoryBlobStore()
    engine.run(store, [table_of(Batch(-30, 0, rows_at(-25, -24)))], Clock(-30, 0))
    firings = [engine.run(store, [], Clock(watermark, 0)).counters.firings for watermark in (-11, -10, -1, 0, 10)]
    assert firings == [0, 1, 0, 1, 1]


def test_a_periodic_trigger_on_a_window_without_end_is_an_error_at_the_end_of_bounded_input():
    """docs/coming-from-flink.md: Flink's job never ends."""
    trigger = wp.ContinuousEventTimeTrigger.of("1 second")
    program = program_of(wp.GlobalWindows.create(), trigger, None, aggregates={"n": wp.count()})
    assert calls_trigger(program)
    engine, store = make_engine(program), MemoryBlobStore()
    engine.run(store, [table_of(Batch(MIN, 0, rows_at(1, 2)))], Clock(MIN, 0))
    with pytest.raises(EndlessTimerError, match=r"ContinuousEventTimeTrigger.* key '?\w+'? in GLOBAL"):
        engine.run(store, [], Clock(MAX, 0))


def test_fire_times_of_event_time_in_windows_of_the_clock_may_be_as_far_from_their_end():
    trigger, early = wp.ContinuousEventTimeTrigger.of(10), MIN + 25
    for assigner in (wp.TumblingProcessingTimeWindows.of(10), wp.ProcessingTimeSessionWindows.with_gap(10)):
        program = program_of(assigner, trigger, None, aggregates={"n": wp.count()})
        assert calls_trigger(program)
        engine, store = make_engine(program), MemoryBlobStore()
        fire_time = early + (-early) % 10 + 10
        engine.run(store, [table_of(Batch(MIN, 1_000, rows_at(early)))], Clock(MIN, 1_000))
        firings = [engine.run(store, [], Clock(mark, 1_000)).counters.firings for mark in (fire_time - 1, fire_time)]
        assert firings == [0, 1]


def test_rows_fold_before_the_shuffle_where_only_clocks_fire():
    early = wp.EarlyAndFinal(delay=5)
    panes = PaneSettings("retracting", shows_info=True)
    program = program_of(TEN, early, late=False, aggregates={"n": wp.count()}, panes=panes)
    combine = combiner_of(program)
    assert combine is not None
    engine, store, shown = make_engine(program), MemoryBlobStore(), []
    for clock, times in [(Clock(0, 0), (1, 2, 2)), (Clock(0, 5), (3, 4)), (Clock(9, 6), ())]:
        parts = [combine(table_of(Batch(0, 0, rows_at(time)))) for time in times]
        output = engine.run(store, parts, clock)
        found = (row for number, table in output.tables if number == 0 for row in table.to_pylist())
        shown += [(row["_change_type"], row["n"], row["pane_timing"]) for row in found]
    assert shown == [
        ("insert", 3, "EARLY"),
        ("update_preimage", 3, "EARLY"),
        ("update_postimage", 5, "ON_TIME"),
    ]


def test_rows_stay_whole_where_a_late_part_would_read_them():
    """No row is late here, but the engine takes rows one by one for a trigger that reads them."""
    late = wp.AfterWatermark(late=wp.ContinuousEventTimeTrigger.of(4))
    program = program_of(TEN, late, late=False, aggregates={"n": wp.count()}, panes=PaneSettings("accumulating"))
    assert combiner_of(program) is None


@settings(max_examples=examples(150), deadline=None, print_blob=True)
@given(event_time_assigners, st.randoms(use_true_random=False), st.booleans(), batches(), st.data())
def test_folded_rows_agree_with_the_reference(assigner, random, keyed, stream, data):
    panes = random_composable_panes(random)
    program = program_of(assigner, random_clock_tree(random), None, 0, keyed, late=False, panes=panes)
    combine = combiner_of(program)
    assume(combine is not None)
    assert combine is not None
    engine, reference, stores = make_engine(program), ReferenceEngine(program), (MemoryBlobStore(), MemoryBlobStore())
    for batch in stream:
        clock, rows = Clock(batch.watermark, batch.processing_time), table_of(batch)
        cut = data.draw(st.integers(0, rows.num_rows))
        parts = [combine(part) for part in (rows.slice(0, cut), rows.slice(cut)) if part.num_rows]
        try:
            expected = reference.run(stores[1], [rows], clock)
        except AggregateOverflowError:
            with pytest.raises(AggregateOverflowError):
                engine.run(stores[0], parts, clock)
            return
        got = engine.run(stores[0], parts, clock)
        assert sorted(rows_of(got, 0)) == sorted(rows_of(expected, 0))
        assert (got.counters.late_dropped, got.counters.firings) == (expected.counters.late_dropped, expected.counters.firings)


@pytest.mark.parametrize(
    ("trigger", "late"),
    [
        (EARLY, 5),
        (wp.AfterWatermark(early=wp.AfterProcessingTime(0)), 0),
        (wp.AfterWatermark(early=wp.AfterCount(2)), 0),
        (wp.AfterProcessingTime(5), 0),
        (wp.Repeatedly(wp.Always()), 0),
        (wp.AfterWatermark(early=wp.CountTrigger.of(2)), 0),
    ],
)
def test_rows_that_the_trigger_looks_at_arrive_whole(trigger, late):
    program = program_of(TEN, trigger, None, late, late=False, panes=PaneSettings("discarding", allows_unsafe_triggers=True))
    assert combiner_refusal(program) == "the trigger is called row by row"


def apart(old, new):
    return abs((new["w"] or 0) - (old["w"] or 0))


@settings(max_examples=examples(100), deadline=None, print_blob=True)
@given(st.one_of(st.just(wp.GlobalWindows.create()), fixed_assigners), st.integers(0, 4), st.booleans(), batches())
def test_triggers_that_look_at_rows_agree(assigner, threshold, times_out, stream):
    by_rows = wp.DeltaTrigger.of(threshold, apart)
    trigger = wp.ProcessingTimeoutTrigger.of(by_rows, 4) if times_out else wp.PurgingTrigger.of(by_rows)
    program = program_of(assigner, trigger, None, 3)
    assert calls_trigger(program)
    Pair(program, called_engine, in_order=False, counts_panes=True).run_all(stream)


def test_a_trigger_that_raises_is_named_with_the_row():
    def fails(old, new):
        raise ArithmeticError("no distance")

    program = program_of(TEN, wp.DeltaTrigger.of(1, fails))
    stream = Batch(0, 0, rows_at(1, 2))
    with pytest.raises(UserFunctionError, match=r"no distance.*key 'a', window .*") as raised:
        make_engine(program).run(MemoryBlobStore(), [table_of(stream)], Clock(0, 0))
    assert "'w': 1" in str(raised.value)


def test_panes_that_are_alike_are_asked_once(monkeypatch):
    asked, answer = [], wp.CountTrigger.on_element

    def counted(trigger, element, timestamp, window, context):
        asked.append(window)
        return answer(trigger, element, timestamp, window, context)

    monkeypatch.setattr(wp.CountTrigger, "on_element", counted)
    spec = program_of(TEN, wp.CountTrigger(3)).spec
    standings, window = Standings(spec), wp.TimeWindow(0, 10)
    standings.set_clocks(0, 0)
    for _ in range(100):
        numbers, bits = standings.after_rows(0, window, 7)
    assert bits == [0, 0, FIRES, 0, 0, FIRES, 0]
    assert numbers[2] == numbers[5]
    assert len(asked) == 4  # without rows; with one, and two; and with the cleanup timer alone


def test_standings_survive_as_bytes():
    spec = program_of(TEN, wp.AfterCount(2), panes=PaneSettings("discarding", allows_unsafe_triggers=True)).spec
    standings, window = Standings(spec), wp.TimeWindow(0, 10)
    numbers, bits = standings.after_rows(0, window, 2)
    assert bits == [0, FIRES | PURGES | IS_LAST]
    other = Standings(spec)
    (read,) = other.of(pa.chunked_array([standings.column(np.array(numbers[1:]))]))
    assert read != 0
    assert other.after_rows(int(read), window, 1)[1] == standings.after_rows(numbers[1], window, 1)[1] == [IS_DROPPED]
    assert other.is_nothing(0)
    assert not other.is_nothing(int(read))
