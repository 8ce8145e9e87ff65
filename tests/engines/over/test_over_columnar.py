"""The columnar OVER engines: random programs against DuckDB with restarts and tiny pages; what they read, keep and refuse."""

import random
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from tests.engines.columnar_programs import columnar_engine
from tests.examples import seeds
from verify.fuzz import over
from verify.sizes import given_sizes
from windowpane.engines.over.close import PAGE_ROWS, Tails
from windowpane.engines.over.page_writing import FAR
from windowpane.engines.over.program import Emit, Inconsistent, OverProgram
from windowpane.engines.over.reference import OverReferenceEngine
from windowpane.engines.program import LATE, MAIN
from windowpane.engines.protocol import BucketOutput, Clock, Engine
from windowpane.errors import InconsistentChangeError, MissingOrderError
from windowpane.hidden_columns import FIRING_WATERMARK, PARTITION, POSITION, TIME
from windowpane.planning.engines import with_engine
from windowpane.sizes import Size
from windowpane.state.compact import MANY_TEXTS
from windowpane.state.memory import MemoryBlobStore
from windowpane.state.row_pages import BLOCK_PAGES, RowPages
from windowpane.windowing.frames import (
    CURRENT_ROW,
    RUNNING_ROWS,
    UNBOUNDED_PRECEDING,
    Bound,
    Exclude,
    Frame,
    following,
    preceding,
)
from windowpane.windowing.intervals import Interval
from windowpane.windowing.outputs import CHANGE_TYPE
from windowpane.windowing.over.spec import OrderColumn, OverCall, OverSpec
from windowpane.windowing.over.types import output_schema
from windowpane.windowing.times import MAX, MIN

COLUMNS = pa.schema([("p", pa.string()), ("t", pa.int64()), ("id", pa.int64()), ("v", pa.int64())])
ROWS_10 = Frame.rows(preceding(10))
ASCENDING = OrderColumn("t", nulls_first=False)


def a_program(*calls: OverCall, mode: Emit = Emit.UPDATE, order: OrderColumn = ASCENDING, **options: object) -> OverProgram:
    spec = OverSpec(("p",), (order,), ("id",), calls)
    outputs = output_schema(spec, COLUMNS, [f"c{number}" for number in range(len(calls))])
    return OverProgram(spec, COLUMNS, outputs, mode, **options)  # type: ignore[arg-type]


def rows(entries: list[tuple], words: list[str] | None = None) -> pa.Table:
    table = pa.Table.from_pylist([dict(zip(COLUMNS.names, entry, strict=True)) for entry in entries], schema=COLUMNS)
    table = table.append_column(TIME, table["t"]).append_column(PARTITION, pa.array([0] * len(entries), pa.int64()))
    table = table.append_column(POSITION, pa.array(range(len(entries)), pa.int64()))
    return table if words is None else table.append_column(CHANGE_TYPE, pa.array(words, pa.string()))


def run_to_the_end(engine: Engine, store: MemoryBlobStore, table: pa.Table) -> list[BucketOutput]:
    return [engine.run(store, [table], Clock(MIN, 0)), engine.run(store, [], Clock(MAX, 0))]


def emitted(output: BucketOutput, number: int = MAIN) -> list[dict]:
    tables = [table for which, table in output.tables if which == number]
    return [row for table in tables for row in table.to_pylist()]


def changes(output: BucketOutput) -> list[tuple]:
    names = [CHANGE_TYPE, *COLUMNS.names]
    return sorted(
        (*(row[name] for name in names), *(row[name] for name in row if name.startswith("c"))) for row in emitted(output)
    )


def small_pages(size: int) -> dict[Size[int], int]:
    return {FAR.few: size, FAR.loaded: size + 1, FAR.dense: 2 * size}


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_random_programs_are_what_duckdb_says_whatever_the_size_of_pages(first: int) -> None:
    size = random.Random(first).choice([2, 5, 128])
    for seed in range(first, first + 20):
        with given_sizes(small_pages(size) | {BLOCK_PAGES: 4, PAGE_ROWS: 8}):
            outcome = over.run(seed, "columnar")
        assert not outcome.differences, f"seed {seed}, pages of {size} rows: {outcome.program} {outcome.differences}"


