"""Kill -9 between and inside batches: views and the tables of their sinks equal those of an undisturbed run.

A few kills here; the law at size: ``WINDOWPANE_KILLS=20 python -m pytest -q -m slow tests/sql/on_spark/test_killed.py``.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

from tests.sql.killed_program import main
from windowpane.stores import open_store

ROOT = Path(__file__).parents[3]
KILLS = int(os.environ.get("WINDOWPANE_KILLS", "2"))


def killed_run(store: str, url: str, rng: random.Random, rows: int, *options: str) -> None:
    """Start the program and kill it, again and again, until it has come to its end."""
    command = [sys.executable, "-m", "tests.sql.killed_program", store, url, str(rows), *options]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    for patience in (*(rng.randint(1, 2) for _ in range(KILLS)), 1000):
        process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True)
        assert process.stdout is not None
        for _ in range(patience):
            if not process.stdout.readline():
                break
        else:
            time.sleep(rng.random() * (3 if "spark" in options else 0.05))
            os.killpg(process.pid, signal.SIGKILL)  # with the JVM, if there is one
        process.stdout.close()
        process.wait(timeout=60)
    assert process.returncode == 0


VISIBLE = {"running": "n, g, s", "sums": "g, c, s, last", "best": "g, n, s", "totals": "g, c, total"}


def views(read: Callable[[str], list[tuple]]) -> dict[str, list[tuple]]:
    return {name: sorted(read(f"SELECT {items} FROM {name}")) for name, items in VISIBLE.items()}


def stored_views(state: str) -> dict[str, list[tuple]]:
    with duckdb.connect(state) as connection:
        return views(lambda query: connection.execute(query).fetchall())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rows", "options"),
    [(18, ()), (18, ("served",)), pytest.param(12, ("spark", "served"), marks=pytest.mark.spark)],
    ids=["embedded", "embedded, served", "spark, served"],
)
def test_killed_runs_end_as_undisturbed_ones(tmp_path: Path, postgres_url: str, rows: int, options: tuple[str, ...]) -> None:
    rows += 6 * (KILLS - 2)
    killed, calm = str(tmp_path / "killed.duckdb"), str(tmp_path / "calm.duckdb")
    killed_run(killed, postgres_url, random.Random(5), rows, *options)
    main(calm, "", rows)

    expected = stored_views(calm)
    assert stored_views(killed) == expected
    assert len(expected["running"]) == rows

    sink = open_store(str(tmp_path / "killed.sink.duckdb"))
    assert sorted(sink.read("SELECT g, c, total FROM totals")) == expected["totals"]
    sink.close()
    server = open_store(postgres_url)
    assert sorted(server.read("SELECT g, n, s FROM best_sink")) == expected["best"]
    if "served" in options:
        assert views(server.read) == expected
    server.close()
