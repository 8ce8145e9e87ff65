"""Calendar windows beside Spark's own truncation of dates, in zones whose days are not all alike."""

from __future__ import annotations

import random
from typing import Any

import pytest
from pyspark.sql import functions as F

import windowpane as wp

pytestmark = [pytest.mark.spark, pytest.mark.slow]

SIZES = {"day": "1 day", "week": "1 week", "month": "1 month", "quarter": "3 months", "year": "1 year"}


@pytest.mark.parametrize(
    "zone", ["Europe/Berlin", "America/Sao_Paulo", "Pacific/Apia", "Asia/Beirut", "Africa/Cairo", "Australia/Lord_Howe"]
)
def test_windows_begin_where_spark_truncates(spark: Any, zone: str) -> None:
    """From 1970 on: rules of years before are corrected now and then, and Java and tzdata have them of different releases."""
    before = spark.conf.get("spark.sql.session.timeZone")
    draw = random.Random(zone)
    seconds = [(draw.randrange(2_000_000_000),) for _ in range(3_000)]
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        events = spark.createDataFrame(seconds, "s long").select(F.timestamp_seconds("s").alias("t")).coalesce(1).cache()
        for unit, size in SIZES.items():
            windows = wp.CalendarWindows.of(size, timezone=zone)
            counted = wp.stream(events, event_time="t").window_all(windows).aggregate(n=wp.count())
            got = [tuple(row) for row in counted.df.select(F.unix_micros("window_start"), "n").collect()]
            truncated = events.groupBy(F.unix_micros(F.date_trunc(unit, "t"))).count().collect()
            assert sorted(got) == sorted(tuple(row) for row in truncated), unit
            assert "engine          slices" in counted.explain()
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)
