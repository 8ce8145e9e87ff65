"""The sample data of the documents: ``flights`` is static, ``departures`` the same as a stream."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import windowpane as wp

FLIGHTS = [
    ("JFK", "2013-01-01 08:05:00", 10),
    ("JFK", "2013-01-01 08:50:00", 45),
    ("LGA", "2013-01-01 08:15:00", 0),
]
LAST = ("JFK", "2013-01-02 08:00:00", 1)
COLUMNS = "origin string, scheduled string, dep_delay int"


@pytest.fixture
def spark_names(spark: SparkSession, stream_of: Callable[..., Any]) -> dict[str, Any]:
    """What the blocks of a page may use."""

    def with_time(rows: list[tuple[str, str, int]]) -> Any:
        return spark.createDataFrame(rows, COLUMNS).withColumn("scheduled", F.to_timestamp("scheduled")).coalesce(1)

    flights = with_time(FLIGHTS)
    departures = stream_of([with_time(rows).collect() for rows in (FLIGHTS, [LAST])], flights.schema)
    return {"spark": spark, "F": F, "flights": flights, "departures": departures}


@pytest.fixture
def redirected(tmp_path: Path) -> Callable[[str], str]:
    """Return a function that moves the folder ``out/`` of a block into the test's own."""
    return lambda block: block.replace('"out/', f'"{tmp_path}/out/')


@pytest.fixture
def names() -> dict[str, Any]:
    """A namespace, as a page begins with."""
    return {"__name__": "document", "wp": wp}
