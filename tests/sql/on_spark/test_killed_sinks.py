"""Kill -9 of the driver in deliveries, and of Python workers: sinks of SQL on Spark have each change once."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest

from tests.spark.killed_processes import workers_of
from tests.sql.on_spark.test_killed_streams import write
from windowpane.stores import open_store
from windowpane.windowing.outputs import APPEARING

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
KILLS = int(os.environ.get("WINDOWPANE_KILLS", "5"))
PATIENCE = 600.0


def run(work: Path, url: str, engine: str, chance: random.Random, *seed: str) -> int:
    """Run the program, killing a Python worker or two if it has a seed; return its exit code."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    command = [sys.executable, "-m", "tests.sql.killed_sinks", str(work / "in"), str(work), url, engine, *seed]
    kills, due, deadline = chance.randrange(3) if seed else 0, time.monotonic() + 15, time.monotonic() + PATIENCE
    with (work / "log").open("a") as log:
        process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=log, stderr=log, start_new_session=True)
    while process.poll() is None:
        assert time.monotonic() < deadline, (work / "log").read_text()[-4000:]
        if kills and time.monotonic() > due and (workers := workers_of(process.pid)):
            with suppress(ProcessLookupError):
                os.kill(chance.choice(workers), signal.SIGKILL)
            kills, due = kills - 1, time.monotonic() + chance.random() * 8
        time.sleep(0.05)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    return process.returncode


def net(folder: Path) -> list[tuple]:
    """Return the rows that the changes in the files of a sink leave; no change takes back a row that no view had."""
    rows = Counter[tuple]()
    for file in sorted(folder.glob("*.parquet")):
        for *row, word in (tuple(row.values()) for row in pq.read_table(file).to_pylist()):
            rows[tuple(row)] += 1 if word in APPEARING else -1
        assert min(rows.values(), default=0) >= 0, file
    return sorted(rows.elements())


@pytest.mark.parametrize("engine", ["embedded", pytest.param("spark", marks=pytest.mark.spark)])
def test_sinks_of_killed_sessions_have_each_change_once(tmp_path: Path, postgres_url: str, engine: str) -> None:
    number = int(os.environ.get("WINDOWPANE_KILL_SEED", "1"))
    chance = random.Random(number)
    expected = write(tmp_path / "in", chance)
    codes = [run(tmp_path, postgres_url, engine, chance, str(100 * number + each)) for each in range(KILLS)]
    code = run(tmp_path, postgres_url, engine, chance)
    assert code == 0, (tmp_path / "log").read_text()[-4000:]
    print(codes)
    with duckdb.connect(str(tmp_path / "sink.duckdb")) as connection:
        assert sorted(connection.execute("SELECT k, n, s, d FROM totals").fetchall()) == expected["totals"]
    server = open_store(postgres_url)
    assert sorted(server.read("SELECT k, n, s, d FROM totals_sink")) == expected["totals"]
    with duckdb.connect() as connection:
        highest = connection.execute(f"SELECT k, max(v) FROM '{tmp_path}/in/*.parquet' GROUP BY k").fetchall()
        large = connection.execute(f"SELECT k, v, t.at FROM '{tmp_path}/in/*.parquet' AS t WHERE v > 900 ORDER BY ALL").fetchall()
    assert sorted(server.read("SELECT k, high FROM high_sink")) == sorted(highest)
    server.close()
    assert net(tmp_path / "totals") == expected["totals"]
    assert net(tmp_path / "minutes") == net(tmp_path / "closed") == expected["minutes"]
    assert sorted(row[:3] for row in net(tmp_path / "large")) == large
