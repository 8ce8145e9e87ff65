"""Running calls beside the bound aggregates folded row by row, also where rows continue from carry columns of the row before."""

import random

import numpy as np
import pyarrow as pa
import pytest

from tests.kernels.over_rows_of_every_type import COLUMNS, random_rows, starts_at
from verify.sizes import given_sizes
from windowpane.aggregates.moments import MANY
from windowpane.kernels.over.by_frame import folded
from windowpane.kernels.over.window import OverWindow, span_kernel
from windowpane.windowing.frames import CURRENT_ROW, UNBOUNDED_PRECEDING, Frame, preceding
from windowpane.windowing.over.spec import OrderColumn, OverCall, OverSpec
from windowpane.windowing.over.types import bind_call

CALLS = [
    *[(function, column) for function in ("var_pop", "var_samp", "stddev_pop", "stddev_samp") for column in "ixfdw"],
    *[(function, column) for function in ("sum", "avg") for column in "ixfd"],
    *[(function, column) for function in ("min", "max", "count") for column in "ixfdwsb"],
    *[(function, column) for function in ("first", "last", "any_value") for column in "xsu"],
    ("bool_and", "b"),
    ("bool_or", "b"),
]
FRAMES = [
    Frame.rows(UNBOUNDED_PRECEDING, CURRENT_ROW),
    Frame.rows(UNBOUNDED_PRECEDING, preceding(3)),
    Frame.range_(UNBOUNDED_PRECEDING, CURRENT_ROW),
    Frame.range_(UNBOUNDED_PRECEDING, preceding(2)),
    Frame.groups(UNBOUNDED_PRECEDING, preceding(1)),
]


@pytest.mark.parametrize("given", CALLS, ids=str)
def test_running_values_have_the_bits_of_the_bound_aggregate(given: tuple[str, str]) -> None:
    rng = random.Random(str(given))
    for frame in FRAMES:
        function, column = given
        takes_filter = function not in ("first", "last", "any_value")
        parameters = () if takes_filter else (("ignore_nulls", False),)
        call = OverCall(
            function, (column,), frame, filter=rng.choice([None, "ok"]) if takes_filter else None, parameters=parameters
        )
        window = OverWindow(OverSpec((), (OrderColumn("t", nulls_first=False),), ("i",), (call,)), COLUMNS)
        assert window.calls[0].is_running
        size, places = 70, (20, 45)
        table = random_rows(rng, size)
        rows = window.rows(table, starts_at(size, *places), np.zeros(3, np.bool_))
        with given_sizes({MANY: rng.choice([1, 2, 16])}):
            values = window.values(rows)
        expected = list(map(repr, folded(rows, call, bind_call(call, COLUMNS)).to_pylist()))
        assert list(map(repr, values.outputs[0].to_pylist())) == expected, str(call)
        _check_goes_on(window, table, values.carries, expected, rng.randint(1, 15))


@pytest.mark.parametrize(("function", "expected"), [("max", [3, 3, 3, 5]), ("sum", [3, 4, 4, 9])])
@pytest.mark.parametrize("frame", [FRAMES[0], Frame.rows(preceding(3), CURRENT_ROW)], ids=str)
def test_distinct_of_an_idempotent_aggregate_takes_its_fast_forms(function: str, expected: list[int], frame: Frame) -> None:
    columns = pa.schema([("i", pa.int64()), ("v", pa.int64())])
    call = OverCall(function, ("v",), frame, distinct=True)
    window = OverWindow(OverSpec((), (OrderColumn("i", nulls_first=False),), ("i",), (call,)), columns)
    is_idempotent = call.aggregate.definition.idempotent
    assert window.calls[0].is_running is (is_idempotent and frame is FRAMES[0])
    assert (span_kernel(call, columns) is not None) is is_idempotent
    table = pa.table({"i": [1, 2, 3, 4], "v": [3, 1, 3, 5]}, columns)
    rows = window.rows(table, starts_at(4), np.zeros(1, np.bool_))
    assert window.values(rows).outputs[0].to_pylist() == expected


def _check_goes_on(window: OverWindow, table: pa.Table, carries: list[pa.Array], expected: list[str], skipped: int) -> None:
    """Each segment cut off after some rows, whose last is kept with its carry columns, continues as the whole does."""
    held = np.ones(table.num_rows, np.bool_)
    for start in (0, 20, 45):
        held[start : start + skipped] = False
    columns = [*table.columns, *carries]
    kept = pa.table(columns, schema=pa.schema([*table.schema, *window.carries])).filter(pa.array(held)).combine_chunks()
    firsts = np.cumsum(held)[[0, 20, 45]] - held[[0, 20, 45]]
    rows = window.rows(kept, starts_at(kept.num_rows, *firsts.tolist()), np.ones(3, np.bool_))
    unknown = np.any([call.reaches_first(rows) for call in window.calls], axis=0)
    values = list(map(repr, window.values(rows).outputs[0].to_pylist()))
    wanted = [value for value, is_held in zip(expected, held.tolist(), strict=True) if is_held]
    assert [v for v, u in zip(values, unknown, strict=True) if not u] == [
        v for v, u in zip(wanted, unknown, strict=True) if not u
    ]
