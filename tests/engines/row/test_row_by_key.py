"""Rows that the row engine takes by key leave results, late rows, counters, state and timers as the reference operator does."""

from __future__ import annotations

from random import Random

import pytest

import windowpane as wp
from tests.engines import columnar_programs
from tests.examples import examples
from verify.fuzz.functions import OwnEvictor, OwnTrigger, differences, late_of, program_of, random_spec, results_of, run_batch
from verify.fuzz.windowed_programs import time_unit
from verify.fuzz.windowed_streams import SmallBatch as Batch
from verify.fuzz.windowed_streams import small_stream
from verify.sizes import given_sizes
from windowpane.engines.protocol import Clock
from windowpane.engines.row.cells import CellOperator
from windowpane.engines.row.engine import FEWEST_ROWS, RowEngine
from windowpane.engines.row.runs import RunOperator
from windowpane.engines.row.sessions import SessionOperator
from windowpane.errors import MissingTimestampError, TimestampOverflowError, UserFunctionError
from windowpane.state.memory import MemoryBlobStore
from windowpane.windowing.assigners import EventTimeSessionWindows, SlidingEventTimeWindows, TumblingEventTimeWindows
from windowpane.windowing.functions import AggregateFunction, WindowFunctionSpec
from windowpane.windowing.spec import WindowSpec
from windowpane.windowing.times import MAX
from windowpane.windowing.triggers import EventTimeTrigger

BY_KEY, ONE_BY_ONE = {FEWEST_ROWS: 1}, {FEWEST_ROWS: 1 << 40}
WAYS = [CellOperator, RunOperator, SessionOperator]
AS_ROW = WindowFunctionSpec.apply(lambda key, window, rows: [{"value": str([row["n"] for row in rows])}])
TEN = TumblingEventTimeWindows.of(10)
GAP = EventTimeSessionWindows.with_gap(3)


class Raises(AggregateFunction):
    """Raises at the number 7."""

    def create_accumulator(self):
        return 0

    def add(self, value, accumulator):
        if value["n"] == 7:
            raise ValueError("seven")
        return accumulator + value["n"]

    def get_result(self, accumulator):
        return {"value": str(accumulator)}

    def merge(self, left, right):
        return left + right


@pytest.mark.parametrize("way", WAYS)
def test_random_programs_of_each_way_agree_with_the_operator(way):
    draw, seen = Random(f"by key {way.__name__}"), 0
    while seen < examples(960):
        spec = random_spec(draw)
        if not way.covers(spec) or (way is RunOperator and CellOperator.covers(spec)):
            continue
        seen += 1
        with given_sizes(BY_KEY):
            assert differences(spec, small_stream(draw, 40, time_unit(spec.assigner))) == [], spec


@pytest.mark.parametrize("way", WAYS)
def test_state_goes_on_from_rows_taken_one_by_one_and_back(way):
    draw, seen = Random(f"in turn {way.__name__}"), 0
    while seen < examples(320):
        spec = random_spec(draw)
        if not way.covers(spec):
            continue
        seen += 1
        program, store, expected = program_of(spec), MemoryBlobStore(), MemoryBlobStore()
        for number, batch in enumerate(small_stream(draw, 40, time_unit(spec.assigner))):
            with given_sizes(BY_KEY if number % 2 else ONE_BY_ONE):
                got = run_batch(program, store, batch)
            with given_sizes(ONE_BY_ONE):
                wanted = run_batch(program, expected, batch)
            assert sorted(results_of(got), key=repr) == sorted(results_of(wanted), key=repr), spec
            assert late_of(got) == late_of(wanted)
            assert got.counters.open_windows == wanted.counters.open_windows


def test_sessions_that_an_element_joins_keep_the_order_of_their_contents():
    """As in Flink: elements are stored under the earlier session, those of the later one behind them, the one between last."""
    rows = (("a", 5, 5), ("a", 1, 1), ("a", 3, 3))
    program, store = program_of(WindowSpec(GAP, AS_ROW, EventTimeTrigger())), MemoryBlobStore()
    with given_sizes(BY_KEY):
        taken = run_batch(program, store, Batch(-1, 0, rows))
        fired = run_batch(program, store, Batch(7, 0, ()))
    assert (taken.counters.merges, taken.counters.open_windows) == (1, 1)
    assert results_of(fired) == [("a", 1, 8, "[1, 5, 3]")]


