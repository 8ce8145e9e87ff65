"""Bucket numbers: remainders of hashes, the same for a key in every batch, whether its rows come whole or folded."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
import xxhash

import windowpane as wp
from tests.spark.encoders import encoder
from windowpane.hidden_columns import KEY_HASH, PARTITION, POSITION, TIME
from windowpane.spark.stages.blobs import unpack
from windowpane.spark.stages.buckets import bucket_ids
from windowpane.spark.stages.encode import Encoder
from windowpane.spark.stages.key_hashes import bucket_numbers

HASHES = [0, 1, -1, 7, -8, 199, -200, 2**62 + 3, -(2**62) - 5, 2**63 - 1, -(2**63)]
BUCKETS = 8
KEYS = 20


@pytest.mark.parametrize("buckets", [1, 2, 3, 7, 8, 200, 1_024, 65_537])
def test_a_hash_falls_into_the_bucket_of_its_remainder(buckets: int) -> None:
    rows = pa.table({"k": ["key"] * len(HASHES), KEY_HASH: HASHES})
    assert bucket_numbers(rows, ["k"], buckets).tolist() == [each % buckets for each in HASHES]


def signed(number: int) -> int:
    return number - 2**64 if number >= 2**63 else number


@pytest.mark.parametrize("window", [wp.TumblingEventTimeWindows.of("10 s"), wp.EventTimeSessionWindows.with_gap("1 s")])
@pytest.mark.parametrize(
    ("kind", "value"),
    [(pa.string(), lambda number: f"key {number}"), (pa.decimal128(9, 2), lambda number: Decimal(number))],
    ids=["text", "decimal"],
)
@pytest.mark.parametrize("rows", [KEYS, 100_000])
def test_folded_rows_reach_the_bucket_of_sparks_hash(
    kind: pa.DataType, value: Callable[[int], Any], window: wp.WindowAssigner, rows: int
) -> None:
    """Few rows are folded together, many of few keys as they come."""
    values = [value(number) for number in range(KEYS)]
    # Spark's rule for text: XXH64 of its bytes, with seed 42; for decimals any hash that comes with the rows will do here.
    hashes = [signed(xxhash.xxh64_intdigest(str(each).encode(), 42)) for each in values]
    table = pa.table(
        {
            "k": pa.array([values[row % KEYS] for row in range(rows)], kind),
            "v": pa.array([1] * rows, pa.int64()),
            TIME: pa.array([row * 10 for row in range(rows)], pa.int64()),
            KEY_HASH: pa.array([hashes[row % KEYS] for row in range(rows)], pa.int64()),
        }
    )
    found: dict[Any, set[int]] = {}
    for sent in encoder(kind, window, BUCKETS)(table.to_batches()):
        for bucket, blob in zip(sent["bucket"].to_pylist(), sent["blob"].to_pylist(), strict=True):
            content = unpack(blob)
            assert content.num_rows <= KEYS
            for key in content["k"].unique().to_pylist() if content.num_rows else []:
                found.setdefault(key, set()).add(bucket)
    ids = bucket_ids(BUCKETS)
    assert found == {each: {ids[hashed % BUCKETS]} for each, hashed in zip(values, hashes, strict=True)}


PLACE = pa.struct([("city", pa.string()), ("at", pa.struct([("floor", pa.int32())]))])


@pytest.mark.parametrize("window", [wp.TumblingEventTimeWindows.of("10 s"), wp.EventTimeSessionWindows.with_gap("1 s")])
@pytest.mark.parametrize("rows", [KEYS, 100_000])
@pytest.mark.parametrize("keys", [KEYS, 100_000])
def test_structs_reach_the_bucket_of_sparks_hash_without_one_that_came(window: wp.WindowAssigner, rows: int, keys: int) -> None:
    """Few rows fold together, many of few keys as they come, many of many keys do not."""
    numbers = [row % keys for row in range(rows)]
    values = [{"city": f"city {number}", "at": {"floor": number} if number % 3 else None} for number in numbers]
    table = pa.table({"k": pa.array(values, PLACE), "v": pa.array([1] * rows), TIME: pa.array(range(0, 10 * rows, 10))})
    made = encoder(PLACE, window, BUCKETS)
    assert made.combiner is not None
    found: dict[int, set[int]] = {}
    for sent in made(table.to_batches()):
        for bucket, blob in zip(sent["bucket"].to_pylist(), sent["blob"].to_pylist(), strict=True):
            content = unpack(blob)
            for key in made.combiner.keyed(content)["k"].to_pylist() if content.num_rows else []:
                found.setdefault(int(key["city"].removeprefix("city ")), set()).add(bucket)
    ids = bucket_ids(BUCKETS)
    assert found == {number: {ids[of_place(number) % BUCKETS]} for number in set(numbers)}


def of_place(number: int) -> int:
    """Spark's rule: fields of structs are hashed one after the other, NULL leaves the hash as it is."""
    hashed = xxhash.xxh64_intdigest(f"city {number}".encode(), 42)
    return signed(xxhash.xxh64_intdigest(number.to_bytes(4, "little"), hashed) if number % 3 else hashed)


def test_whole_rows_of_texts_that_repeat_travel_as_codes_to_the_bucket_of_sparks_hash() -> None:
    """NULL leaves the seed as it is: bucket 42 % 8."""
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
                hashed = 42 if key is None else xxhash.xxh64_intdigest(key.encode(), 42)
                assert bucket == ids[hashed % BUCKETS]
            found += zip(*(content[name].to_pylist() for name in table.column_names), strict=True)
            size += len(blob)
    assert sorted(found, key=lambda row: row[1]) == list(
        zip(*(table[name].to_pylist() for name in table.column_names), strict=True)
    )
    assert size < 13 * rows  # a byte of a code, four of each number, and what a stream says of itself
