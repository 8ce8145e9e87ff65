"""Part five of the demo, on flights made up for it."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console

from windowpane.demo.in_sql import show


def test_the_worst_hours_are_those_that_are_closed(tmp_path: Path) -> None:
    hours = [(day, delay) for day, delay in ((1, 10), (2, 40), (3, 20), (4, 30), (5, 99))]
    rows = [(dt.datetime(2013, 1, day, 8, minute), delay + minute) for day, delay in hours for minute in range(5)]
    table = pa.table(
        {
            "origin": ["JFK"] * len(rows),
            "carrier": ["AA"] * len(rows),
            "flight": pa.array(range(len(rows)), pa.int64()),
            "scheduled": pa.array([scheduled for scheduled, _ in rows], pa.timestamp("us")),
            "dep_delay": pa.array([delay for _, delay in rows], pa.int64()),
        }
    )
    for number in range(0, len(rows), 10):
        pq.write_table(table.slice(number, 10), tmp_path / f"{number:02}.parquet")
    console = Console(record=True, width=100)
    show(console, tmp_path)
    lines = [line.split() for line in console.export_text().splitlines()]
    # The hour of the 5th is still open: the watermark has not passed its end.
    assert [line[3:] for line in lines if line[:1] == ["JFK"]] == [
        ["08:00:00", "5", "42"],
        ["08:00:00", "5", "32"],
        ["08:00:00", "5", "22"],
    ]
