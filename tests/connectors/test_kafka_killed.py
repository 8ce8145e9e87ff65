"""kill -9 of a driver and its workers at random moments, a broker stopped and started: what was committed counts once.

A few kills here; the law at size, which takes about half an hour:

    export WINDOWPANE_KILLS=50 WINDOWPANE_MESSAGES=1000000 WINDOWPANE_TRANSACTIONS=200 WINDOWPANE_RESTARTS=5
    python -m pytest -q -s -m slow tests/connectors/test_kafka_killed.py
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from confluent_kafka import Producer

from tests.connectors import killed_kafka_program
from tests.connectors.conftest import Broker
from tests.connectors.test_tables import catalog_in, read
from tests.spark.helpers import SPARK, instant
from windowpane.connectors import delta, iceberg

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.skipif(SPARK < (4, 2), reason="before Spark 4.2 a batch has all that arrived: few kills would be between two"),
]

PROGRAM = Path(killed_kafka_program.__file__)
KILLS = int(os.environ.get("WINDOWPANE_KILLS", "4"))
MESSAGES = int(os.environ.get("WINDOWPANE_MESSAGES", "20000"))
TRANSACTIONS = int(os.environ.get("WINDOWPANE_TRANSACTIONS", "40"))
RESTARTS = int(os.environ.get("WINDOWPANE_RESTARTS", "1"))
PARTITIONS, KEYS, BATCHES = 6, 500, 24
LIVES = (9.0, 30.0)  # Seconds until a process is killed; the first of them start Spark
Row = tuple[int, str, float, int]


def send(broker: Broker, topic: str, chance: random.Random) -> list[Row]:
    """Send messages in transactions, a fifth of them aborted, one partition ten minutes behind; return what was committed."""
    producer = Producer(
        {"bootstrap.servers": broker.servers, "transactional.id": topic, "queue.buffering.max.messages": 1_000_000}
    )
    producer.init_transactions(60)
    committed, each = list[Row](), MESSAGES // TRANSACTIONS
    for number in range(TRANSACTIONS):
        producer.begin_transaction()
        rows = list[Row]()
        for i in range(each):
            partition = chance.randrange(PARTITIONS)
            at = number * 20 + chance.random() * 15 + (0 if partition == 0 else 600)
            row = (number * each + i, f"k{chance.randrange(KEYS)}", round(at, 3), chance.randrange(100))
            rows.append(row)
            producer.produce(topic, written(row), partition=partition)
            producer.poll(0)
        producer.flush()
        if number % 5 == 4:
            producer.abort_transaction()
        else:
            producer.commit_transaction()
            committed += rows
    ends: list[Row] = [(-1 - partition, "end", 100_000, 0) for partition in range(PARTITIONS)]
    for partition, row in enumerate(ends):
        producer.begin_transaction()
        producer.produce(topic, written(row), partition=partition)
        producer.commit_transaction()
    return [*committed, *ends]


def written(row: Row) -> bytes:
    return json.dumps({"id": row[0], "k": row[1], "t": instant(row[2]).isoformat(), "v": row[3]}).encode()


@pytest.mark.parametrize("seed", [1])
def test_what_was_committed_counts_once(broker: Broker, tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    topic, out = broker.topic(PARTITIONS), broker.topic(3)
    committed = send(broker, topic, chance)
    command = [sys.executable, str(PROGRAM), broker.servers, topic, out, str(tmp_path), str(max(500, MESSAGES // BATCHES))]
    environment = {**os.environ, "PYTHONPATH": f"{PROGRAM.parents[2]}:{os.environ.get('PYTHONPATH', '')}"}
    restarts = {(number + 1) * KILLS // (RESTARTS + 1) for number in range(RESTARTS)}
    killed_at_work = 0
    for kill in range(KILLS):
        process = subprocess.Popen(command, env=environment, start_new_session=True, stderr=subprocess.DEVNULL)
        if kill in restarts:
            time.sleep(chance.uniform(*LIVES))
            broker.stop()  # under the running query
            broker.start()
        with suppress(subprocess.TimeoutExpired):
            process.wait(chance.uniform(*LIVES))
        killed_at_work += process.poll() is None
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    print(f"{len(committed)} of {MESSAGES} messages committed, {killed_at_work} of {KILLS} kills at work, {RESTARTS} restarts")
    log = tmp_path / "log"
    with log.open("wb") as errors:
        ended = subprocess.run(command, env=environment, stderr=errors, check=False, timeout=1_500).returncode == 0
    assert ended, log.read_text()[-4_000:]
    assert windows_of(broker, out) == expected_windows(committed)
    assert (
        iceberg.Table("db.late", catalog_in(tmp_path)).opened() is None
        or read(iceberg.Table("db.late", catalog_in(tmp_path))) == []
    )
    found = {row["id"]: row["total"] for row in read(delta.Table(str(tmp_path / "running")))}
    assert found == expected_totals(committed)


def windows_of(broker: Broker, topic: str) -> list[tuple[Any, ...]]:
    rows = [json.loads(value or b"") for _, _, value in broker.read(topic)]
    return sorted((row["k"], row["window_start"][:19], row["n"], row["total"]) for row in rows)


def table_of(rows: list[Row]) -> pa.Table:
    ids, keys, times, values = zip(*rows, strict=True)
    return pa.table({"id": ids, "k": keys, "t": pa.array([instant(at) for at in times], pa.timestamp("us", "UTC")), "v": values})


def computed(rows: list[Row], query: str) -> list[tuple[Any, ...]]:
    """Return what DuckDB makes of rows."""
    tables = duckdb.connect()
    tables.register("sent", table_of(rows))
    return tables.execute(query).fetchall()


def expected_windows(rows: list[Row]) -> list[tuple[Any, ...]]:
    start = "strftime(time_bucket(INTERVAL 10 SECONDS, t AT TIME ZONE 'UTC'), '%Y-%m-%dT%H:%M:%S')"
    return sorted(computed(rows, f"SELECT k, {start}, count(*), sum(v)::BIGINT FROM sent WHERE k <> 'end' GROUP BY ALL"))


def expected_totals(rows: list[Row]) -> dict[int, int]:
    return dict(computed(rows, "SELECT id, (sum(v) OVER (PARTITION BY k ORDER BY t, id ROWS 2 PRECEDING))::BIGINT FROM sent"))