def test_far_apart_changes_do_not_read_what_lies_between() -> None:
    engine, store = columnar_engine(a_program(OverCall("sum", ("v",), ROWS_10))), MemoryBlobStore()
    engine.run(store, [rows([("a", 10 * n, n, 1) for n in range(20_000)])], Clock(MIN, 0))
    before = store.reads
    output = engine.run(store, [rows([("a", 5, 20_001, 1), ("a", 199_985, 20_002, 1)])], Clock(MIN, 0))
    assert store.reads - before < 12
    assert len(emitted(output)) == 2 + 2 * 9, "the two rows; nine of those behind each had less than eleven rows, or another sum"


@pytest.mark.parametrize("units", [Frame.range_, Frame.groups])
def test_a_row_changes_what_its_peers_in_earlier_pages_show(units: Callable[[Bound, Bound], Frame]) -> None:
    program = a_program(OverCall("count", ("v",), units(UNBOUNDED_PRECEDING, CURRENT_ROW)))
    engine, store = columnar_engine(program), MemoryBlobStore()
    others = [("b", 0, -1 - n, 1) for n in range(100)]
    engine.run(store, [rows([*others, *(("a", 5, n, 1) for n in range(1_500))])], Clock(MIN, 0))
    output = engine.run(store, [rows([("a", 5, 10_000, 1)])], Clock(MIN, 0))
    shown = {row["id"]: row["c0"] for row in emitted(output) if row[CHANGE_TYPE] != "update_preimage"}
    assert shown == dict.fromkeys([*range(1_500), 10_000], 1_501)


def test_a_running_sum_goes_on_from_the_last_row_of_a_large_partition() -> None:
    engine, store = columnar_engine(a_program(OverCall("sum", ("v",), RUNNING_ROWS), OverCall("rank"))), MemoryBlobStore()
    engine.run(store, [rows([("a", n, n, 1) for n in range(20_000)])], Clock(MIN, 0))
    before = store.reads
    output = engine.run(store, [rows([("a", 20_000, 20_000, 5)])], Clock(MIN, 0))
    assert store.reads - before < 8
    assert changes(output) == [("insert", "a", 20_000, 20_000, 5, 20_005, 20_001)]


def test_numbering_stops_where_it_no_longer_changes() -> None:
    engine, store = columnar_engine(a_program(OverCall("dense_rank"))), MemoryBlobStore()
    engine.run(store, [rows([("a", n, n, 1) for n in range(20_000)])], Clock(MIN, 0))
    before = store.reads
    output = engine.run(store, [rows([("a", 100, 20_001, 1)])], Clock(MIN, 0))
    assert store.reads - before < 8
    assert changes(output) == [("insert", "a", 100, 20_001, 1, 101)]


@pytest.mark.parametrize("place", range(12))
def test_a_row_that_goes_shifts_frames_in_the_pages_behind_it(place: int) -> None:
    program = a_program(OverCall("last_value", ("v",), Frame.rows(UNBOUNDED_PRECEDING, preceding(3))))
    engine, store = columnar_engine(program), MemoryBlobStore()
    entries = [("a", n, n, 10 * n) for n in range(12)]
    with given_sizes(small_pages(2)):
        engine.run(store, [rows(entries)], Clock(MIN, 0))
        output = engine.run(store, [rows([entries[place]], ["delete"])], Clock(MIN, 0))
    shown = {row["id"]: row["c0"] for row in emitted(output) if row[CHANGE_TYPE] == "update_postimage"}
    left = [entry for entry in entries if entry != entries[place]]
    third = {id: (left[n - 3][3] if n >= 3 else None) for n, (_, _, id, _) in enumerate(left)}
    assert shown == {id: value for id, value in third.items() if value != (10 * (id - 3) if id >= 3 else None)}


