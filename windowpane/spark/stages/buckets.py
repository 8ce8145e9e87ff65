"""Buckets: how keys are spread over the partitions of a stateful operator.

A bucket is what one Python call handles: all keys of a shuffle partition. Bucket ids are chosen so that Spark's hash
partitioning puts bucket ``i`` on partition ``i``: the shuffle is even, and no task has two buckets while another has none.

The number of buckets is the number of state partitions that the *checkpoint* pins, not what the session says today: a restart
under another ``spark.sql.shuffle.partitions`` must find each key in the bucket that holds its state.
"""

from __future__ import annotations

from functools import cache
from itertools import count

from windowpane.errors import MistakeError
from windowpane.spark.internals.session import PARTITIONS, task_property

PINNED = "spark.sql.streaming.internal.stateStore.partitions"
_SEED = 42


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
    pinned = task_property(PINNED)
    return None if pinned is None else int(pinned)
