"""Codes and hashes of values: equal where Spark SQL calls the values equal, ordered as it orders them."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from hashlib import blake2b
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from windowpane.kernels.keys.codes import NULL_CODE, canonical, differing, equality_codes, order_codes, written_differently
from windowpane.kernels.keys.key_codes import GAMMA, mixed, stepped
from windowpane.kernels.keys.murmur import texts_by_length
from windowpane.kernels.keys.ordered_codes import decoded, has_codes, ordered_codes, plain_bits, ranked_codes, validity
from windowpane.kernels.sorting.sort_keys import SortKeys
from windowpane.windowing.aggregates.canonical import form_of
from windowpane.windowing.over.spec import OrderColumn, OverCall, OverSpec

NAN, INFINITE = math.nan, math.inf

ASCENDING: dict[pa.DataType, list[Any]] = {
    pa.int8(): [-128, -1, 0, 127],
    pa.int64(): [-(2**63), -1, 0, 2**63 - 1],
    pa.uint32(): [0, 1, 2**32 - 1],
    pa.bool_(): [False, True],
    pa.float64(): [-INFINITE, -1.5, -5e-324, 0.0, 5e-324, 1.5, INFINITE, NAN],
    pa.float32(): [-INFINITE, -0.5, 0.0, 0.5, INFINITE, NAN],
    pa.date32(): [dt.date(1, 1, 1), dt.date(1969, 12, 31), dt.date(1970, 1, 1)],
    pa.timestamp("us", tz="UTC"): [dt.datetime(1969, 1, 1, tzinfo=dt.UTC), dt.datetime(1970, 1, 2, tzinfo=dt.UTC)],
    pa.duration("us"): [dt.timedelta(-1), dt.timedelta(0), dt.timedelta(microseconds=1)],
    pa.decimal128(12, 2): [Decimal("-99.90"), Decimal("-0.01"), Decimal("0.00"), Decimal("12.34")],
}
"""Values of each type that has codes, every one less than the next."""


@pytest.mark.parametrize("kind", ASCENDING, ids=str)
def test_codes_go_up_with_the_values_and_back(kind: pa.DataType) -> None:
    column = pa.array(ASCENDING[kind], kind)
    codes = ordered_codes(column)
    assert has_codes(kind)
    assert (codes[1:] > codes[:-1]).all()
    assert repr(decoded(codes, validity(column), kind).to_pylist()) == repr(column.to_pylist())


def test_null_has_the_code_0_and_no_validity() -> None:
    column = pa.array([None, 5], pa.int32())
    assert (ordered_codes(column).tolist(), validity(column).tolist()) == ([0, 5], [False, True])


def test_there_is_one_zero() -> None:
    assert ordered_codes(pa.array([-0.0])) == ordered_codes(pa.array([0.0]))


def test_texts_have_ranks() -> None:
    codes, values = ranked_codes(pa.array(["b", "", "é", "b"]))
    assert (codes.tolist(), values.to_pylist()) == ([1, 0, 2, 1], ["", "b", "é"])


@pytest.mark.parametrize(
    ("column", "equal", "order"),
    [
        (pa.array([2.5, NAN, 0.0, -0.0, None]), [0, 1, 2, 2, NULL_CODE], [2, 3, 1, 1, NULL_CODE]),
        (pa.array(["b", "a", None, "b"]), [0, 1, NULL_CODE, 0], [2, 1, NULL_CODE, 2]),
        (pa.array([[0.0], [-0.0], [], None]), [0, 0, 1, NULL_CODE], [1, 1, 0, NULL_CODE]),
        (
            pa.array([{"a": 1, "b": "y"}, None, {"a": None, "b": "z"}, {"a": 1, "b": "x"}, {"a": 1, "b": "y"}]),
            [0, NULL_CODE, 2, 3, 0],
            [3, NULL_CODE, 1, 2, 3],
        ),
    ],
    ids=["doubles", "texts", "arrays", "structs"],
)
def test_codes_within_a_column(column: pa.Array, equal: list[int], order: list[int]) -> None:
    assert equality_codes(column).tolist() == equal
    assert order_codes(column).tolist() == order


def test_equal_values_get_one_spelling() -> None:
    maps = pa.array([[("b", 1.0), ("a", -0.0)], [("a", 0.0), ("b", 1.0)]], pa.map_(pa.string(), pa.float64()))
    assert repr(canonical(maps).to_pylist()) == repr([[("a", 0.0), ("b", 1.0)]] * 2)


@pytest.mark.parametrize(
    ("kind", "left", "right", "expected"),
    [
        (pa.float64(), [NAN, 0.0, None, None, 1.0], [NAN, -0.0, None, 0.0, 2.0], [False, False, False, True, True]),
        (pa.string(), ["a", None, None, "a"], ["a", "", None, "b"], [False, True, False, True]),
        (pa.list_(pa.float64()), [[0.0], [NAN], [], None], [[-0.0], [NAN], None, None], [False, False, True, False]),
    ],
    ids=str,
)
def test_where_columns_differ(kind: pa.DataType, left: list, right: list, expected: list[bool]) -> None:
    assert differing(pa.array(left, kind), pa.array(right, kind)).tolist() == expected


@pytest.mark.parametrize(
    ("kind", "left", "right", "expected"),
    [
        (pa.float64(), [0.0, -0.0, NAN, -NAN, None, 0.0, 1.0], [-0.0, -0.0, -NAN, NAN, -0.0, None, -1.0], [1, 0, 0, 0, 1, 1, 1]),
        (pa.float32(), [0.0, -0.0, None], [-0.0, -0.0, None], [1, 0, 0]),
        (
            pa.list_(pa.float64()),
            [[0.0], [None, -0.0], [NAN], [], None],
            [[-0.0], [None, -0.0], [-NAN], None, None],
            [1, 0, 0, 1, 0],
        ),
        (pa.struct([("x", pa.float64())]), [{"x": 0.0}, {"x": None}], [{"x": -0.0}, {"x": None}], [1, 0]),
        (
            pa.map_(pa.string(), pa.float64()),
            [[("b", 1.0), ("a", 0.0)]] * 2,
            [[("a", 0.0), ("b", 1.0)], [("a", -0.0), ("b", 1.0)]],
            [0, 1],
        ),
        (pa.int64(), [0, None], [0, 1], [0, 1]),
    ],
    ids=str,
)
def test_where_columns_are_written_differently(kind: pa.DataType, left: list, right: list, expected: list[int]) -> None:
    assert written_differently(pa.array(left, kind), pa.array(right, kind)).tolist() == [bool(each) for each in expected]


def test_splitmix_draws_the_published_numbers_of_seed_0() -> None:
    states = np.arange(3, dtype=np.uint64) * GAMMA
    assert [f"{number:016x}" for number in stepped(states).tolist()] == [
        "e220a8397b1dcdaf",
        "6e789e6aa1b965f4",
        "06c45d188009454f",
    ]
    assert mixed(np.zeros(1, np.uint64)).tolist() == [0]


def test_texts_of_one_length_stand_together_as_words() -> None:
    values = pa.array([b"\x01", b"", b"12345678\x02", b"\x03", b""]).slice(0, 4)
    found = [(np.arange(4)[some.rows].tolist(), some.length, some.words.tolist()) for some in texts_by_length(values)]
    word = int.from_bytes(b"12345678", "little")
    assert found == [([1], 0, []), ([0, 3], 1, [[1, 3]]), ([2], 9, [[word], [2]])]


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("nulls_first", [False, True])
@pytest.mark.parametrize(
    "ascending",
    [[-(2**63), -1, 0, 7], ["", "\0", "\0\0", "\0a", "a", "a\0", "ab", "é"], [-1.5, 0.0, 2.0, NAN]],
    ids=["integers", "texts", "doubles"],
)
def test_sort_keys_compare_as_the_rows_do(ascending: list, nulls_first: bool, descending: bool) -> None:
    values = ascending[::-1] if descending else ascending
    values = [None, *values] if nulls_first else [*values, None]
    table = pa.table({"o": values, "k": range(len(values))})
    spec = OverSpec((), (OrderColumn("o", descending, nulls_first=nulls_first),), ("k",), (OverCall("row_number"),))
    keys = SortKeys(spec, table.schema)
    made = [bytes(key) for key in keys.of(table).tolist()]
    assert made == sorted(set(made))
    assert keys.sorted(table.take(list(range(len(values)))[::-1]))[0]["k"].to_pylist() == list(range(len(values)))


def test_sort_keys_are_written_as_in_the_state_on_disk() -> None:
    table = pa.table({"p": ["it's", None], "n": [7, None], "o": ["a\0b", None], "b": pa.array([b"", b"\xff"]), "k": [1, -1]})
    order = (OrderColumn("o", descending=True, nulls_first=True), OrderColumn("b", nulls_first=False))
    spec = OverSpec(("p", "n"), order, ("k",), (OverCall("row_number"),))
    parts = [
        [b'str:"it\'s"', b"int:7", bytes(255 - byte for byte in b"a\0\xffb\0\0"), b"\x01\0\0", b"\x80" + bytes(6) + b"\x01"],
        [b"NoneType:None"] * 2 + [b"", b"\x01\xff\0\0", b"\x7f" + b"\xff" * 7],
    ]
    expected = []
    for text, number, ordered, raw, key in parts:
        halves = [blake2b(half, digest_size=16).digest() for half in (text, number)]
        first = blake2b(bytes(16) + halves[0], digest_size=16).digest()
        hashed = blake2b(first + halves[1], digest_size=16).digest()
        expected.append(hashed + b"\x01" + (b"\x01" + ordered if ordered else b"\0") + raw + b"\x01" + key + b"\x01\x01")
    keys = SortKeys(spec, table.schema)
    assert [bytes(key) for key in keys.of(table).tolist()] == expected
    assert keys.kept(keys.of(table)).to_pylist() == [each[:16] for each in expected]


def test_bits_of_doubles_know_one_zero_and_one_nan() -> None:
    other_nans = np.array([0x7FF8000000000001, 0xFFF8000000000000], np.uint64).view(np.float64)
    numbers = np.array([0.0, -0.0, NAN, *other_nans, 1.0, -INFINITE])
    # IEEE 754: the exponent of 1.0 is 1023, that of infinity and NaN is all ones.
    expected = [0, 0, *[0x7FF8000000000000] * 3, 0x3FF0000000000000, 0xFFF0000000000000]
    assert plain_bits(numbers).view(np.uint64).tolist() == expected


PLAIN = pa.struct([("x", pa.float64()), ("y", pa.struct([("z", pa.string())]))])
WITH_A_LIST = pa.struct([*PLAIN, ("l", pa.list_(pa.int8()))])


@pytest.mark.parametrize("kind", [PLAIN, WITH_A_LIST], ids=["plain", "with a list"])
def test_structs_have_one_code_where_all_their_fields_are_equal(kind):
    spellings = [(None, 0), (0.0, 1), (-0.0, 1), (NAN, 2), (-NAN, 2)]
    inner = [None, {"z": None}, {"z": "a"}]
    rows: list[tuple[Any, Any]] = [
        (None, None),
        *(({"x": x, "y": y, "l": []}, (same, str(y))) for x, same in spellings for y in inner),
        (None, None),
    ]
    column = pa.array([row and {name: row[name] for name in kind.names} for row, _ in rows], kind)
    codes, ranks = equality_codes(column).tolist(), order_codes(column).tolist()
    assert codes[0] == codes[-1] == NULL_CODE
    known = [known for _, known in rows]
    assert len(set(codes)) == len(set(known)) == 1 + 3 * 3
    assert len(set(zip(codes, known, strict=True))) == len(set(known))
    frozen = [form_of(kind).freeze(value) for value in column.to_pylist()[1:-1]]
    assert ranks[0] == ranks[-1] == NULL_CODE
    assert [one < other for one in ranks[1:-1] for other in ranks[1:-1]] == [one < other for one in frozen for other in frozen]
