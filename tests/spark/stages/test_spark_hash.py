"""Hashes of columns beside those of the xxhash library, value by value."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from windowpane.spark.stages.spark_hash import is_hashed_alike, spark_hashes

TEXTS = st.one_of(st.none(), st.text(max_size=80), st.text("ab", min_size=32, max_size=33))
LONGS = st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1))
INTS = st.one_of(st.none(), st.integers(-(2**31), 2**31 - 1))
ROWS = st.lists(st.tuples(TEXTS, LONGS, INTS), max_size=60)


def one_by_one(rows: Sequence[tuple[str | None, int | None, int | None]]) -> list[int]:
    """Spark's rule: each value is hashed with the hash so far as its seed, NULL leaves it as it is."""
    found = []
    for text, number, half in rows:
        seed = 42
        for value in (
            None if text is None else text.encode(),
            None if number is None else struct.pack("<q", number),
            None if half is None else struct.pack("<i", half),
        ):
            seed = seed if value is None else xxhash.xxh64_intdigest(value, seed)
        found.append(seed)
    return [int(hashed) for hashed in np.array(found, np.uint64).view(np.int64)]


def columns_of(rows: Sequence[tuple[str | None, int | None, int | None]]) -> list[pa.Array]:
    texts, longs, ints = zip(*rows, strict=True) if rows else ((), (), ())
    return [pa.array(texts, pa.string()), pa.array(longs, pa.int64()), pa.array(ints, pa.int32())]


@given(ROWS, st.integers(0, 5))
def test_columns_are_hashed_as_their_values_are_one_by_one(rows, skipped):
    table = pa.table(columns_of(rows), names=["t", "l", "i"])
    assert spark_hashes(table.slice(skipped)).tolist() == one_by_one(rows[skipped:])


@given(ROWS, st.integers(0, 5), st.data())
def test_structs_are_hashed_as_their_fields_are(rows, skipped, data):
    """A struct that is NULL leaves the hash as it is, whatever lies under it."""
    outer, inner = (data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows))) for _ in range(2))
    texts, longs, ints = columns_of(rows)
    within = pa.StructArray.from_arrays([longs, ints], ["l", "i"], mask=pa.array(inner, pa.bool_()))
    table = pa.table({"s": pa.StructArray.from_arrays([texts, within], ["t", "w"], mask=pa.array(outer, pa.bool_()))})
    assert is_hashed_alike(table.schema.field("s").type)
    seen = [
        (None, None, None) if no_struct else (text, None, None) if no_inner else (text, number, half)
        for (text, number, half), no_struct, no_inner in zip(rows, outer, inner, strict=True)
    ]
    assert spark_hashes(table.slice(skipped)).tolist() == one_by_one(seen[skipped:])


def test_a_struct_with_a_double_is_not_hashed_here():
    assert not is_hashed_alike(pa.struct([("a", pa.int64()), ("b", pa.struct([("c", pa.float64())]))]))


def test_many_texts_of_one_length_are_hashed_in_pieces():
    texts = [f"{number:032d}" for number in range(40_000)]
    table = pa.table({"t": texts})
    assert spark_hashes(table).tolist() == one_by_one([(text, None, None) for text in texts])
