"""OVER windows on real flights, as streams on Spark, against DuckDB over the raw file."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.compute as pc
import pytest
from pyspark.sql import functions as F
from rich.console import Console

import windowpane as wp
from windowpane.demo import aircraft, aircraft_report, aircraft_results, flights

pytestmark = pytest.mark.spark

MONTH, DAYS = 2, 8
BATCHES = 5
RAW = """
    CREATE TABLE flown AS SELECT *, make_timestamp(year, month, day, hour, minute, 0) AS scheduled FROM raw
    WHERE month = $month AND day <= $days AND dep_delay IS NOT NULL
"""
HANDED_ON = """
    SELECT epoch_us(scheduled), carrier, flight, tailnum, dest, dep_delay, arr_delay,
        lag(arr_delay) OVER aircraft AS inherited, lead(dep_delay) OVER aircraft AS handed_on
    FROM flown WHERE tailnum IS NOT NULL WINDOW aircraft AS (PARTITION BY tailnum ORDER BY scheduled, carrier, flight)
"""
CHANGES = "SELECT epoch_us(scheduled), carrier, flight, tailnum, dest, dep_delay, arr_delay, inherited, handed_on FROM changes"
ROLLING = """
    SELECT origin, epoch_us(scheduled), carrier, flight, avg(dep_delay) OVER ten, max(dep_delay) OVER hour
    FROM flown ANTI JOIN late ON epoch_us(late.scheduled) = epoch_us(flown.scheduled)
        AND late.carrier = flown.carrier AND late.flight = flown.flight
    WINDOW ten AS (PARTITION BY origin ORDER BY scheduled, carrier, flight ROWS BETWEEN 10 PRECEDING AND 1 PRECEDING),
        hour AS (PARTITION BY origin ORDER BY scheduled RANGE BETWEEN INTERVAL 1 HOUR PRECEDING AND CURRENT ROW)
"""
WORST = """
    SELECT epoch_us(date_trunc('hour', scheduled)), carrier, avg(dep_delay) AS mean, rank() OVER (
        PARTITION BY date_trunc('hour', scheduled) ORDER BY avg(dep_delay) DESC)
    FROM flown GROUP BY date_trunc('hour', scheduled), carrier
