"""Count triggers on the panes engine do what the reference does, batch by batch, in order, with a restart after every batch."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

import windowpane as wp
from tests.engines.columnar_programs import KEPT, Pair, batches, evictors, fixed_assigners, lateness, program_of, table_of
from tests.examples import examples
from verify.fuzz.windowed_programs import LATE
from verify.fuzz.windowed_streams import SmallBatch as Batch
from windowpane.engines.panes.engine import PanesEngine
from windowpane.engines.program import Upstream
from windowpane.engines.protocol import Clock
from windowpane.planning.engines import make_engine
from windowpane.planning.settings import Settings
from windowpane.planning.window_programs import InputTypes, compile_program
from windowpane.planning.windows import FunctionPlan, WindowPlan
from windowpane.state.memory import MemoryBlobStore
from windowpane.windowing.spec import count_window

counting = st.builds(
    lambda every, purges: wp.PurgingTrigger.of(wp.CountTrigger.of(every)) if purges else wp.CountTrigger.of(every),
    st.integers(-1, 5),
    st.booleans(),
)
assigners = st.one_of(st.just(wp.GlobalWindows.create()), fixed_assigners)


@settings(max_examples=examples(300), deadline=None, print_blob=True)
@given(assigners, counting, evictors, lateness, st.booleans(), batches(), st.sampled_from(["last", "each"]))
def test_random_programs_agree_with_the_reference_batch_by_batch(assigner, trigger, evictor, late, keyed, stream, refine):
    program = program_of(assigner, trigger, evictor, late, keyed, refine=refine)
    note(repr(program.spec))
    assert PanesEngine.refusal(program) is None
    Pair(program, PanesEngine, in_order=True, counts_panes=True).run_all(stream)


@settings(max_examples=examples(30), deadline=None, print_blob=True)
@given(st.sampled_from([3, 8, 20]), st.sampled_from([None, 1, 3, 8, 20]), batches(most_rows=60))
def test_count_windows_fire_many_times_in_a_batch(size, slide, stream):
    assigner, trigger, evictor = count_window(size, slide)
    Pair(program_of(assigner, trigger, evictor), PanesEngine, in_order=True, counts_panes=True).run_all(stream)


@settings(max_examples=examples(30), deadline=None, print_blob=True)
@given(counting, evictors, batches(), st.sampled_from([Upstream.WINDOW_WITH_WATERMARKS, Upstream.WINDOW]), assigners)
def test_rows_of_an_earlier_window_are_late_alike(trigger, evictor, stream, upstream, assigner):
    program = replace(program_of(assigner, trigger, evictor), upstream=upstream)
    Pair(program, PanesEngine, in_order=True, counts_panes=True).run_all(stream)


@settings(max_examples=examples(30), deadline=None, print_blob=True)
@given(assigners, counting, evictors, batches(most_rows=12))
def test_aggregates_that_keep_values_see_them_in_order_of_arrival(assigner, trigger, evictor, stream):
    pair = Pair(program_of(assigner, trigger, evictor, aggregates=KEPT), PanesEngine, in_order=True)
    for batch in stream:
        rows = table_of(batch)
        pair.run(batch, [rows.slice(2), rows.slice(0, 2)])


@settings(max_examples=examples(25), deadline=None, print_blob=True)
@given(counting, evictors, batches(), st.integers(1, 3))
def test_global_windows_take_rows_without_a_time(trigger, evictor, stream, timeless):
    program = program_of(wp.GlobalWindows.create(), trigger, evictor)
    Pair(program, PanesEngine, in_order=True, counts_panes=True).run_all(stream, timeless)


def test_as_many_elements_as_rows_may_still_be_other_rows():
    """Three rows in two windows each and three that are late: six elements of six rows."""
    rows = (("a", 1, 0), ("a", 2, 0), ("a", 3, 0), ("a", 4, -2), ("a", 5, -2), ("a", 6, -2))
    program = program_of(wp.SlidingEventTimeWindows(2, 1), wp.CountTrigger.of(1))
    Pair(program, PanesEngine, in_order=True, counts_panes=True).run_all([Batch(-1, 1, rows)])


@pytest.mark.parametrize("trigger", [wp.CountTrigger.of(2), wp.ContinuousEventTimeTrigger.of(5)])
def test_equal_keys_of_floating_point_are_one_and_late_rows_keep_their_spelling(trigger):
    keys = pa.schema([("f", pa.float64())])
    function = FunctionPlan("aggregate", aggregates=(("n", wp.count()),))
    plan = WindowPlan(
        ("f",), wp.TumblingEventTimeWindows.of(10), function, trigger, settings=Settings(late_tag=LATE), event_time="t"
    )
    program = compile_program(plan, InputTypes(keys, keys, ("f",), pa.int64(), {"n": ()}), ("f",))
    values = [0.0, -0.0, float("nan"), -float("nan")] * 2
    batch = Batch(0, 0, tuple(("", 0, time) for time in [5] * 4 + [-5] * 4))
    rows = table_of(batch).append_column("f", pa.array(values))
    store = MemoryBlobStore()
    outputs = [make_engine(program).run(store, tables, clock) for tables, clock in [([rows], Clock(0, 0)), ([], Clock(50, 0))]]
    assert [row["n"] for output in outputs for which, table in output.tables if which == 0 for row in table.to_pylist()] == [2, 2]
    late = [table for which, table in outputs[0].tables if which == 1]
    assert [str(value) for value in late[0]["f"].to_pylist()] == ["0.0", "-0.0", "nan", "nan"]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"assigner": wp.EventTimeSessionWindows.with_gap(5)}, "neither global nor of fixed size"),
        ({"evictor": wp.DeltaEvictor.of(1, lambda old, last: 0)}, "compares rows one by one"),
        ({"aggregates": {"m": wp.sum("u")}}, "no columnar form"),
    ],
)
def test_what_it_cannot_run_exactly_it_refuses_with_the_reason(change, reason):
    plain = {"assigner": wp.TumblingEventTimeWindows.of(5), "trigger": wp.CountTrigger.of(3)}
    assert reason in (PanesEngine.refusal(program_of(**plain | change)) or "")


def test_the_planner_takes_it_for_count_windows():
    program = program_of(wp.GlobalWindows.create(), wp.PurgingTrigger.of(wp.CountTrigger.of(3)))
    assert program.engine == "panes"
