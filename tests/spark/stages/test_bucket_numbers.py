"""Bucket numbers: one for a key in every batch and process, whether its rows come whole or folded, coded or spelled."""

from __future__ import annotations

import datetime as dt
import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import windowpane as wp
from tests.spark.encoders import encoder
from windowpane.engines.buckets import bucket_numbers
from windowpane.engines.nested_keys.writing import encoded_keys
from windowpane.hidden_columns import PARTITION, POSITION, TIME
from windowpane.spark.stages.blobs import unpack
from windowpane.spark.stages.buckets import bucket_ids
from windowpane.spark.stages.encode import Encoder

BUCKETS = 8
KEYS = 20

PLACE = pa.struct([("city", pa.string()), ("at", pa.struct([("floor", pa.int32())]))])
VALUES: dict[str, tuple[pa.DataType, Callable[[int], Any]]] = {
    "text": (pa.string(), lambda number: f"key {number}"),
    "long text": (pa.string(), lambda number: f"{'https://example.com/' * 3}{number:05}{'/index.html' * 5}"),
    "integer": (pa.int64(), lambda number: number * 2**40),
    "decimal": (pa.decimal128(9, 2), lambda number: Decimal(number)),
    "double": (pa.float64(), lambda number: number / 4),
    "day": (pa.date32(), lambda number: dt.date(2024, 1, 1) + dt.timedelta(number)),
    "struct": (PLACE, lambda number: {"city": f"city {number}", "at": {"floor": number} if number % 3 else None}),
    "list": (pa.list_(pa.int64()), lambda number: [number, None]),
    "map": (pa.map_(pa.string(), pa.int64()), lambda number: [("a", number)]),
}


def numbers_of(values: list[Any], kind: pa.DataType, buckets: int = BUCKETS) -> list[int]:
    found: list[int] = bucket_numbers(pa.table({"k": pa.array(values, kind)}), ["k"], buckets).tolist()
    return found


@pytest.mark.parametrize("buckets", [2, 3, 7, 8, 200, 1_024, 65_537])
def test_keys_are_spread_evenly_and_each_number_is_that_of_a_bucket(buckets: int) -> None:
    found = np.array(
        numbers_of([f"key {number}" for number in range(100 * buckets if buckets < 10 else 2_000)], pa.string(), buckets)
    )
    assert found.min() >= 0
    assert found.max() < buckets
    if buckets < 10:
        assert np.bincount(found, minlength=buckets).min() > 60


@pytest.mark.parametrize(("kind", "value"), VALUES.values(), ids=VALUES)
def test_a_key_has_one_bucket_beside_any_others(kind: pa.DataType, value: Callable[[int], Any]) -> None:
    values = [value(number) for number in range(KEYS)]
    alone = [numbers_of([each], kind)[0] for each in values]
    assert len(set(alone)) > 2
    assert numbers_of([*values, None, *values], kind)[:KEYS] == alone


def test_equal_keys_that_are_written_otherwise_have_one_bucket() -> None:
    zeros = numbers_of([0.0, -0.0, float("nan"), -float("nan")], pa.float64(), 1_024)
    assert zeros[0] == zeros[1]
    assert zeros[2] == zeros[3]
    maps = numbers_of([[("a", 1), ("b", 2)], [("b", 2), ("a", 1)]], pa.map_(pa.string(), pa.int64()), 1_024)
    assert maps[0] == maps[1]


def test_long_texts_with_equal_ends_are_spread_and_a_long_text_leaves_the_others_where_they_are() -> None:
    _, value = VALUES["long text"]
    short = ["", "a", "x" * 64, None]
    found = numbers_of([*short, *map(value, range(400))], pa.string())
    assert found[:4] == numbers_of(short, pa.string())
    assert np.bincount(found, minlength=BUCKETS).min() > 20


def test_several_columns_are_one_key_and_equal_ones_are_spread() -> None:
    texts = [f"key {number}" for number in range(400)]
    found = bucket_numbers(pa.table({"a": texts, "b": texts, "c": range(400)}), ["a", "b", "c"], BUCKETS)
    assert np.bincount(found, minlength=BUCKETS).min() > 20


