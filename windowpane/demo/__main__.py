"""``python -m windowpane.demo``: replay, run, report. Everything is written below ``out/demo``, anew by each run."""

import shutil
from pathlib import Path

from rich.console import Console

from windowpane.demo import flights, program, report, results
from windowpane.demo.session import quiet_session

OUT = Path("out/demo")
BATCHES = 44
"""Enough for the watermark to move often, few enough for two cores to be done in a minute or two."""


def main() -> None:
    """Run the demo."""
    console = Console()
    shutil.rmtree(OUT, ignore_errors=True)
    departures = flights.in_order_of_departure(flights.raw_flights())
    replay = flights.write_replay(departures, OUT / "replay", BATCHES)
    log = OUT / "spark.log"
    report.introduce(console, replay, log)
    with quiet_session(log) as spark:
        report.watch(console, program.start(spark, replay.folder, OUT), replay)
    report.conclude(console, results.summarize(OUT / "main", OUT / "late"), OUT)


if __name__ == "__main__":
    main()