def test_an_equal_value_that_looks_different_is_taken_back_as_it_was_emitted() -> None:
    columns = pa.schema([*COLUMNS, pa.field("m", pa.map_(pa.string(), pa.int64()))])
    calls = (OverCall("last_value", ("m",), Frame.rows(CURRENT_ROW, following(1))), OverCall("count", (), RUNNING_ROWS))
    spec = OverSpec(("p",), (ASCENDING,), ("id",), calls)
    program = OverProgram(spec, columns, output_schema(spec, columns, ["c0", "c1"]), Emit.UPDATE)

    def table(time: int, id: int, pairs: list[tuple[str, int]]) -> pa.Table:
        return rows([("a", time, id, 0)]).append_column("m", pa.array([pairs], columns.field("m").type))

    one, other = [("x", 1), ("y", 2)], [("y", 2), ("x", 1)]
    for engine in (columnar_engine(program), OverReferenceEngine(program)):
        store = MemoryBlobStore()
        engine.run(store, [table(5, 1, one)], Clock(MIN, 0))
        quiet = emitted(engine.run(store, [table(7, 2, other)], Clock(MIN, 0)))
        assert [(row["id"], row[CHANGE_TYPE]) for row in quiet] == [(2, "insert")], "the maps are equal"
        changed = [row for row in emitted(engine.run(store, [table(1, 3, one)], Clock(MIN, 0))) if row["id"] == 1]
        assert [(row[CHANGE_TYPE], row["c0"]) for row in changed] == [("update_preimage", one), ("update_postimage", one)]


def test_what_no_row_to_come_can_reach_is_dropped() -> None:
    program = a_program(OverCall("lag", ("v",)), OverCall("row_number"), time_column="t", append_only=True, has_late_output=True)
    engine, store = columnar_engine(program), MemoryBlobStore()
    sizes = []
    for batch in range(20):
        times = [1000 * batch + n for n in range(1000)]
        output = engine.run(store, [rows([("a", time, time, time) for time in times])], Clock(1000 * batch - 1, 0))
        last = [row for row in emitted(output) if row["t"] == times[-1]]
        assert (last[0]["c0"], last[0]["c1"]) == (times[-1] - 1, times[-1] + 1)
        sizes.append(output.counters.state_bytes)
    assert max(sizes[2:]) < 3 * sizes[0]
    late = engine.run(store, [rows([("a", 5, -1, 0)])], Clock(19_000, 0))
    assert [row["id"] for row in emitted(late, LATE)] == [-1]
    assert not emitted(late)


def test_partitions_that_get_no_rows_any_more_give_up_theirs() -> None:
    hour = Frame.range_(preceding(100), CURRENT_ROW)
    program = a_program(OverCall("sum", ("v",), hour), time_column="t", append_only=True)
    engine, store = columnar_engine(program), MemoryBlobStore()
    engine.run(store, [rows([(f"p{number}", number % 50, number, 1) for number in range(5_000)])], Clock(MIN, 0))
    for batch in range(1, 100):
        engine.run(store, [rows([("q", 1000 * batch, 5_000 + batch, 1)])], Clock(1000 * batch - 1, 0))
    assert _rows_held(store, engine) < 1_000


@pytest.mark.parametrize(("descending", "nulls_first"), [(False, True), (True, False)])
@pytest.mark.parametrize("make", [OverReferenceEngine, columnar_engine])
def test_rows_without_time_are_late_where_they_stand_with_the_oldest(make: Callable, descending: bool, nulls_first: bool) -> None:
    order = OrderColumn("t", descending, nulls_first=nulls_first)
    program = a_program(OverCall("lag", ("v",)), order=order, time_column="t", append_only=True, has_late_output=True)
    engine, store = make(program), MemoryBlobStore()
    assert len(emitted(engine.run(store, [rows([("a", None, 1, 1), ("a", 5, 2, 2)])], Clock(MIN, 0)))) == 2
    late = engine.run(store, [rows([("a", None, 3, 3), ("a", 9, 4, 4)])], Clock(7, 0))
    assert [row["id"] for row in emitted(late, LATE)] == [3]
    assert late.counters.late_elements == 1
    assert 4 in [row["id"] for row in emitted(late)]


