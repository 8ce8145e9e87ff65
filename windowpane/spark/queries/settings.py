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
"""Rows of an Arrow batch that is made in Python: more save nothing."""
_ROWS_FROM_SPARK = 20_000
"""Rows of an Arrow batch that the JVM makes. They stay in the processor's cache until Python has them; ten times as many take
longer, and so do half as many."""
_UNBOUNDED = str(2**31 - 1)


def choose_settings(spark: Any) -> None:
    """Set, where the user set nothing: RocksDB with a changelog, which transformWithState needs; Arrow batches by rows.

    A Spark that bounds Arrow batches by bytes (4.1 and later) adds up the bytes of all columns after each row, which takes longer
    than writing them. So batches are bounded by rows only, as in Spark 4.0, unless the user set one of the two bounds.
    """
    if _bounds_arrow_bytes(spark) and all(spark.conf.get(name, None) is None for name in (_ARROW_ROWS, _ARROW_BYTES)):
        spark.conf.set(_ARROW_ROWS, str(_ROWS_FROM_SPARK))
        spark.conf.set(_ARROW_BYTES, _UNBOUNDED)
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
    """Whether this Spark bounds an Arrow batch by bytes."""
    return setting(spark, _ARROW_BYTES) not in (None, "-1", _UNBOUNDED, str(2**63 - 1))
