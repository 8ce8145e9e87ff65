"""Programs other than windows that go on under another one: what state has of them, and what is asked first."""

from __future__ import annotations

import dataclasses
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from tests.engines.common.test_added_columns import BEFORE, NOW, Bucket, entry, rows, shown
from windowpane.engines.changes import Verdict
from windowpane.engines.common.tagged import tagged
from windowpane.engines.deduplication.program import DeduplicationProgram, Keep
from windowpane.engines.join.program import JoinProgram, JoinSide
from windowpane.engines.protocol import Clock
from windowpane.errors import ChangedPlanError, WindowpaneError
from windowpane.hidden_columns import ARRIVAL
from windowpane.kernels.aggregates.protocol import KernelAggregate
from windowpane.kernels.grouping.grouped_fold import GroupedFold
from windowpane.planning.changing import Held, Report, check, continued
from windowpane.planning.description.programs import of_deduplication, of_join
from windowpane.planning.engines import make_engine
from windowpane.windowing.aggregates import Aggregate
from windowpane.windowing.aggregates.definition import definitions
from windowpane.windowing.assigners import TumblingEventTimeWindows
from windowpane.windowing.joins import ArrivalMatch, AsOfMatch, IntervalMatch, WindowMatch
from windowpane.windowing.outputs import CHANGE_TYPE
from windowpane.windowing.times import MAX, MIN


def going_on(old: Any, new: Any) -> tuple[Any, Report]:
    return continued(new, Held(((old.description, 0),)))


