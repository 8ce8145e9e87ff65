"""Sum, count, min and max of known groups: what Arrow gives for the rows of each group."""

from __future__ import annotations

import random

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from windowpane.kernels.grouping.group_folds import counted, folded, is_folded
from windowpane.kernels.segments import Segments
from windowpane.kernels.sessions.live_sessions import merges_in_order


@pytest.mark.parametrize("kernel", ["sum", "count", "min", "max"])
@pytest.mark.parametrize("kind", [pa.int64(), pa.float64(), pa.int8(), pa.float32(), pa.date32(), pa.timestamp("us")], ids=str)
def test_groups_fold_as_arrow_folds_their_rows(kind: pa.DataType, kernel: str) -> None:
    draw = random.Random(str(kind))
    column = pa.array([draw.choice([None, draw.randint(-9, 9)]) for _ in range(40)], pa.int32()).cast(pa.int64())
    column = column.cast(pa.int32()).cast(kind) if kind == pa.date32() else column.cast(kind)
    rows = draw.sample(range(40), 40)
    groups = [rows[:1], rows[1:4], rows[4:30], rows[30:]]
    got = folded(column, kernel, Segments.of(pa.array(groups)))
    if got is None:
        assert not is_folded(kind, kernel)
        return
    expected = [getattr(pc, kernel)(column.take(group)).as_py() for group in groups]
    assert got.to_pylist() == expected


def test_forms_there_are_none_of() -> None:
    forms = {(str(kind), kernel): is_folded(kind, kernel) for kind in (pa.int32(), pa.string()) for kernel in ("sum", "min")}
    assert forms == {("int32", "sum"): False, ("int32", "min"): True, ("string", "sum"): False, ("string", "min"): False}


def test_nothing_but_nulls_is_null_and_counts_nothing() -> None:
    groups = Segments.of(pa.array([[0, 2], [1]]))
    column = pa.array([None, 7, None], pa.int64())
    found = [folded(column, kernel, groups) for kernel in ("sum", "max", "count")]
    assert [None if each is None else each.to_pylist() for each in found] == [[None, 7], [None, 7], [0, 1]]
    assert counted(groups).to_pylist() == [2, 1]


def test_windows_that_merges_make_on_the_way() -> None:
    islands, starts, ends = [0, 1, 0, 0, 0], [0, 0, 20, 2, 10], [10, 5, 30, 9, 20]
    assert list(merges_in_order(islands, starts, ends)) == [(4, 0, 30)], "one within another changes nothing, one between joins"
