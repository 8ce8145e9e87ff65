"""The engines of joins on what the conformance vectors do not have: conditions, NULL-safe keys, columns as bounds."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

import windowpane as wp
from windowpane.engines.batch.late_rows import DROPPED
from windowpane.engines.common.tagged import tagged
from windowpane.engines.join.grouping import CoGroup
from windowpane.engines.join.program import LATE, JoinProgram, JoinSide
from windowpane.engines.program import MAIN, Upstream
from windowpane.engines.protocol import Clock
from windowpane.errors import (
    ChangedPlanError,
    EmptyIntervalError,
    InvalidDurationError,
    InvalidSpecError,
    MissingSideTimestampError,
    MissingTimestampError,
    UnboundedIntervalError,
    UnknownChangeError,
    UnsupportedJoinError,
)
from windowpane.hidden_columns import FIRING_WATERMARK, PARTITION, POSITION, TIME
from windowpane.planning.engines import make_engine, with_engine
from windowpane.sizes import replacing_sizes
from windowpane.state.memory import MemoryBlobStore
from windowpane.windowing.joins import ArrivalMatch, AsOfMatch, IntervalMatch, WindowMatch, check_join
from windowpane.windowing.times import MAX, MIN

SIDE = JoinSide(("k",), pa.schema([("k", pa.string()), ("v", pa.int64())]), ("v",))


class Bucket:
    """A bucket of a program, restarted in every batch."""

    def __init__(self, **parts: Any) -> None:
        given: dict[str, Any] = {"how": "inner", "left": SIDE, "right": SIDE} | parts
        self.program = with_engine(JoinProgram(**given))
        self.store = MemoryBlobStore()

    def run(self, watermark: int, left: list[Any] = [], right: list[Any] = []) -> list[tuple[Any, ...]]:  # noqa: B006
        """Take rows (time, key, value, ...) and return the values of results."""
        self.take(watermark, left, right)
        main = [table for number, table in self.output.tables if number == MAIN]
        return sorted((row["left.v"], row.get("right.v")) for table in main for row in table.to_pylist())

    def take(self, watermark: int, left: list[Any] = [], right: list[Any] = []) -> None:  # noqa: B006
        """Take rows (time, key, value, ...)."""
        tables = [self._table(rows, side) for side, rows in (("left", left), ("right", right)) if rows]
        self.output: Any = make_engine(self.program).run(self.store, tables, Clock(watermark, 0))

    def _table(self, rows: list[Any], side: str) -> pa.Table:
        columns = self.program.left.columns if side == "left" else self.program.right.columns
        times, *values = zip(*rows, strict=True)
        arrays = [pa.array(each, kind.type) for each, kind in zip(values, columns, strict=True)]
        table = pa.table(arrays, schema=columns).append_column(TIME, pa.array(times, pa.int64()))
        table = table.append_column(PARTITION, pa.array([0] * len(rows), pa.int32()))
        return tagged(table.append_column(POSITION, pa.array(range(len(rows)), pa.int64())), side=side)


def test_a_pair_that_fails_the_condition_is_none():
    bucket = Bucket(match=IntervalMatch(0, 10), how="left", condition=wp.right("v") > wp.left("v"))
    assert bucket.run(MIN, [(1, "a", 5), (2, "a", 1)], [(3, "a", 4)]) == [(1, 4)]
    assert bucket.run(MAX) == [(5, None)]


def test_null_safe_keys_match_each_other():
    bucket = Bucket(match=IntervalMatch(0, 10), null_safe=True)
    assert bucket.run(MIN, [(1, None, 5)], [(3, None, 4), (3, "a", 6)]) == [(5, 4)]


@pytest.mark.parametrize("engine", ["join_asof", "join reference"])
@pytest.mark.parametrize("kind", [pa.float64(), pa.list_(pa.float64())], ids=str)
def test_a_version_that_is_equal_but_written_differently_corrects_the_left_row(engine, kind):
    nan = float("nan")
    right = JoinSide(("k",), pa.schema([("k", pa.string()), ("v", kind)]), ("v",))
    bucket = Bucket(match=AsOfMatch(), how="left", right=right, updates=True)
    bucket.program = replace(bucket.program, engine=engine)

    def values(row: float) -> float | list[float]:
        return [row] if pa.types.is_list(kind) else row

    emitted = []
    for time, value in enumerate([0.0, -0.0, -0.0, nan, nan]):
        emitted.append(bucket.run(MIN, [(9, "a", 1)] if not time else [], [(time, "a", values(value))]))
    assert list(map(repr, emitted)) == [
        repr([(1, values(0.0))]),
        repr([(1, values(0.0)), (1, values(-0.0))]),
        "[]",
        repr([(1, values(-0.0)), (1, values(nan))]),
        "[]",
    ]


QUOTES = JoinSide(("k",), pa.schema([("k", pa.string()), ("v", pa.int64()), ("seq", pa.float64())]), ("v",))


@pytest.mark.parametrize("engine", ["join_asof", "join reference"])
def test_of_versions_of_one_time_the_largest_sequence_counts_however_they_arrive(engine):
    bucket = Bucket(match=AsOfMatch(sequence="seq"), right=QUOTES)
    bucket.program = replace(bucket.program, engine=engine)
    nan = float("nan")
    assert bucket.run(MIN, [], [(1, "a", 10, 3.0), (1, "a", 11, 2.0), (1, "b", 20, None), (1, "c", 30, nan)]) == []
    late = [(1, "a", 12, None), (1, "b", 21, 0.0), (1, "b", 22, 0.0), (1, "c", 31, float("inf"))]
    assert bucket.run(1, [(2, "a", 1), (2, "b", 2), (2, "c", 3)], late) == []
    assert bucket.run(2) == [(1, 10), (2, 22), (3, 30)]
    assert bucket.run(3, [(5, "b", 4)], [(1, "b", 23, 0.0), (1, "b", 24, -1.0)]) == []
    assert bucket.run(MAX) == [(4, 23)]


@pytest.mark.parametrize("engine", ["join_asof", "join reference"])
def test_a_tolerance_by_row(engine):
    left = JoinSide(("k",), pa.schema([("k", pa.string()), ("v", pa.int64()), ("reach", pa.duration("us"))]), ("v",))
    bucket = Bucket(match=AsOfMatch("nearest", tolerance=9, tolerance_of="reach"), how="left", left=left)
    bucket.program = replace(bucket.program, engine=engine)
    reaches = [0, 3, 4, None, 0]
    rows = [(10, "a", number, reach) for number, reach in enumerate(reaches)]
    assert bucket.run(MIN, [*rows, (14, "a", 9, 0), (24, "a", 8, None)], [(14, "a", 7)]) == []
    assert bucket.run(MAX) == [(0, None), (1, None), (2, 7), (3, 7), (4, None), (8, None), (9, 7)]


@pytest.mark.parametrize("engine", ["join_asof", "join reference"])
@pytest.mark.parametrize("updates", [False, True])
def test_the_last_value_of_each_column_is_that_of_an_older_version_until_a_deletion(engine, updates):
    columns = pa.schema([("k", pa.string()), ("v", pa.int64()), ("w", pa.int64()), ("_change_type", pa.string())])
    right = JoinSide(("k",), columns, ("v", "w"))
    bucket = Bucket(match=AsOfMatch(skips_nulls=True), how="left", right=right, updates=updates)
    bucket.program = replace(bucket.program, engine=engine)

    def run(watermark: int, lefts: list[Any], rights: list[Any]) -> list[tuple[Any, ...]]:
        bucket.take(watermark, lefts, rights)
        found = [row for number, table in bucket.output.tables if number == MAIN for row in table.to_pylist()]
        return sorted(tuple(row[name] for name in ("left.v", "right.v", "right.w")) for row in found)

    put = "insert"
    rights = [(1, "a", 1, 10, put), (3, "a", 3, None, put), (5, "a", None, 50, put)]
    assert run(MIN, [], rights) == []
    assert run(4, [], []) == []  # versions until 4 are one now: 3 and 10
    first = run(4, [(6, "a", 60)], [(4, "a", None, 40, put)])
    assert first == ([(60, 3, 50)] if updates else [])
    assert run(6, [], []) == ([] if updates else [(60, 3, 50)])
    rows = [(8, "a", 8, 8, "delete"), (9, "a", 9, None, put)]
    last = [(80, None, None), (90, 9, None)]
    assert run(7, [(8, "a", 80), (9, "a", 90)], rows) == (last if updates else [])
    assert run(MAX, [], []) == ([] if updates else last)


@pytest.mark.parametrize("engine", ["join_asof", "join reference"])
@pytest.mark.parametrize("updates", [False, True])
def test_a_version_without_a_sequence_has_none_by_an_older_one(engine, updates):
    """The version at 4 has no number; another one of that time, which comes late, takes its place, as it would have before."""
    columns = pa.schema([("k", pa.string()), ("v", pa.int64()), ("seq", pa.int64())])
    match = AsOfMatch(skips_nulls=True, sequence="seq")
    bucket = Bucket(match=match, how="left", right=JoinSide(("k",), columns, ("v", "seq")), updates=updates)
    bucket.program = replace(bucket.program, engine=engine)
    bucket.take(MIN, [], [(2, "a", 1, 7), (4, "a", 2, None)])
    bucket.take(5, [], [])
    bucket.take(5, [(6, "a", 60)], [(4, "a", 3, None)])
    found = [row for number, table in bucket.output.tables if number == MAIN for row in table.to_pylist()]
    if not updates:
        bucket.take(MAX, [], [])
        found = [row for number, table in bucket.output.tables if number == MAIN for row in table.to_pylist()]
    assert [(row["left.v"], row["right.v"], row["right.seq"]) for row in found] == [(60, 3, None)]


@pytest.mark.parametrize("kind", [pa.float64(), pa.list_(pa.float64())], ids=str)
def test_a_late_row_that_is_equal_to_another_but_written_differently_is_emitted_as_it_is(kind):
    left = JoinSide(("k",), pa.schema([("k", pa.string()), ("v", kind)]), ("v",))
    bucket = Bucket(match=WindowMatch(wp.TumblingEventTimeWindows(10)), left=left, allowed_lateness=50)
    zero, other = ([0.0], [-0.0]) if pa.types.is_list(kind) else (0.0, -0.0)
    assert bucket.run(MIN, [(1, "a", zero)], [(3, "a", 4)]) == []
    assert repr(bucket.run(15)) == repr([(zero, 4)])
    assert repr(bucket.run(15, [(0, "a", other)])) == repr([(other, 4)])


@pytest.mark.parametrize("engine", ["join_asof", "join reference"])
@pytest.mark.parametrize("limit", ["tolerance", "retain"])
def test_a_late_version_that_no_left_row_to_come_can_take_is_dropped(engine: str, limit: str):
    right = replace(SIDE, has_late_output=True)
    bucket = Bucket(match=AsOfMatch(tolerance=10) if limit == "tolerance" else AsOfMatch(retain=10), right=right)
    bucket.program = replace(bucket.program, engine=engine)

    def dropped(watermark: int, *versions: tuple[Any, ...]) -> dict[int, bool]:
        bucket.take(watermark, right=list(versions))
        late = [table for number, table in bucket.output.tables if number == LATE["right"]]
        return {row["v"]: row[DROPPED] for table in late for row in table.to_pylist()}

    assert dropped(MIN, (100, "a", 1)) == {}
    # Left rows to come are at 106 or later: the version of 96 is in reach of the first of them, that of 95 of none.
    at_105 = dropped(105, (99, "a", 2), (103, "a", 3), (95, "c", 4), (96, "c", 5), (104, None, 6))
    assert at_105 == {2: True, 3: False, 4: True, 5: False, 6: True}
    # The anchor of 103 has gone out of reach itself, and what is older than it no less.
    assert dropped(200, (102, "a", 7), (195, "a", 8), (191, "c", 9)) == {7: True, 8: False, 9: False}


def test_an_upper_bound_of_each_row():
    side = JoinSide(("k",), pa.schema([("k", pa.string()), ("v", pa.int64()), ("until", pa.timestamp("us", "UTC"))]), ("v",))
    bucket = Bucket(match=IntervalMatch(0, 0, "until"), left=side, how="left")
    assert bucket.run(MIN, [(1, "a", 5, 4), (1, "a", 6, None), (3, "a", 7, 2)], [(4, "a", 1), (5, "a", 2)]) == [
        (5, 1),
        (6, None),
        (7, None),
    ]
    assert bucket.run(4) == []
    assert bucket.output.counters.held_left == 0


def test_results_of_a_hot_key_leave_in_chunks():
    bucket = Bucket(match=IntervalMatch(0, 100))
    rows = [(number, "a", number) for number in range(20)]
    with replacing_sizes(lambda size: 10 if size.name == "pairs made at once" else size.usual):
        assert len(bucket.run(MIN, rows, rows)) == 20 * 21 // 2
        assert max(table.num_rows for _, table in bucket.output.tables) <= 2 * 20


def test_rows_of_an_operator_are_late_by_the_watermark_before():
    bucket = Bucket(match=IntervalMatch(0, 10), upstream=Upstream.WINDOW)
    assert bucket.run(5, [(1, "a", 1)]) == []
    assert bucket.run(20, [], [(6, "a", 2), (4, "a", 3)]) == [(1, 2)]
    assert bucket.output.counters.right_late == 1


def test_results_carry_the_watermark_they_fired_under():
    bucket = Bucket(match=IntervalMatch(-3, 10), how="full", allowed_lateness=2)
    bucket.run(50, [(60, "a", 1)])
    bucket.run(100)
    table = bucket.output.tables[0][1]
    assert (table[TIME].to_pylist(), table[FIRING_WATERMARK].to_pylist()) == ([60], [50 - 2 - 10])


def test_a_row_without_a_time_is_refused():
    with pytest.raises(MissingSideTimestampError, match="1 row of the right side"):
        Bucket(match=IntervalMatch(0, 10)).run(MIN, [], [(None, "a", 1)])
    assert issubclass(MissingSideTimestampError, MissingTimestampError)


@pytest.mark.parametrize("engine", ["join_window", "join reference"])
def test_a_grouped_window_fires_again_with_all_of_its_rows(engine: str):
    def grouped(key: str, window: Any, lefts: list[Any], rights: list[Any]) -> Any:
        yield {"text": f"{window.start} {[row['v'] for row in lefts]} {[row['v'] for row in rights]}"}

    group = CoGroup(grouped, pa.schema([("text", pa.string())]))
    match = WindowMatch(wp.TumblingEventTimeWindows.of(10))
    bucket = Bucket(match=match, allowed_lateness=100, co_group=group, window_bound=pa.int64())
    bucket.program = with_engine(bucket.program, engine)

    def texts(*batch: Any) -> list[Any]:
        bucket.take(*batch)
        return [row["text"] for number, table in bucket.output.tables for row in table.to_pylist() if number == MAIN]

    assert texts(MIN, [(1, "a", 1), (12, "a", 2)], [(2, "a", 3)]) == []
    assert texts(9) == ["0 [1] [3]"]
    assert texts(9, [], [(3, "a", 4), (4, "a", 5)]) == ["0 [1] [3, 4, 5]"]
    assert texts(MAX) == ["10 [2] []"]


@pytest.mark.parametrize("engine", ["join_asof", "join reference"])
@pytest.mark.parametrize("word", ["upsert", None])
def test_a_word_that_no_changelog_has_is_refused(engine: str, word: str | None):
    changes = JoinSide(("k",), SIDE.columns.append(pa.field("_change_type", pa.string())), ("v",))
    bucket = Bucket(match=AsOfMatch(), how="left", right=changes)
    bucket.program = with_engine(bucket.program, engine)
    with pytest.raises(UnknownChangeError, match=f"_change_type = {word!r}.* 'update_preimage'"):
        bucket.run(MIN, [], [(1, "a", 1, "insert"), (2, "a", 1, word)])


@pytest.mark.parametrize(
    ("lower", "upper", "error"),
    [
        ("1 second", "0 seconds", EmptyIntervalError),
        (None, "0 seconds", UnboundedIntervalError),
        ("0 seconds", None, UnboundedIntervalError),
        ("-1 month", "0 seconds", InvalidDurationError),
        (wp.left("v"), "0 seconds", InvalidDurationError),
        ("0 seconds", wp.right("v"), InvalidSpecError),
    ],
)
def test_bounds_that_are_none_are_refused(lower: Any, upper: Any, error: type[Exception]):
    with pytest.raises(error):
        IntervalMatch.of(lower, upper)
    with pytest.raises(EmptyIntervalError):
        IntervalMatch.of(0, 1, lower_open=True, upper_open=True)


@pytest.mark.parametrize("how", ["right", "full", "semi", "anti"])
@pytest.mark.parametrize("match", [AsOfMatch(), ArrivalMatch()])
def test_a_join_as_of_an_instant_gives_each_left_row_at_most_one(match: AsOfMatch | ArrivalMatch, how: Any):
    with pytest.raises(UnsupportedJoinError, match=f"how\\('{how}'\\)"):
        check_join(match, how)


def test_a_restart_compares_the_join():
    bucket = Bucket(match=IntervalMatch(0, 10), description={"match": "0 to 10"})
    bucket.run(MIN, [(1, "a", 1)])
    bucket.program = with_engine(JoinProgram(IntervalMatch(0, 20), "inner", SIDE, SIDE, description={"match": "0 to 20"}))
    with pytest.raises(ChangedPlanError, match="0 to 20"):
        bucket.run(MIN)


def test_an_idle_version_goes_after_its_retention():
    bucket = Bucket(match=AsOfMatch(retain=100), how="left")
    assert bucket.run(MIN, [], [(10, "a", 1)]) == []
    assert bucket.run(100, [(105, "a", 5)]) == []
    assert bucket.run(105) == [(5, 1)]
    assert (bucket.run(110, [(120, "a", 6)]), bucket.output.counters.held_right) == ([], 0)
    assert bucket.run(MAX) == [(6, None)]


def test_a_version_that_fails_the_condition_is_none():
    bucket = Bucket(match=AsOfMatch(), how="left", condition=wp.right("v") > 0)
    bucket.run(MIN, [(15, "a", 5)], [(9, "a", 3), (10, "a", -1)])
    assert bucket.run(20) == [(5, None)]


def _changes(bucket: Bucket) -> list[tuple[Any, ...]]:
    """Return the changelog of the last batch."""
    main = [row for number, table in bucket.output.tables if number == MAIN for row in table.to_pylist()]
    return [(row["_change_type"], row["left.v"], row["right.v"]) for row in main]


WORDED = JoinSide(("k",), SIDE.columns.append(pa.field("_change_type", pa.string())), ("v",))


@pytest.mark.parametrize("engine", ["join_asof", "join reference"])
@pytest.mark.parametrize("how", ["left", "inner"])
def test_a_left_row_comes_at_once_and_is_corrected_until_it_is_final(engine: str, how: str):
    bucket = Bucket(match=AsOfMatch(), how=how, right=WORDED, updates=True)
    bucket.program = with_engine(bucket.program, engine)

    def changes(watermark: int, left: list[Any] = [], right: list[Any] = []) -> list[tuple[Any, ...]]:  # noqa: B006
        bucket.take(watermark, left, right)
        return _changes(bucket)

    is_left = how == "left"
    assert changes(MIN, [(10, "a", 1), (20, "a", 2), (10, None, 3)]) == (
        [("insert", 1, None), ("insert", 2, None), ("insert", 3, None)] if is_left else []
    )
    # One correction a batch, whatever arrived in between; a version behind both corrects neither.
    emitted = [("update_preimage", 1, None), ("update_postimage", 1, 7)] if is_left else [("insert", 1, 7)]
    also = [("update_preimage", 2, None), ("update_postimage", 2, 7)] if is_left else [("insert", 2, 7)]
    assert changes(MIN, [], [(5, "a", 6, "insert"), (5, "a", 7, "insert"), (30, "a", 8, "insert")]) == [*emitted, *also]
    # The first row is final at 10, so only the second one is corrected; a version that is shown alike corrects nothing.
    assert changes(10, [], [(10, "a", 9, "insert"), (15, "a", 9, "insert")]) == [
        ("update_preimage", 2, 7),
        ("update_postimage", 2, 9),
    ]
    assert changes(10, [], [(16, "a", 9, "insert")]) == []
    retracted = [("update_preimage", 2, 9), ("update_postimage", 2, None)] if is_left else [("delete", 2, 9)]
    assert changes(10, [(25, "a", 4)], [(18, "a", 0, "delete")]) == [*retracted, *([("insert", 4, None)] if is_left else [])]
    assert changes(20) == []
    assert changes(MAX) == []
    assert bucket.output.counters.held_left == 0


@pytest.mark.parametrize("engine", ["join_asof", "join reference"])
def test_the_nearest_row_is_corrected_from_both_sides(engine: str):
    bucket = Bucket(match=AsOfMatch("nearest", tolerance=5), how="left", updates=True)
    bucket.program = with_engine(bucket.program, engine)
    bucket.take(MIN, [(10, "a", 1)], [(14, "a", 4), (16, "a", 6)])
    assert _changes(bucket) == [("insert", 1, 4)]
    bucket.take(MIN, [], [(6, "a", 5)])  # of two that are equally far the earlier one
    assert _changes(bucket) == [("update_preimage", 1, 4), ("update_postimage", 1, 5)]
    bucket.take(13, [], [(14, "a", 8)])  # nothing that comes after 13 is nearer than 4 behind
    assert _changes(bucket) == []
    assert bucket.output.counters.held_left == 0


@pytest.mark.parametrize("how", ["inner", "full", "semi", "anti"])
def test_pairs_of_a_hot_key_are_made_while_they_are_read(how: str):
    bucket = Bucket(match=IntervalMatch(-1000, 1000), how=how)
    rows = [(number, "a", number) for number in range(2000)]
    tracemalloc.start()
    try:
        bucket.take(MIN, rows, rows)
        pairs = sum(table.num_rows for _, table in bucket.output.tables)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    near = sum(min(n + 1001, 2000) - max(n - 1000, 0) for n in range(2000))
    assert pairs == {"inner": near, "full": near, "semi": 2000, "anti": 0}[how]
    assert peak < 64 << 20  # numpy's arrays of all pairs would be 90 MB


WINDOWS = {
    "tumbling": (wp.TumblingEventTimeWindows.of(10), [(3, 1), (1, 0), (0, 0)]),
    "sliding": (wp.SlidingEventTimeWindows.of(10, 5), [(3, 1), (1, 0), (0, 0)]),
    "session": (wp.EventTimeSessionWindows.with_gap(5), [(3, 1), (1, 0), (0, 0)]),
}


@pytest.mark.parametrize("kind", WINDOWS)
@pytest.mark.parametrize("lateness", [0, 1])
def test_rows_of_each_side_are_counted_while_windows_hold_them(kind: str, lateness: int):
    assigner, expected = WINDOWS[kind]
    bucket = Bucket(match=WindowMatch(assigner), how="left", allowed_lateness=lateness, window_bound=pa.int64())
    held = []
    for watermark, left, right in (
        (MIN, [(3, "a", 1), (3, "a", 5), (11, "b", 2)], [(4, None, 3)]),
        (10, [(1, "a", 4)], []),
        (MAX, [], []),
    ):
        bucket.take(watermark, left, right)
        held.append((bucket.output.counters.held_left, bucket.output.counters.held_right))
    assert held == expected
    assert bucket.output.counters.open_windows == 0


@pytest.mark.parametrize("engine", ["join_window", "join reference"])
@pytest.mark.parametrize("upstream", [Upstream.SOURCE, Upstream.WINDOW])
def test_late_rows_correct_what_windows_gave(engine: str, upstream: Upstream):
    match = WindowMatch(wp.SlidingEventTimeWindows.of(10, 5))
    bucket = Bucket(match=match, how="full", allowed_lateness=20, window_bound=pa.int64(), upstream=upstream)
    bucket.program = with_engine(bucket.program, engine)

    def net(watermark: int, left: list[Any] = [], right: list[Any] = []) -> list[tuple[Any, ...]]:  # noqa: B006
        bucket.take(watermark, left, right)
        rows = [row for number, table in bucket.output.tables for row in table.to_pylist() if number == MAIN]
        return sorted(((row["window_start"], row["_change_type"], row["left.v"], row["right.v"]) for row in rows), key=repr)

    assert net(MIN, [(7, "a", 1), (7, None, 5)]) == []
    # Both windows of the rows have ended. A NULL matches nothing, and is alone in each.
    alone = [(start, "insert", value, None) for start in (0, 5) for value in (1, 5)]
    assert net(14) == sorted(alone, key=repr)
    # The first late row is in one window of the left one, which is not alone any more; the other key is new there.
    late = [(3, "a", 2), (3, "b", 3)]
    fired = net(14, [], late)
    of_late = [
        (-5, "insert", None, 2),
        (-5, "insert", None, 3),
        (0, "delete", 1, None),
        (0, "insert", 1, 2),
        (0, "insert", None, 3),
    ]
    assert fired == sorted(of_late, key=repr)
    # Equal rows that come again correct by one; two at once are one correction.
    assert net(14, [(3, "b", 4), (3, "b", 4)]) == sorted(
        [(start, *row) for start in (-5, 0) for row in (("delete", None, 3), ("insert", 4, 3), ("insert", 4, 3))], key=repr
    )
    assert net(MAX) == []
    assert (bucket.output.counters.held_left, bucket.output.counters.open_windows) == (0, 0)
