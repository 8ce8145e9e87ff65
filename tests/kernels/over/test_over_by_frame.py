"""Aggregates by frame beside the bound aggregates folded row by row: the same bits, whatever the aggregate, type and frame."""

import random

import numpy as np
import pytest

from tests.examples import first
from tests.kernels.over_rows_of_every_type import COLUMNS, random_rows, starts_at
from verify.sizes import given_sizes
from windowpane.kernels.over.by_frame import BLOCK, BY_STEP, WrittenFrames, by_frame, folded, values_by_frame
from windowpane.kernels.over.rows import SortedRows
from windowpane.kernels.over.window import OverWindow
from windowpane.windowing.frames import (
    CURRENT_ROW,
    UNBOUNDED_FOLLOWING,
    UNBOUNDED_PRECEDING,
    Exclude,
    Frame,
    following,
    preceding,
)
from windowpane.windowing.over.spec import OrderColumn, OverCall, OverSpec
from windowpane.windowing.over.types import bind_call

NUMBERS = ("i", "x", "f", "d", "w")
CALLS = [
    *[(function, column) for function in ("var_pop", "var_samp", "stddev_pop", "stddev_samp") for column in NUMBERS],
    *[(function, column) for function in ("sum", "avg", "median", "mode", "count") for column in (*NUMBERS, "u")],
    *[(function, column) for function in ("min", "max", "collect_list", "collect_set", "count_distinct") for column in "isxdu"],
    ("string_agg", "s"),
    ("bool_and", "b"),
    ("bool_or", "b"),
    ("arg_min", "s", "x"),
    ("arg_max", "i", "d"),
]
FRAMES = [
    Frame.rows(UNBOUNDED_PRECEDING, UNBOUNDED_FOLLOWING),
    Frame.rows(UNBOUNDED_PRECEDING, CURRENT_ROW),
    Frame.rows(preceding(4), following(1)),
    Frame.rows(preceding(3), preceding(5)),
    Frame.range_(preceding(2), following(2)),
    Frame.groups(preceding(1), following(1)),
]


def sorted_rows(rng: random.Random, call: OverCall, size: int) -> SortedRows:
    window = OverWindow(OverSpec((), (OrderColumn("t", nulls_first=False),), ("i",), (call,)), COLUMNS)
    starts = starts_at(size, size // 2)
    wanted = np.array([rng.random() < 0.9 for _ in range(size)])
    return window.rows(random_rows(rng, size), starts, np.zeros(2, np.bool_), wanted)


@pytest.mark.parametrize("given", CALLS, ids=str)
def test_values_have_the_bits_of_the_bound_aggregate(given: tuple, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(WrittenFrames, "is_cheaper", True)
    rng = random.Random(str(given))
    for _ in range(first(2) or 6):
        function, *arguments = given
        frame = Frame(**{**_fields(rng.choice(FRAMES)), "exclude": rng.choice(list(Exclude))})
        parameters = (("separator", "|"),) if function == "string_agg" else ()
        options: dict = {"filter": rng.choice([None, "ok"]), "distinct": rng.random() < 0.3, "parameters": parameters}
        call = OverCall(function, tuple(arguments), frame, **options)
        bound, rows = bind_call(call, COLUMNS), sorted_rows(rng, call, 60)
        compute = by_frame(call, COLUMNS, bound)
        assert compute is not None
        with given_sizes({BLOCK: rng.choice([7, 40, 1 << 20]), BY_STEP: rng.choice([3, 512])}):
            values = values_by_frame(rows, call, bound, compute)
        assert values is not None
        assert list(map(repr, values.to_pylist())) == list(map(repr, folded(rows, call, bound).to_pylist())), str(call)


def test_frames_that_grow_by_a_row_at_a_time_are_not_written_out() -> None:
    frames = (Frame.rows(UNBOUNDED_PRECEDING, CURRENT_ROW), Frame.rows(preceding(50), CURRENT_ROW), FRAMES[0])
    found = []
    for frame in frames:
        call = OverCall("median", ("x",), frame)
        bound = bind_call(call, COLUMNS)
        compute = by_frame(call, COLUMNS, bound)
        assert compute is not None
        found.append(values_by_frame(sorted_rows(random.Random(1), call, 600), call, bound, compute) is None)
    assert found == [True, False, False]


def _fields(frame: Frame) -> dict:
    return {name: getattr(frame, name) for name in ("units", "start", "end", "gap")}