@pytest.mark.parametrize("is_reference", [False, True], ids=["columnar", "reference"])
@pytest.mark.parametrize(
    ("match", "engine", "expected"),
    [
        (IntervalMatch(-10, 10), "join_interval", [(2, 3), (4, 1), (4, 3)]),
        (AsOfMatch(), "join_asof", [(2, 1), (4, 3)]),
        (ArrivalMatch(), "join_arrival", [(4, 3)]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_joins_go_on_without_a_column(match: Any, engine: str, expected: list[tuple[Any, ...]], is_reference: bool) -> None:
    def program(columns: pa.Schema) -> JoinProgram:
        side = JoinSide(("p",), columns, tuple(columns.names))
        name = "join reference" if is_reference else engine
        made = JoinProgram(how="inner", left=side, right=side, match=match, engine=name)
        return dataclasses.replace(made, description=of_join(made, ("t", "t")))

    bucket, old = Bucket(), program(NOW)
    bucket.run(
        old, MIN, tagged(rows(NOW, entry(1, added="r")), side="right"), tagged(rows(NOW, entry(2, added="l")), side="left")
    )
    new, report = going_on(old, program(BEFORE))
    assert [(each.part, each.outcome.verdict) for each in report.parts] == [
        ("left columns", Verdict.SAFE),
        ("right columns", Verdict.SAFE),
    ]
    arrived = tagged(rows(BEFORE, entry(3)), side="right"), tagged(rows(BEFORE, entry(4)), side="left")
    found = bucket.run(new, MIN, *arrived) + bucket.run(new, MAX)
    assert all("left.added" not in row for row in found)
    assert shown(found, "left.id", "right.id") == expected


@pytest.mark.parametrize("engine", ["join_interval", "join reference"])
@pytest.mark.parametrize(
    ("before", "now", "expected"),
    [
        (IntervalMatch(0, 2), IntervalMatch(0, 9), [[], [(4, 13), (4, 9)], [(2, None)]]),
        (IntervalMatch(0, 9), IntervalMatch(0, 2), [[(2, None)], [(4, None)], []]),
    ],
    ids=["wider", "narrower"],
)
def test_rows_that_are_held_are_final_by_the_bounds_of_now(before: Any, now: Any, expected: Any, engine: str) -> None:
    def program(match: Any) -> JoinProgram:
        side = JoinSide(("p",), BEFORE, ("id",))
        made = JoinProgram(how="left", left=side, right=side, match=match, engine=engine)
        return dataclasses.replace(made, description=of_join(made, ("t", "t")))

    bucket, old = Bucket(), program(before)
    bucket.run(old, MIN, tagged(rows(BEFORE, entry(2, p="z"), entry(5, id=4)), side="left"))
    new, _ = going_on(old, program(now))
    arrived = tagged(rows(BEFORE, entry(9), entry(13)), side="right")
    found = [bucket.run(new, 4), bucket.run(new, 8, arrived), bucket.run(new, MAX)]
    assert [shown(each, "left.id", "right.id") for each in found] == expected


@pytest.mark.parametrize("engine", ["join_interval", "join reference", "join_window"])
def test_what_late_rows_alone_show_is_no_change_of_results(engine: str) -> None:
    match = WindowMatch(TumblingEventTimeWindows.of(10)) if engine == "join_window" else IntervalMatch(-10, 10)

    def program(columns: pa.Schema) -> JoinProgram:
        sides = JoinSide(("p",), columns, ("id",), columns is NOW), JoinSide(("p",), BEFORE, ("id",))
        made = JoinProgram(match, "left", *sides, engine=engine)
        return dataclasses.replace(made, description=of_join(made, ("t", "t")))

    old, new = program(BEFORE), program(NOW)
    for was, now in ((old, new), (new, old)):
        assert going_on(was, now)[1].verdict is Verdict.SAFE
        bucket = Bucket()
        bucket.run(was, MIN, tagged(rows(was.left.columns, entry(2), entry(3)), side="left"))
        arrived = tagged(rows(now.left.columns, entry(4)), side="left"), tagged(rows(BEFORE, entry(5)), side="right")
        found = bucket.run(now, MIN, *arrived) + bucket.run(now, MAX)
        assert shown(found, "left.id", "right.id") == [(2, 5), (3, 5), (4, 5)]


def deduplication(columns: pa.Schema, within: int, keep: Keep, engine: str) -> DeduplicationProgram:
    made = DeduplicationProgram(("p",), columns, tuple(columns.names), within=within, keep=keep, engine=engine)
    return dataclasses.replace(made, description=of_deduplication(made, "t"))


@pytest.mark.parametrize("engine", ["deduplication", "deduplication reference"])
@pytest.mark.parametrize(
    ("before", "now", "expected"),
    [
        (10, 3, [(5,), (8,)]),  # 5 is four from 1, and 8 is three from 5
        (3, 10, []),  # both are near to 1
    ],
)
def test_first_rows_are_compared_by_another_length(before: int, now: int, expected: list[tuple[int]], engine: str) -> None:
    bucket, old = Bucket(), deduplication(NOW, before, Keep.FIRST, engine)
    assert shown(bucket.run(old, MIN, rows(NOW, entry(1, added="x"))), "id") == [(1,)]
    new, report = going_on(old, deduplication(BEFORE, now, Keep.FIRST, engine))
    assert {each.part: each.outcome.verdict for each in report.parts} == {"within": Verdict.ACCEPT, "columns": Verdict.SAFE}
    with pytest.raises(ChangedPlanError, match="within"):
        check([report], "safe")
    check([report], "accept")
    assert shown(bucket.run(new, MIN, rows(BEFORE, entry(5), entry(8))), "id") == expected
    with pytest.raises(ChangedPlanError, match="within"):
        make_engine(deduplication(BEFORE, 7, Keep.FIRST, engine)).run(bucket.store, [], Clock(MIN, 0))


@pytest.mark.parametrize("engine", ["deduplication", "deduplication reference"])
def test_last_rows_that_a_longer_length_makes_near_are_one_run(engine: str) -> None:
    bucket, old = Bucket(), deduplication(NOW, 3, Keep.LAST, engine)
    assert shown(bucket.run(old, MIN, rows(NOW, entry(1), entry(6))), "id") == [(1,), (6,)]
    new, _ = going_on(old, deduplication(NOW, 10, Keep.LAST, engine))
    changes = shown(bucket.run(new, MIN, rows(NOW, entry(15))), "id", CHANGE_TYPE)  # 15 is near to 6, and 6 to 1
    assert sorted(changes) == [(1, "delete"), (6, "update_preimage"), (15, "update_postimage")]


@pytest.mark.parametrize("engine", ["deduplication", "deduplication reference"])
def test_last_rows_are_compared_by_another_length(engine: str) -> None:
    bucket, old = Bucket(), deduplication(NOW, 3, Keep.LAST, engine)
    bucket.run(old, MIN, rows(NOW, entry(1, added="x")))
    new, _ = going_on(old, deduplication(BEFORE, 10, Keep.LAST, engine))
    found = bucket.run(new, MIN, rows(BEFORE, entry(8)))
    assert shown(found, "id", "_change_type") == [(1, "update_preimage"), (8, "update_postimage")]


def test_partials_that_end_alike_and_fold_alike_are_the_same() -> None:
    """So one of another call can be taken for that of a new one, over the same argument."""
    table = pa.table(
        {
            "i": pa.array([3, None, -7, 2**40], pa.int64()),
            "f": pa.array([1.5, None, float("nan"), -0.0]),
            "m": pa.array([Decimal("1.25"), None, Decimal("-3.00"), Decimal("0.50")], pa.decimal128(12, 2)),
            "b": pa.array([True, None, False, True]),
            "s": pa.array(["x", None, "", "y"]),
            "g": pa.array([0, 0, 1, 0]),
        }
    )
    seen: dict[Any, list[tuple[str, Any]]] = {}
    for column in "ifmbs":
        for definition in (each for each in definitions() if each.is_built_in):
            try:
                fold = GroupedFold.of([("", Aggregate(definition.name, (column,)), (column,))], table.schema)
            except (WindowpaneError, KeyError, ValueError):
                continue  # it takes other arguments, or parameters
            if fold is None or not isinstance(fold.aggregates[0], KernelAggregate):
                continue
            rows = fold.fold(table.append_column(ARRIVAL, pa.array(range(4))), ["g"]).sort_by("g")
            for each in fold.aggregates[0].partials:
                key = column, each.name.removeprefix(fold.aggregates[0].prefix), each.fold, each.merge
                seen.setdefault(key, []).append((definition.name, rows[each.name].to_pylist()))
    assert {"sum", "avg"} <= {name for name, _ in seen["i", "h", "sum", "sum"]}
    for found in seen.values():
        assert len({repr(values) for _, values in found}) == 1, found
