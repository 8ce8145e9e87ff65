"""Ranges of partials are what folding their rows one by one gives, however long they are and however they overlap."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

import windowpane as wp
from tests.examples import examples
from windowpane.kernels.grouping.grouped_fold import GroupedFold
from windowpane.kernels.grouping.range_merge import Ranges, exploded, fold_groups, fold_ranges

CALLS = [("n", wp.count(), ()), ("s", wp.sum("v"), ("v",)), ("m", wp.max("v"), ("v",))]
FOLD: Any = GroupedFold.of(CALLS, pa.schema([("v", pa.int64())]))


@st.composite
def sequences(draw: st.DrawFn) -> tuple[list[int], list[tuple[int, int]]]:
    values = draw(st.lists(st.integers(-(2**40), 2**40), min_size=1, max_size=70))
    place = st.integers(0, len(values) - 1)
    pairs = draw(st.lists(st.tuples(place, place), min_size=1, max_size=60))
    return values, [(min(pair), max(pair)) for pair in pairs]


@settings(max_examples=examples(60), deadline=None)
@given(sequences())
def test_each_range_is_folded_as_python_does(drawn):
    values, pairs = drawn
    ranges = Ranges(np.array([first for first, _ in pairs]), np.array([last for _, last in pairs]))
    partials = fold_ranges(FOLD, pa.table({"v": values}), ranges)
    pieces = [values[first : last + 1] for first, last in pairs]
    expected = [(len(piece), sum(piece), max(piece)) for piece in pieces]
    assert list(zip(*[column.to_pylist() for column in FOLD.finish(partials)], strict=True)) == expected


def test_many_overlapping_long_ranges_are_put_together_from_doublings():
    values = np.arange(5_000)
    lasts = np.arange(4_000, 5_000)
    partials = fold_ranges(FOLD, pa.table({"v": values}), Ranges(lasts - 3_999, lasts))
    assert FOLD.finish(partials)[1].to_pylist() == [sum(range(last - 3_999, last + 1)) for last in lasts.tolist()]


def test_groups_are_emitted_in_their_order():
    partials = fold_groups(FOLD, pa.table({"v": [1, 2, 3, 4]}), np.array([2, 0, 1, 0]))
    assert FOLD.finish(partials)[1].to_pylist() == [6, 3, 1]


def test_exploded_ranges_may_be_empty():
    assert exploded(Ranges(np.array([3, 5, 0]), np.array([4, 4, 1]))).tolist() == [3, 4, 0, 1]
