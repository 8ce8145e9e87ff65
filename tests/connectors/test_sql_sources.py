"""Topics as sources of SQL without Spark: messages as rows and as changes, once over restarts; a script that is followed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import pytest

from tests.connectors.conftest import Broker
from windowpane.errors import (
    ConnectorError,
    MissingOffsetsError,
    SqlNameError,
    SqlRunError,
    UnknownTopicError,
    UnsupportedSqlError,
    UnsupportedStoreError,
)
from windowpane.sql import Session
from windowpane.sql.on_spark.spark_runner import SparkRunner
from windowpane.sql.shell.commands import left_of


def topic_in(broker: Broker, topic: str, more: str = "") -> str:
    return f"WITH (connector = 'kafka', topic = '{topic}', properties.bootstrap.server = '{broker.servers}'{more})"


def test_messages_are_rows_once_over_restarts(broker: Broker, tmp_path: Path) -> None:
    topic, store = broker.topic(2), str(tmp_path / "store.db")
    broker.send(topic, ("x", '{"k": "a", "v": 1, "d": 12345678901234567.25}'), ("y", '{"k": "b", "v": 2}'), partition=0)
    broker.send(topic, (None, b"no"), ("z", '{"k": "a", "v": "x"}'), (None, None), partition=1)
    with Session(store) as session:
        session.run(f"""
            CREATE SOURCE c (k varchar, v int, d numeric, j jsonb) INCLUDE key AS m INCLUDE partition AS p INCLUDE offset AS o
            INCLUDE timestamp AS at {topic_in(broker, topic)} FORMAT PLAIN ENCODE JSON;
            CREATE MATERIALIZED VIEW s AS SELECT k, sum(v) AS total, count(*) AS n FROM c GROUP BY k;
            FLUSH
        """)
        rows = session.query("SELECT k, v, d::text, m, p, o, at > timestamptz '2020-01-01' FROM c ORDER BY p, o").rows()
        assert rows == [
            ("a", 1, "12345678901234567.25", b"x", "0", "0", True),
            ("b", 2, None, b"y", "0", "1", True),
            ("a", None, None, b"z", "1", "1", True),
        ]
        shown = str(session.query("SHOW ERRORS").rows())
        assert all(f"{topic}, partition 1, offset {number}" in shown for number in range(3))
    broker.send(topic, (None, '{"k": "b", "v": 5}'))
    for _ in range(2):
        with Session(store) as session:
            session.run("FLUSH")
            assert session.query("SELECT * FROM s ORDER BY k").rows() == [("a", 1, 2), ("b", 7, 2)]
    with Session(store) as session:
        session.run("ALTER SOURCE c RENAME TO orders; FLUSH; DROP SOURCE orders CASCADE")
        assert session._storage.run("SELECT * FROM windowpane.offsets") == []


def test_upserts_and_tombstones_of_a_topic_keep_a_table(broker: Broker) -> None:
    topic = broker.topic(1)
    by_key = "CREATE TABLE t (k varchar, v int, PRIMARY KEY (k))"
    by_message = "CREATE TABLE u (v int, PRIMARY KEY (m)) INCLUDE key AS m"
    with Session() as session:
        for table in (by_key, by_message):
            session.run(f"{table} {topic_in(broker, topic)} FORMAT UPSERT ENCODE JSON")
        session.run("CREATE MATERIALIZED VIEW s AS SELECT sum(v) AS total FROM t")
        broker.send(topic, ('{"k": "a"}', '{"k": "a", "v": 1}'), ('{"k": "b"}', '{"k": "b", "v": 2}'), (None, '{"k": "c"}'))
        session.run("FLUSH")
        assert session.query("SELECT * FROM t ORDER BY k").rows() == [("a", 1), ("b", 2)]
        assert session.query("SELECT * FROM u ORDER BY v").rows() == [(1, b'{"k": "a"}'), (2, b'{"k": "b"}')]
        assert "it has no key" in str(session.query("SHOW ERRORS").rows())
        broker.send(topic, ('{"k": "a"}', None), ('{"k": "b"}', '{"k": "b", "v": 5}'), ('{"k": "d"}', '{"k": "d", "v": 9}'))
        broker.send(topic, ('{"k": "d"}', None), ('{"k": "x"}', None))
        session.run("FLUSH")
        assert session.query("SELECT * FROM t").rows() == [("b", 5)]
        assert session.query("SELECT * FROM u").rows() == [(5, b'{"k": "b"}')]
        assert session.query("SELECT * FROM s").rows() == [(5,)]


def test_changes_of_debezium_keep_a_table(broker: Broker) -> None:
    topic = broker.topic(1)

    def change(op: str, before: Any, after: Any, **around: Any) -> tuple[str, str]:
        return "{}", json.dumps(
            {"before": before, "after": after, "op": op}
            if not around
            else {"payload": {"before": before, "after": after, "op": op}}
        )

    with Session() as session:
        session.run(
            "CREATE TABLE t (id int PRIMARY KEY, v varchar NOT NULL, d numeric) "
            f"{topic_in(broker, topic)} FORMAT DEBEZIUM ENCODE JSON"
        )
        broker.send(topic, change("r", None, {"id": 1, "v": "a"}), change("c", None, {"id": 2, "v": "b"}))
        broker.send(topic, change("u", {"id": 1, "v": "a"}, {"id": 7, "v": "A"}, payload=1), ("{}", '{"id": 3}'))
        session.run("FLUSH")
        assert session.query("SELECT id, v FROM t ORDER BY id").rows() == [(2, "b"), (7, "A")]
        assert "it is no change of Debezium's" in str(session.query("SHOW ERRORS").rows())
        broker.send(topic, change("d", {"id": 2}, None), ("{}", None), change("c", None, {"id": 2, "v": "new"}))
        broker.send(topic, change("d", {"id": 7, "v": "A"}, None))
        session.run("FLUSH")
        assert session.query("SELECT id, v FROM t").rows() == [(2, "new")]


def test_where_a_source_begins_and_what_cannot_be(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    topic = broker.topic(1)
    broker.send(topic, "before")
    with Session() as session:
        begins = topic_in(broker, topic, ", scan.startup.mode = 'latest'")
        session.run(f"CREATE SOURCE c (m bytea) {begins} FORMAT PLAIN ENCODE BYTES")
        broker.send(topic, "after")
        session.run("FLUSH")
        assert session.query("SELECT m FROM c").rows() == [(b"after",)]
        with pytest.raises(UnknownTopicError, match="no topic 'mistyped'"):
            session.run(f"CREATE SOURCE d (m bytea) {topic_in(broker, 'mistyped')} FORMAT PLAIN ENCODE BYTES")
        with pytest.raises(SqlRunError, match="CREATE TABLE it with a PRIMARY KEY"):
            session.run(f"CREATE SOURCE d (k int) {topic_in(broker, topic)} FORMAT UPSERT ENCODE JSON")
        with pytest.raises(SqlNameError, match=r"Did you mean 'scan\.startup\.mode'"):
            session.run(f"CREATE SOURCE d (k int) {topic_in(broker, topic, ', scan.startup.mod = 1')} FORMAT PLAIN ENCODE JSON")
        with pytest.raises(SqlRunError, match="a message is one column"):
            session.run(f"CREATE SOURCE d (k int, l int) {topic_in(broker, topic)} FORMAT PLAIN ENCODE BYTES")
        with pytest.raises(UnsupportedSqlError, match="ENCODE BYTES of changes"):
            session.run(f"CREATE TABLE d (k int PRIMARY KEY) {topic_in(broker, topic)} FORMAT UPSERT ENCODE BYTES")
    away = topic_in(broker, topic).replace(broker.servers, "127.0.0.1:1")
    monkeypatch.setattr("windowpane.connectors.kafka_client.PATIENCE", 1.0)
    with Session() as session, pytest.raises(ConnectorError, match="does not answer"):
        session.run(f"CREATE SOURCE d (m bytea) {away} FORMAT PLAIN ENCODE BYTES")


def test_messages_that_are_gone_stop_the_source_by_their_numbers(broker: Broker) -> None:
    from confluent_kafka import TopicPartition
    from confluent_kafka.admin import AdminClient

    topic = broker.topic(1)
    broker.send(topic, *map(str, range(5)))
    with Session() as session:
        session.run(f"CREATE SOURCE c (m bytea) {topic_in(broker, topic)} FORMAT PLAIN ENCODE BYTES")
        admin = AdminClient({"bootstrap.servers": broker.servers})
        admin.delete_records([TopicPartition(topic, 0, 3)])[TopicPartition(topic, 0)].result()
        with pytest.raises(MissingOffsetsError, match=r"from offset 0 on, and Kafka has 3 to 4 there"):
            session.run("FLUSH")


SCRIPT = """
SET timezone = 'UTC';
CREATE TABLE names (k varchar PRIMARY KEY, name varchar);
INSERT INTO names VALUES ('a', 'Anna'), ('b', 'Berta');
CREATE SOURCE c (k varchar, v int) {source} FORMAT PLAIN ENCODE JSON;
CREATE MATERIALIZED VIEW s AS SELECT name, sum(v) AS total FROM c JOIN names USING (k) GROUP BY name;
CREATE SINK out FROM s WITH (connector = 'kafka', topic = '{to}', primary_key = 'name',
    properties.bootstrap.server = '{servers}') FORMAT UPSERT ENCODE JSON;