@pytest.mark.parametrize("seed", seeds(6))
def test_dropping_state_keeps_to_the_calendar(seed: int) -> None:
    rng = random.Random(seed)
    columns = COLUMNS.set(1, pa.field("t", pa.timestamp("us")))
    month = Interval(months=1, days=rng.randint(0, 2))
    frame = Frame.range_(preceding(month), following(month) if rng.random() < 0.5 else CURRENT_ROW)
    order = OrderColumn("t", rng.random() < 0.5, nulls_first=rng.random() < 0.5)
    spec = OverSpec(("p",), (order,), ("id",), (OverCall("count", ("v",), frame), OverCall("lag", ("v",))))
    program = OverProgram(spec, columns, output_schema(spec, columns, ["c0", "c1"]), time_column="t", append_only=True)
    day, start = 86_400_000_000, 1_704_067_200_000_000
    engines, stores = (OverReferenceEngine(program), columnar_engine(program)), (MemoryBlobStore(), MemoryBlobStore())
    for batch in range(30):
        times = [start + day * (4 * batch + rng.randint(-3, 4)) for _ in range(4)]
        table = rows([("a", time, 4 * batch + number, 1) for number, time in enumerate(times)])
        table = table.set_column(1, columns.field(1), table["t"].cast(pa.timestamp("us")))
        watermark = MIN if not batch else start + day * (4 * batch - 5)
        got = [emitted(engine.run(store, [table], Clock(watermark, 0))) for engine, store in zip(engines, stores, strict=True)]
        assert sorted(map(repr, got[1])) == sorted(map(repr, got[0])), f"seed {seed}, batch {batch}: {spec}"
    assert _rows_held(stores[1], engines[1]) < 110


FINITE = [
    OverCall("lag", ("v",), offset=2),
    OverCall("lead", ("v",)),
    OverCall("sum", ("v",), Frame.rows(preceding(3), following(1))),
    OverCall("max", ("v",), Frame.range_(preceding(6), following(2))),
    OverCall("count", ("v",), Frame.range_(CURRENT_ROW, following(3))),
    OverCall("median", ("v",), Frame.range_(preceding(4), CURRENT_ROW, Exclude.TIES)),
    OverCall("max", ("v",), Frame.range_(preceding(9), preceding(3))),
    OverCall("sum", ("v",), Frame.groups(preceding(2), following(1))),
    OverCall("count", ("v",), Frame.groups(following(1), following(2))),
    OverCall("count", (), Frame.session(4)),
]
RUNNING = [
    OverCall("row_number"),
    OverCall("dense_rank"),
    OverCall("min", ("v",), Frame.rows(UNBOUNDED_PRECEDING, preceding(2))),
    OverCall("avg", ("v",), Frame.range_(UNBOUNDED_PRECEDING, CURRENT_ROW)),
    OverCall("max", ("v",), Frame.range_(UNBOUNDED_PRECEDING, preceding(5))),
    OverCall("sum", ("v",), Frame.groups(UNBOUNDED_PRECEDING, preceding(1))),
]


ENDING_BEFORE = [
    OverCall(function, ("v",), units(UNBOUNDED_PRECEDING, preceding(distance)), filter=filter)
    for function in ("last_value", "sum", "max", "count", "avg", "first_value")
    for units, distance in ((Frame.rows, 1), (Frame.rows, 4), (Frame.range_, 3), (Frame.groups, 2))
    for filter in (None, "ok")
    if filter is None or not function.endswith("value")
]


@pytest.mark.parametrize("seed", seeds(60))
def test_running_frames_that_end_before_the_row_are_what_the_reference_says(seed: int) -> None:
    rng = random.Random(seed)
    columns = pa.schema([*COLUMNS, pa.field("ok", pa.bool_())])
    spec = OverSpec(("p",), (ASCENDING,), ("id",), tuple(rng.sample(ENDING_BEFORE, rng.randint(1, 2))))
    names = [f"c{number}" for number in range(len(spec.calls))]
    program = OverProgram(spec, columns, output_schema(spec, columns, names), Emit.UPDATE)
    held: dict[int, tuple] = {}
    with given_sizes(small_pages(rng.choice([2, 3, 5]))):
        engines, stores = (OverReferenceEngine(program), columnar_engine(program)), (MemoryBlobStore(), MemoryBlobStore())
        for batch in range(6):
            deleted = rng.sample(sorted(held), min(len(held), rng.randint(0, 2)))
            leaving = [held.pop(id) for id in deleted]
            arriving = [
                ("a", rng.randint(0, 15), 100 * batch + n, rng.choice([None, 0, 1, 9]), rng.random() < 0.5)
                for n in range(20 if batch == 0 else rng.randint(0, 2))
            ]
            held |= {entry[2]: entry for entry in arriving}
            entries = [*leaving, *arriving]
            if not entries:
                continue
            table = rows([entry[:4] for entry in entries], ["delete"] * len(leaving) + ["insert"] * len(arriving))
            table = table.append_column("ok", pa.array([entry[4] for entry in entries], pa.bool_()))
            expected, got = (
                emitted(engine.run(store, [table], Clock(MIN, 0))) for engine, store in zip(engines, stores, strict=True)
            )
            assert sorted(map(repr, got)) == sorted(map(repr, expected)), f"seed {seed}, batch {batch}: {spec}"


