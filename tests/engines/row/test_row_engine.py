"""The reference engine on a bucket equals the reference operator, on random programs, with a restart after every batch."""

from __future__ import annotations

from functools import partial

import pyarrow as pa
import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

from tests.examples import examples
from verify.fuzz.functions import differences, late_of, program_of, random_spec, results_of, run_batch, table_of
from verify.fuzz.windowed_programs import time_unit
from verify.fuzz.windowed_streams import SmallBatch as Batch
from verify.fuzz.windowed_streams import small_stream
from windowpane.engines.program import Upstream
from windowpane.engines.protocol import Clock
from windowpane.engines.row.reference import ReferenceEngine
from windowpane.errors import ChangedPlanError, MissingTimestampError, OutputSchemaError, TriggerResultError
from windowpane.hidden_columns import FIRING_WATERMARK
from windowpane.state.memory import MemoryBlobStore
from windowpane.windowing.assigners import EventTimeSessionWindows, TumblingEventTimeWindows
from windowpane.windowing.functions import WindowFunctionSpec
from windowpane.windowing.spec import WindowSpec
from windowpane.windowing.triggers import EventTimeTrigger, ProcessingTimeoutTrigger, PurgingTrigger, Trigger, TriggerResult

SUM = WindowFunctionSpec.fold(int, lambda held, row: held + row["n"], lambda left, right: left + right)
AS_ROW = WindowFunctionSpec.apply(lambda key, window, rows: [{"value": str([row["n"] for row in rows])}])


class TimerInThePast(Trigger):
    """Asks for the first instant of the window, whatever the watermark is."""

    def on_element(self, element, timestamp, window, context):
        context.register_event_time_timer(window.start)
        return TriggerResult.CONTINUE

    def on_event_time(self, time, window, context):
        return TriggerResult.FIRE

    def on_processing_time(self, time, window, context):
        return TriggerResult.CONTINUE

    def clear(self, window, context):
        context.delete_event_time_timer(window.start)


def test_a_timer_behind_the_watermark_waits_for_its_next_move():
    program = program_of(WindowSpec(TumblingEventTimeWindows.of(10), AS_ROW, TimerInThePast()))
    store = MemoryBlobStore()
    batches = [Batch(5, 0, ()), Batch(5, 0, (("a", 1, 7),)), Batch(5, 0, (("a", 2, 8),)), Batch(6, 0, ())]
    fired = [results_of(run_batch(program, store, batch)) for batch in batches]
    assert fired == [[], [], [], [("a", 0, 10, "[1, 2]")]]


@settings(max_examples=examples(150), deadline=None, print_blob=True)
@given(st.randoms(use_true_random=False))
def test_random_programs_agree_with_the_reference_operator_batch_by_batch(draw):
    spec = random_spec(draw)
    note(repr(spec))
    assert differences(spec, small_stream(draw, unit=time_unit(spec.assigner))) == []


def test_a_bucket_with_nothing_left_is_idle_and_keeps_only_its_header():
    spec = WindowSpec(TumblingEventTimeWindows(10), AS_ROW, EventTimeTrigger())
    store, program = MemoryBlobStore(), program_of(spec)
    first = run_batch(program, store, Batch(-1, 0, (("a", 1, 5),)))
    assert not first.is_idle
    last = run_batch(program, store, Batch(9, 1, ()))
    assert results_of(last) == [("a", 0, 10, "[1]")]
    assert last.is_idle
    assert store.keys() == ["header"]


def test_the_watermark_survives_a_restart_and_never_goes_back():
    spec = WindowSpec(TumblingEventTimeWindows(10), AS_ROW, EventTimeTrigger())
    store, program = MemoryBlobStore(), program_of(spec)
    run_batch(program, store, Batch(30, 0, ()))
    output = run_batch(program, store, Batch(20, 0, (("a", 1, 15),)))
    assert late_of(output) == [("a", 1, True, [(10, 20)])]


def test_rows_of_an_earlier_window_are_late_by_the_watermark_they_carry():
    spec = WindowSpec(TumblingEventTimeWindows(10), AS_ROW, EventTimeTrigger())
    program = program_of(spec)
    downstream = type(program)(**{**program.__dict__, "upstream": Upstream.WINDOW_WITH_WATERMARKS})
    batch = Batch(50, 0, (("a", 1, 5), ("a", 2, 6)))
    rows = table_of(batch).append_column(FIRING_WATERMARK, pa.array([8, 9], pa.int64()))
    output = ReferenceEngine(downstream).run(MemoryBlobStore(), [rows], Clock(50, 0))
    assert results_of(output) == [("a", 0, 10, "[1]")], "under watermark 8 the window is open"
    assert late_of(output) == [("a", 2, True, [(0, 10)])], "under watermark 9 it is over"


def test_rows_of_an_earlier_window_without_a_watermark_come_before_the_batchs_own():
    spec = WindowSpec(TumblingEventTimeWindows(10), AS_ROW, EventTimeTrigger())
    program = program_of(spec)
    downstream = type(program)(**{**program.__dict__, "upstream": Upstream.WINDOW})
    output = ReferenceEngine(downstream).run(MemoryBlobStore(), [table_of(Batch(0, 0, (("a", 1, 5),)))], Clock(50, 0))
    assert results_of(output) == [("a", 0, 10, "[1]")]
    assert not output.is_idle, "it must see every watermark, to compare the next rows with the one before"


