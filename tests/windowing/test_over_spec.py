"""Specs of OVER windows: reach, printing, types, refusals."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Hashable
from decimal import Decimal

import pyarrow as pa
import pytest

from windowpane import aggregates as agg
from windowpane.errors import InvalidFrameError, InvalidSpecError, UnknownColumnError
from windowpane.windowing.frames import (
    CURRENT_ROW,
    RUNNING_ROWS,
    UNBOUNDED_FOLLOWING,
    UNBOUNDED_PRECEDING,
    WHOLE_PARTITION,
    Frame,
    Offset,
    following,
    preceding,
)
from windowpane.windowing.intervals import Interval
from windowpane.windowing.over.spec import OrderColumn, OverCall, OverSpec
from windowpane.windowing.over.types import output_schema

TS = OrderColumn("ts", nulls_first=True)
COLUMNS = pa.schema(
    [
        ("sym", pa.string()),
        ("ts", pa.timestamp("us")),
        ("id", pa.int64()),
        ("x", pa.int32()),
        ("ok", pa.bool_()),
        ("m", pa.map_(pa.string(), pa.int64())),
    ]
)


def spec(*calls: OverCall, order: tuple[OrderColumn, ...] = (TS,)) -> OverSpec:
    return OverSpec(("sym",), order, ("id",), calls)


@pytest.mark.parametrize(
    ("call", "reach"),
    [
        (OverCall("lag", ("x",), offset=2), Frame.rows(preceding(2), preceding(2))),
        (OverCall("lead", ("x",)), Frame.rows(following(1), following(1))),
        (OverCall("lag", ("x",), offset=-1), Frame.rows(following(1), following(1))),
        (OverCall("lead", ("x",), offset=0), Frame.rows(CURRENT_ROW, CURRENT_ROW)),
        (OverCall("lag", ("x",), ignore_nulls=True), Frame.rows(UNBOUNDED_PRECEDING, preceding(1))),
        (OverCall("lead", ("x",), ignore_nulls=True), Frame.rows(following(1), UNBOUNDED_FOLLOWING)),
        (OverCall("rank"), RUNNING_ROWS),
        (OverCall("ntile", offset=4), WHOLE_PARTITION),
        (OverCall.of(agg.sum("x"), RUNNING_ROWS), RUNNING_ROWS),
    ],
)
def test_reach(call: OverCall, reach: Frame) -> None:
    assert call.reach == reach


@pytest.mark.parametrize(
    "build",
    [
        lambda: OverCall("nosuch"),
        lambda: OverCall("row_number", ("x",)),
        lambda: OverCall("lag"),
        lambda: OverCall("sum", ("x",)),
        lambda: OverCall("rank", frame=RUNNING_ROWS),
        lambda: OverCall("ntile", offset=0),
        lambda: OverCall("nth_value", ("x",), RUNNING_ROWS, offset=0),
        lambda: OverCall("sum", ("x",), RUNNING_ROWS, ignore_nulls=True),
        lambda: OverCall("lag", ("x",), filter="ok"),
        lambda: OverCall("first_value", ("x",), RUNNING_ROWS, distinct=True),
        lambda: OverCall("first_value", ("x",), RUNNING_ROWS, default=1),
        lambda: OverSpec((), (), (), (OverCall("lag", ("x",)),)),
        lambda: OverSpec((), (), ("id",), ()),
        lambda: OverSpec(("sym", "sym"), (), ("id",), (OverCall("lag", ("x",)),)),
        lambda: OverSpec((), (), ("id",), (OverCall("rank"),)),
        lambda: OverSpec((), (TS, OrderColumn("x", nulls_first=True)), ("id",), (OverCall("sum", ("x",), Frame.session(1)),)),
    ],
)
def test_refused(build: Callable[[], object]) -> None:
    with pytest.raises(InvalidSpecError):
        build()


def test_types_of_calls() -> None:
    window = spec(
        OverCall("row_number"),
        OverCall("cume_dist"),
        OverCall("lag", ("x",)),
        OverCall("first_value", ("sym",), RUNNING_ROWS),
        OverCall.of(agg.sum("x"), RUNNING_ROWS, filter="ok"),
        OverCall.of(agg.avg("x"), Frame.range_(preceding(Interval(days=1)))),
    )

    outputs = output_schema(window, COLUMNS, list("abcdef"))

    assert outputs.types == [pa.int64(), pa.float64(), pa.int32(), pa.string(), pa.int64(), pa.float64()]


def test_columns_it_reads() -> None:
    window = spec(OverCall.of(agg.count(), RUNNING_ROWS, filter="ok"), OverCall("lag", ("x",)))

    assert window.columns == ("sym", "ts", "id", "ok", "x")
    assert window.output_key == ("id", "sym")
    assert OverSpec(("id",), (TS,), ("id",), window.calls).output_key == ("id",)


@pytest.mark.parametrize(
    ("offset", "kind"),
    [
        (1.5, pa.int32()),
        (Interval(days=1), pa.int64()),
        (1, pa.timestamp("us")),
        (Interval(micros=1), pa.date32()),
        (Interval(days=1), pa.duration("us")),
        (1, pa.string()),
        (Interval(days=1), pa.float64()),
    ],
)
def test_offsets_that_do_not_go_with_the_order_column(offset: Offset, kind: pa.DataType) -> None:
    columns = COLUMNS.set(1, pa.field("ts", kind))

    with pytest.raises(InvalidFrameError, match="ORDER BY column of type"):
        output_schema(spec(OverCall("sum", ("x",), Frame.range_(preceding(offset)))), columns, ["s"])


@pytest.mark.parametrize(
    ("offset", "kind"),
    [
        (1, pa.int16()),
        (Decimal("0.5"), pa.decimal128(10, 2)),
        (1, pa.float32()),
        (Interval(1, 1, 1), pa.timestamp("us", "UTC")),
        (Interval(1, 1), pa.date32()),
        (Interval(micros=1), pa.duration("us")),
    ],
)
def test_offsets_that_do(offset: Offset, kind: pa.DataType) -> None:
    columns = COLUMNS.set(1, pa.field("ts", kind))

    assert output_schema(spec(OverCall("count", (), Frame.session(offset))), columns, ["s"]).types == [pa.int64()]


def test_refused_against_the_input() -> None:
    with pytest.raises(UnknownColumnError, match="nosuch"):
        output_schema(spec(OverCall("lag", ("nosuch",))), COLUMNS, ["l"])
    with pytest.raises(InvalidSpecError, match="not boolean"):
        output_schema(spec(OverCall.of(agg.count(), RUNNING_ROWS, filter="x")), COLUMNS, ["l"])
    with pytest.raises(InvalidSpecError, match="there already"):
        output_schema(spec(OverCall("lag", ("x",))), COLUMNS, ["x"])
    with pytest.raises(InvalidSpecError, match="has no order"):
        output_schema(spec(OverCall("lag", ("x",)), order=(OrderColumn("m", nulls_first=True),)), COLUMNS, ["l"])


@pytest.mark.parametrize(
    ("column", "default", "reason"),
    [
        ("x", 1.5, "1.5 has a fraction"),
        ("x", 2**31, "too large"),
        ("sym", 0, "no such value"),
        ("ts", "now", "has no such value"),
    ],
)
def test_a_default_is_a_value_of_the_column(column: str, default: Hashable, reason: str) -> None:
    with pytest.raises(InvalidSpecError, match=reason):
        output_schema(spec(OverCall("lag", (column,), default=default)), COLUMNS, ["before"])
    assert output_schema(spec(OverCall("lag", ("x",), default=2.0)), COLUMNS, ["before"]).types == [pa.int32()]


def test_prints_and_pickles() -> None:
    window = spec(OverCall.of(agg.sum("x"), RUNNING_ROWS, filter="ok", distinct=True), OverCall("lag", ("x",), ignore_nulls=True))

    assert str(window) == (
        "sum(DISTINCT x) FILTER (WHERE ok) ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW, lag(x, 1) IGNORE NULLS "
        "OVER (PARTITION BY sym ORDER BY ts ASC NULLS FIRST), rows by id"
    )
    assert pickle.loads(pickle.dumps(window)) == window
