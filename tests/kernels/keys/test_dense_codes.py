"""Dense codes and running positions."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowpane.kernels.grouping.running_positions import grouped, run_starts
from windowpane.kernels.keys.dense_codes import combined, dense_codes, distinct, first_of_pairs, struct_leaves
from windowpane.kernels.packed_order import stable_order
from windowpane.sizes import replacing_sizes

COLUMNS = [
    pa.array([3, None, -(2**40), 3]),
    pa.array(["é", None, "", "é"]),
    pa.array([b"\x00", None, b"\x00\x00", b"\x00"]),
    pa.array([True, None, False, True]),
    pa.array([dt.date(2020, 1, 2), None, dt.date(1960, 1, 1), dt.date(2020, 1, 2)]),
    pa.array([10, None, -10, 10], pa.timestamp("us", tz="UTC")),
    pa.array([1.5, None, float("nan"), 1.5]),
    pa.array([1.5, None, -2.0, 1.5], pa.float32()),
    pa.array([10, None, -10, 10], pa.duration("us")),
    pa.array(["é", None, "", "é"], pa.large_string()),
    pa.array([Decimal("1.50"), None, Decimal("-1.50"), Decimal("1.50")], pa.decimal128(30, 2)),
]


@pytest.mark.parametrize("array", COLUMNS, ids=lambda array: str(array.type))
def test_equal_keys_share_a_code_and_others_do_not(array):
    for column in (pa.chunked_array([array]), pa.chunked_array([array.slice(0, 1), array.slice(1)])):
        assert dense_codes([column], 4).codes.tolist() == [0, 1, 2, 0]
        assert dense_codes([column], 4).firsts.tolist() == [0, 1, 2]


def test_structs_share_a_code_where_they_are_equal():
    inner = pa.struct([("x", pa.int32()), ("y", pa.float64())])
    given = [
        None,
        {"a": None, "b": None},
        {"a": "é", "b": {"x": 1, "y": None}},
        {"a": "é", "b": {"x": None, "y": 1.5}},
        {"a": None, "b": {"x": None, "y": None}},
        {"a": "é", "b": {"x": 1, "y": None}},
        None,
    ]
    array = pa.array(given, pa.struct([("a", pa.string()), ("b", inner)]))
    for column in (pa.chunked_array([array]), pa.chunked_array([array.slice(0, 3), array.slice(3)])):
        assert dense_codes(struct_leaves(column) or [], 7).codes.tolist() == [0, 1, 2, 3, 4, 2, 0]


def test_lists_and_maps_have_no_leaves():
    lists = pa.array([{"a": [1]}], pa.struct([("a", pa.list_(pa.int64()))]))
    maps = pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64()))
    assert [struct_leaves(pa.chunked_array([column])) for column in (lists, maps)] == [None, None]


def test_without_columns_there_is_one_key():
    assert dense_codes([], 3).codes.tolist() == [0, 0, 0]
    assert dense_codes([], 0).firsts.tolist() == []


def test_codes_combine_and_values_are_told_apart():
    assert combined(np.array([0, 0, 1]), np.array([1, 1, 1])).tolist() == [0, 0, 1]
    assert distinct(np.array([5, -1, 5])) == [-1, 5]


@given(st.lists(st.integers(0, 2**40)))
def test_the_stable_order_is_that_of_numpy(codes):
    values = np.array(codes, np.int64)
    assert stable_order(values).tolist() == np.argsort(values, kind="stable").tolist()


@given(st.lists(st.integers(0, 5)))
def test_positions_count_within_each_group(codes):
    order, groups, positions = grouped(np.array(codes, np.int64))
    assert groups.tolist() == sorted(codes)
    for place, element in enumerate(order.tolist()):
        assert positions[place] == codes[:element].count(codes[element])


def test_run_starts_of_nothing_is_nothing():
    assert run_starts(np.zeros(0, np.int64)).tolist() == []


@pytest.mark.parametrize("addressed", [0, 1000])
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=60))
def test_pairs_of_codes_are_found_where_they_stand_first(addressed, pairs):
    left, right = (np.array([pair[side] for pair in pairs], np.int64) for side in (0, 1))
    expected = [row for row, pair in enumerate(pairs) if pair not in pairs[:row]]
    with replacing_sizes(
        lambda size: addressed if size.name == "possible pairs of codes a row that are addressed" else size.usual
    ):
        assert first_of_pairs(left, right).tolist() == expected
