"""The third program: how late does an airport run, as of each hour, over the last 1, 6 and 24 hours?

These are features as a model would read them: one state for all windows, and values that go down when flights leave a window,
also at night, when no flight comes. A flight counts from when it is known: from its departure, cancelled from its schedule on.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
from pyspark.sql import functions as F
from rich.console import Console
from rich.table import Table

import windowpane as wp
from windowpane.arrays.values import JsonValue, Value
from windowpane.demo import flights

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

HOURS = (1, 6, 24)

_EXPECTED = """
    CREATE TABLE expected AS
    WITH known AS (
        SELECT origin, coalesce(departed, scheduled) AS known, dep_delay
        FROM read_parquet('{replay}/*.parquet') WHERE NOT heartbeat
    )
    SELECT main.origin, main.as_of, {features}
    FROM (SELECT DISTINCT origin, as_of FROM main) AS main JOIN known
    ON known.origin = main.origin AND known.known <= main.as_of AND known.known > main.as_of - INTERVAL 24 HOUR
    GROUP BY ALL
"""
_FEATURE = """
    count(*) FILTER (known.known > main.as_of - INTERVAL {hours} HOUR) AS flights_{hours}h,
    avg(dep_delay) FILTER (known.known > main.as_of - INTERVAL {hours} HOUR) AS delay_{hours}h
"""
_EQUAL = """
    SELECT count(*), count(*) FILTER (hash({columns}) = hash({expected}))
    FROM main LEFT JOIN expected USING (origin, as_of)
"""
_WORST = """
    SELECT origin, strftime(make_timestamp(epoch_us(as_of) + 1), '%a %d %b, %H:%M'), flights_24h, delay_1h, delay_6h, delay_24h
    FROM main WHERE flights_24h >= 100 QUALIFY row_number() OVER (PARTITION BY origin ORDER BY delay_24h DESC, as_of) = 1
    ORDER BY delay_24h DESC
"""


@dataclass(frozen=True)
class RollingSummary:
    """The results, beside what DuckDB computes from the flights.

    Args:
        rows: how many rows were emitted.
        equal: how many of them are DuckDB's.
        worst: of each airport the time at which it ran latest over a day: airport, time, flights, three delays in minutes.
    """

    rows: int
    equal: int
    worst: list[tuple[Value, ...]]


def rolling_delays(departures: DataFrame) -> wp.RollingResult:
    """Return the program over a DataFrame of departures; delays are in minutes."""
    known = departures.withColumn("known", F.coalesce("departed", "scheduled"))
    return (
        wp.rolling(known, event_time="known", watermark="0 seconds", heartbeat="heartbeat")
        .by("origin")
        .over(*(f"{hours} hours" for hours in HOURS), flights=wp.count(), delay=wp.avg("dep_delay"))
        .hop("1 hour")
        .emit("tick")
    )


def start(spark: SparkSession, replay: Path, out: Path) -> StreamingQuery:
    """Start the program on the files in ``replay``, one a micro-batch; return the query, which ends by itself."""
    departures = spark.readStream.schema(flights.SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(replay))
    return rolling_delays(departures).start(
        main=str(out / "rolling"), checkpoint=str(out / "checkpoint-rolling"), trigger={"availableNow": True}
    )


def summarize(replay: Path, out: Path) -> RollingSummary:
    """Read the results, and compute the same from the replayed flights."""
    names = [f"{name}_{hours}h" for name in ("flights", "delay") for hours in HOURS]
    with duckdb.connect() as db:
        db.execute(f"CREATE VIEW main AS FROM read_parquet('{out / 'rolling'}/*/*/*.parquet')")
        features = ", ".join(_FEATURE.format(hours=hours) for hours in HOURS)
        db.execute(_EXPECTED.format(replay=replay, features=features))
        # An airport without a flight in a day has no row there: nothing counts 0, and the mean is NULL.
        expected = ", ".join(
            f"coalesce(expected.{name}, 0)" if name.startswith("flights") else f"expected.{name}" for name in names
        )
        columns = ", ".join(f"main.{name}" for name in names)
        ((rows, equal),) = db.execute(_EQUAL.format(columns=columns, expected=expected)).fetchall()
        return RollingSummary(rows, equal, db.execute(_WORST).fetchall())


def introduce(console: Console, replay: flights.Replay) -> None:
    console.print(
        f"\n[bold]{replay.flights:,} flights once more, by airport[/bold]: features as of each hour over the last 1, 6 and 24 "
        "hours.\nThey go down when flights leave a window, also while none comes."
    )


def describe(counted: list[dict[str, JsonValue]], flights: int) -> str:
    features = sum(each["emitted_by_row"] + each["emitted_by_tick"] for each in counted)
    return f"{flights:,} flights · {features:,} rows of features"


def conclude(console: Console, summary: RollingSummary, out: Path) -> None:
    """Print the results, and how many of them are equal to DuckDB's."""
    table = Table(title="When each airport ran latest over a day")
    for name in ("airport", "as of"):
        table.add_column(name)
    for name in ("flights in 24 h", "mean delay 1 h", "6 h", "24 h"):
        table.add_column(name, justify="right")
    for origin, as_of, count, *delays in summary.worst:
        table.add_row(origin, as_of, str(count), *("NULL" if delay is None else f"{delay:.1f} min" for delay in delays))
    console.print(table)
    console.print(f"{summary.rows:,} rows of features, {summary.equal:,} of them as DuckDB computes them.")
    console.print(f"Parquet: [bold]{out / 'rolling'}[/bold]")