"""


@pytest.fixture(scope="module")
def replay(tmp_path_factory: pytest.TempPathFactory) -> flights.Replay:
    """The flights of some days in the order of their departure, a heartbeat at the end."""
    month = flights.in_order_of_departure(flights.raw_flights(), [MONTH])
    days = month.filter(pc.less_equal(pc.day(month["scheduled"]), DAYS))
    return flights.write_replay(days, tmp_path_factory.mktemp("flights") / "replay", BATCHES)


@pytest.fixture(scope="module")
def db() -> Iterator[duckdb.DuckDBPyConnection]:
    """The raw file as table ``flown``: the flights of the month that departed."""
    with duckdb.connect() as connection:
        connection.register("raw", flights.raw_flights())
        connection.execute(RAW, {"month": MONTH, "days": DAYS})
        yield connection


@pytest.fixture
def departures(spark: Any, replay: flights.Replay) -> Any:
    stream = spark.readStream.schema(flights.SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(replay.folder))
    return stream.where("departed IS NOT NULL OR heartbeat")


def written(db: duckdb.DuckDBPyConnection, name: str, folder: Path) -> None:
    """Give the Parquet files of an output a name; ``batch`` is a column."""
    db.execute(f"CREATE OR REPLACE VIEW {name} AS FROM read_parquet('{folder}/*/*/*.parquet', hive_partitioning = true)")


@pytest.mark.slow
def test_the_delay_that_an_aircraft_hands_on_as_a_changelog(spark, replay, db, tmp_path):
    aircraft.start(spark, replay.folder, tmp_path).awaitTermination()
    written(db, "changes", tmp_path / "changes")
    net = f"""
        ({CHANGES} WHERE _change_type IN ('insert', 'update_postimage'))
        EXCEPT ALL ({CHANGES} WHERE _change_type IN ('delete', 'update_preimage')) ORDER BY ALL
    """
    expected = db.execute(f"{HANDED_ON} ORDER BY ALL").fetchall()
    assert len(expected) > 5_000
    assert db.execute(net).fetchall() == expected
    counts = dict(db.execute("SELECT _change_type, count(*) FROM changes GROUP BY ALL").fetchall())
    assert counts["insert"] == len(expected)
    assert counts["update_preimage"] == counts["update_postimage"] > 1000
    summary = aircraft_results.summarize(tmp_path / "changes", top=5)
    assert (summary.counts, summary.flights) == (counts, len(expected))
    worst = f"""
        SELECT tailnum, arr_delay, handed_on FROM ({HANDED_ON}) WHERE arr_delay + handed_on IS NOT NULL
        ORDER BY least(arr_delay, handed_on) DESC LIMIT 5
    """
    assert [(each.aircraft, each.arrived, each.departed_next) for each in summary.handovers] == db.execute(worst).fetchall()
    terminal = io.StringIO()
    aircraft_report.conclude(Console(file=terminal, width=120), summary, tmp_path / "changes")
    assert f"Changelog of {len(expected):,} flights" in terminal.getvalue()


@pytest.mark.slow
def test_rolling_delays_of_an_airport_come_out_once_each_and_late_flights_by_the_side(departures, db, tmp_path):
    result = (
        wp.over(departures, event_time="scheduled", watermark="30 minutes", key=flights.KEY, heartbeat="heartbeat")
        .partition_by("origin")
        .order_by("scheduled")
        .select("origin", *flights.KEY, ten=wp.avg("dep_delay").rows(-10, -1), hour=wp.max("dep_delay").range("-1 hour", 0))
        .side_output_late_data(wp.OutputTag("late"))
        .emit_on_window_close()
    )
    sinks: dict[str, Any] = {name: str(tmp_path / name) for name in ("main", "late")}
    result.start(trigger={"availableNow": True}, **sinks).awaitTermination()
    written(db, "rolling", tmp_path / "main")
    written(db, "late", tmp_path / "late")
    expected = db.execute(f"{ROLLING} ORDER BY ALL").fetchall()
    assert db.execute("SELECT count(*) FROM late").fetchall() == [(len(db.execute("FROM flown").fetchall()) - len(expected),)]
    found = db.execute("SELECT origin, epoch_us(scheduled), carrier, flight, ten, hour FROM rolling ORDER BY ALL").fetchall()
    assert found == expected


@pytest.mark.slow
def test_the_worst_carriers_of_each_hour_are_ranked_over_windows(departures, db, tmp_path):
    hourly = (
        wp.stream(departures, event_time="scheduled", watermark="20 hours", heartbeat="heartbeat", name="hourly")
        .key_by("carrier")
        .window(wp.TumblingEventTimeWindows.of("1 hour"))
        .aggregate(mean=wp.avg("dep_delay"))
    )
    ranked = (
        wp.over(hourly.df, key=("carrier", "window_start"))
        .partition_by("window_start")
        .order_by(F.col("mean").desc())
        .select("window_start", "carrier", "mean", place=wp.rank())
        .emit_on_update()
    )
    ranked.start(trigger={"availableNow": True}, main=str(tmp_path / "ranks")).awaitTermination()
    written(db, "ranks", tmp_path / "ranks")
    wanted = "SELECT epoch_us(window_start), carrier, mean, place FROM ranks"
    net = f"""
        ({wanted} WHERE _change_type IN ('insert', 'update_postimage'))
        EXCEPT ALL ({wanted} WHERE _change_type IN ('delete', 'update_preimage')) ORDER BY ALL
    """
    assert db.execute(net).fetchall() == db.execute(f"{WORST} ORDER BY ALL").fetchall()