@pytest.mark.parametrize("seed", seeds(40))
def test_dropping_state_changes_nothing_that_is_emitted(seed: int) -> None:
    rng = random.Random(seed)
    with given_sizes(small_pages(rng.choice([2, 5, 128]))):
        _check_dropping(seed, rng)


def _check_dropping(seed: int, rng: random.Random) -> None:
    order = OrderColumn("t", rng.random() < 0.3, nulls_first=rng.random() < 0.5)
    calls = rng.sample(FINITE if order.descending else [*FINITE, *RUNNING], rng.randint(1, 3))
    options = {"retain": rng.randint(0, 9)} if rng.random() < 0.4 else {"append_only": True}
    program = a_program(*calls, order=order, time_column="t", has_late_output=True, **options)
    reference, columnar = OverReferenceEngine(program), columnar_engine(program)
    stores, watermark, start = [MemoryBlobStore(), MemoryBlobStore()], MIN, 0
    for batch in range(8):
        keys = range(start, start + rng.randint(0, 12))
        times = [None if rng.random() < 0.05 else 5 * batch + rng.randint(-9, 6) for _ in keys]
        entries = [(rng.choice("ab"), time, key, rng.randint(0, 9)) for key, time in zip(keys, times, strict=True)]
        start += len(entries)
        engines = zip((reference, columnar), stores, strict=True)
        outputs = [engine.run(store, [rows(entries)], Clock(watermark, 0)) for engine, store in engines]
        got = [[sorted(map(repr, emitted(output, number))) for number in (MAIN, LATE)] for output in outputs]
        assert got[1] == got[0], f"seed {seed}, batch {batch}: {program.spec}"
        watermark = max(watermark, 5 * batch + rng.randint(-6, 3))
    assert _rows_held(stores[1], columnar) < start or start < 40 or "retain" in options


def _rows_held(store: MemoryBlobStore, engine: Engine) -> int:
    pages, form = RowPages(store, "g"), engine.form  # type: ignore[attr-defined]
    return sum(form.from_blob(pages.read(ordinal)).num_rows for ordinal in range(len(pages)))


def test_rows_that_wait_are_counted_singly_when_a_page_is_cut() -> None:
    program = a_program(OverCall("lead", ("v",)), mode=Emit.CLOSE, time_column="t", append_only=True)
    engine, store = columnar_engine(program), MemoryBlobStore()
    entries = [(f"key {n % 20}", n, n, n) for n in range(60)]
    with given_sizes({PAGE_ROWS: 8}):
        engine.run(store, [rows(entries)], Clock(MIN, 0))
        output = engine.run(store, [], Clock(100, 0))
    names = store.keys()
    assert len([name for name in names if name.startswith("t.")]) > 2, names
    assert (len(emitted(output)), output.counters.open_windows) == (40, 20)  # the last row of a key waits for the one behind it


def test_numbering_on_close_keeps_one_row_of_a_partition() -> None:
    program = a_program(OverCall("row_number"), OverCall("rank"), mode=Emit.CLOSE, time_column="t", append_only=True)
    engine, store = columnar_engine(program), MemoryBlobStore()
    for batch in range(10):
        engine.run(store, [rows([("a", 100 * batch + n, 100 * batch + n, 0) for n in range(100)])], Clock(100 * batch - 1, 0))
    output = engine.run(store, [], Clock(MAX, 0))
    assert [row["c0"] for row in emitted(output)] == list(range(901, 1001))
    assert output.counters.state_bytes < 1500
    assert output.is_idle


def test_rows_that_wait_can_be_changed_and_deleted() -> None:
    program = a_program(OverCall("lead", ("v",)), mode=Emit.CLOSE, time_column="t")
    engine, store = columnar_engine(program), MemoryBlobStore()
    engine.run(store, [rows([("a", 10, 1, 1), ("a", 11, 2, 2), ("a", 12, 3, 3)], ["insert"] * 3)], Clock(MIN, 0))
    changed = [("a", 11, 2, 2), ("a", 10, 1, 1), ("a", 10, 1, 7)]
    engine.run(store, [rows(changed, ["delete", "update_preimage", "update_postimage"])], Clock(5, 0))
    output = engine.run(store, [], Clock(MAX, 0))
    assert [(row["id"], row["v"], row["c0"]) for row in emitted(output)] == [(1, 7, 3), (3, 3, None)]


