"""What RisingWave's own tests leave out of OVER windows, on every engine, with the engine built anew before every batch.

Expected values are written by hand, or are DuckDB's on the rows that exist.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from random import Random
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

from verify.fuzz import over
from verify.fuzz.comparison import difference
from verify.fuzz.over_parts.oracle import Oracle
from verify.fuzz.over_parts.run import NotCoveredError
from windowpane import aggregates as agg
from windowpane.arrays.values import Row
from windowpane.engines.over.program import Emit, OverProgram
from windowpane.engines.program import LATE, MAIN
from windowpane.engines.protocol import Clock
from windowpane.hidden_columns import PARTITION, POSITION, TIME
from windowpane.state.memory import MemoryBlobStore
from windowpane.windowing.frames import CURRENT_ROW, UNBOUNDED_PRECEDING, Exclude, Frame, Offset, following, preceding
from windowpane.windowing.intervals import Interval
from windowpane.windowing.outputs import CHANGE_TYPE, DELETE, INSERT, UPDATE_POSTIMAGE, UPDATE_PREIMAGE
from windowpane.windowing.over.spec import OrderColumn, OverCall, OverSpec
from windowpane.windowing.over.types import output_schema
from windowpane.windowing.times import MAX, MIN

EPOCH = dt.datetime(1970, 1, 1)
ENGINES = pytest.mark.parametrize("engine", list(over.ENGINES))
Value = Any


def micros(value: Value) -> int:
    naive = value.astimezone(dt.UTC).replace(tzinfo=None) if value.tzinfo else value
    return int((naive - EPOCH) // dt.timedelta(microseconds=1))


@dataclass
class Window:
    """One partition's window; rows are ``(id, ord, x)`` with two order columns where the test says so."""

    engine: str
    calls: Sequence[OverCall]
    kind: pa.DataType = field(default_factory=pa.int64)
    order: Sequence[OrderColumn] = (OrderColumn("ord", nulls_first=False),)
    mode: Emit = Emit.UPDATE
    more: dict[str, pa.DataType] = field(default_factory=dict)
    output: dict[int, Row] = field(default_factory=dict)
    late: list[Row] = field(default_factory=list)

    def __post_init__(self) -> None:
        columns = pa.schema([("id", pa.int64()), ("ord", self.kind), ("x", pa.int64()), *self.more.items()])
        spec = OverSpec((), tuple(self.order), ("id",), tuple(self.calls))
        outputs = output_schema(spec, columns, [f"c{number}" for number in range(len(self.calls))])
        time = "ord" if self.mode is Emit.CLOSE else None
        self.program = OverProgram(spec, columns, outputs, self.mode, time, has_late_output=self.mode is Emit.CLOSE)
        self.store = MemoryBlobStore()
        try:
            over.ENGINES[self.engine](self.program)
        except NotCoveredError as reason:
            pytest.skip(str(reason))

    def run(self, changes: Sequence[tuple[Any, ...]], watermark: int = MIN) -> None:
        """Run a batch of ``(word, id, ord, x, ...)`` and apply what is emitted."""
        rows = [dict(zip(self.program.columns.names, cells[1:], strict=True)) for cells in changes]
        table = pa.Table.from_pylist(rows, schema=self.program.columns)
        times = [micros(row["ord"]) if self.mode is Emit.CLOSE else None for row in rows]
        system = {TIME: times, PARTITION: [0] * len(rows), POSITION: range(len(rows))}
        for name, values in system.items():
            table = table.append_column(name, pa.array(values, pa.int64()))
        if self.mode is Emit.UPDATE:
            table = table.append_column(CHANGE_TYPE, pa.array([cells[0] for cells in changes], pa.string()))
        engine = over.ENGINES[self.engine](self.program)
        for number, each in engine.run(self.store, [table], Clock(watermark, 0)).tables:
            self._take(number, each.to_pylist())

    def _take(self, number: int, rows: list[Row]) -> None:
        visible = [{name: row[name] for name in row if not name.startswith("__")} for row in rows]
        if number == LATE:
            self.late += visible
            return
        assert number == MAIN
        for row in visible:
            if row.pop(CHANGE_TYPE, INSERT) in (DELETE, UPDATE_PREIMAGE):
                assert self.output.pop(row["id"]) == row
            else:
                assert row["id"] not in self.output
                self.output[row["id"]] = row

    def values(self, call: int = 0) -> dict[int, Value]:
        return {identity: row[f"c{call}"] for identity, row in sorted(self.output.items())}

    def agrees_with_duckdb(self, oracle: Oracle) -> None:
        names = self.program.columns.names
        inputs = [{name: row[name] for name in names} for row in self.output.values()]
        table = pa.Table.from_pylist(inputs, schema=self.program.columns)
        expected = oracle.rows(self.program.spec, self.program.outputs.names, table)
        assert difference(expected, self.output.values()) is None


