"""Buckets: how keys are spread over the partitions of a stateful operator.

A bucket is what one Python call handles: all keys of a shuffle partition. Bucket ids are chosen so that Spark's hash
partitioning puts bucket ``i`` on partition ``i``: the shuffle is even, and no task has two buckets while another has none.

The number of buckets is the number of state partitions that the *checkpoint* pins, not what the session says today: a restart
under another ``spark.sql.shuffle.partitions`` must find each key in the bucket that holds its state.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, reduce
from itertools import count

import numpy as np
import pyarrow as pa

from windowpane.arrays import Integers, Unsigned
from windowpane.arrays.columns import flat
from windowpane.engines.nested_keys.writing import hashable_keys
from windowpane.errors import MistakeError
from windowpane.kernels.keys.coded_texts import CodedTexts, are_coded
from windowpane.kernels.keys.key_codes import key_hashes, stepped
from windowpane.kernels.keys.murmur import murmur_of_texts
from windowpane.spark.internals.session import PARTITIONS, task_property

_PINNED = "spark.sql.streaming.internal.stateStore.partitions"
_SEED = 42


def bucket_numbers(rows: pa.Table, keys: Sequence[str], buckets: int) -> Integers:
    """Return the number of the bucket of each row, the same for equal keys in any process, whether rows came whole or folded."""
    if not keys or buckets == 1:
        return np.zeros(rows.num_rows, np.int64)
    first, *others = map(_hashes, hashable_keys(rows, keys))
    hashes = reduce(lambda before, column: stepped(before * np.uint64(31) + column), others, first)
    number = np.uint64(buckets)
    found = hashes & (number - np.uint64(1)) if buckets & (buckets - 1) == 0 else hashes - hashes // number * number
    return found.view(np.int64)  # numpy takes five times as long for a remainder as for a quotient


def _hashes(column: pa.ChunkedArray) -> Unsigned:
    """Return the hash of each key of a column; of texts, all bytes: addresses of pages are often the same at both ends."""
    if are_coded(column.type):
        coded = CodedTexts.of(column)
        found: Unsigned = _hashes(pa.chunked_array([coded.texts]))[coded.codes.to_numpy()]
        return found
    if not (pa.types.is_string(column.type) or pa.types.is_binary(column.type)):
        return key_hashes([column], len(column))
    texts = flat(column)
    hashes, _ = murmur_of_texts(texts, _SEED)
    return np.where(texts.is_null().to_numpy(zero_copy_only=False), 0, hashes) if texts.null_count else hashes


@cache
def bucket_ids(partitions: int) -> tuple[int, ...]:
    """Return, for each partition, the smallest int that Spark's hash partitioning sends there."""
    placed: dict[int, int] = {}
    for candidate in count():
        placed.setdefault(spark_hash(candidate) % partitions, candidate)
        if len(placed) == partitions:
            return tuple(placed[partition] for partition in range(partitions))
    raise MistakeError("count() does not end")


def spark_hash(value: int) -> int:
    """Return Spark's ``hash(value)`` of a 32-bit int: Murmur3 (x86, 32 bit) with seed 42, as a signed int."""
    k = _rotate(value * 0xCC9E2D51, 15) * 0x1B873593
    h = (_rotate(_SEED ^ (k & 0xFFFFFFFF), 13) * 5 + 0xE6546B64) & 0xFFFFFFFF
    h ^= 4
    h = ((h ^ (h >> 16)) * 0x85EBCA6B) & 0xFFFFFFFF
    h = ((h ^ (h >> 13)) * 0xC2B2AE35) & 0xFFFFFFFF
    h ^= h >> 16
    return h - 2**32 if h >= 2**31 else h


def _rotate(value: int, bits: int) -> int:
    value &= 0xFFFFFFFF
    return ((value << bits) | (value >> (32 - bits))) & 0xFFFFFFFF


def state_partitions(fallback: int) -> int:
    """Return the number of state partitions of the query this task belongs to."""
    return pinned_partitions() or int(task_property(PARTITIONS) or fallback)


def pinned_partitions() -> int | None:
    """Return the number of state partitions that the checkpoint of this task's query pins, ``None`` without one."""
    pinned = task_property(_PINNED)
    return None if pinned is None else int(pinned)
