"""The sessions engine equals the reference on random programs, batch by batch, with a restart after every batch."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

import windowpane as wp
from tests.engines.columnar_programs import AGGREGATES, TIMESTAMP, batches, small
from tests.examples import examples
from verify.fuzz.windowed_programs import LATE
from verify.fuzz.windowed_streams import SmallBatch as Batch
from verify.sizes import given_sizes
from windowpane.engines.common.evicting import refinement_refusal
from windowpane.engines.program import Program, Upstream
from windowpane.engines.protocol import BucketOutput, Clock, Engine
from windowpane.engines.row.reference import ReferenceEngine
from windowpane.engines.sessions.batch import DENSE_ROWS, PAGE_ROWS, STEP_ROWS
from windowpane.engines.sessions.engine import SessionsEngine, rule_refusal
from windowpane.engines.sessions.merging import Arrivals
from windowpane.engines.sessions.windows import row_windows
from windowpane.errors import (
    InvalidDurationError,
    InvalidSessionGapError,
    MergeBehindWatermarkError,
    MissingTimestampError,
    TimestampOverflowError,
    UserFunctionError,
)
from windowpane.hidden_columns import END, FIRING_WATERMARK, PARTITION, POSITION, ROWS, START, TIME
from windowpane.planning.engines import combiner_of
from windowpane.planning.settings import Settings
from windowpane.planning.window_programs import InputTypes, compile_program
from windowpane.planning.windows import FunctionPlan, WindowPlan
from windowpane.state.memory import MemoryBlobStore
from windowpane.windowing.times import MAX

COLUMNS = pa.schema([("k", pa.string()), ("v", pa.int64()), ("w", pa.int32())])
INTEGERS = {pa.duration("us"): pa.int64()}
"""The integers that cast to a type of key, where those are not 32 bits wide."""


class OfTheUser(wp.CountTrigger):
    """A trigger of the user's."""


class SmallPages(SessionsEngine):
    """Cuts pages and steps so small that a handful of sessions needs several."""

    @given_sizes({PAGE_ROWS: 3, DENSE_ROWS: 5, STEP_ROWS: 4})
    def run(self, store, rows, clock):
        return super().run(store, rows, clock)


def by_value(gap):
    return lambda row: gap + row["w"] % 5


assigners = st.one_of(
    small.map(wp.EventTimeSessionWindows),
    small.map(lambda gap: wp.EventTimeSessionWindows(by_value(gap))),
    small.map(wp.ProcessingTimeSessionWindows),
    small.map(lambda gap: wp.ProcessingTimeSessionWindows(by_value(gap))),
)
engines = st.sampled_from([SessionsEngine, SmallPages])
key_types = st.sampled_from(
    [pa.string(), pa.int32(), pa.date32(), pa.decimal128(12, 2), pa.bool_(), pa.binary(), pa.float64(), pa.duration("us")]
)


def default_trigger(assigner, purging):
    return wp.PurgingTrigger.of(assigner.default_trigger()) if purging else None


def program_of(
    assigner, trigger=None, lateness=0, keys=("k",), late=True, aggregates=None, key_type=None, evictor=None, refine="last"
) -> Program:
    aggregates = AGGREGATES if aggregates is None else aggregates
    columns = pa.schema([pa.field("k", key_type or pa.string()), *list(COLUMNS)[1:]])
    function = FunctionPlan("aggregate", aggregates=tuple(aggregates.items()))
    settings = Settings(lateness, LATE if late else None)
    plan = WindowPlan(keys, assigner, function, trigger, evictor, settings, event_time="t", refine=refine)
    slots = {name: tuple(aggregate.arguments) for name, aggregate in aggregates.items()}
    types = InputTypes(columns, pa.schema([columns.field(name) for name in keys]), keys, TIMESTAMP, slots)
    return compile_program(plan, types, ("k", "v", "w"))


