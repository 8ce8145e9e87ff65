"""Who reads Parquet files in a test: Arrow, as where nothing is set, or Spark."""

from __future__ import annotations

import pytest

from windowpane.spark.sources.parquet_reader import SWITCH


@pytest.fixture
def by_arrow(spark):
    """Let Arrow read, as it does where nothing is set."""
    before = spark.conf.get(SWITCH)
    spark.conf.unset(SWITCH)
    yield lambda: spark.conf.unset(SWITCH)
    spark.conf.set(SWITCH, before)


@pytest.fixture
def by_spark(spark):
    """Return what leaves files to Spark."""
    return lambda: spark.conf.set(SWITCH, "false")
