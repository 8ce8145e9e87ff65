"""The rolling engine beside the reference, on streams small enough to follow by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

from verify.sizes import given_sizes
from windowpane.aggregates import arg_max, avg, collect_list, count, last, max, sum
from windowpane.engines.program import MAIN
from windowpane.engines.protocol import Clock, Engine
from windowpane.engines.registry import engines_for
from windowpane.engines.rolling.engine import DENSE_KEYS, PAGE_KEYS, RollingEngine
from windowpane.engines.rolling.pieces import pieces_held
from windowpane.engines.rolling.program import RollingProgram
from windowpane.engines.rolling.reference import RollingReferenceEngine
from windowpane.errors import MissingEventTimeError, TimestampOverflowError
from windowpane.hidden_columns import PARTITION, POSITION, TIME
from windowpane.state.codec import unframe
from windowpane.state.compact import from_stream
from windowpane.state.memory import MemoryBlobStore
from windowpane.windowing.aggregates import Aggregate
from windowpane.windowing.outputs import DELETE, INSERT
from windowpane.windowing.rolling import RollingCall, RollingEmit, RollingSpec, RollingWindow
from windowpane.windowing.times import MAX, MIN

KEY = pa.schema([("key", pa.string())])
COLUMNS = pa.schema([("v", pa.int64()), ("big", pa.bool_())])
ENGINES = pytest.mark.parametrize("engine", [RollingEngine, RollingReferenceEngine], ids=lambda engine: engine.name)
Rows = list[tuple[Any, ...]]
Batches = list[tuple[int, Rows]]


def program_of(*calls: RollingCall, step: int = 5, emit: str = "changed", deletes: bool = False) -> RollingProgram:
    return RollingProgram(RollingSpec(calls, step, RollingEmit(emit), deletes_empty=deletes), KEY, ("key",), COLUMNS, pa.int64())


def call(
    name: str, aggregate: Aggregate, length: int, hop: int = 5, exact: bool = False, where: str | None = None
) -> RollingCall:
    return RollingCall(name, aggregate, RollingWindow(length, hop, exact), where)


def table_of(rows: Rows) -> pa.Table:
    keys, times, values = zip(*rows, strict=True) if rows else ((), (), ())
    columns = {
        "key": pa.array(keys, pa.string()),
        "v": pa.array(values, pa.int64()),
        "big": pa.array([None if value is None else value > 2 for value in values], pa.bool_()),
        TIME: pa.array(times, pa.int64()),
        PARTITION: pa.array([0] * len(rows), pa.int32()),
        POSITION: pa.array(range(len(rows)), pa.int64()),
    }
    return pa.table(columns)


def run(engine: Engine, store: MemoryBlobStore, watermark: int, rows: Rows) -> Rows:
    output = engine.run(store, [table_of(rows)], Clock(watermark, 0))
    results = [tuple(row.values()) for tag, table in output.tables if tag == MAIN for row in table.to_pylist()]
    return sorted(results, key=lambda row: (row[0], row[1]))


def total_of(values: Sequence[int]) -> int:
    return len(values) * (values[0] + values[-1]) // 2


def results(engine: Any, program: RollingProgram, batches: Batches) -> list[Rows]:
    store = MemoryBlobStore()
    return [run(engine(program), store, *batch) for batch in batches]


@ENGINES
def test_a_hop_edge_takes_the_whole_tile_that_it_cuts(engine: Any) -> None:
    program = program_of(call("n", count(), 5), call("total", sum("v"), 10), call("big", count(), 10, where="big"))
    batches: Batches = [
        (MIN, [("a", 1, 1), ("a", 4, 3)]),
        (3, [("a", 7, 2)]),
        (9, [("b", 11, None)]),
        (14, []),
        (24, []),
    ]
    assert results(engine, program, batches) == [
        [("a", 4, 2, 4, 1)],
        [("a", 7, 3, 6, 1)],
        [("a", 9, 1, 6, 1), ("b", 11, 1, None, 0)],
        [("a", 14, 0, 2, 0)],
        [("a", 24, 0, None, 0), ("b", 24, 0, None, 0)],
    ]


@ENGINES
def test_an_exact_edge_is_that_of_the_newest_row(engine: Any) -> None:
    program = program_of(call("n", count(), 5, exact=True), call("mean", avg("v"), 5, exact=True))
    batches: Batches = [(MIN, [("a", 1, 1), ("a", 4, 3)]), (3, [("a", 6, 2)]), (4, [("a", 4, 8)]), (9, [])]
    assert results(engine, program, batches) == [
        [("a", 4, 2, 2.0)],
        [("a", 6, 2, 2.5)],
        [("a", 6, 3, 13 / 3)],
        [("a", 9, 1, 2.0)],
    ]


@ENGINES
def test_a_late_row_is_emitted_with_all_rows_before_it(engine: Any) -> None:
    """As of 90 the window takes 81 to 90, however far the watermark is, as long as the row is not dropped."""
    program = program_of(call("n", count(), 10, 1, exact=True), emit="each", step=1)
    batches: Batches = [(MIN, [("a", time, 1) for time in (80, 81, 84, 88, 95)]), (100, []), (100, [("a", 90, 1)])]
    on_time, late = results(engine, program, batches)[1:]
    assert on_time == [("a", 80, 1), ("a", 81, 2), ("a", 84, 3), ("a", 88, 4), ("a", 95, 2)]
    assert late == [("a", 90, 4)]


@ENGINES
def test_a_batch_emits_a_key_whose_windows_were_empty_only_if_its_values_changed(engine: Any) -> None:
    """Nothing has taken the last values back, so a reader still sees them."""
    program = program_of(call("n", count(), 10), call("total", sum("v"), 10), emit="batch")
    batches: Batches = [
        (MIN, [("a", 1, 5), ("b", 2, 5)]),
        (99, []),
        (99, [("a", 101, 5), ("b", 101, 6), ("c", 101, 5)]),
        (299, [("a", 301, 2), ("a", 302, 3)]),
        (499, [("a", 501, 3), ("a", 502, 2)]),
    ]
    assert results(engine, program, batches) == [
        [("a", 1, 1, 5), ("b", 2, 1, 5)],
        [],
        [("b", 101, 1, 6), ("c", 101, 1, 5)],
        [("a", 302, 2, 5)],
        [],
    ]


@ENGINES
def test_each_tick_is_emitted_where_the_watermark_jumps(engine: Any) -> None:
    program = program_of(call("n", count(), 10, exact=True), call("top", max("v"), 5, exact=True), emit="tick")
    batches: Batches = [(MIN, [("a", 1, 1), ("a", 2, 7), ("b", 12, 3)]), (14, []), (40, [])]
    assert results(engine, program, batches) == [
        [],
        [("a", 4, 2, 7), ("a", 9, 2, None), ("a", 14, 0, None), ("b", 14, 1, 3)],
        [("b", 19, 1, None), ("b", 24, 0, None)],
    ]


@ENGINES
def test_a_step_longer_than_a_tile_still_empties_keys(engine: Any) -> None:
    program = program_of(call("n", count(), 5), step=20)
    assert results(engine, program, [(MIN, [("a", 1, 1)]), (15, []), (19, []), (99, [])]) == [
        [("a", 1, 1)],
        [],
        [("a", 19, 0)],
        [],
    ]


@ENGINES
def test_a_key_of_nulls_is_deleted_too(engine: Any) -> None:
    program = program_of(call("total", sum("v"), 5), deletes=True)
    batches: Batches = [(MIN, [("a", 1, None)]), (9, [])]
    assert results(engine, program, batches) == [[("a", 1, None, INSERT)], [("a", 9, None, DELETE)]]


def test_a_feature_that_is_equal_but_written_differently_has_changed() -> None:
    spec = RollingSpec((call("last", last("v"), 20), call("lists", last("l"), 20)), 5, RollingEmit("changed"))
    columns = pa.schema([("v", pa.float64()), ("l", pa.list_(pa.float64()))])
    program, store = RollingProgram(spec, KEY, ("key",), columns, pa.int64()), MemoryBlobStore()
    shown: list[str] = []
    nan = float("nan")
    for at, (value, values) in enumerate(
        [(0.0, [nan]), (-0.0, [nan]), (-0.0, [nan]), (-0.0, [0.0]), (-0.0, [-0.0]), (-0.0, [-0.0])]
    ):
        rows = table_of([("a", at, 1)]).drop_columns(["v", "big"])
        rows = rows.append_column("v", pa.array([value])).append_column("l", pa.array([values]))
        output = RollingReferenceEngine(program).run(store, [rows], Clock(MIN, 0))
        shown += [f"{row['last']} {row['lists']}" for _, table in output.tables for row in table.to_pylist()]
    assert shown == ["0.0 [nan]", "-0.0 [nan]", "-0.0 [0.0]", "-0.0 [-0.0]"]


def test_silent_keys_stay_unread_until_a_row_leaves() -> None:
    program, reads = program_of(call("n", count(), 20)), []

    class Watched(MemoryBlobStore):
        def get(self, key: str) -> bytes | None:
            reads.append(key)
            return super().get(key)

    store = Watched()

    def pages() -> set[str]:
        return set(filter(lambda name: name.startswith("p."), store.keys())) - {"p.i"}

    with given_sizes({PAGE_KEYS: 2, DENSE_KEYS: 2}):
        run(RollingEngine(program), store, MIN, [(f"k{number}", 3, 1) for number in range(40)])
        assert len(pages()) > 10
        reads.clear()
        assert run(RollingEngine(program), store, 12, []) == []
        assert not pages() & {*reads}
        assert len(run(RollingEngine(program), store, 24, [])) == 40
        run(RollingEngine(program), store, 29, [])
        assert not pages()


def test_rows_that_only_long_tiles_see_are_kept_by_tile() -> None:
    """With an exact window of 20 and one of 1000 by tiles of 100, at most 100 + 20 single instants are kept, and 11 tiles."""

    def pieces(exact: bool) -> int:
        short, long = call("n", count(), 20, 5, exact=True), call("total", sum("v"), 1000, 100, exact=exact)
        engine, store = RollingEngine(program_of(short, long, step=5)), MemoryBlobStore()
        for begin in range(0, 3000, 50):
            end = begin + 50
            out = run(engine, store, begin - 1, [("a", time, time) for time in range(begin, end)])
            start = end - 1000 if exact else (end - 1000) // 100 * 100
            assert out[-1] == ("a", end - 1, 20, total_of(range(start if start > 0 else 0, end)))
        (page,) = [name for name in store.keys() if name == "p.0"]  # noqa: SIM118 (no dict)
        return pieces_held(from_stream(unframe("hash-pages-page", store.get(page) or b"")))

    assert pieces(exact=True) > 1000
    assert pieces(exact=False) <= 131


def test_rows_without_a_time_or_beyond_the_last_one_are_refused() -> None:
    program = program_of(call("n", count(), 5))
    with pytest.raises(MissingEventTimeError, match="'a'"):
        results(RollingEngine, program, [(MIN, [("a", None, 1)])])
    with pytest.raises(TimestampOverflowError):
        results(RollingEngine, program, [(MIN, [("a", MAX - 3, 1)])])


@pytest.mark.parametrize("aggregate", [collect_list("v"), arg_max("v", "big")])
def test_what_depends_on_the_order_of_rows_is_left_to_the_reference(aggregate: Aggregate) -> None:
    reason = RollingEngine.refusal(program_of(call("f", aggregate, 5)))
    assert reason == f"{aggregate} depends on the order of rows"
    assert [each.name for each in engines_for(program_of(call("f", sum("v"), 5)))] == ["rolling", "rolling reference"]
    assert RollingEngine.refusal(program_of(call("f", sum("v"), 5))) is None
