"""Key hashes: which bucket a key belongs to, computed where it is cheapest.

Keys are hashed here: integers in a way of their own, other types as Spark would. A hash that Spark computes is one more column
on the way from the JVM, which costs more. Types whose hash is not known here, such as decimals, are hashed by Spark, or by their
canonical encoding where it cannot; whoever folds rows keeps them apart by hashes that came, for they cannot be made again.

Invariant: a key has one bucket, whether its rows came whole or folded, from Spark or from files.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windowpane.arrays import Integers
from windowpane.engines.rows import python_keys
from windowpane.hidden_columns import KEY_HASH
from windowpane.kernels.keys.coded_texts import CodedTexts, are_coded
from windowpane.kernels.keys.splitmix import GAMMA
from windowpane.spark.stages.spark_hash import is_hashed_alike, spark_hashes
from windowpane.state.codec import encode_key

_HALF = np.uint64(32)


def are_hashed_here(rows: pa.Table, keys: Sequence[str]) -> bool:
    """Whether the hashes of keys can be made of the rows, which need not bring them."""
    return all(is_hashed_alike(rows.schema.field(key).type) for key in keys)


def bucket_numbers(rows: pa.Table, keys: Sequence[str], buckets: int) -> Integers:
    """Return the number of the bucket of each row, the same for equal keys in any process.

    Args:
        rows: the rows; the texts of a single key column may be coded.
        keys: names of their key columns.
        buckets: the number of buckets.
    """
    if not keys or buckets == 1:
        return np.zeros(rows.num_rows, np.int64)
    if len(keys) == 1 and are_coded(rows.schema.field(keys[0]).type):
        held = CodedTexts.of(rows[keys[0]])
        found: Integers = bucket_numbers(pa.table({keys[0]: held.texts}), keys, buckets)[held.codes.to_numpy()]
        return found
    if KEY_HASH in rows.column_names:
        hashes: Integers = rows[KEY_HASH].to_numpy()
    elif all(pa.types.is_signed_integer(rows.schema.field(key).type) for key in keys):
        hashes = _integer_hashes([rows[key] for key in keys])
    elif are_hashed_here(rows, keys):
        hashes = spark_hashes(rows.select(keys))
    else:
        hashes = np.array([zlib.crc32(encode_key(key)) for key in python_keys(rows, keys)], np.int64)
    return _remainders(hashes, buckets)


def _remainders(hashes: Integers, buckets: int) -> Integers:
    """Return ``hashes % buckets``, which numpy takes five times as long for as for a quotient."""
    if buckets & (buckets - 1) == 0:
        return hashes & (buckets - 1)
    return hashes - hashes // buckets * buckets


def _integer_hashes(columns: Sequence[pa.ChunkedArray]) -> Integers:
    """Return Fibonacci hashes, high halves only: those depend on every bit. Null hashes as zero."""
    hashes = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        values = pc.fill_null(column.cast(pa.int64()), 0).to_numpy().view(np.uint64)
        hashes = (hashes ^ values) * GAMMA
        hashes ^= hashes >> _HALF
    return (hashes >> _HALF).view(np.int64)
