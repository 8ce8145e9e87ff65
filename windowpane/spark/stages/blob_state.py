"""The blob store over ``transformWithState``: one MapState of names to blobs a bucket.

Spark commits all state of a micro-batch or none of it, which is what the blob store promises. A state call costs 0.2 to 0.6 ms,
most of it waiting, so reads are kept for the length of one call of the bucket, those that are announced are made together, and
writes do not wait for one another.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import types as T

from windowpane.spark.internals.pipelined_map import PipelinedMap


class SparkBlobStore:
    """A bucket's blobs in a MapState with the columns (name string, blob binary)."""

    # Types rather than texts: Python would have the JVM parse a text, in every task.
    DECLARED = (
        "blobs",
        T.StructType([T.StructField("name", T.StringType(), True)]),
        T.StructType([T.StructField("blob", T.BinaryType(), True)]),
    )
    """The name of the MapState, its key and its value."""

    def __init__(self, map_state: Any) -> None:
        self._map = PipelinedMap(map_state)
        self._fetched: dict[str, bytes | None] = {}

    def get(self, key: str) -> bytes | None:
        self.prefetch([key])
        return self._fetched.pop(key)

    def prefetch(self, keys: Sequence[str]) -> None:
        """Read the blobs under ``keys``, which are needed next, together."""
        missing = [key for key in keys if key not in self._fetched]
        found = self._map.values([(key,) for key in missing])
        self._fetched |= {key: None if row is None else bytes(row[0]) for key, row in zip(missing, found, strict=True)}

    def put(self, key: str, blob: bytes) -> None:
        """Store ``blob`` under ``key``; whether it could be stored, ``settle`` says."""
        self._fetched.pop(key, None)
        self._map.update((key,), (blob,))

    def remove(self, key: str) -> None:
        self._fetched.pop(key, None)
        self._map.remove((key,))

    def settle(self) -> None:
        """Wait until everything is stored: the last thing before any other call to Spark, or another bucket."""
        self._fetched.clear()
        self._map.settle()