@pytest.fixture(scope="module")
def oracle() -> Oracle:
    return Oracle()


def total(frame: Frame) -> OverCall:
    return OverCall.of(agg.sum("x"), frame)


def listed(frame: Frame) -> OverCall:
    return OverCall.of(agg.collect_list("x"), frame)


def inserts(*rows: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    return [(INSERT, *row) for row in rows]


@ENGINES
def test_range_with_a_changelog_and_recovery(engine: str) -> None:
    window = Window(engine, [total(Frame.range_(preceding(2), following(1)))])

    window.run(inserts((1, 1, 1), (2, 2, 10), (3, 4, 100), (4, 9, 1000)))
    assert window.values() == {1: 11, 2: 11, 3: 110, 4: 1000}
    window.run([(UPDATE_PREIMAGE, 4, 9, 1000), (UPDATE_POSTIMAGE, 4, 3, 1000)])
    assert window.values() == {1: 11, 2: 1011, 3: 1110, 4: 1111}
    window.run([(DELETE, 2, 2, 10), (INSERT, 5, 5, 7)])
    assert window.values() == {1: 1, 3: 1107, 4: 1101, 5: 1107}


@ENGINES
def test_range_on_window_close(engine: str) -> None:
    hour = Interval.of("1 hour")
    window = Window(engine, [total(Frame.range_(preceding(hour), following(hour)))], pa.timestamp("us"), mode=Emit.CLOSE)
    at = [dt.datetime(2024, 1, 1, hour) for hour in range(6)]

    window.run(inserts((1, at[0], 1), (2, at[1], 10), (3, at[2], 100), (4, at[4], 1000)))
    window.run([], micros(at[2]))
    assert window.values() == {1: 11, 2: 111}
    window.run([], micros(at[3]) - 1)
    assert window.values() == {1: 11, 2: 111}
    window.run([], micros(at[3]))
    assert window.values() == {1: 11, 2: 111, 3: 110}
    window.run([], MAX)
    assert window.values() == {1: 11, 2: 111, 3: 110, 4: 1000}


@ENGINES
@pytest.mark.parametrize(
    ("exclude", "expected"),
    [
        (Exclude.CURRENT_ROW, {1: [2, 3], 2: [1, 3], 3: [1, 2], 4: []}),
        (Exclude.GROUP, {1: [2, 3], 2: [1], 3: [1], 4: []}),
        (Exclude.TIES, {1: [1, 2, 3], 2: [1, 2], 3: [1, 3], 4: [4]}),
        (Exclude.NO_OTHERS, {1: [1, 2, 3], 2: [1, 2, 3], 3: [1, 2, 3], 4: [4]}),
    ],
)
@pytest.mark.parametrize("frame", [Frame.range_(preceding(1), following(1)), Frame.session(2)], ids=["RANGE", "SESSION"])
def test_exclusion_with_range_and_session(engine: str, frame: Frame, exclude: Exclude, expected: dict[int, list[int]]) -> None:
    window = Window(engine, [listed(frame.excluding(exclude))])

    window.run(inserts((1, 1, 1), (2, 2, 2)))
    window.run(inserts((3, 2, 3), (4, 9, 4)))

    assert window.values() == expected


@ENGINES
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("nulls_first", [False, True])
def test_null_order_keys(engine: str, descending: bool, nulls_first: bool, oracle: Oracle) -> None:
    calls = [
        OverCall("row_number"),
        OverCall("rank"),
        total(Frame.range_(preceding(1), following(1))),
        total(Frame.range_(UNBOUNDED_PRECEDING, following(0))),
        total(Frame.groups(preceding(1))),
        total(Frame.session(2)),
    ]
    window = Window(engine, calls, order=[OrderColumn("ord", descending, nulls_first=nulls_first)])

    window.run(inserts((1, None, 1), (2, 1, 10), (3, 2, 100)))
    window.run(inserts((4, None, 1000), (5, 5, 10000)))
    window.run([(UPDATE_PREIMAGE, 2, 1, 10), (UPDATE_POSTIMAGE, 2, None, 10)])

    nulls = {1: 1, 2: 2, 4: 3} if nulls_first else {1: 3, 2: 4, 4: 5}
    start = 4 if nulls_first else 1
    values = {5: start, 3: start + 1} if descending else {3: start, 5: start + 1}
    assert window.values() == nulls | values
    assert window.values(2) == {1: 1011, 2: 1011, 3: 100, 4: 1011, 5: 10000}
    assert window.values(5) == window.values(2)
    window.agrees_with_duckdb(oracle)


@ENGINES
def test_descending_with_updates(engine: str, oracle: Oracle) -> None:
    calls = [OverCall("lag", ("x",)), OverCall("rank"), total(Frame.range_(preceding(3), CURRENT_ROW))]
    window = Window(engine, calls, order=[OrderColumn("ord", True, nulls_first=True)])

    window.run(inserts((1, 1, 1), (2, 5, 2), (3, 7, 3)))
    window.run([(UPDATE_PREIMAGE, 1, 1, 1), (UPDATE_POSTIMAGE, 1, 6, 1), (INSERT, 4, 6, 4)])

    assert window.values() == {1: 3, 2: 4, 3: None, 4: 1}
    assert window.values(1) == {1: 2, 2: 4, 3: 1, 4: 2}
    assert window.values(2) == {1: 8, 2: 10, 3: 3, 4: 8}
    window.agrees_with_duckdb(oracle)


@ENGINES
def test_several_order_columns_of_mixed_direction(engine: str, oracle: Oracle) -> None:
    order = [
        OrderColumn("ord", True, nulls_first=False),
        OrderColumn("name", nulls_first=True),
        OrderColumn("x", True, nulls_first=True),
    ]
    calls = [OverCall("row_number"), OverCall("dense_rank"), OverCall("lead", ("id",)), listed(Frame.groups(preceding(1)))]
    window = Window(engine, calls, order=order, more={"name": pa.string()})

    window.run(inserts((1, 2, 1, "b"), (2, 2, 1, "b"), (3, 2, 5, None), (4, 1, 9, "a")))
    window.run([(UPDATE_PREIMAGE, 2, 2, 1, "b"), (UPDATE_POSTIMAGE, 2, None, 1, "b"), (INSERT, 5, 2, 7, "a")])
    window.run([(UPDATE_PREIMAGE, 3, 2, 5, None), (UPDATE_POSTIMAGE, 3, 2, 8, "a")])

    assert window.values() == {1: 3, 2: 5, 3: 1, 4: 4, 5: 2}
    assert window.values(2) == {1: 4, 2: None, 3: 5, 4: 2, 5: 1}
    window.agrees_with_duckdb(oracle)


@ENGINES
def test_a_partition_larger_than_any_cache(engine: str, oracle: Oracle) -> None:
    """RisingWave reads 512 rows at a time and keeps 1,024; pages here hold as many."""
    rng = Random(5)
    calls = [
        total(Frame.rows(preceding(3), following(2))),
        OverCall("row_number"),
        total(Frame.range_(preceding(2), CURRENT_ROW)),
    ]
    window = Window(engine, calls)
    rows = [(number, rng.randint(0, 2000), rng.randint(0, 9)) for number in range(2500)]

    window.run(inserts(*rows))
    moved = rng.sample(rows[40:], 4)
    changes: list[tuple[Any, ...]] = []
    for identity, order, x in moved:
        changes += [(UPDATE_PREIMAGE, identity, order, x), (UPDATE_POSTIMAGE, identity, 2000 - order, x + 1)]
    window.run(changes)
    window.run([(DELETE, *row) for row in rows[:40]])

    assert len(window.output) == 2460
    window.agrees_with_duckdb(oracle)


@ENGINES
@pytest.mark.parametrize(
    ("kind", "read", "gap"),
    [
        (pa.int32(), int, 3),
        (pa.float64(), float, 3.0),
        (pa.float64(), float, 2.5),
        (pa.decimal128(12, 3), Decimal, Decimal("3.000")),
    ],
)
def test_session_gaps_on_numerics(engine: str, kind: pa.DataType, read: Callable[[int], Any], gap: Offset) -> None:
    window = Window(
        engine, [OverCall.of(agg.count(), Frame.session(gap)), OverCall("first_value", ("id",), Frame.session(gap))], kind
    )

    window.run(inserts((1, read(1), 0), (2, read(3), 0), (3, read(6), 0), (4, read(8), 0)))
    assert window.values() == {1: 2, 2: 2, 3: 2, 4: 2}
    window.run(inserts((5, read(5), 0)))
    assert window.values() == {1: 5, 2: 5, 3: 5, 4: 5, 5: 5}
    window.run([(DELETE, 2, read(3), 0)])
    assert window.values(1) == {1: 1, 3: 5, 4: 5, 5: 5}


@ENGINES
def test_late_rows_on_window_close_are_late_and_change_nothing(engine: str) -> None:
    window = Window(engine, [OverCall("lag", ("x",)), OverCall("row_number")], pa.timestamp("us"), mode=Emit.CLOSE)
    at = [dt.datetime(2024, 1, 1, hour) for hour in range(6)]

    window.run(inserts((1, at[1], 1), (2, at[3], 2)))
    window.run(inserts((3, at[2], 3), (4, at[3], 4)), micros(at[2]))
    window.run([], MAX)

    assert [row["id"] for row in window.late] == [3]
    assert window.values() == {1: None, 2: 1, 4: 2}
    assert window.values(1) == {1: 1, 2: 2, 4: 3}


@ENGINES
def test_recovery_in_the_middle_of_a_session(engine: str) -> None:
    """Every batch runs on an engine built anew."""
    session = Frame.session(Interval.of("2 hours"))
    calls = [OverCall.of(agg.count(), session), OverCall("last_value", ("x",), session)]
    window = Window(engine, calls, pa.timestamp("us"), mode=Emit.CLOSE)
    at = [dt.datetime(2024, 1, 1, hour) for hour in range(9)]

    window.run(inserts((1, at[0], 1)))
    window.run(inserts((2, at[1], 2)), micros(at[0]))
    window.run(inserts((3, at[2], 3)), micros(at[1]))
    window.run(inserts((4, at[4], 4)), micros(at[3]))
    assert window.values() == {}
    window.run([], micros(at[4]) - 1)
    assert window.values(1) == {1: 3, 2: 3, 3: 3}
    window.run([], micros(at[6]))
    assert window.values() == {1: 3, 2: 3, 3: 3, 4: 1}


@ENGINES
def test_a_day_across_daylight_saving(engine: str) -> None:
    """On 2024-03-10 New York skips an hour: a day back from noon is 23 hours, 24 hours back is one o'clock."""
    zone = ZoneInfo("America/New_York")
    day, hours = Frame.range_(preceding(Interval(days=1))), Frame.range_(preceding(Interval.of("24 hours")))
    window = Window(engine, [total(day), total(hours)], pa.timestamp("us", "America/New_York"))

    noon = dt.datetime(2024, 3, 10, 12, tzinfo=zone)
    window.run(inserts((1, dt.datetime(2024, 3, 9, 11, 30, tzinfo=zone), 1), (2, dt.datetime(2024, 3, 9, 12, tzinfo=zone), 10)))
    window.run(inserts((3, noon, 100)))

    assert window.values() == {1: 1, 2: 11, 3: 110}
    assert window.values(1) == {1: 1, 2: 11, 3: 111}


@ENGINES
def test_decimal_offsets(engine: str, oracle: Oracle) -> None:
    frames = [
        Frame.range_(preceding(Decimal("0.25")), following(Decimal("0.1"))),
        Frame.range_(preceding(Decimal("1.5")), preceding(Decimal("0.5"))),
    ]
    window = Window(engine, [total(frame) for frame in frames], pa.decimal128(12, 2))

    window.run(inserts((1, Decimal("1.00"), 1), (2, Decimal("1.25"), 10)))
    window.run(inserts((3, Decimal("1.10"), 100), (4, Decimal("1.51"), 1000), (5, Decimal("2.50"), 10000)))

    assert window.values() == {1: 101, 2: 111, 3: 101, 4: 1000, 5: 10000}
    assert window.values(1) == {1: None, 2: None, 3: None, 4: 1, 5: 1111}
    window.agrees_with_duckdb(oracle)