def table_of(batch: Batch, key_type: pa.DataType | None = None) -> pa.Table:
    rows = batch.rows
    numbers = {"a": 1, "b": 0, None: None}
    keys = pa.array([k for k, _, _ in rows], pa.string())
    if key_type == pa.float64():
        zeros = [0.0 if v < 3 else -0.0 for _, v, _ in rows]
        keys = pa.array([{"a": math.nan, "b": zero, None: None}[k] for (k, _, _), zero in zip(rows, zeros, strict=True)])
    elif key_type is not None and key_type not in (pa.string(), pa.binary()):
        keys = pa.array([numbers[k] for k, _, _ in rows], INTEGERS.get(key_type, pa.int32())).cast(key_type)
    return pa.table(
        {
            "k": keys.cast(key_type or pa.string()),
            "v": pa.array([None if v == 0 else v * 2**40 for _, v, _ in rows], pa.int64()),
            "w": pa.array([v for _, v, _ in rows], pa.int32()),
            TIME: pa.array([t for _, _, t in rows], pa.int64()),
            PARTITION: pa.array([0] * len(rows), pa.int32()),
            POSITION: pa.array(range(len(rows)), pa.int64()),
        }
    )


def rows_of(output: BucketOutput, number: int) -> list[str]:
    found = [_zeros_alike(table) if number == 0 else table for which, table in output.tables if which == number]
    return sorted(repr(row) for table in found for row in table.to_pylist())


def _zeros_alike(table: pa.Table) -> pa.Table:
    """Return results with one spelling of zero in their key, as Spark's groupBy has it; the reference keeps the first it met."""
    at = table.column_names.index("k") if "k" in table.column_names else -1
    if at < 0 or not pa.types.is_floating(table["k"].type):
        return table
    return table.set_column(at, "k", pc.add(table["k"], 0.0))


def same(left: BucketOutput, right: BucketOutput) -> None:
    assert rows_of(left, 0) == rows_of(right, 0)
    assert rows_of(left, 1) == rows_of(right, 1)
    for name in ("late_elements", "late_dropped", "firings", "open_windows"):
        assert getattr(left.counters, name) == getattr(right.counters, name), name
    assert left.is_idle == right.is_idle
    assert left.next_processing_time == right.next_processing_time


