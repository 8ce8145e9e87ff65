"""SQL sessions over Spark Connect: a server and its clients, each a process of its own, of which some are killed."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.spark.helpers import SPARK
from tests.sql.on_spark.test_killed_streams import ENVIRONMENT, FILES, LATER, PATIENCE, ROOT, Run, check_stores, write

pytestmark = [pytest.mark.spark, pytest.mark.skipif(SPARK < (4, 1), reason="transformWithState on Connect came with Spark 4.1")]


@contextmanager
def server(folder: Path) -> Iterator[str]:
    """Let a server run, which is killed in the end; yield its address."""
    command = [sys.executable, "-m", "tests.sql.connect_server"]
    with (folder / "server").open("a") as log:
        process = subprocess.Popen(
            command, cwd=ROOT, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True
        )
    try:
        assert process.stdout is not None
        address = next((line.strip() for line in process.stdout if line.startswith("sc://")), "")
        assert address, (folder / "server").read_text()[-2000:]
        yield address
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(timeout=60)


@pytest.mark.slow
def test_views_on_sources_tables_and_views_over_a_restart(tmp_path: Path) -> None:
    with server(tmp_path) as address:
        script = [sys.executable, "-m", "tests.sql.connect_program", address, str(tmp_path)]
        done = subprocess.run(script, cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    said: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    first = [["a", "2024-01-01 00:00:00", "2", "5"], ["b", "2024-01-01 00:00:00", "1", "2"]]
    assert said["first"] == {
        "minutes": first,
        "totals": [["a", "5"], ["b", "4"]],
        "watermarks": [["ticks in minutes", "2024-01-01 00:01:51", "0"]],
    }
    closed = [("a", "01", "8"), ("a", "02", "16"), ("b", "02", "32")]
    assert said["again"] == {
        "minutes": sorted([*first, *([sym, f"2024-01-01 00:{minute}:00", "1", s] for sym, minute, s in closed)]),
        "totals": [["a", "29"], ["b", "340"]],
        "watermarks": [["ticks in minutes", "2024-01-01 00:03:20", "1"]],
    }
    # Opening the session has taken the file, and the flush the weight.
    assert said["changed"] == [["b", "340", "update_postimage"], ["b", "68", "update_preimage"]]
    refused = said["refused"]
    assert "storing the rows of 'filled' on Spark Connect is not supported" in refused["stored"]
    assert "storing the rows of 'ticks' on Spark Connect is not supported" in refused["a sink that follows a source"]
    assert refused["fails"] == 'invalid input syntax for type integer: "one".'
    assert said["endless"] == [True, 0]


@pytest.mark.slow
def test_a_view_over_killed_clients_and_servers_has_each_row_once(tmp_path: Path, postgres_url: str) -> None:
    rng, store, folder = random.Random(9), tmp_path / "views.duckdb", tmp_path / "in"
    expected = write(folder, rng)
    later = [folder / f"{number}.parquet" for number in range(FILES, FILES + LATER)]
    for path in later:
        path.rename(tmp_path / path.name)
    with server(tmp_path) as address:
        with Run(folder, store, postgres_url, address) as run:
            run.wait(2, rng.random())
        with Run(folder, store, postgres_url, address) as run:
            run.wait(2 * FILES + 2, rng.random())
    with server(tmp_path) as address:
        with Run(folder, store, postgres_url, address) as run:
            run.end()
        committed = run.committed
        for path in later:
            (tmp_path / path.name).rename(path)
        with Run(folder, store, postgres_url, address) as run:
            run.wait(committed + 3, rng.random())
        with Run(folder, store, postgres_url, address) as run:
            run.end()

    check_stores(store, postgres_url, expected)
