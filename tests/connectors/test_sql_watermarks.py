"""Watermarks of partitions in SQL: six partitions, one ten minutes behind, one idle, and no row is late, as in Flink's source."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from tests.connectors.conftest import Broker
from tests.connectors.test_sql_sources import topic_in
from tests.spark.helpers import instant
from windowpane.errors import SqlRunError, UnsupportedSqlError
from windowpane.sql import Session

SLOW, IDLE = 4, 5  # the partition that is ten minutes behind, and the one without rows
STEPS = 6
COLUMNS = "(p int, at timestamptz, WATERMARK FOR at AS at - INTERVAL '10 seconds')"
VIEW = """
    CREATE MATERIALIZED VIEW w AS SELECT window_end, count(*) AS n, count(*) FILTER (WHERE p = 4) AS slow
    FROM TUMBLE(s, at, INTERVAL '1 minute') GROUP BY window_end EMIT ON WINDOW CLOSE
"""


def send(broker: Broker, topic: str, step: int) -> None:
    """Send a row each for all partitions but the idle one: two minutes of event time a step."""
    for partition in range(SLOW + 1):
        seconds = 120 * step + (0 if partition == SLOW else 600)
        broker.send(topic, json.dumps({"p": partition, "at": instant(seconds).isoformat()}), partition=partition)


def closed(steps: int) -> list[tuple[int, int, int]]:
    """Return the windows that the watermark of the slow partition closes: its latest time less ten seconds, by hand."""
    windows: dict[int, list[int]] = {}
    for step in range(steps):
        for partition in range(SLOW + 1):
            seconds = 120 * step + (0 if partition == SLOW else 600)
            count = windows.setdefault(seconds // 60 * 60 + 60, [0, 0])
            count[0] += 1
            count[1] += partition == SLOW
    reached = 120 * (steps - 1) - 10
    return [(end, count, slow) for end, (count, slow) in sorted(windows.items()) if end <= reached]


def windows(session: Session) -> list[tuple[int, int, int]]:
    rows = session.query("SELECT extract(epoch FROM window_end)::bigint, n, slow FROM w ORDER BY 1").rows()
    return [(end - int(instant(0).timestamp()), n, slow) for end, n, slow in rows]


def late(session: Session) -> int:
    return sum(each["Late Rows"] for each in session.query("SHOW WATERMARKS").dicts())


def run(session: Session, broker: Broker, topic: str, steps: range) -> None:
    """Run steps, of which the first was sent before the view was made: a partition is known from its first row on."""
    for step in steps:
        if step:
            send(broker, topic, step)
        session.run("FLUSH")
        assert windows(session) == closed(step + 1)


def test_a_slow_partition_loses_no_row(broker: Broker, tmp_path: Path) -> None:
    topic, store = broker.topic(6), str(tmp_path / "store.db")
    send(broker, topic, 0)
    with Session(store) as session:
        session.run(f"CREATE SOURCE s {COLUMNS} {topic_in(broker, topic)} FORMAT PLAIN ENCODE JSON; {VIEW}")
        run(session, broker, topic, range(STEPS // 2))
    with Session(store) as session:
        run(session, broker, topic, range(STEPS // 2, STEPS))
        assert late(session) == 0
        assert session.query("SELECT count(*) FROM s").rows() == [(STEPS * 5,)]
        session.run("ALTER SOURCE s RENAME TO t")
        session.run("DROP SOURCE t CASCADE")
        assert session._storage.run("SELECT * FROM windowpane.splits") == []


def test_a_partition_that_falls_silent_is_waited_for_no_longer_than_said(broker: Broker) -> None:
    topic = broker.topic(2)
    idle = ", \"scan.watermark.idle-timeout\" = '200 milliseconds'"

    def at(seconds: int, partition: int) -> None:
        broker.send(topic, json.dumps({"p": 0, "at": instant(seconds).isoformat()}), partition=partition)

    with Session() as session:
        session.run(f"CREATE SOURCE s {COLUMNS} {topic_in(broker, topic, idle)} FORMAT PLAIN ENCODE JSON; {VIEW}")
        at(0, 0)
        at(600, 1)
        session.run("FLUSH")
        assert windows(session) == []
        deadline = time.monotonic() + 20
        while not windows(session) and time.monotonic() < deadline:
            time.sleep(0.15)
            at(601, 1)
            session.run("FLUSH")
        assert windows(session) == [(60, 1, 0)]
        at(1, 0)
        session.run("FLUSH")
        assert late(session) == 1


def test_how_long_a_watermark_waits_is_checked(broker: Broker) -> None:
    topic = broker.topic(1)
    soon, minute = (topic_in(broker, topic, f", scan.watermark.idle-timeout = '{each}'") for each in ("soon", "1 minute"))
    with Session() as session:
        with pytest.raises(UnsupportedSqlError, match="'soon' is not supported"):
            session.run(f"CREATE SOURCE s {COLUMNS} {soon} FORMAT PLAIN ENCODE JSON")
        with pytest.raises(SqlRunError, match="says how long a watermark waits, and there is none"):
            session.run(f"CREATE SOURCE s (p int) {minute} FORMAT PLAIN ENCODE JSON")


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("kind", ["SOURCE", "TABLE"])
def test_a_slow_partition_loses_no_row_on_spark(spark: Any, broker: Broker, kind: str) -> None:
    """A source is read by the tasks of the view, a table goes into the store: both have a watermark of each partition."""
    topic = broker.topic(6)
    send(broker, topic, 0)
    only = " APPEND ONLY" if kind == "TABLE" else ""
    with Session(spark) as session:
        session.run(f"CREATE {kind} s {COLUMNS}{only} {topic_in(broker, topic)} FORMAT PLAIN ENCODE JSON; {VIEW}")
        run(session, broker, topic, range(3))
        assert late(session) == 0
