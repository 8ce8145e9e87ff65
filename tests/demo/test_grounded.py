"""The fourth part of the demo: the aircraft that did not leave again are those that DuckDB finds by an anti join."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

import windowpane as wp
from windowpane.demo import flights, grounded

pytestmark = pytest.mark.spark


@pytest.mark.slow
def test_aircraft_that_did_not_leave_again_are_those_of_an_anti_join(spark: Any, tmp_path: Path) -> None:
    month = flights.in_order_of_departure(flights.raw_flights(), [7])
    replay = flights.write_replay(month.slice(0, 9_000), tmp_path / "replay", 3)
    query = grounded.start(spark, replay.folder, tmp_path)
    query.awaitTermination()
    summary = grounded.summarize(replay.folder, tmp_path)
    assert summary.rows == summary.expected == summary.equal > 100
    terminal = io.StringIO()
    grounded.conclude(Console(file=terminal, width=120), summary, tmp_path)
    assert f"{summary.rows:,} matches; an anti join of DuckDB's finds {summary.rows:,}" in terminal.getvalue()
    counted = [dict(each) for each in wp.progress(query).operators.values()]
    assert grounded.describe(counted, 9_000) == f"9,000 flights · {summary.rows:,} aircraft that did not leave again"
