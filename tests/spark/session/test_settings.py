"""Settings of a session: what is chosen where the user set nothing, and what a session is warned about."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions as F

import windowpane as wp
from windowpane.spark.internals.query_plans import estimated_bytes
from windowpane.spark.internals.session import PARTITIONS
from windowpane.spark.session.settings import Buckets, choose_settings

SPARKS_OWN = {PARTITIONS: "200", "spark.sql.execution.arrow.maxBytesPerBatch": "-1"}
NOTHING = object()


@dataclass
class Conf:
    """Settings as a session has them: those that were set, over Spark's own."""

    values: dict[str, str]

    def get(self, name: str, default: Any = NOTHING) -> str | None:
        if name in self.values:
            return self.values[name]
        if default is not NOTHING:
            return default  # type: ignore[no-any-return]
        if name not in SPARKS_OWN:
            raise PySparkException(f"no setting {name}")
        return SPARKS_OWN[name]

    def set(self, name: str, value: str) -> None:
        self.values[name] = value


@dataclass
class Session:
    """Stands in for a session of Spark Connect, or, with cores, for a classic one."""

    conf: Conf
    cores: int | None = None
    sparkContext: Any = field(init=False)  # noqa: N815 (Spark's name)

    def __post_init__(self) -> None:
        self.sparkContext = self
        if self.cores is not None:
            self._jsparkSession = self

    @property
    def defaultParallelism(self) -> int:  # noqa: N802
        assert self.cores is not None
        return self.cores


def session(master: str, cores: int | None = None, **settings: str) -> Any:
    named = {name.replace("_", "."): value for name, value in settings.items()}
    return Session(Conf({"spark.master": master} | named), cores)


@pytest.mark.parametrize(("master", "chosen"), [("local[4]", "4"), ("local[3,2]", "3"), ("local", "1")])
def test_in_local_mode_there_are_as_many_buckets_as_cores(master: str, chosen: str) -> None:
    spark = session(master)
    choose_settings(spark)
    assert spark.conf.get(PARTITIONS) == chosen


def test_what_the_user_set_stays_and_so_does_sparks_default_elsewhere_and_for_static_rows() -> None:
    told, cluster, static = session("local[4]"), session("spark://host:7077", cores=100), session("local[4]")
    told.conf.set(PARTITIONS, "200")
    for spark in (told, cluster):
        choose_settings(spark)
        assert spark.conf.get(PARTITIONS) == "200"
    assert Buckets.of(static, is_streaming=False) == Buckets(200, 4)
    assert static.conf.get(PARTITIONS, None) is None


@pytest.mark.parametrize(
    ("size", "expected"),
    [(1_000, 4), (32 << 20, 4), ((32 << 20) * 5 + 1, 6), (1 << 40, 200), ((1 << 63) - 1, 200), (None, 200)],
    ids=["small", "a bucket", "six buckets", "large", "unknown", "no statistics"],
)
def test_static_rows_in_local_mode_get_a_bucket_for_each_32_megabytes(size: int | None, expected: int) -> None:
    spark = session("local[4]")
    buckets = Buckets.of(spark, is_streaming=False, static=cast("Any", Estimated(size)))
    assert buckets.number == expected
    assert buckets.text == f"{expected} buckets, 4 cores"
    assert buckets.chosen == (None if size is None or size > 1 << 60 else expected)
    spark.conf.set(PARTITIONS, "7")
    assert Buckets.of(spark, is_streaming=False, static=cast("Any", Estimated(size))) == Buckets(7, 4)


class Estimated:
    """Stands in for a DataFrame of Spark classic, and for its plan, of an estimated size."""

    def __init__(self, size: int | None) -> None:
        self.size = size
        self._jdf = self

    def queryExecution(self) -> Estimated:  # noqa: N802 (names of the JVM)
        return self

    optimizedPlan = stats = queryExecution  # noqa: N815

    def sizeInBytes(self) -> int:  # noqa: N802
        if self.size is None:
            raise AttributeError("no statistics")
        return self.size


@pytest.mark.spark
def test_static_rows_are_spread_over_the_buckets_that_were_chosen(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Buckets, "of", classmethod(lambda cls, *said: cls(3, 2, 3)))
    keyed = wp.stream(spark.range(90).withColumn("k", F.col("id") % 30), event_time=None).key_by("k")
    counted = keyed.count_window(3).aggregate(n=wp.count()).df
    assert counted.rdd.getNumPartitions() == 3
    assert sorted((row.k, row.n) for row in counted.collect()) == [(key, 3) for key in range(30)]
    assert estimated_bytes(spark.range(1000)) == 8_000
    assert estimated_bytes(spark.createDataFrame([(1,)], "a int")) is None


def test_far_more_buckets_than_cores_are_warned_about_once(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        for cores in (12, 12, 25):
            choose_settings(session("yarn", cores=cores))
        choose_settings(session("yarn", cores=12, spark_dynamicAllocation_enabled="true"))
    assert [record.getMessage().split(":")[0] for record in caplog.records] == [f"200 buckets ({PARTITIONS}) for 12 cores"]


@pytest.mark.parametrize(
    ("buckets", "text"),
    [(Buckets(2, 2), "2 buckets, 2 cores"), (Buckets(1, 1), "1 bucket, 1 core"), (Buckets(200, None), "200 buckets")],
)
def test_buckets_are_said_with_the_cores_that_work_on_them(buckets: Buckets, text: str) -> None:
    assert buckets.text == text