@pytest.mark.parametrize("mode", list(Emit))
@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ([("a", 10, 1, 1), ("a", 10, 1, 2)], ["insert", "insert"]),
        ([("a", 10, 9, 1)], ["delete"]),
        ([("a", 10, 1, 1), ("a", 10, 1, 2)], ["delete", "update_preimage"]),
    ],
)
def test_changes_that_cannot_be_are_errors_or_counted_as_by_the_reference(mode: Emit, entries: list, words: list[str]) -> None:
    strict = a_program(OverCall("lag", ("v",)), mode=mode, time_column="t")
    engine, store = columnar_engine(strict), MemoryBlobStore()
    with pytest.raises(InconsistentChangeError, match=r"'id': (1|9)"):
        run_to_the_end(engine, store, rows(entries, words))
    lenient = a_program(OverCall("lag", ("v",)), mode=mode, time_column="t", on_inconsistent=Inconsistent.WARN)
    counted = []
    for each in (columnar_engine(lenient), OverReferenceEngine(lenient)):
        store = MemoryBlobStore()
        outputs = run_to_the_end(each, store, rows(entries, words))
        counted.append((sum(output.counters.inconsistent for output in outputs), [emitted(output) for output in outputs]))
    assert counted[0] == counted[1]


def test_the_tails_that_two_rows_of_one_place_join_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    program = a_program(
        OverCall("lag", ("v",)), mode=Emit.CLOSE, time_column="t", append_only=True, on_inconsistent=Inconsistent.WARN
    )
    read, reads, found = Tails.read, list[pa.Table](), []

    def counted(tails: Tails, shards: list[int]) -> pa.Table:
        reads.append(read(tails, shards))
        return reads[-1]

    monkeypatch.setattr(Tails, "read", counted)
    for each in (columnar_engine(program), OverReferenceEngine(program)):
        store, outputs = MemoryBlobStore(), []
        batches = [("a", 1, 1, 10), ("b", 2, 2, 20)], [("a", 19, 3, 30), ("a", 19, 3, 31), ("b", 18, 4, 40)], list[tuple]()
        for number, batch in enumerate(batches):
            outputs.append(each.run(store, [rows(batch)] if batch else [], Clock(10 * number, 0)))
        emissions = [sorted(emitted(output), key=lambda row: row["id"]) for output in outputs]
        found.append((sum(output.counters.inconsistent for output in outputs), emissions))
    assert found[0] == found[1]
    assert found[0][0] == 1
    assert [table.num_rows for table in reads] == [0, 0, 2]  # once for each watermark


@pytest.mark.parametrize("seed", range(12))
def test_coded_texts_are_what_the_texts_are(seed: int) -> None:
    """Each piece of a bucket has codes of its own, in numbers of any width; texts that do not repeat arrive as they are."""
    draw = random.Random(seed)
    program = with_engine(a_program(OverCall("sum", ("v",), ROWS_10), OverCall("lag", ("v",)), mode=Emit.CLOSE, append_only=True))
    plain, coded, stores, number = columnar_engine(program), columnar_engine(program), [MemoryBlobStore(), MemoryBlobStore()], 0
    with given_sizes({PAGE_ROWS: draw.choice([2, 16_384]), MANY_TEXTS: draw.choice([2, 4096])}):
        for watermark in [*range(MIN, MIN + 1), *range(0, 400, 40), MAX]:
            parts = []
            for _ in range(draw.randrange(4) if watermark < MAX else 0):
                entries = [
                    (draw.choice([None, "", "a", "b", "ü"]), max(watermark, 0) + draw.randrange(1, 90), number + n, n)
                    for n in range(draw.randrange(1, 20))
                ]
                number += len(entries)
                parts.append(rows(entries).drop_columns([PARTITION, POSITION]))
            sent = [in_codes(part, draw) for part in parts]
            expected, got = plain.run(stores[0], parts, Clock(watermark, 0)), coded.run(stores[1], sent, Clock(watermark, 0))
            assert emitted(got) == emitted(expected)
            assert [table.schema for _, table in got.tables] == [table.schema for _, table in expected.tables]
            assert got.counters.open_windows == expected.counters.open_windows