def test_late_rows_leave_in_order_of_arrival_whatever_their_key():
    rows = (("a", 1, 5), ("b", 2, 15), ("b", 3, 6), ("a", 4, 7))
    with given_sizes(BY_KEY):
        output = run_batch(program_of(WindowSpec(TEN, AS_ROW, EventTimeTrigger())), MemoryBlobStore(), Batch(12, 0, rows))
    assert late_of(output) == [("a", 1, True, [(0, 10)]), ("b", 3, True, [(0, 10)]), ("a", 4, True, [(0, 10)])]


def test_each_late_row_that_is_allowed_fires_by_itself():
    """Flink fires once for each of them; those of other keys wait for the end of their window."""
    rows = (("a", 1, 5), ("b", 2, 15), ("a", 3, 6))
    spec = WindowSpec(TEN, AS_ROW, EventTimeTrigger(), allowed_lateness=20, refine="each")
    with given_sizes(BY_KEY):
        output = run_batch(program_of(spec), MemoryBlobStore(), Batch(12, 0, rows))
    assert results_of(output) == [("a", 0, 10, "[1]"), ("a", 0, 10, "[1, 3]")]


@pytest.mark.parametrize(
    "spec",
    [
        WindowSpec(TEN, WindowFunctionSpec.aggregate(Raises()), EventTimeTrigger()),
        WindowSpec(TEN, WindowFunctionSpec.aggregate(Raises()), OwnTrigger(3, purges=False)),
        WindowSpec(EventTimeSessionWindows.with_gap(10), WindowFunctionSpec.aggregate(Raises()), EventTimeTrigger()),
    ],
    ids=["cells", "runs", "sessions"],
)
def test_an_error_names_key_window_and_element(spec):
    with given_sizes(BY_KEY), pytest.raises(UserFunctionError) as raised:
        run_batch(program_of(spec), MemoryBlobStore(), Batch(-1, 0, (("a", 1, 0), ("b", 7, 0), ("b", 2, 1))))
    message = str(raised.value)
    assert "Raises" in message
    assert "seven" in message
    assert "key 'b'" in message
    assert "[1970-01-01T00:00:00Z, 1970-01-01T00:00:00.000010Z)" in message
    assert "'n': 7" in message


def test_an_element_that_has_no_time_or_no_window_is_refused_by_name():
    program = program_of(WindowSpec(TEN, AS_ROW, EventTimeTrigger()))
    with given_sizes(BY_KEY):
        with pytest.raises(MissingTimestampError, match="'n': 2"):
            run_batch(program, MemoryBlobStore(), Batch(-1, 0, (("a", 1, 5), ("b", 2, None))))  # type: ignore[arg-type]
        with pytest.raises(TimestampOverflowError, match="'n': 2"):
            run_batch(program, MemoryBlobStore(), Batch(-1, 0, (("a", 1, 5), ("b", 2, MAX))))


def test_an_element_between_two_windows_is_in_none():
    spec = WindowSpec(SlidingEventTimeWindows.of(2, 5), AS_ROW, EventTimeTrigger(), OwnEvictor())
    rows = (("a", 2, 0), ("a", 6, 3), ("a", 10, 1))
    program, store = program_of(spec), MemoryBlobStore()
    with given_sizes(BY_KEY):
        run_batch(program, store, Batch(-1, 0, rows))
        assert results_of(run_batch(program, store, Batch(9, 0, ()))) == [("a", 0, 2, "[2, 10]")]


def test_rows_of_which_functions_see_no_column_are_counted():
    program = columnar_programs.program_of(TEN, late=False, aggregates={"n": wp.count()})
    assert program.values == ()
    rows = columnar_programs.table_of(Batch(MAX, 0, (("a", 1, 0), ("b", 1, 0), ("a", 1, 5))))
    store = MemoryBlobStore()
    with given_sizes(BY_KEY):
        RowEngine(program).run(store, [rows], Clock(-1, 0))
        fired = RowEngine(program).run(store, [], Clock(MAX, 0))
    assert [(row["k"], row["n"]) for _, table in fired.tables for row in table.to_pylist()] == [("a", 2), ("b", 1)]
