"""A column that rows have got since a checkpoint was written: state goes on, and holds NULL in it for rows of before."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

import windowpane as wp
from windowpane.engines.deduplication.program import DeduplicationProgram, Keep
from windowpane.engines.join.program import JoinProgram, JoinSide
from windowpane.engines.join.sides import tagged
from windowpane.engines.over.page_form import FEW_ROWS
from windowpane.engines.over.program import Emit, OverProgram
from windowpane.engines.program import MAIN, Program
from windowpane.engines.protocol import Clock
from windowpane.engines.row.cells import FEWEST_ROWS_OF_RUNS
from windowpane.errors import ChangedPlanError
from windowpane.hidden_columns import PARTITION, POSITION, TIME
from windowpane.planning.deduplication import DeduplicationPlan
from windowpane.planning.deduplication_programs import _description as described_deduplication
from windowpane.planning.description import columns_text
from windowpane.planning.engines import make_engine
from windowpane.planning.over_programs import _description as described_over
from windowpane.planning.window_programs import InputTypes, compile_program
from windowpane.planning.windows import FunctionPlan, WindowPlan
from windowpane.sizes import replacing_sizes
from windowpane.state.memory import MemoryBlobStore
from windowpane.windowing.functions import WindowFunctionSpec
from windowpane.windowing.joins import ArrivalMatch, AsOfMatch, IntervalMatch
from windowpane.windowing.over.frames import Frame, preceding
from windowpane.windowing.over.spec import OrderColumn, OverCall, OverSpec
from windowpane.windowing.over.types import output_schema
from windowpane.windowing.times import MAX, MIN

BEFORE = pa.schema([("p", pa.string()), ("t", pa.int64()), ("id", pa.int64()), ("v", pa.int64())])
NOW = pa.schema([("p", pa.string()), ("added", pa.string()), ("t", pa.int64()), ("id", pa.int64()), ("v", pa.int64())])
"""The new one is between the others."""


class Bucket:
    """A bucket that is opened anew in each batch."""

    def __init__(self) -> None:
        self.store = MemoryBlobStore()

    def run(self, program: Any, watermark: int, *tables: pa.Table) -> list[dict[str, Any]]:
        output = make_engine(program).run(self.store, list(tables), Clock(watermark, 0))
        return [row for number, table in output.tables if number == MAIN for row in table.to_pylist()]


def rows(columns: pa.Schema, *entries: dict[str, Any]) -> pa.Table:
    table = pa.Table.from_pylist(list(entries), schema=columns)
    table = table.append_column(TIME, table["t"]).append_column(PARTITION, pa.array([0] * len(entries), pa.int32()))
    return table.append_column(POSITION, pa.array(range(len(entries)), pa.int64()))


def entry(number: int, **more: Any) -> dict[str, Any]:
    return {"p": "x", "t": number, "id": number, "v": 10 * number, **more}


def over(columns: pa.Schema, mode: Emit, engine: str) -> Any:
    calls = (OverCall("lag", ("v",)), OverCall("sum", ("v",), Frame.rows(preceding(2))))
    spec = OverSpec(("p",), (OrderColumn("t", nulls_first=False),), ("id",), calls)
    program = OverProgram(spec, columns, output_schema(spec, columns, ["before", "total"]), mode, time_column="t", engine=engine)
    return described(program, described_over)


def described(program: Any, describe: Any) -> Any:
    return dataclasses.replace(program, description=describe(program))


def shown(found: list[dict[str, Any]], *names: str) -> list[tuple[Any, ...]]:
    return sorted((tuple(row[name] for name in names) for row in found), key=str)


@pytest.mark.parametrize("few", [1, 100], ids=["compact pages", "flat pages"])
@pytest.mark.parametrize("engine", ["over update", "over reference"])
def test_a_changelog_of_over_windows_goes_on(engine: str, few: int) -> None:
    bucket = Bucket()
    with replacing_sizes(lambda size: few if size.name == FEW_ROWS.name else size.usual):
        bucket.run(over(BEFORE, Emit.UPDATE, engine), MIN, rows(BEFORE, entry(1), entry(2), entry(4), entry(1, p="y", id=9)))
        found = bucket.run(over(NOW, Emit.UPDATE, engine), MIN, rows(NOW, entry(3, added="new")))
        assert shown(found, "id", "added", "before", "total", "_change_type") == [
            (3, "new", 20, 60, "insert"),
            (4, None, 20, 70, "update_preimage"),
            (4, None, 30, 90, "update_postimage"),
        ]
        again = bucket.run(over(NOW, Emit.UPDATE, engine), MIN, rows(NOW, entry(5, added="newer")))
        assert shown(again, "id", "added", "before", "total") == [(5, "newer", 40, 120)]


@pytest.mark.parametrize("engine", ["over close", "over reference"])
def test_over_windows_on_close_go_on(engine: str) -> None:
    bucket = Bucket()
    old, new = (over(columns, Emit.CLOSE, engine) for columns in (BEFORE, NOW))
    assert shown(bucket.run(old, MIN, rows(BEFORE, entry(1), entry(2), entry(7))), "id") == []
    assert shown(bucket.run(old, 5), "id", "total") == [(1, 10), (2, 30)]
    assert bucket.run(new, 5, rows(NOW, entry(6, added="new"))) == []
    found = bucket.run(new, MAX)
    assert shown(found, "id", "added", "before", "total") == [(6, "new", 20, 90), (7, None, 60, 150)]


@pytest.mark.parametrize("is_reference", [False, True], ids=["columnar", "reference"])
@pytest.mark.parametrize(
    ("match", "engine", "expected"),
    [
        (IntervalMatch(-10, 10), "join_interval", [("l", "r"), ("l", None), (None, "r")]),
        (AsOfMatch(), "join_asof", [("l", "r"), (None, None)]),
        (ArrivalMatch(), "join_arrival", [("l", "r")]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_joins_go_on(match: Any, engine: str, expected: list[tuple[Any, ...]], is_reference: bool) -> None:
    def program(columns: pa.Schema) -> JoinProgram:
        side = JoinSide(("p",), columns, tuple(columns.names))
        name = "join reference" if is_reference else engine
        made = JoinProgram(how="inner", left=side, right=side, match=match, engine=name)
        described = [(f"{name} columns", columns_text(columns)) for name in ("left", "right")]
        return dataclasses.replace(made, description=tuple(described))

    bucket = Bucket()
    bucket.run(program(BEFORE), MIN, tagged(rows(BEFORE, entry(1)), "right"), tagged(rows(BEFORE, entry(2)), "left"))
    arrived = tagged(rows(NOW, entry(3, added="r")), "right"), tagged(rows(NOW, entry(4, added="l")), "left")
    found = bucket.run(program(NOW), MIN, *arrived) + bucket.run(program(NOW), MAX)
    assert shown(found, "left.added", "right.added") == expected


@pytest.mark.parametrize("engine", ["deduplication", "deduplication reference"])
def test_first_rows_go_on_and_last_rows_which_are_held_do_not(engine: str) -> None:
    def program(columns: pa.Schema, keep: Keep = Keep.FIRST) -> Any:
        made = DeduplicationProgram(("p",), columns, tuple(columns.names), within=10, keep=keep, engine=engine)
        plan = DeduplicationPlan(10, keep, keys=("p",), event_time="t")
        return dataclasses.replace(made, description=described_deduplication(plan, made))

    bucket = Bucket()
    assert shown(bucket.run(program(BEFORE), MIN, rows(BEFORE, entry(1))), "id") == [(1,)]
    found = bucket.run(program(NOW), MIN, rows(NOW, entry(5, added="near"), entry(20, added="far")))
    assert shown(found, "id", "added") == [(20, "far")]
    with pytest.raises(ChangedPlanError, match="columns"):
        bucket.run(program(pa.schema([*BEFORE.remove(3), ("v", pa.string())])), MIN)
    held = Bucket()
    held.run(program(BEFORE, Keep.LAST), MIN, rows(BEFORE, entry(1)))
    with pytest.raises(ChangedPlanError, match="columns"):
        held.run(program(NOW, Keep.LAST), MIN)


def windows(columns: pa.Schema, function: FunctionPlan, **parts: Any) -> Program:
    """A program of windows of a function that sees whole rows, as it is built over these columns."""
    plan = WindowPlan(("p",), wp.TumblingEventTimeWindows(100), function, **parts)
    declared = pa.schema([("seen", pa.list_(pa.string())), ("n", pa.int64())]) if function.schema is not None else None
    types = InputTypes(columns, pa.schema([("p", pa.string())]), ("p",), pa.timestamp("us"), declared=declared)
    return compile_program(plan, types, tuple(columns.names))


def texts_of(rows_of_window: Sequence[dict[str, Any]]) -> dict[str, Any]:
    return {"seen": [row.get("added", "not there") for row in rows_of_window], "n": len(rows_of_window)}


@pytest.mark.parametrize("runs", [2, 1 << 30], ids=["runs by column", "rows"])
def test_functions_see_none_in_rows_of_before(runs: int) -> None:
    applied = FunctionPlan(
        "apply", WindowFunctionSpec.apply(lambda key, window, elements: [texts_of(elements)]), schema="declared"
    )
    bucket = Bucket()
    with replacing_sizes(lambda size: runs if size.name == FEWEST_ROWS_OF_RUNS.name else size.usual):
        bucket.run(windows(BEFORE, applied), MIN, rows(BEFORE, entry(1), entry(2), entry(3)))
        bucket.run(windows(NOW, applied), MIN, rows(NOW, entry(4, added="new")))
        assert [(row["seen"], row["n"]) for row in bucket.run(windows(NOW, applied), MAX)] == [([None, None, None, "new"], 4)]


def test_a_reduced_row_and_one_that_a_trigger_keeps_go_on() -> None:
    def further(one: dict[str, Any], other: dict[str, Any]) -> float:
        return float(other["v"] - one["v"]) if one.get("added", "not there") is None else 0.0

    def summed(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
        return {**one, "v": one["v"] + other["v"]}

    reduced, trigger = FunctionPlan("reduce", WindowFunctionSpec.reduce(summed)), wp.DeltaTrigger.of(25.0, further)
    bucket = Bucket()
    bucket.run(windows(BEFORE, reduced, trigger=trigger), MIN, rows(BEFORE, entry(1), entry(2)))
    arrived = rows(NOW, entry(3, added="a"), entry(4, added="b"))
    found = bucket.run(windows(NOW, reduced, trigger=trigger), MIN, arrived)
    assert shown(found, "v", "added") == [(100, None)]
