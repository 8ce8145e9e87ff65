"""The third part of the demo: every row of features is DuckDB's, and none is missing."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import duckdb
import pytest
from rich.console import Console

from windowpane.demo import flights, rolling_delays

pytestmark = pytest.mark.spark

CHANGED = """
    WITH known AS (
        SELECT origin, coalesce(departed, scheduled) AS known, dep_delay
        FROM read_parquet('{replay}/*.parquet') WHERE NOT heartbeat
    ), ticks AS (
        SELECT DISTINCT origin, unnest(range(date_trunc('hour', (SELECT min(known) FROM known)) + INTERVAL 1 HOUR,
            (SELECT max(scheduled) FROM read_parquet('{replay}/*.parquet')) + INTERVAL 1 MICROSECOND, INTERVAL 1 HOUR)) AS tick
        FROM known
    ), features AS (
        SELECT ticks.origin, tick, [
            (count(dep_delay) FILTER (known >= tick - to_hours(1)), sum(dep_delay) FILTER (known >= tick - to_hours(1)),
             count(known) FILTER (known >= tick - to_hours(1))),
            (count(dep_delay) FILTER (known >= tick - to_hours(6)), sum(dep_delay) FILTER (known >= tick - to_hours(6)),
             count(known) FILTER (known >= tick - to_hours(6))),
            (count(dep_delay), sum(dep_delay), count(known))] AS values
        FROM ticks LEFT JOIN known ON known.origin = ticks.origin AND known < tick AND known >= tick - INTERVAL 24 HOUR
        GROUP BY ALL
    )
    SELECT count(*) FROM (
        SELECT values, lag(values) OVER (PARTITION BY origin ORDER BY tick) AS before FROM features
    ) WHERE values IS DISTINCT FROM before AND NOT (before IS NULL AND values[3][3] = 0)
"""


@pytest.mark.slow
def test_features_of_airports_are_those_of_duckdb(spark: Any, tmp_path: Path) -> None:
    month = flights.in_order_of_departure(flights.raw_flights(), [2])
    replay = flights.write_replay(month.slice(0, 6_000), tmp_path / "replay", 3)
    rolling_delays.start(spark, replay.folder, tmp_path).awaitTermination()
    summary = rolling_delays.summarize(replay.folder, tmp_path)
    terminal = io.StringIO()
    counted = [{"emitted_by_row": 2, "emitted_by_tick": 0}, {"emitted_by_row": 1, "emitted_by_tick": 2}]
    assert rolling_delays.describe(counted, 6_000) == "6,000 flights · 5 rows of features"
    rolling_delays.conclude(Console(file=terminal, width=120), summary, tmp_path)
    assert summary.rows == summary.equal
    with duckdb.connect() as db:
        assert db.execute(CHANGED.format(replay=replay.folder)).fetchall() == [(summary.rows,)]
    assert f"{summary.rows:,} rows of features, {summary.rows:,} of them as DuckDB" in terminal.getvalue()
    assert {row[0] for row in summary.worst} == {"EWR", "JFK", "LGA"}