def in_codes(rows: pa.Table, draw: random.Random) -> pa.Table:
    texts = rows["p"].combine_chunks()
    codes = texts.dictionary_encode()
    codes = pa.DictionaryArray.from_arrays(
        codes.indices.cast(draw.choice([pa.uint8(), pa.uint16(), pa.int32()])), codes.dictionary
    )
    return rows.set_column(0, "p", draw.choice([texts, codes]))


@pytest.mark.parametrize("mode", [Emit.CLOSE, Emit.UPDATE])
def test_columns_that_nobody_reads_are_not_emitted(mode: Emit) -> None:
    program = with_engine(a_program(OverCall("lag", ("v",)), mode=mode, append_only=True, time_column="t"))
    table = rows([("a", 1, 1, 10), ("b", 2, 2, 20), ("a", 3, 3, 30)])
    every = run_to_the_end(columnar_engine(program), MemoryBlobStore(), table)
    some = run_to_the_end(columnar_engine(replace(program, read=frozenset({"id", "c0"}))), MemoryBlobStore(), table)
    names = [name for name in ("id", "c0", CHANGE_TYPE, TIME, FIRING_WATERMARK) if name in program.main_schema.names]
    assert [{name: row[name] for name in names} for output in every for row in emitted(output)] == [
        row for output in some for row in emitted(output)
    ]


def test_a_row_without_time_is_refused_on_close() -> None:
    engine = columnar_engine(a_program(OverCall("lag", ("v",)), mode=Emit.CLOSE, time_column="t"))
    with pytest.raises(MissingOrderError, match="'id': 4"):
        engine.run(MemoryBlobStore(), [rows([("a", None, 4, 1)])], Clock(MIN, 0))


def test_a_move_inside_a_partition_is_an_update_across_partitions_it_is_not() -> None:
    engine, store = columnar_engine(a_program(OverCall("lead", ("v",)))), MemoryBlobStore()
    engine.run(store, [rows([("a", 1, 1, 10), ("a", 2, 2, 20), ("a", 3, 3, 30)])], Clock(MIN, 0))
    moved = engine.run(store, [rows([("a", 1, 1, 10), ("a", 4, 1, 10)], ["update_preimage", "update_postimage"])], Clock(MIN, 0))
    assert changes(moved) == [
        ("update_postimage", "a", 3, 3, 30, 10),
        ("update_postimage", "a", 4, 1, 10, None),
        ("update_preimage", "a", 1, 1, 10, 20),
        ("update_preimage", "a", 3, 3, 30, None),
    ]
    across = engine.run(store, [rows([("a", 4, 1, 10), ("b", 4, 1, 10)], ["update_preimage", "update_postimage"])], Clock(MIN, 0))
    words = sorted((row[CHANGE_TYPE], row["p"], row["id"]) for row in emitted(across))
    assert words == [
        ("delete", "a", 1),
        ("insert", "b", 1),
        ("update_postimage", "a", 3),
        ("update_preimage", "a", 3),
    ]


def test_a_column_that_arrow_does_not_sort_is_left_to_the_reference() -> None:
    columns = pa.schema([("p", pa.list_(pa.int64())), ("t", pa.int64()), ("id", pa.int64())])
    spec = OverSpec(("p",), (OrderColumn("t", nulls_first=False),), ("id",), (OverCall("lead", ("t",)),))
    program = with_engine(OverProgram(spec, columns, output_schema(spec, columns, ["c"])))
    assert program.engine == "over reference"
    assert "'p' of type list" in program.engine_reason


def test_random_inserts_cost_the_same_reads_whatever_the_size_of_the_state() -> None:
    program = a_program(OverCall("max", ("v",), Frame.rows(preceding(3), following(1))))
    engine, store, rng = columnar_engine(program), MemoryBlobStore(), np.random.default_rng(5)
    reads, start = [], 0
    for size in (4_000, 40_000):
        for count in (size, 20):
            before = store.reads
            times = rng.integers(0, 10**9, count).tolist()
            engine.run(store, [rows([("a", time, start + n, n) for n, time in enumerate(times)])], Clock(MIN, 0))
            start += count
        reads.append(store.reads - before)
    assert reads[1] <= reads[0] + 15