def run_both(engine, program: Program, stores, batch: Batch, rows: pa.Table) -> None:
    clock = Clock(batch.watermark, batch.processing_time)
    expected = ReferenceEngine(program).run(stores[0], [rows], clock)
    halves = [rows.slice(rows.num_rows // 2), rows.slice(0, rows.num_rows // 2)]
    same(engine(program).run(stores[1], halves, clock), expected)


@settings(max_examples=examples(150), deadline=None, print_blob=True)
@given(engines, assigners, st.booleans(), st.sampled_from([0, 0, 3, 20]), st.sampled_from(["", "k", "kw"]), batches(), key_types)
def test_random_programs_agree_with_the_reference_batch_by_batch(engine, assigner, purging, lateness, keys, stream, key_type):
    program = program_of(assigner, default_trigger(assigner, purging), lateness, tuple(keys), key_type=key_type)
    note(repr(program.spec))
    assert program.engine == "sessions"
    stores = MemoryBlobStore(), MemoryBlobStore()
    for batch in stream:
        run_both(engine, program, stores, batch, table_of(batch, key_type))


@settings(max_examples=examples(40), deadline=None, print_blob=True)
@given(assigners, batches(), st.sampled_from([Upstream.WINDOW_WITH_WATERMARKS, Upstream.WINDOW]), st.sampled_from([0, 20]))
def test_rows_of_an_earlier_window_are_late_alike(assigner, stream, upstream, lateness):
    program = replace(program_of(assigner, lateness=lateness), upstream=upstream)
    stores, before = (MemoryBlobStore(), MemoryBlobStore()), -31
    for batch in stream:
        fired_under = [before if n % 2 else batch.watermark for n in range(len(batch.rows))]
        before = batch.watermark
        rows = table_of(batch).append_column(FIRING_WATERMARK, pa.array(fired_under, pa.int64()))
        run_both(SessionsEngine, program, stores, batch, rows)


ORDERED = {
    "all": wp.collect_list("w"),
    "kinds": wp.collect_set("w"),
    "text": wp.string_agg("k", "-"),
    "first": wp.first("v"),
    "last": wp.last("v", ignore_nulls=True),
    "beside": wp.arg_max("w", by="v"),
    "total": wp.sum("v"),
}


@settings(max_examples=examples(150), deadline=None, print_blob=True)
@given(engines, assigners, st.booleans(), st.sampled_from([0, 3, 20]), st.sampled_from(["", "k"]), batches())
def test_aggregates_that_keep_values_hold_them_in_the_order_of_merged_sessions(engine, assigner, purging, lateness, keys, stream):
    program = program_of(assigner, default_trigger(assigner, purging), lateness, tuple(keys), aggregates=ORDERED)
    note(repr(program.spec))
    assert program.engine == "sessions"
    stores = MemoryBlobStore(), MemoryBlobStore()
    for batch in stream:
        run_both(engine, program, stores, batch, table_of(batch))


@settings(max_examples=examples(150), deadline=None, print_blob=True)
@given(
    engines,
    assigners,
    st.one_of(st.builds(wp.CountEvictor.of, small, st.booleans()), st.builds(wp.TimeEvictor.of, small, st.booleans())),
    st.sampled_from([(False, 0), (False, 3), (False, 20), (True, 0), (True, 20)]),
    st.sampled_from(["", "k"]),
    batches(),
    st.sampled_from([AGGREGATES, ORDERED, {"n": wp.count()}]),
)
def test_evictors_leave_what_they_leave_of_the_elements_of_merged_sessions(
    engine, assigner, evictor, firing, keys, stream, aggregates
):
    trigger = default_trigger(assigner, firing[0])
    program = program_of(assigner, trigger, firing[1], tuple(keys), aggregates=aggregates, evictor=evictor)
    note(repr(program.spec))
    assert (program.engine == "sessions") == (refinement_refusal(program.spec, merges=True) is None)
    stores = MemoryBlobStore(), MemoryBlobStore()
    for batch in stream if program.engine == "sessions" else ():
        run_both(engine, program, stores, batch, table_of(batch))


# Rows folded before the shuffle.


def chunks_of(rows: pa.Table, every: int) -> list[pa.Table]:
    return [rows.slice(start, every) for start in range(0, rows.num_rows, every)]


def anchors_first(batch: Batch, lateness: int, gap: int) -> Batch:
    """Return a batch whose rows come in the order of pieces: on time first, then the late ones, latest first."""
    on_time = [row for row in batch.rows if row[2] + gap - 1 + lateness > batch.watermark]
    late = sorted((row for row in batch.rows if row not in on_time), key=lambda row: -row[2])
    return replace(batch, rows=(*on_time, *late))


@settings(max_examples=examples(50), deadline=None, print_blob=True)
@given(small, st.booleans(), st.sampled_from([0, 3, 20]), batches(), st.integers(1, 6), st.booleans())
def test_pieces_give_what_some_order_of_their_rows_gives(gap, purging, lateness, stream, every, mixed):
    assigner = wp.EventTimeSessionWindows(gap)
    program = program_of(assigner, default_trigger(assigner, purging), lateness, late=False)
    engine, stores = SmallPages(program), (MemoryBlobStore(), MemoryBlobStore())
    for batch in stream:
        clock = Clock(batch.watermark, batch.processing_time)
        expected = ReferenceEngine(program).run(stores[0], [table_of(anchors_first(batch, lateness, gap))], clock)
        chunks = chunks_of(table_of(batch), every)
        windows = [row_windows(program, chunk, 0) for chunk in chunks]
        step = engine.folding.step
        pieces = [step.fold(step.merging(Arrivals(chunk, *bounds))) for chunk, bounds in zip(chunks, windows, strict=True)]
        is_on_time = all(time + gap - 1 + lateness > batch.watermark for _, _, time in batch.rows)
        arrived = chunks[:1] + pieces[1:] if mixed and is_on_time else pieces
        same(engine.run(stores[1], arrived, clock), expected)


def test_the_combiner_folds_rows_that_make_few_sessions_and_leaves_scattered_ones():
    program = program_of(wp.EventTimeSessionWindows(10), late=False)
    fold = combiner_of(program)
    assert fold is not None
    rows = (("a", 1, 5), ("a", 2, 12), ("b", 3, 40), ("b", 4, 40), ("b", 5, 41), ("a", 1, 22))
    close = fold(table_of(Batch(0, 0, rows)))
    assert sorted(zip(*(close[name].to_pylist() for name in ("k", START, END, ROWS)), strict=True)) == [
        ("a", 5, 32, 3),
        ("b", 40, 51, 3),
    ]
    scattered = table_of(Batch(0, 0, (("a", 1, 5), ("a", 2, 50), ("b", 3, 40))))
    assert fold(scattered) is scattered


@pytest.mark.parametrize(
    "program",
    [
        program_of(wp.EventTimeSessionWindows(10), late=True),
        program_of(wp.ProcessingTimeSessionWindows(10), late=False),
        replace(program_of(wp.EventTimeSessionWindows(10), late=False), upstream=Upstream.WINDOW),
    ],
)
def test_rows_arrive_whole_where_windows_or_lateness_differ_row_by_row(program):
    assert combiner_of(program) is None


def test_whether_to_fold_many_rows_is_told_by_some_of_their_keys():
    program = program_of(wp.EventTimeSessionWindows(10), late=False, key_type=pa.int32())
    engine = SessionsEngine(program)
    for keys, rows_a_key in ((10_000, 2), (500, 40), (1, 20_000)):
        numbers = np.arange(20_000)
        columns = {"k": numbers % keys, TIME: numbers // keys * 10}
        rows = pa.table({**columns, "v": numbers, "w": numbers.astype(np.int32)})
        windows = row_windows(program, rows, 0)
        step = engine.folding.step
        assert step.rows_a_piece(step.merging(Arrivals(rows, *windows))) == rows_a_key
        assert (engine.folding.fold_rows(rows) is rows) == (rows_a_key < 3)


# What it refuses, and the errors of rows.


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"assigner": wp.TumblingEventTimeWindows.of(5)}, "makes no sessions"),
        ({"assigner": wp.EventTimeSessionWindows(5), "trigger": OfTheUser(3)}, "OfTheUser is no trigger of windowpane's"),
        ({"assigner": wp.EventTimeSessionWindows(5), "evictor": wp.CountEvictor.of(0)}, "leaves nothing"),
        ({"assigner": wp.EventTimeSessionWindows(5), "key_type": pa.map_(pa.string(), pa.int64())}, "key column"),
    ],
)
def test_what_it_cannot_run_exactly_it_refuses_with_the_reason(change, reason):
    program = program_of(**change)
    assert reason in (SessionsEngine.refusal(program) or "")
    assert program.engine != "sessions"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"assigner": wp.EventTimeSessionWindows(5), "trigger": wp.CountTrigger.of(3)}, "fires by more than the end"),
        ({"assigner": wp.ProcessingTimeSessionWindows(5), "trigger": wp.EventTimeTrigger.create()}, "fires by more than the end"),
        ({"assigner": wp.EventTimeSessionWindows(5), "lateness": 3, "refine": "each"}, "every late row"),
    ],
)
def test_sessions_without_a_rule_call_their_trigger(change, reason):
    program = program_of(**change)
    assert program.engine == "sessions"
    assert reason in (rule_refusal(program) or "")


