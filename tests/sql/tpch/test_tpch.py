"""TPC-H as views: all 22 queries, kept up to date through batches of rows, changes and deletions, equal DuckDB's answers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from tests.sql.tpch.rounds import QUERIES, Rounds, generate
from windowpane.sql import Session

REPOSITORY = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def every_key_is_unique() -> None:
    """Not watched: the rows are too many to be kept twice."""


@pytest.mark.slow
def test_all_queries_as_views_equal_duckdb(tmp_path: Path) -> None:
    generate(0.001, tmp_path)
    with Session(":memory:") as session, duckdb.connect() as oracle:
        rounds = Rounds(session, oracle, tmp_path, parts=2)
        rounds.views(list(QUERIES))
        steps = list(rounds.run())
        rows = {name: rounds.compare(name) for name in QUERIES}
    assert len(steps) == 3
    assert sum(map(bool, rows.values())) >= 15


@pytest.mark.slow
def test_all_queries_at_a_tenth_stay_below_two_gigabytes() -> None:
    """All of them at once, in one session in memory, with four batches of each table, and DuckDB with its tables beside them."""
    done = subprocess.run([sys.executable, "-m", "tests.sql.tpch", "0.1"], cwd=REPOSITORY, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(done.stdout.split()[-2]) < 2000
