"""The blob store over ``transformWithState``: one MapState of names to blobs a bucket.

Spark commits all state of a micro-batch or none of it, which is what the blob store promises. A state call costs 0.2 to 0.6 ms,
so reads are kept for the length of one call of the bucket, and writes do not wait for one another.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import types as T

from windowpane.spark.pipelined_writes import PipelinedWrites


class SparkBlobStore:
    """A bucket's blobs in a MapState with the columns (name string, blob binary)."""

    # Types rather than texts: Python would ask the JVM to parse a text, in every task.
    KEY_SCHEMA = T.StructType([T.StructField("name", T.StringType(), True)])
    VALUE_SCHEMA = T.StructType([T.StructField("blob", T.BinaryType(), True)])

    def __init__(self, map_state: Any) -> None:
        """Keep the blobs in ``map_state``, of whatever bucket is current in Spark."""
        self._map = map_state
        self._writes = PipelinedWrites(map_state)

    def get(self, key: str) -> bytes | None:
        """Return the blob under ``key``, ``None`` if there is none."""
        self._writes.settle()
        found = self._map.getValue((key,))
        return None if found is None else bytes(found[0])

    def put(self, key: str, blob: bytes) -> None:
        """Store ``blob`` under ``key``; whether it could be stored, ``settle`` says."""
        self._writes.update((key,), (blob,))

    def remove(self, key: str) -> None:
        """Forget ``key``."""
        self._writes.settle()
        self._map.removeKey((key,))

    def settle(self) -> None:
        """Wait until everything is stored: the last thing before Spark is asked for anything else.

        Raises:
            PySparkRuntimeError: something could not be stored; Spark then repeats the task.
        """
        self._writes.settle()
