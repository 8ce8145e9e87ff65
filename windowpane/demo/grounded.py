"""The fourth program: which aircraft left New York more than two hours late, and did not leave it again within a day?

What did not happen is a row pattern with an absence: a late departure, and no departure behind it. It is decided when the
watermark has passed the day, so each result comes once. Cancelled flights never left; they only move the watermark.
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

_EXPECTED = """
    WITH left_at AS (
        SELECT tailnum, departed, dest, dep_delay, row_number() OVER () AS place
        FROM read_parquet('{replay}/*.parquet') WHERE departed IS NOT NULL AND tailnum IS NOT NULL
    )
    SELECT tailnum, departed, dest, dep_delay FROM left_at AS late
    WHERE dep_delay > 120
    AND departed + INTERVAL 1 DAY <= (SELECT max(scheduled) FROM read_parquet('{replay}/*.parquet') WHERE heartbeat)
    AND NOT EXISTS (
        FROM left_at AS again WHERE again.tailnum = late.tailnum AND again.departed < late.departed + INTERVAL 1 DAY
        AND (again.departed, again.place) > (late.departed, late.place)
    )
"""
_FOUND = "SELECT tailnum, departed, dest, dep_delay FROM read_parquet('{found}/*/*/*.parquet')"
_EQUAL = (
    "SELECT count(*), (SELECT count(*) FROM expected), (SELECT count(*) FROM (FROM found INTERSECT ALL FROM expected)) FROM found"
)
_LATEST = (
    "SELECT tailnum, strftime(departed, '%a %d %b, %H:%M'), dest, dep_delay FROM found ORDER BY dep_delay DESC, tailnum LIMIT 5"
)


@dataclass(frozen=True)
class GroundedSummary:
    """The results, beside what DuckDB finds by an anti join.

    Args:
        rows: how many there are.
        expected: how many DuckDB finds.
        equal: how many are the same.
        latest: aircraft, departure, destination, and the largest delays in minutes.
    """

    rows: int
    expected: int
    equal: int
    latest: list[tuple[Value, ...]]


def grounded(departures: DataFrame) -> wp.MatchResult:
    """Return the program over a DataFrame of departures; delays are in minutes."""
    known = departures.where("tailnum IS NOT NULL OR heartbeat").withColumn("known", F.coalesce("departed", "scheduled"))
    return (
        wp.stream(known, event_time="known", watermark="0 seconds", heartbeat="heartbeat")
        .key_by("tailnum")
        .match("late -> !again", late=wp.col("dep_delay") > 120, again=wp.col("dep_delay").is_not_null())
        .within("1 day")
        .select(departed=wp.first("late.departed"), dest=wp.first("late.dest"), dep_delay=wp.first("late.dep_delay"))
    )


def start(spark: SparkSession, replay: Path, out: Path) -> StreamingQuery:
    """Start the program on the files in ``replay``, one a micro-batch; return the query, which ends by itself."""
    departures = spark.readStream.schema(flights.SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(replay))
    return grounded(departures).start(
        main=str(out / "grounded"), checkpoint=str(out / "checkpoint-grounded"), trigger={"availableNow": True}
    )


def summarize(replay: Path, out: Path) -> GroundedSummary:
    """Read the results, and find the same in the replayed flights."""
    with duckdb.connect() as db:
        db.execute("SET TimeZone = 'UTC'")
        db.execute(f"CREATE VIEW found AS {_FOUND.format(found=out / 'grounded')}")
        db.execute(f"CREATE TABLE expected AS {_EXPECTED.format(replay=replay)}")
        ((rows, expected, equal),) = db.execute(_EQUAL).fetchall()
        return GroundedSummary(rows, expected, equal, db.execute(_LATEST).fetchall())


def introduce(console: Console, replay: flights.Replay) -> None:
    console.print(
        f"\n[bold]{replay.flights:,} flights once more, for what did not happen[/bold]: an aircraft leaves more than two hours "
        "late,\nand does not leave New York again within a day."
    )


def describe(counted: list[dict[str, JsonValue]], flights: int) -> str:
    return f"{flights:,} flights · {sum(each['firings'] for each in counted):,} aircraft that did not leave again"


def conclude(console: Console, summary: GroundedSummary, out: Path) -> None:
    """Print the results, and how many of them are DuckDB's."""
    table = Table(title="Those that left latest")
    for name in ("aircraft", "left", "for"):
        table.add_column(name)
    table.add_column("delay", justify="right")
    for tailnum, departed, dest, delay in summary.latest:
        table.add_row(tailnum, departed, dest, f"{delay} min")
    console.print(table)
    console.print(f"{summary.rows:,} matches; an anti join of DuckDB's finds {summary.expected:,}, {summary.equal:,} the same.")
    console.print(f"Parquet: [bold]{out / 'grounded'}[/bold]")
