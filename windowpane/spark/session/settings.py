"""Settings of the session, where the user set nothing: what the operator needs, and what makes it fast."""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from windowpane.spark.internals.query_plans import estimated_bytes
from windowpane.spark.internals.session import PARTITIONS, WATERMARK_POLICY, is_classic, processors, setting

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_PROVIDER = "spark.sql.streaming.stateStore.providerClass"
_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
CHANGELOG = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"
_MASTER = "spark.master"
_ARROW_ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch"
_ARROW_BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"
MANY_ROWS = 250_000  # Rows of an Arrow batch that is made in Python: more save nothing
_ROWS_FROM_SPARK = 20_000
"""Rows of an Arrow batch that the JVM makes. They stay in the processor's cache until Python has them; ten times as many take
longer, and so do half as many."""
_UNBOUNDED = str(2**31 - 1)
_FAR_TOO_MANY = 8
"""Buckets a core from which on the user is warned: each costs a task, a state store and some calls in every batch."""
_BYTES_OF_A_BUCKET = 32 << 20
"""Spark's estimate of a static input, of which a bucket is in memory as a whole: files are several times as large there."""
_LOCAL = re.compile(r"local(?:\[(\d+|\*).*\])?$")

_warned: set[Buckets] = set()


def choose_settings(spark: SparkSession) -> None:
    """Set, where the user set nothing: RocksDB, which transformWithState needs; Arrow batches by rows; in local mode buckets.

    RocksDB with a changelog. In local mode one shuffle partition a core: Spark's 200 would be as many tasks in every batch.

    A Spark that bounds Arrow batches by bytes (4.1 and later) adds up the bytes of all columns after each row, which takes longer
    than writing them. So batches are bounded by rows only, as in Spark 4.0, unless the user set one of the two bounds.
    """
    bounds_bytes = setting(spark, _ARROW_BYTES) not in (None, "-1", _UNBOUNDED, str(2**63 - 1))
    if bounds_bytes and all(spark.conf.get(name, None) is None for name in (_ARROW_ROWS, _ARROW_BYTES)):
        spark.conf.set(_ARROW_ROWS, str(_ROWS_FROM_SPARK))
        spark.conf.set(_ARROW_BYTES, _UNBOUNDED)
    if spark.conf.get(_PROVIDER, None) is None:
        spark.conf.set(_PROVIDER, _ROCKSDB)
        if spark.conf.get(CHANGELOG, None) is None:
            spark.conf.set(CHANGELOG, "true")
    buckets = Buckets.of(spark, is_streaming=True)
    if str(buckets.number) != spark.conf.get(PARTITIONS):
        spark.conf.set(PARTITIONS, str(buckets.number))
    buckets.warn()


@dataclass(frozen=True)
class Buckets:
    """How many buckets the keys of a query are spread over: as many as Spark has shuffle partitions."""

    number: int  # the buckets of a query that starts with a new checkpoint
    cores: int | None  # the cores that work on them, ``None`` where it is not known how many there will be
    chosen: int | None = None  # the number where it was chosen here for static rows, ``None`` where it is the session's

    @classmethod
    def of(cls, spark: SparkSession, is_streaming: bool, static: DataFrame | None = None) -> Buckets:
        """Return what holds for a session: the shuffle partitions that the user set, or in local mode those that the work needs.

        A stream gets one a core, ``static`` rows one for each 32 MB, but one a core, where their size is known.
        """
        cores, most = _cores(spark), int(str(spark.conf.get(PARTITIONS)))
        if cores is None or not is_local(spark) or spark.conf.get(PARTITIONS, None) is not None:
            return cls(most, cores)
        if is_streaming:
            return cls(cores, cores)
        size = None if static is None else estimated_bytes(static)
        if size is None:
            return cls(most, cores)
        number = min(max(-(-size // _BYTES_OF_A_BUCKET), cores), most)
        return cls(number, cores, number)

    @property
    def text(self) -> str:
        buckets, cores = _counted(self.number, "bucket"), self.cores
        return buckets if cores is None else f"{buckets}, {_counted(cores, 'core')}"

    def warn(self) -> None:
        """Warn, once in this process, where there are far more buckets than cores."""
        if self.cores is None or self.number <= _FAR_TOO_MANY * self.cores or self in _warned:
            return
        _warned.add(self)
        logging.getLogger(__name__).warning(
            "%d buckets (%s) for %d cores: every batch runs a task for each, and most will be empty. Set %s to the number of "
            "cores before the first start; a checkpoint keeps the number it began with.",
            self.number,
            PARTITIONS,
            self.cores,
            PARTITIONS,
        )


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _cores(spark: SparkSession) -> int | None:
    """Return the number of cores that tasks of a session run on; ``None`` where it is not known, or changes with the work."""
    local = _LOCAL.match(setting(spark, _MASTER) or "")
    if local is not None:
        return processors(spark) if local[1] == "*" else int(local[1] or 1)
    if not is_classic(spark) or setting(spark, "spark.dynamicAllocation.enabled", "false") == "true":
        return None
    return None if setting(spark, "spark.default.parallelism") else int(spark.sparkContext.defaultParallelism)


def watermark_policy(spark: SparkSession) -> str:
    return setting(spark, WATERMARK_POLICY, "min").lower()


def is_local(spark: SparkSession) -> bool:
    return _LOCAL.match(setting(spark, _MASTER) or "") is not None
