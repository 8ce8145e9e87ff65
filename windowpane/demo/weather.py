"""The fifth program: what was the weather at its airport when a flight left?

Two streams, joined as of an instant: departures, and readings of each airport's station, one an hour. A flight takes the latest
reading until its departure. Departures are in the clock time of New York, readings in UTC; so a departure is an instant only
once the zone is known, and in March the clocks change. A cancelled flight counts as of its schedule.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pyarrow as pa
from pyspark.sql import functions as F
from rich.console import Console
from rich.table import Table

import windowpane as wp
from windowpane.arrays.values import JsonValue, Value
from windowpane.demo import flights

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

ZONE = "America/New_York"
SCHEMA = "origin string, measured timestamp, wind double, visibility double, heartbeat boolean"
"""Columns of the readings: the wind in miles an hour, how far one sees in miles, up to 10."""

_READINGS = """
    SELECT origin, time_hour AS measured, wind_speed AS wind, visib AS visibility, false AS heartbeat
    FROM raw WHERE month IN (SELECT unnest($months)) ORDER BY measured, origin
"""
_HEARTBEAT = """
    SELECT NULL AS origin, max(measured) + INTERVAL 2 DAY AS measured, NULL AS wind, NULL AS visibility, true AS heartbeat
    FROM readings
"""
_EXPECTED = """
    CREATE TABLE expected AS
    WITH departures AS (
        SELECT origin, carrier, flight, scheduled,
            timezone('{zone}', timezone('UTC', scheduled)) + to_minutes(coalesce(dep_delay, 0)) AS left_at
        FROM read_parquet('{departures}/*.parquet') WHERE NOT heartbeat
    ), readings AS (FROM read_parquet('{readings}/*.parquet') WHERE NOT heartbeat)
    SELECT departures.*, measured, wind, visibility
    FROM departures ASOF LEFT JOIN readings ON departures.origin = readings.origin AND departures.left_at >= readings.measured
"""
_EQUAL = """
    SELECT count(*), count(expected.flight), (SELECT count(*) FROM expected)
    FROM joined LEFT JOIN expected ON (joined.origin, joined.carrier, joined.flight, joined.scheduled, joined.left_at)
        = (expected.origin, expected.carrier, expected.flight, expected.scheduled, expected.left_at)
    AND hash(joined.measured, joined.wind, joined.visibility) = hash(expected.measured, expected.wind, expected.visibility)
"""
_BY_VISIBILITY = """
    SELECT CASE WHEN visibility >= 10 THEN '10 or more' WHEN visibility >= 5 THEN '5 to 10' WHEN visibility >= 2 THEN '2 to 5'
        WHEN visibility < 2 THEN 'less than 2' ELSE 'no reading' END AS miles,
        count(*), avg(dep_delay), count(*) FILTER (dep_delay IS NULL) / count(*)
    FROM joined GROUP BY miles ORDER BY avg(visibility) DESC NULLS LAST
"""


@dataclass(frozen=True)
class WeatherSummary:
    """The results, beside what DuckDB computes from the same rows.

    Args:
        rows: how many flights were emitted.
        equal: how many of them have the reading that DuckDB gives them.
        expected: how many flights there are.
        by_visibility: miles that one sees, flights, mean delay in minutes, and the share that was cancelled.
    """

    rows: int
    equal: int
    expected: int
    by_visibility: list[tuple[Value, ...]]


def readings(months: Sequence[int]) -> pa.Table:
    """Return the readings of some months of 2013, in the columns of ``SCHEMA``, as a stream would bring them.

    Raises:
        MissingExtraError: the package with the data is not installed.
    """
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("raw", flights.raw_weather())
        return connection.sql(_READINGS, params={"months": list(months)}).to_arrow_table()


def write_replay(rows: pa.Table, folder: Path, batches: int) -> None:
    """Write readings into files of as many rows each, and a heartbeat after the last of them into one more."""
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("readings", rows)
        heartbeat = connection.sql(_HEARTBEAT).to_arrow_table().cast(rows.schema)
    flights.write_files(rows, heartbeat, folder, batches)


def weather_at_departure(departures: DataFrame, readings: DataFrame) -> wp.AsOfJoin:
    """Return the program over two DataFrames; readings come with NULL where there is none yet."""
    left_at = F.to_utc_timestamp("scheduled", ZONE) + F.make_dt_interval(mins=F.coalesce("dep_delay", F.lit(0)).cast("int"))
    left = wp.stream(departures.withColumn("left_at", left_at), "left_at", watermark="1 hour", heartbeat="heartbeat")
    right = wp.stream(readings, "measured", watermark="1 hour", heartbeat="heartbeat")
    columns = ["origin", "carrier", "flight", "scheduled", "left_at", "dep_delay"]
    values = {name: wp.right(name) for name in ("measured", "wind", "visibility")}
    return wp.as_of(left, right).on("origin").match("backward").select(*columns, **values)


def start(spark: SparkSession, departures: Path, readings: Path, out: Path) -> StreamingQuery:
    """Start the program on two folders of files, one of each a micro-batch; return the query, which ends by itself."""
    streams = [
        spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder))
        for schema, folder in ((flights.SCHEMA, departures), (SCHEMA, readings))
    ]
    return weather_at_departure(*streams).start(
        main=str(out / "weather"), checkpoint=str(out / "checkpoint-weather"), trigger={"availableNow": True}
    )


def summarize(departures: Path, readings: Path, out: Path) -> WeatherSummary:
    """Read the results, and join the replayed rows once more, with DuckDB."""
    with duckdb.connect() as db:
        db.execute("SET TimeZone = 'UTC'")
        db.execute(f"CREATE VIEW joined AS FROM read_parquet('{out / 'weather'}/*/*/*.parquet')")
        db.execute(_EXPECTED.format(zone=ZONE, departures=departures, readings=readings))
        ((rows, equal, expected),) = db.execute(_EQUAL).fetchall()
        return WeatherSummary(rows, equal, expected, db.execute(_BY_VISIBILITY).fetchall())


def introduce(console: Console, replay: flights.Replay, readings: int) -> None:
    console.print(
        f"\n[bold]{replay.flights:,} flights of March and {readings:,} readings of the weather[/bold]: two streams. Each flight "
        "takes the latest reading of its airport\nuntil it left. The clocks change on the 10th; the readings' do not."
    )


def describe(counted: list[dict[str, JsonValue]], flights: int) -> str:
    joined = sum(each["pairs"] + each["padded"] for each in counted)
    held = sum(counted[-1][side] for side in ("held_left", "held_right")) if counted else 0
    return f"{joined:,} flights with their weather · {held:,} rows held"


def conclude(console: Console, summary: WeatherSummary, out: Path) -> None:
    """Print the results, and how many of them are equal to DuckDB's."""
    table = Table(title="Flights by how far one saw when they left")
    table.add_column("miles")
    for name in ("flights", "mean delay", "cancelled"):
        table.add_column(name, justify="right")
    for miles, count, delay, cancelled in summary.by_visibility:
        table.add_row(miles, f"{count:,}", "NULL" if delay is None else f"{delay:.1f} min", f"{cancelled:.1%}")
    console.print(table)
    console.print(
        f"{summary.rows:,} of {summary.expected:,} flights were joined, {summary.equal:,} with the reading that DuckDB says."
    )
    console.print(f"Parquet: [bold]{out / 'weather'}[/bold]")
