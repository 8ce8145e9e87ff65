"""Settings of the session, where the user set nothing: what the operator needs, and what makes it fast."""

from __future__ import annotations

from typing import Any

from pyspark.errors import PySparkException

_PROVIDER = "spark.sql.streaming.stateStore.providerClass"
_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_CHANGELOG = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"
_ARROW_ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch"
_ARROW_BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"
MANY_ROWS = 250_000
"""Spark's 10,000 rows a batch double the time that rows take from the JVM to Python; beyond these, one waits for the other."""


def choose_settings(spark: Any) -> None:
    """Set, where the user set nothing: RocksDB with a changelog, which transformWithState needs; large Arrow batches."""
    if spark.conf.get(_ARROW_ROWS, None) is None and _bounds_arrow_bytes(spark):
        spark.conf.set(_ARROW_ROWS, str(MANY_ROWS))
    if spark.conf.get(_PROVIDER, None) is None:
        spark.conf.set(_PROVIDER, _ROCKSDB)
        if spark.conf.get(_CHANGELOG, None) is None:
            spark.conf.set(_CHANGELOG, "true")


def setting(spark: Any, name: str) -> str | None:
    """Return a setting of the session, Spark's default where the user set nothing; ``None`` if this Spark has no such setting."""
    try:
        return str(spark.conf.get(name))
    except PySparkException:
        return None


def is_classic(spark: Any) -> bool:
    """Whether a session has its JVM beside it, as a Spark Connect client has not."""
    return hasattr(spark, "_jsparkSession")


def _bounds_arrow_bytes(spark: Any) -> bool:
    """Whether this Spark bounds an Arrow batch by bytes (4.1 and later do), so that wide rows cannot fill the memory."""
    return setting(spark, _ARROW_BYTES) not in (None, "-1", str(2**31 - 1), str(2**63 - 1))