def test_a_bucket_without_state_finds_no_row_of_an_earlier_window_late_that_carries_no_watermark():
    program = program_of(WindowSpec(TumblingEventTimeWindows(10), AS_ROW, EventTimeTrigger()))
    downstream = type(program)(**{**program.__dict__, "upstream": Upstream.WINDOW})
    late = [table_of(Batch(0, 0, (("a", 1, 5),)))]
    assert results_of(ReferenceEngine(downstream).run(MemoryBlobStore(), late, Clock(60, 0))) == [("a", 0, 10, "[1]")]
    store = MemoryBlobStore()
    ReferenceEngine(downstream).run(store, [table_of(Batch(0, 0, (("a", 1, 55),)))], Clock(50, 0))
    assert late_of(ReferenceEngine(downstream).run(store, late, Clock(60, 0))) == [("a", 1, True, [(0, 10)])]


def test_a_row_without_event_time_is_refused_with_key_and_value_even_by_sessions():
    for assigner in (TumblingEventTimeWindows(10), EventTimeSessionWindows(10)):
        program = program_of(WindowSpec(assigner, AS_ROW, EventTimeTrigger()))
        rows = table_of(Batch(0, 0, (("a", 7, 5),)))
        rows = rows.set_column(2, rows.column_names[2], pa.nulls(1, pa.int64()))
        with pytest.raises(MissingTimestampError, match=r"'n': 7.*key 'a'"):
            ReferenceEngine(program).run(MemoryBlobStore(), [rows], Clock(0, 0))


def test_a_changed_program_is_refused_by_name_and_the_old_one_goes_on():
    spec = WindowSpec(TumblingEventTimeWindows(10), AS_ROW, EventTimeTrigger())
    store, program = MemoryBlobStore(), program_of(spec)
    run_batch(program, store, Batch(-1, 0, (("a", 1, 5),)))
    before = store.snapshot()
    changed = type(program)(**{**program.__dict__, "description": {"program": "another", "trigger": "count"}})
    with pytest.raises(ChangedPlanError, match=r"program: was random, is another\n  trigger: was absent, is count"):
        run_batch(changed, store, Batch(20, 0, ()))
    assert store.snapshot() == before
    assert results_of(run_batch(program, store, Batch(20, 0, ()))) == [("a", 0, 10, "[1]")]


def emitted(function, row=("a", 1, 5)):
    """Run a function on the window [0, 10) of one row, on the reference engine, and return its results."""
    spec = WindowSpec(TumblingEventTimeWindows(10), function, EventTimeTrigger())
    store, program = MemoryBlobStore(), program_of(spec)
    run_batch(program, store, Batch(-1, 0, (row,)))
    return results_of(run_batch(program, store, Batch(9, 1, ())))


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({}, r"columns \['value'\] of the declared schema are left out \(return None where there is no value\)"),
        ({"k": "b", "value": "1"}, r"key column 'k' is 'b', but the key is 'a' \(leave the column out\)"),
        ({"k": 7, "value": "1"}, r"key column 'k' is 7, but the key is 'a'"),
    ],
    ids=["a column left out", "another key", "a key of another type"],
)
def test_a_row_without_a_column_or_with_another_key_is_refused(row, words):
    with pytest.raises(OutputSchemaError, match=words) as caught:
        emitted(WindowFunctionSpec.apply(lambda key, window, rows: [row]))
    assert "of key 'a' in [1970-01-01T00:00:00Z, 1970-01-01T00:00:00.000010Z)" in str(caught.value)


def test_a_row_may_have_its_own_key_and_none_for_a_value():
    assert emitted(WindowFunctionSpec.apply(lambda key, window, rows: [{"k": key, "value": None}])) == [("a", 0, 10, None)]
    nan = emitted(WindowFunctionSpec.apply(lambda key, window, rows: [{"k": None, "value": "1"}]), (None, 1, 5))
    assert nan == [(None, 0, 10, "1")]


class Answers(Trigger):
    """Answers with something that is no result of a trigger."""

    def __init__(self, answer, at_end=TriggerResult.CONTINUE):
        self.answer, self.at_end = answer, at_end

    def __repr__(self):
        return "Answers"

    def on_element(self, element, timestamp, window, context):
        context.register_event_time_timer(window.max_timestamp)
        return self.answer

    def on_event_time(self, time, window, context):
        return self.at_end

    def clear(self, window, context):
        context.delete_event_time_timer(window.max_timestamp)


@pytest.mark.parametrize(
    ("trigger", "answer"),
    [
        (Answers(True), "True"),
        (Answers(None), "None"),
        (Answers(TriggerResult.CONTINUE, "fire"), "'fire'"),
        (PurgingTrigger.of(Answers(True)), "True"),
        (ProcessingTimeoutTrigger.of(Answers(TriggerResult.CONTINUE, None), "1 hour"), "None"),
    ],
    ids=repr,
)
def test_a_trigger_that_answers_with_no_trigger_result_is_told_which_there_are(trigger, answer):
    program = program_of(WindowSpec(TumblingEventTimeWindows(10), AS_ROW, trigger))
    store = MemoryBlobStore()
    with pytest.raises(TriggerResultError, match=r"CONTINUE where nothing is to happen, FIRE, PURGE or FIRE_AND_PURGE") as caught:
        list(map(partial(run_batch, program, store), [Batch(-1, 0, (("a", 1, 5),)), Batch(9, 1, ())]))
    assert f"Answers returned {answer} for window [1970-01-01T00:00:00Z, " in str(caught.value)
    assert "key 'a'" in str(caught.value)