def test_without_lateness_there_is_nothing_to_refine_so_each_is_last():
    assert program_of(wp.EventTimeSessionWindows(5), refine="each").engine == "sessions"
    assert program_of(wp.ProcessingTimeSessionWindows(5), lateness=3, refine="each").engine == "sessions"


def fails(row):
    raise ZeroDivisionError(f"no gap for {row['k']}")


@pytest.mark.parametrize(
    ("assigner", "time", "error"),
    [
        (wp.EventTimeSessionWindows(10), None, MissingTimestampError),
        (wp.EventTimeSessionWindows(10), MAX - 3, TimestampOverflowError),
        (wp.EventTimeSessionWindows(lambda row: 0), 5, InvalidSessionGapError),
        (wp.EventTimeSessionWindows(lambda row: "soon"), 5, InvalidDurationError),
        (wp.EventTimeSessionWindows(fails), 5, UserFunctionError),
    ],
)
def test_bad_rows_are_refused_in_the_words_of_the_reference(assigner, time, error):
    rows = table_of(Batch(0, 0, (("b", 6, 4), ("a", 7, 5))))
    rows = rows.set_column(rows.column_names.index(TIME), TIME, pa.array([4, time], pa.int64()))
    program = program_of(assigner)
    with pytest.raises(error) as expected:
        ReferenceEngine(program).run(MemoryBlobStore(), [rows], Clock(0, 0))
    with pytest.raises(error) as found:
        SessionsEngine(program).run(MemoryBlobStore(), [rows], Clock(0, 0))
    assert str(found.value).split(" [")[0] == str(expected.value).split(" [")[0]


