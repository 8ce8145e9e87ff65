"""Keys as integers: codes distinguish keys, hashes depend on nothing but the value."""

from __future__ import annotations

import datetime as dt
import math
import struct
import subprocess
import sys
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowpane.kernels.keys.key_codes import key_codes, key_hashes, plain_key

COLUMNS = [
    pa.array([5, None, -(2**62), 2**62, 5, None], pa.int64()),
    pa.array([1, 2, 3, 1, 2, 3], pa.int8()),
    pa.array(["é", "", None, "x" * 500, "x" * 499 + "y", "é"]),
    pa.array([b"\0", b"", b"\0\0", None, b"\0", b"a"]),
    pa.array([True, False, None, True, False, None]),
    pa.array([Decimal("1.50"), None, Decimal("-1.50"), Decimal("1.50"), None, Decimal(0)], pa.decimal128(38, 2)),
    pa.array([dt.date(1969, 12, 31), None, dt.date(2020, 1, 1)] * 2),
    pa.array([0, None, -1, 0, 1, None], pa.timestamp("us", tz="UTC")),
    pa.array([0, None, -1, 0, 1, None], pa.duration("us")),
    pa.array([0.0, None, -1.5, 0.0, 1e300, None]),
    pa.array(["a", None, "", "a", "b" * 40, None], pa.large_string()),
]


def chunked(column: pa.Array) -> pa.ChunkedArray:
    return pa.chunked_array([column.slice(0, 2), column.slice(2)])


@pytest.mark.parametrize("column", COLUMNS, ids=lambda column: str(column.type))
def test_codes_and_hashes_are_equal_for_equal_keys_and_codes_only_for_those(column):
    codes, hashes = key_codes([chunked(column)], 6).tolist(), key_hashes([chunked(column)], 6).tolist()
    values = column.to_pylist()
    assert min(codes) >= 0
    for one in range(6):
        for two in range(6):
            assert (codes[one] == codes[two]) == (values[one] == values[two])
            assert values[one] != values[two] or hashes[one] == hashes[two]
    assert len(set(hashes)) >= len(set(values)) - 1, "they differ but for zero bytes at the end"


@given(st.lists(st.tuples(st.integers(-3, 3), st.sampled_from([None, "a", "b"]), st.integers(-(2**63), 2**63 - 1)), min_size=1))
def test_several_columns_are_one_key(rows):
    columns = [pa.chunked_array([pa.array(values)]) for values in zip(*rows, strict=True)]
    if columns[1].null_count == len(rows):
        columns[1] = columns[1].cast(pa.string())
    codes, hashes = (make(columns, len(rows)).tolist() for make in (key_codes, key_hashes))
    assert len(set(codes)) == len(set(rows))
    assert len(set(zip(rows, codes, strict=True))) == len(set(rows))
    assert len(set(zip(rows, hashes, strict=True))) == len(set(rows))


def test_a_key_of_floating_point_has_one_nan_and_one_zero():
    column = plain_key(pa.chunked_array([pa.array([0.0, -0.0, math.nan, -math.nan, None])]))
    for make in (key_codes, key_hashes):
        zero, other_zero, nan, other_nan, null = make([column], 5).tolist()
        assert zero == other_zero
        assert nan == other_nan
        assert len({zero, nan, null}) == 3


def _stepped(word: int) -> int:
    """SplitMix64 as its authors write it."""
    word = (word + 0x9E3779B97F4A7C15) % 2**64
    word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    word = (word ^ (word >> 27)) * 0x94D049BB133111EB % 2**64
    return word ^ (word >> 31)


def _hash_of_text(text: bytes) -> int:
    edges = []
    for edge in (text[:32], text[-32:]):
        edges.append(len(text))
        for word in struct.unpack("<4Q", edge.ljust(32, b"\0")):
            edges[-1] = _stepped(edges[-1] ^ word)
    return _stepped(_stepped(edges[0] ^ (edges[1] << 1) % 2**64))


@given(st.lists(st.binary(max_size=80)), st.integers(0, 3), st.integers(1, 4))
def test_the_hash_of_a_text_is_that_of_its_length_and_of_the_words_at_its_ends(texts, skipped, times):
    texts = texts * times
    column = pa.chunked_array([pa.array(texts, pa.binary()).slice(skipped)])
    assert key_hashes([column], len(column)).tolist() == [_hash_of_text(text) for text in texts[skipped:]]


def test_no_columns_are_one_key():
    assert key_codes([], 2).tolist() == [0, 0]
    assert key_hashes([], 2).tolist() == [0, 0]


def test_a_hash_is_the_same_in_another_process_and_among_other_keys():
    program = (
        "import pyarrow as pa; from windowpane.kernels.keys.key_codes import key_hashes;"
        "print(key_hashes([pa.chunked_array([pa.array(['LGA', 'JFK'])])], 2).tolist()[1])"
    )
    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert key_hashes([pa.chunked_array([pa.array(["JFK"])])], 1).tolist() == [int(printed)]
