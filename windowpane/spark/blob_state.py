"""The blob store over ``transformWithState``: one MapState of names to blobs a bucket.

Spark commits all state of a micro-batch or none of it, which is what the blob store promises. A state call costs 0.2 to 0.6 ms,
so reads are kept for the length of one call of the bucket.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import types as T


class SparkBlobStore:
    """A bucket's blobs in a MapState with the columns (name string, blob binary)."""

    # Types rather than texts: Python would ask the JVM to parse a text, in every task.
    KEY_SCHEMA = T.StructType([T.StructField("name", T.StringType(), True)])
    VALUE_SCHEMA = T.StructType([T.StructField("blob", T.BinaryType(), True)])

    def __init__(self, map_state: Any) -> None:
        """Keep the blobs in ``map_state``, of whatever bucket is current in Spark."""
        self._map = map_state

    def get(self, key: str) -> bytes | None:
        """Return the blob under ``key``, ``None`` if there is none."""
        found = self._map.getValue((key,))
        return None if found is None else bytes(found[0])

    def put(self, key: str, blob: bytes) -> None:
        """Store ``blob`` under ``key``."""
        self._map.updateValue((key,), (blob,))

    def remove(self, key: str) -> None:
        """Forget ``key``."""
        self._map.removeKey((key,))
