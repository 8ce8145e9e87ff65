"""The fifth part of the demo: every flight comes out once, with the reading that DuckDB says, while the clocks change."""

from __future__ import annotations

import io
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from rich.console import Console

from windowpane.demo import flights, weather

pytestmark = pytest.mark.spark


@pytest.mark.slow
def test_each_flight_has_the_weather_of_its_departure(spark: Any, tmp_path: Path) -> None:
    march = flights.in_order_of_departure(flights.raw_flights(), [3])
    days = (datetime(2013, 3, 9, tzinfo=UTC), datetime(2013, 3, 12, tzinfo=UTC))
    chosen = march.filter(pc.and_(pc.greater_equal(march["scheduled"], days[0]), pc.less(march["scheduled"], days[1])))
    measured = weather.readings([3])
    replay = flights.write_replay(chosen, tmp_path / "departures", 3)
    weather.write_replay(measured.slice(500, 400), tmp_path / "readings", 3)
    weather.start(spark, replay.folder, tmp_path / "readings", tmp_path).awaitTermination()
    summary = weather.summarize(replay.folder, tmp_path / "readings", tmp_path)
    assert chosen.num_rows > 2_000
    assert (summary.rows, summary.equal, summary.expected) == (chosen.num_rows,) * 3
    joined = pq.read_table(tmp_path / "weather").to_pylist()
    assert all(row["measured"] <= row["left_at"] for row in joined if row["measured"])
    # 20:00 in New York is 01:00 the next day in UTC on Saturday, and 00:00 on Sunday: the clocks have changed.
    on_time = {(row["scheduled"].day, row["left_at"].hour - row["scheduled"].hour) for row in joined if row["dep_delay"] == 0}
    assert {(9, 5), (10, 4), (11, 4)} <= on_time
    terminal = io.StringIO()
    counted = [
        {"pairs": 1, "padded": 1, "held_left": 9, "held_right": 9},
        {"pairs": 3, "padded": 0, "held_left": 2, "held_right": 3},
    ]
    assert weather.describe(counted, 6) == "5 flights with their weather · 5 rows held"
    assert weather.describe([], 0) == "0 flights with their weather · 0 rows held"
    weather.conclude(Console(file=terminal, width=120), summary, tmp_path)
    assert f"{summary.rows:,} of {summary.rows:,} flights were joined, {summary.rows:,} with the reading" in terminal.getvalue()
    assert sum(count for _, count, *_ in summary.by_visibility) == summary.rows
