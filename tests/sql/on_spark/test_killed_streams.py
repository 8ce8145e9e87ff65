"""Kill -9 of the driver and of executors: views that are one streaming query hold what they must, in DuckDB and in PostgreSQL."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import defaultdict
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from windowpane.stores import open_store

pytestmark = pytest.mark.spark

ROOT = Path(__file__).parents[3]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
FILES, LATER = 4, 2
CLUSTER = "local-cluster[2,1,1024]"
PATIENCE = 300
BEGIN = datetime(2024, 1, 1)


def write(folder: Path, rng: random.Random) -> dict[str, list[tuple]]:
    """Write files of a minute each, and return the rows of the views; one row later closes all minutes."""
    folder.mkdir()
    minutes: dict[tuple[int, datetime], list[int]] = defaultdict(list)
    keys: dict[int, list[int]] = defaultdict(list, {0: [0]})
    for number in range(FILES + LATER):
        rows = [(rng.randrange(50), rng.randrange(1000), 60 * number + rng.randrange(-30, 60)) for _ in range(2_000)]
        for k, v, second in rows:
            minutes[k, BEGIN + timedelta(minutes=second // 60)].append(v)
            keys[k].append(v)
        rows += [(0, 0, 36_000)] if number == FILES + LATER - 1 else []
        columns = [list(column) for column in zip(*((k, v, BEGIN + timedelta(seconds=s)) for k, v, s in rows), strict=True)]
        path, kinds = folder / f"{number}.parquet", [pa.int32(), pa.int64(), pa.timestamp("us")]
        arrays = [pa.array(column, kind) for column, kind in zip(columns, kinds, strict=True)]
        pq.write_table(pa.table(arrays, names=["k", "v", "at"]), path)
        os.utime(path, (number, number))
    sums: dict[datetime, list[int]] = defaultdict(list)
    for (_, minute), values in minutes.items():
        sums[minute].append(sum(values))
    places = [
        (k, minute, sum(values), 1 + sum(each > sum(values) for each in sums[minute])) for (k, minute), values in minutes.items()
    ]
    return {
        "largest": sorted(row for row in places if row[-1] <= 3),
        "minutes": sorted((*key, len(values), sum(values)) for key, values in minutes.items()),
        "totals": sorted((key, len(values), sum(values), len(set(values))) for key, values in keys.items()),
        "whole": [(len(keys), sum(map(len, keys.values())), sum(map(sum, keys.values())))],
    }


class Run:
    """A run of the program, which is killed in the end: the driver, and with it its JVM and the executors."""

    def __init__(self, folder: Path, store: Path, url: str, master: str) -> None:
        """Start it."""
        self._streams, self._log = store.parent, store.parent / "log"
        command = [sys.executable, "-m", "tests.sql.killed_streams", str(folder), str(store), url, master]
        with self._log.open("a") as log:
            self.process = subprocess.Popen(command, cwd=ROOT, env=ENVIRONMENT, stdout=log, stderr=log, start_new_session=True)

    def wait(self, batches: int, seconds: float) -> None:
        """Wait until so many batches are committed, and a while longer."""
        until = time.monotonic() + PATIENCE
        while self.committed < batches:
            assert self.process.poll() is None, self._said()
            assert time.monotonic() < until, self._said()
            time.sleep(0.05)
        time.sleep(seconds)

    def end(self) -> None:
        """Wait until it is done."""
        assert self.process.wait(timeout=PATIENCE) == 0, self._said()

    def _said(self) -> str:
        """Return the end of what the runs of the program said."""
        return self._log.read_text()[-5000:]

    @property
    def committed(self) -> int:
        """How many batches are committed, of all queries."""
        return len(list(self._streams.glob("*.streams/*/checkpoint/commits/[0-9]*")))

    def __enter__(self) -> Run:
        """Go on with it."""
        return self

    def __exit__(self, *_: object) -> None:
        """Kill it."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(timeout=60)

    def kill_executor(self) -> None:
        """Kill one executor."""
        listed = subprocess.run(["ps", "-eww", "-o", "pid=,sid=,args="], capture_output=True, text=True, check=True).stdout
        rows = [line.split(None, 2) for line in listed.splitlines()]
        found = [int(pid) for pid, sid, args in rows if int(sid) == self.process.pid and "CoarseGrainedExecutorBackend" in args]
        os.kill(found[0], signal.SIGKILL)


def check_stores(store: Path, url: str, expected: dict[str, list[tuple]]) -> None:
    """Compare the views of both stores with the rows that they are to hold."""
    columns = {
        "minutes": "k, window_start, n, s",
        "largest": "k, window_start, s, place",
        "totals": "k, n, s, d",
        "whole": "c, n, s",
    }
    server = open_store(url)
    with duckdb.connect(str(store)) as connection:
        for view, rows in expected.items():
            query = f"SELECT {columns[view]} FROM {view}"
            assert sorted(connection.execute(query).fetchall()) == rows
            assert sorted(server.read(query)) == rows
    server.close()


@pytest.mark.slow
def test_a_view_over_killed_drivers_and_executors_has_each_row_once(tmp_path: Path, postgres_url: str) -> None:
    rng, store = random.Random(8), tmp_path / "views.duckdb"
    expected = write(tmp_path / "in", rng)

    begun = partial(Run, tmp_path / "in", store, postgres_url)

    later = [tmp_path / "in" / f"{number}.parquet" for number in range(FILES, FILES + LATER)]
    for path in later:
        path.rename(tmp_path / path.name)
    with begun(CLUSTER) as run:
        run.wait(2, rng.random())
        run.kill_executor()
        run.wait(3, rng.random())
    with begun(CLUSTER) as run:
        run.wait(2 * FILES + 3, rng.random())
        run.kill_executor()
        run.wait(2 * FILES + 4, rng.random())
    with begun("local[2]") as run:
        run.end()
    committed = run.committed
    for path in later:
        (tmp_path / path.name).rename(path)
    with begun("local[2]") as run:
        run.wait(committed + 3, rng.random())
    with begun("local[2]") as run:
        run.end()

    check_stores(store, postgres_url, expected)