"""


def test_what_a_script_has_made_is_passed_over(tmp_path: Path) -> None:
    made = "CREATE TABLE t (k int);\nINSERT INTO t VALUES (1);\nCREATE MATERIALIZED VIEW m AS SELECT k FROM t;"
    with Session() as session:
        assert left_of(session, made) == made
        session.run(made)
        left = left_of(session, f"SET timezone = 'UTC';\n{made}\nINSERT INTO t VALUES (2); SELECT 1")
        assert " ".join(left.split()) == "SET timezone = 'UTC'; ; ; ; INSERT INTO t VALUES (2); SELECT 1"
        with pytest.raises(SqlNameError, match="'m' is in the store already, and was made by other words") as error:
            left_of(session, made.replace("SELECT k", "SELECT k + 1"))
        assert error.value.line == 3


def test_a_followed_script_goes_on_after_it_is_killed(broker: Broker, tmp_path: Path) -> None:
    topic, to = broker.topic(3), broker.topic(1)
    script, store = tmp_path / "script.sql", tmp_path / "store.db"
    script.write_text(SCRIPT.format(source=topic_in(broker, topic), to=to, servers=broker.servers))
    sent = 0

    def follow() -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "windowpane", "sql", str(script), "--follow", "--store", str(store)]
        return subprocess.Popen([*command, "--flush-every", "100 milliseconds"], stdout=subprocess.DEVNULL)

    def last() -> dict[str, int]:
        found = {}
        for _, key, value in broker.read(to):
            found[json.loads(key or b"")["name"]] = json.loads(value or b"{}").get("total")
        return found

    for round_ in range(4):
        running = follow()
        for _ in range(5):
            broker.send(topic, *(json.dumps({"k": "ab"[number % 2], "v": 1}) for number in range(200)))
            sent += 200
            time.sleep(0.3)
        if round_ < 3:
            running.send_signal(signal.SIGKILL)
            running.wait()
    wanted = {"Anna": sent // 2, "Berta": sent // 2}
    deadline = time.monotonic() + 40
    while last() != wanted and time.monotonic() < deadline:
        time.sleep(0.5)
    running.send_signal(signal.SIGTERM)
    assert running.wait(20) == 0
    assert last() == wanted
    with duckdb.connect(str(store)) as kept:
        assert kept.execute("SELECT count(*) FROM c").fetchall() == [(sent,)]
        assert kept.execute("SELECT count(*) FROM names").fetchall() == [(2,)]
    assert os.path.getsize(store) > 0


def test_spark_does_not_read_once_more_what_was_read_without_it(broker: Broker, tmp_path: Path) -> None:
    topic = broker.topic(1)
    broker.send(topic, '{"k": 1}')
    with Session(str(tmp_path / "store.db")) as session:
        session.run(f"CREATE TABLE taken (k int) {topic_in(broker, topic)} FORMAT PLAIN ENCODE JSON; FLUSH")
        runner: Any = SimpleNamespace(_storage=session._storage)
        with pytest.raises(UnsupportedStoreError, match="taken were filled without Spark, which would read their sources"):
            SparkRunner._refuse_tables_filled_elsewhere(runner, session._catalog.tables())
