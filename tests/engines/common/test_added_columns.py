"""A column that rows have got since a checkpoint was written: state goes on, and holds NULL in it for rows of before."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from functools import partial
from typing import Any

import pyarrow as pa
import pytest

import windowpane as wp
from windowpane.engines.common.tagged import tagged
from windowpane.engines.deduplication.program import DeduplicationProgram, Keep
from windowpane.engines.join.program import JoinProgram, JoinSide
from windowpane.engines.join.windows import JoinWindowEngine
from windowpane.engines.over.page_form import FEW_ROWS
from windowpane.engines.over.program import Emit, OverProgram
from windowpane.engines.program import MAIN, Program
from windowpane.engines.protocol import Clock
from windowpane.engines.row.cells import FEWEST_ROWS_OF_RUNS
from windowpane.errors import ChangedPlanError, present
from windowpane.hidden_columns import PARTITION, POSITION, TIME
from windowpane.planning.changing import Held, continued
from windowpane.planning.deduplication import DeduplicationPlan
from windowpane.planning.description.programs import of_deduplication, of_join, of_over
from windowpane.planning.engines import make_engine
from windowpane.planning.settings import Settings
from windowpane.planning.window_programs import InputTypes, compile_program
from windowpane.planning.windows import FunctionPlan, WindowPlan
from windowpane.sizes import replacing_sizes
from windowpane.state.memory import MemoryBlobStore
from windowpane.windowing.arrow_functions import ArrowWindowFunction
from windowpane.windowing.frames import Frame, preceding
from windowpane.windowing.functions import WindowFunctionSpec
from windowpane.windowing.joins import ArrivalMatch, AsOfMatch, IntervalMatch, WindowMatch
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
        output = make_engine(with_state_of(self.store, program)).run(self.store, list(tables), Clock(watermark, 0))
        return [row for number, table in output.tables if number == MAIN for row in table.to_pylist()]


def with_state_of(store: MemoryBlobStore, program: Any) -> Any:
    """Return a program as it goes on with the state of a bucket, where someone accepts that."""
    header = store.get("header")
    return program if header is None else continued(program, present(Held.of([("header", header)]), "it has a header"))[0]


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
    return dataclasses.replace(program, description=of_over(program))


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
        return dataclasses.replace(made, description=of_join(made, ("t", "t")))

    bucket = Bucket()
    bucket.run(program(BEFORE), MIN, tagged(rows(BEFORE, entry(1)), side="right"), tagged(rows(BEFORE, entry(2)), side="left"))
    arrived = tagged(rows(NOW, entry(3, added="r")), side="right"), tagged(rows(NOW, entry(4, added="l")), side="left")
    found = bucket.run(program(NOW), MIN, *arrived) + bucket.run(program(NOW), MAX)
    assert shown(found, "left.added", "right.added") == expected


@pytest.mark.parametrize("engine", ["deduplication", "deduplication reference"])
def test_first_and_last_rows_go_on(engine: str) -> None:
    def program(columns: pa.Schema, keep: Keep = Keep.FIRST) -> Any:
        made = DeduplicationProgram(("p",), columns, tuple(columns.names), within=10, keep=keep, engine=engine)
        plan = DeduplicationPlan(10, keep, keys=("p",), event_time="t")
        return dataclasses.replace(made, description=of_deduplication(made, plan.event_time))

    bucket = Bucket()
    assert shown(bucket.run(program(BEFORE), MIN, rows(BEFORE, entry(1))), "id") == [(1,)]
    found = bucket.run(program(NOW), MIN, rows(NOW, entry(5, added="near"), entry(20, added="far")))
    assert shown(found, "id", "added") == [(20, "far")]
    with pytest.raises(ChangedPlanError, match="columns"):
        bucket.run(program(pa.schema([*BEFORE.remove(3), ("v", pa.string())])), MIN)
    last = Bucket()
    last.run(program(BEFORE, Keep.LAST), MIN, rows(BEFORE, entry(1), entry(2, p="y")))
    found = last.run(program(NOW, Keep.LAST), MIN, rows(NOW, entry(5, added="near"), entry(20, added="far")))
    assert shown(found, "id", "added", "_change_type") == [
        (1, None, "update_preimage"),
        (20, "far", "insert"),
        (5, "near", "update_postimage"),
    ]
    found = last.run(program(NOW, Keep.LAST), MIN, rows(NOW, entry(3, p="y"), entry(21, added="far")))
    assert shown(found, "id", "added", "_change_type") == [
        (2, None, "update_preimage"),
        (20, "far", "update_preimage"),
        (21, "far", "update_postimage"),
        (3, None, "update_postimage"),
    ]


def run_join(
    store: MemoryBlobStore,
    assigner: Any,
    lateness: int,
    row_by_row: bool,
    columns: pa.Schema,
    watermark: int,
    *tables: pa.Table,
    passed: tuple[str, ...] | None = None,
) -> list[dict[str, Any]]:
    side = JoinSide(("p",), columns, tuple(columns.names) if passed is None else passed)
    made = JoinProgram(how="left", left=side, right=side, match=WindowMatch(assigner), allowed_lateness=lateness)
    made = with_state_of(store, dataclasses.replace(made, description=of_join(made, ("t", "t"))))
    output = JoinWindowEngine(made, row_by_row).run(store, list(tables), Clock(watermark, 0))
    return [row for number, table in output.tables if number == MAIN for row in table.to_pylist()]


@pytest.mark.parametrize("row_by_row", [False, True], ids=["columnar", "row"])
@pytest.mark.parametrize("lateness", [0, 1000])
@pytest.mark.parametrize(
    "assigner", [wp.TumblingEventTimeWindows(100), wp.EventTimeSessionWindows(50)], ids=["tumbling", "sessions"]
)
def test_joins_of_windows_go_on(assigner: Any, lateness: int, row_by_row: bool) -> None:
    run = partial(run_join, MemoryBlobStore(), assigner, lateness, row_by_row)
    run(BEFORE, MIN, tagged(rows(BEFORE, entry(1)), side="left"), tagged(rows(BEFORE, entry(2)), side="right"))
    run(NOW, MIN, tagged(rows(NOW, entry(3, added="l")), side="left"))
    found = run(NOW, 200)
    assert shown(found, "left.id", "left.added", "right.id", "right.added") == [(1, None, 2, None), (3, "l", 2, None)]
    assert run(NOW, 200, tagged(rows(NOW, entry(4, added="r")), side="right")) == [] or lateness


@pytest.mark.parametrize("row_by_row", [False, True], ids=["columnar", "row"])
@pytest.mark.parametrize(
    "assigner", [wp.TumblingEventTimeWindows(100), wp.EventTimeSessionWindows(50)], ids=["tumbling", "sessions"]
)
def test_results_of_joined_windows_are_taken_back_with_null_in_the_new_column(assigner: Any, row_by_row: bool) -> None:
    store = MemoryBlobStore()
    late = partial(run_join, store, assigner, 1000, row_by_row)
    late(BEFORE, MIN, tagged(rows(BEFORE, entry(1), entry(2)), side="left"))
    assert shown(late(BEFORE, 200), "left.id", "right.id") == [(1, None), (2, None)]
    found = late(NOW, 200, tagged(rows(NOW, entry(3, added="r")), side="right"))
    assert shown(found, "_change_type", "left.id", "left.added", "right.id", "right.added") == [
        ("delete", 1, None, None, None),
        ("delete", 2, None, None, None),
        ("insert", 1, None, 3, "r"),
        ("insert", 2, None, 3, "r"),
    ]


@pytest.mark.parametrize("row_by_row", [False, True], ids=["columnar", "row"])
@pytest.mark.parametrize(
    "assigner", [wp.TumblingEventTimeWindows(100), wp.EventTimeSessionWindows(50)], ids=["tumbling", "sessions"]
)
@pytest.mark.parametrize(
    ("columns", "was", "now"),
    [
        ((BEFORE, BEFORE), ("id",), ("id", "v")),
        ((BEFORE, BEFORE), ("id", "v"), ("id",)),
        ((NOW, BEFORE), NOW.names, BEFORE.names),
    ],
    ids=["more is selected", "less is selected", "less is carried"],
)
def test_results_of_joined_windows_are_taken_back_when_other_columns_are_selected(
    columns: Any, was: Any, now: Any, assigner: Any, row_by_row: bool
) -> None:
    """What a condition reads, or late rows show, is carried whether or not it is selected."""
    late = partial(run_join, MemoryBlobStore(), assigner, 1000, row_by_row)
    late(columns[0], MIN, tagged(rows(columns[0], entry(1)), side="left"), passed=tuple(was))
    assert shown(late(columns[0], 200, passed=tuple(was)), "left.id", "right.id") == [(1, None)]
    found = late(columns[1], 200, tagged(rows(columns[1], entry(3)), side="right"), passed=tuple(now))
    assert shown(found, "_change_type", "left.id", "right.id") == [("delete", 1, None), ("insert", 1, 3)]
    assert not [name for row in found for name in row if name.startswith("left.") and name.removeprefix("left.") not in now]


def windows(columns: pa.Schema, function: FunctionPlan, **parts: Any) -> Program:
    """A program of windows of a function that sees whole rows, as it is built over these columns."""
    plan = WindowPlan(("p",), **{"assigner": wp.TumblingEventTimeWindows(100), "function": function, **parts})
    declared = pa.schema([("seen", pa.list_(pa.string())), ("n", pa.int64())]) if function.schema is not None else None
    arguments = {name: aggregate.arguments for name, aggregate in function.aggregates}
    types = InputTypes(columns, pa.schema([("p", pa.string())]), ("p",), pa.timestamp("us"), arguments, declared)
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


def noted(table: pa.Table) -> pa.Table:
    """Return the values of the new column in each window, and how many rows it has."""
    keys = ["p", "window_start", "window_end"]
    given = table if "added" in table.column_names else table.append_column("added", pa.nulls(len(table), pa.string()))
    groups = given.group_by(keys, use_threads=False).aggregate([("added", "list"), ("v", "count")])
    return groups.select([*keys, "added_list", "v_count"]).rename_columns([*keys, "seen", "n"])


class Noted(wp.ArrowAggregateFunction):
    """The same, one part after the other."""

    def partial(self, rows: pa.Table) -> pa.Table:
        given = rows if "added" in rows.column_names else rows.append_column("added", pa.nulls(len(rows), pa.string()))
        found = given.group_by(wp.GROUP, use_threads=False).aggregate([("added", "list"), ("v", "count")])
        return found.select([wp.GROUP, "added_list", "v_count"]).rename_columns([wp.GROUP, "seen", "n"])

    def merge(self, partials: pa.Table) -> pa.Table:
        places = partials[wp.GROUP].to_pylist()
        seen: dict[int, list[Any]] = {}
        for group, texts in zip(places, partials["seen"].to_pylist(), strict=True):
            seen.setdefault(group, []).extend(texts)
        counts = [len(texts) for texts in seen.values()]
        columns = [list(seen), pa.array(list(seen.values()), pa.list_(pa.string())), counts]
        return pa.table(columns, names=[wp.GROUP, "seen", "n"])

    def finish(self, partials: pa.Table) -> pa.Table:
        return partials


TABLES = FunctionPlan("apply_in_arrow", arrow=ArrowWindowFunction(noted, "apply_in_arrow"), schema="declared")
PARTIALS = FunctionPlan("aggregate", arrow=Noted(), schema="declared")


@pytest.mark.parametrize("engine", [None, "row", "reference"], ids=["columnar", "row", "reference"])
@pytest.mark.parametrize(
    ("function", "parts"),
    [
        (TABLES, {}),
        (TABLES, {"assigner": wp.TumblingProcessingTimeWindows(100)}),
        (TABLES, {"assigner": wp.EventTimeSessionWindows(50)}),
        (TABLES, {"evictor": wp.CountEvictor.of(3)}),
        (TABLES, {"trigger": wp.ContinuousEventTimeTrigger(1000)}),
        (PARTIALS, {}),
        (PARTIALS, {"evictor": wp.CountEvictor.of(3)}),
        (PARTIALS, {"trigger": wp.PurgingTrigger.of(wp.CountTrigger.of(3)), "evictor": wp.TimeEvictor.of(1000)}),
    ],
    ids=["slices", "clock", "sessions", "evicted", "early", "partials", "evicted partials", "counts"],
)
def test_functions_on_arrow_tables_see_null_in_rows_of_before(function: FunctionPlan, parts: Any, engine: str | None) -> None:
    def program(columns: pa.Schema) -> Program:
        return windows(columns, function, settings=Settings(engine=engine), **parts)

    assert (program(NOW).engine in ("row", "reference")) == (engine is not None)
    bucket = Bucket()
    bucket.run(program(BEFORE), MIN, rows(BEFORE, entry(1), entry(2), entry(2, p="y")))
    found = bucket.run(program(NOW), MIN, rows(NOW, entry(3, added="new"), entry(4, p="y"), entry(5, p="y", added="z")))
    output = make_engine(program(NOW)).run(bucket.store, [], Clock(MAX, MAX))
    found += [row for number, table in output.tables if number == MAIN for row in table.to_pylist()]
    assert shown(found, "p", "seen", "n") == [("x", [None, None, "new"], 3), ("y", [None, None, "z"], 3)]


@pytest.mark.parametrize("engine", ["panes", "reference"])
def test_rows_that_triggers_keep_go_on(engine: str) -> None:
    def further(one: dict[str, Any], other: dict[str, Any]) -> float:
        return float(other["v"] - one["v"]) if one.get("added", "not there") is None else 0.0

    counted = FunctionPlan("aggregate", aggregates=(("n", wp.count()),))
    parts: dict[str, Any] = {"trigger": wp.DeltaTrigger.of(15.0, further), "settings": Settings(engine=engine)}
    bucket = Bucket()
    bucket.run(windows(BEFORE, counted, **parts), MIN, rows(BEFORE, entry(1)))
    assert bucket.run(windows(NOW, counted, **parts), MIN, rows(NOW, entry(2, added="a"))) == []
    assert shown(bucket.run(windows(NOW, counted, **parts), MIN, rows(NOW, entry(3, added="b"))), "n") == [(3,)]


def test_windows_of_built_in_aggregates_whose_gap_reads_rows_go_on() -> None:
    sessions = wp.EventTimeSessionWindows.with_dynamic_gap(lambda row: 50)
    counted = FunctionPlan("aggregate", aggregates=(("n", wp.count()),))
    bucket = Bucket()
    bucket.run(windows(BEFORE, counted, assigner=sessions), MIN, rows(BEFORE, entry(1)))
    bucket.run(windows(NOW, counted, assigner=sessions), MIN, rows(NOW, entry(2, added="a")))
    assert shown(bucket.run(windows(NOW, counted, assigner=sessions), MAX), "n") == [(2,)]