def test_a_bucket_is_the_same_in_another_process() -> None:
    program = (
        "import pyarrow as pa; from windowpane.engines.buckets import bucket_numbers;"
        "print(bucket_numbers(pa.table({'a': ['LGA', 'JFK'], 'b': [1, 2]}), ['a', 'b'], 65_537).tolist()[1])"
    )
    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert bucket_numbers(pa.table({"a": ["JFK"], "b": [2]}), ["a", "b"], 65_537).tolist() == [int(printed)]


@pytest.mark.slow_but_one_in(3)
@pytest.mark.parametrize("window", [wp.TumblingEventTimeWindows.of("10 s"), wp.EventTimeSessionWindows.with_gap("1 s")])
@pytest.mark.parametrize("name", ["text", "long text", "decimal", "double", "struct"])
@pytest.mark.parametrize(("rows", "keys"), [(KEYS, KEYS), (100_000, KEYS), (100_000, 100_000)])
def test_folded_and_whole_rows_reach_the_bucket_of_their_key(name: str, window: wp.WindowAssigner, rows: int, keys: int) -> None:
    """Few rows fold together, many of few keys as they come, many of many keys do not."""
    kind, value = VALUES[name]
    keys = min(keys, 10_000_000) if name != "decimal" else min(keys, 50_000)
    values = pa.array([value(number) for number in range(keys)], kind)
    table = pa.table(
        {
            "k": values.take(pa.array([row % keys for row in range(rows)])),
            "v": pa.array([1] * rows, pa.int64()),
            TIME: pa.array(range(0, 10 * rows, 10), pa.int64()),
        }
    )
    found: dict[Any, set[int]] = {}
    for sent in encoder(kind, window, BUCKETS)(table.to_batches()):
        for bucket, blob in zip(sent["bucket"].to_pylist(), sent["blob"].to_pylist(), strict=True):
            content = unpack(blob)
            if not content.num_rows:
                continue
            is_whole = "k" in content.column_names
            named = content["k"] if is_whole else content[next(each for each in content.column_names if each.endswith("_k"))]
            bytes_of = encoded_keys("k", named) if is_whole or not pa.types.is_binary(named.type) else named
            for key in bytes_of.unique().to_pylist():
                found.setdefault(key, set()).add(bucket)
    ids = bucket_ids(BUCKETS)
    numbers = bucket_numbers(pa.table({"k": values}), ["k"], BUCKETS).tolist()
    expected = zip(encoded_keys("k", pa.chunked_array([values])).to_pylist(), numbers, strict=True)
    assert found == {key: {ids[number]} for key, number in expected}


def test_whole_rows_of_texts_that_repeat_travel_as_codes_to_the_bucket_of_their_text() -> None:
    values = [*(f"key {number}" for number in range(KEYS)), None]
    rows = 100_000
    table = pa.table(
        {
            "k": pa.array([values[row % len(values)] for row in range(rows)], pa.string()),
            "v": pa.array(range(rows), pa.int64()),
            TIME: pa.array([row * 10 for row in range(rows)], pa.int64()),
        }
    )
    found: list[tuple[Any, ...]] = []
    ids, size = bucket_ids(BUCKETS), 0
    for sent in Encoder(("k",), None, False, None, (PARTITION, POSITION), BUCKETS)(table.to_batches(max_chunksize=20_000)):
        for bucket, blob in zip(sent["bucket"].to_pylist(), sent["blob"].to_pylist(), strict=True):
            content = unpack(blob)
            assert content.schema == table.schema
            for key in content["k"].unique().to_pylist():
                assert bucket == ids[numbers_of([key], pa.string())[0]]
            found += zip(*(content[name].to_pylist() for name in table.column_names), strict=True)
            size += len(blob)
    assert sorted(found, key=lambda row: row[1]) == list(
        zip(*(table[name].to_pylist() for name in table.column_names), strict=True)
    )
    assert size < 13 * rows  # a byte of a code, four of each number, and what a stream says of itself