@pytest.mark.parametrize("second", [7, 5])
def test_a_merge_whose_cleanup_time_overflows_is_refused_as_by_flink_and_one_without_is_not(second):
    program = program_of(wp.EventTimeSessionWindows(10), lateness=MAX)
    stores = MemoryBlobStore(), MemoryBlobStore()
    run_both(SessionsEngine, program, stores, Batch(0, 0, ()), table_of(Batch(0, 0, (("a", 1, 5),))))
    rows = table_of(Batch(0, 0, (("a", 1, second),)))
    if second == 5:
        run_both(SessionsEngine, program, stores, Batch(0, 0, ()), rows)
        return
    engines: tuple[Engine, Engine] = (ReferenceEngine(program), SessionsEngine(program))
    for engine, store in zip(engines, stores, strict=True):
        with pytest.raises(MergeBehindWatermarkError, match=r"'a' gave .*allowed lateness of 9223372036854775807"):
            engine.run(store, [rows], Clock(0, 0))


@pytest.mark.parametrize(("gaps", "is_refused"), [((3, 9), True), ((9, 3), False), ((9, 3, 9), False)])
def test_rows_of_one_batch_merge_in_their_order_where_a_cleanup_time_overflows(gaps, is_refused):
    """Flink merges when a window grows; one inside an open window merges nothing."""
    program = program_of(wp.EventTimeSessionWindows(GapBy("v")), lateness=MAX)
    rows = table_of(Batch(0, 0, tuple(("a", gap, 5) for gap in gaps)))
    for engine in (ReferenceEngine(program), SessionsEngine(program)):
        if is_refused:
            with pytest.raises(MergeBehindWatermarkError, match=r"'a' gave .*allowed lateness of 9223372036854775807"):
                engine.run(MemoryBlobStore(), [rows], Clock(0, 0))
        else:
            assert engine.run(MemoryBlobStore(), [rows], Clock(0, 0)).counters.open_windows == 1


class GapBy:
    """The gap of a row is one of its columns."""

    def __init__(self, column: str) -> None:
        self.column = column

    def __call__(self, row: dict[str, int]) -> int:
        return row[self.column]


# What a batch touches.


def numbered_rows(count: int) -> pa.Table:
    """Return rows of keys 0, 1, 2, ... at 100, 101, 102, ..."""
    rows = table_of(Batch(0, 0, (("a", 1, 0),) * count), pa.int32())
    rows = rows.set_column(0, "k", pa.array(range(count), pa.int32()))
    return rows.set_column(rows.column_names.index(TIME), TIME, pa.array(range(100, 100 + count), pa.int64()))


@given_sizes({PAGE_ROWS: 64, DENSE_ROWS: 64})
def test_a_batch_reads_the_pages_of_its_keys_and_the_clock_only_those_that_are_due():
    program = program_of(wp.EventTimeSessionWindows(10), late=False, aggregates={"n": wp.count()}, key_type=pa.int32())
    engine, store = SessionsEngine(program), MemoryBlobStore()
    rows = numbered_rows(1000)
    engine.run(store, [rows], Clock(0, 0))
    pages = len(store.keys()) - 2
    assert pages > 20
    reads = store.reads
    assert not engine.run(store, [], Clock(50, 0)).tables
    assert store.reads - reads == 2, "header and index"
    reads = store.reads
    output = engine.run(store, [rows.slice(7, 1)], Clock(50, 0))
    assert store.reads - reads == 3, "the page of the key"
    assert output.counters.open_windows == 1000
    reads = store.reads
    fired = engine.run(store, [], Clock(109, 0))
    assert fired.tables[0][1].select(["k", TIME, FIRING_WATERMARK]).to_pylist() == [{"k": 0, TIME: 109, FIRING_WATERMARK: 50}]
    assert store.reads - reads == 3, "the page that is due"


def test_sessions_fire_in_order_of_time_whatever_page_they_stand_in():
    program = program_of(wp.EventTimeSessionWindows(10), late=False, key_type=pa.int32())
    engine, store = SmallPages(program), MemoryBlobStore()
    engine.run(store, [numbered_rows(40)], Clock(0, 0))
    fired = engine.run(store, [], Clock(200, 0)).tables[0][1]
    assert fired["k"].to_pylist() == list(range(40))


def test_state_shrinks_with_what_is_open_and_an_empty_bucket_keeps_only_its_header():
    program = program_of(wp.EventTimeSessionWindows(10), late=False, key_type=pa.int32())
    engine, store = SmallPages(program), MemoryBlobStore()
    engine.run(store, [numbered_rows(40)], Clock(0, 0))
    full = len(store.keys())
    assert full > 14
    some = engine.run(store, [], Clock(146, 0))
    assert some.counters.open_windows == 2
    assert len(store.keys()) <= 4
    assert engine.run(store, [], Clock(200, 0)).is_idle
    assert store.keys() == ["header"]
