"""Part six of the demo, on flights made up for it."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console

from windowpane.demo.in_sql import SCRIPT, show
from windowpane.sql import Session


def test_the_worst_hours_are_those_that_are_closed(tmp_path: Path) -> None:
    hours = [(day, delay) for day, delay in ((1, 10), (2, 40), (3, 20), (4, 30), (5, 99))]
    rows = [(dt.datetime(2013, 1, day, 8, minute), delay + minute) for day, delay in hours for minute in range(5)]
    table = pa.table(
        {
            "origin": ["JFK"] * len(rows),
            "carrier": ["AA"] * len(rows),
            "flight": pa.array(range(len(rows)), pa.int64()),
            "tailnum": [f"N{number % 5}" for number in range(len(rows))],
            "departed": pa.array(
                [
                    None if number == 12 else scheduled + dt.timedelta(minutes=150 if number == 9 else delay)
                    for number, (scheduled, delay) in enumerate(rows)
                ],
                pa.timestamp("us"),
            ),
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


def test_aircraft_that_land_and_do_not_depart_within_their_plan(tmp_path: Path) -> None:
    """N1 waits 150 minutes and then does not depart at all; N2 departs in time, but its flight before did not."""
    flights = [
        ("N1", 8, 5), ("N1", 11, 150), ("N1", 15, None), ("N1", 18, 10), ("N2", 8, None), ("N2", 11, 200), ("N3", 8, 0),
        ("N3", 21, 300), ("N4", 30, 0),
    ]  # fmt: skip
    day = dt.datetime(2013, 1, 1)
    times = [day + dt.timedelta(hours=hour) for _, hour, _ in flights]
    departed = [
        None if delay is None else at + dt.timedelta(minutes=delay) for at, (_, _, delay) in zip(times, flights, strict=True)
    ]
    table = pa.table(
        {
            "origin": ["JFK"] * len(flights),
            "carrier": ["AA"] * len(flights),
            "flight": pa.array(range(len(flights)), pa.int64()),
            "tailnum": [aircraft for aircraft, _, _ in flights],
            "scheduled": pa.array(times, pa.timestamp("us")),
            "departed": pa.array(departed, pa.timestamp("us")),
            "dep_delay": pa.array([delay for _, _, delay in flights], pa.int64()),
        }
    )
    late = table.slice(table.num_rows - 1).set_column(4, "scheduled", pa.array([day + dt.timedelta(days=9)], pa.timestamp("us")))
    pq.write_table(pa.concat_tables([table, late]), tmp_path / "flights.parquet")
    with Session(":memory:") as session:
        session.run(SCRIPT.format(folder=tmp_path))
        found = session.query("SELECT tailnum, planned, departed FROM stranded ORDER BY tailnum, planned").rows()
    assert found == [
        ("N1", day + dt.timedelta(hours=11), day + dt.timedelta(hours=13, minutes=30)),
        ("N1", day + dt.timedelta(hours=15), None),
    ]
