"""What goes wrong with a topic or a table while it is read and written: a named error, or the right rows later; nothing twice."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.connectors.conftest import Broker
from tests.connectors.test_sql_sources import topic_in
from tests.connectors.test_tables import catalog_in, read
from windowpane.connectors import delta, iceberg, kafka_client, kafka_writing
from windowpane.connectors.kafka_client import Connection, Topics
from windowpane.connectors.kafka_writing import BucketWriter, MessageFormat
from windowpane.errors import ConnectorError, FencedWriterError, MissingOffsetsError, TableSchemaError, UnknownTopicError
from windowpane.sql import Session

ROWS = pa.table({"k": ["a", "b"], "v": [1, 2]})


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait three seconds for an answer."""
    for module in (kafka_client, kafka_writing):
        monkeypatch.setattr(module, "PATIENCE", 3.0)


def counted(session: Session) -> int:
    (row,) = session.query("SELECT count(*) FROM c").rows()
    return int(row[0])


def test_a_topic_that_is_deleted_and_made_anew_is_not_taken_for_the_old_one(broker: Broker) -> None:
    from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

    topic, admin = broker.topic(1), AdminClient({"bootstrap.servers": broker.servers})
    broker.send(topic, *(json.dumps({"v": number}) for number in range(5)))
    with Session() as session:
        session.run(f"CREATE SOURCE c (v int) {topic_in(broker, topic)} FORMAT PLAIN ENCODE JSON; FLUSH")
        assert counted(session) == 5
        admin.delete_topics([topic])[topic].result()
        deadline = time.monotonic() + 20
        while topic in admin.list_topics(timeout=5).topics and time.monotonic() < deadline:
            time.sleep(0.2)
        with pytest.raises(UnknownTopicError, match=f"no topic '{topic}'"):
            session.run("FLUSH")
        admin.create_topics([NewTopic(topic, 1, 1)])[topic].result()
        broker.send(topic, '{"v": 10}')
        with pytest.raises(MissingOffsetsError, match="from offset 5 on, and Kafka has 0 to 0 there"):
            session.run("FLUSH")
        assert counted(session) == 5


def test_a_broker_that_is_away_is_named_and_its_messages_are_taken_once_when_it_is_back(broker: Broker, impatient: None) -> None:
    topic, to = broker.topic(2), broker.topic(1)
    keyed = topic_in(broker, to, ", primary_key = 'k'")
    sink = f"CREATE SINK s FROM m {keyed} FORMAT UPSERT ENCODE JSON"
    with Session() as session:
        session.run(f"CREATE SOURCE c (k text, v int) {topic_in(broker, topic)} FORMAT PLAIN ENCODE JSON")
        session.run(f"CREATE MATERIALIZED VIEW m AS SELECT k, sum(v) AS total FROM c GROUP BY k; {sink}; CREATE TABLE t (x int)")
        broker.send(topic, '{"k": "a", "v": 1}')
        session.run("FLUSH")
        broker.stop()
        try:
            for _ in range(2):
                with pytest.raises(ConnectorError, match="does not answer"):
                    session.run("FLUSH")
            with pytest.raises(ConnectorError, match="does not answer"):
                session.run("CREATE MATERIALIZED VIEW u AS SELECT x FROM t; INSERT INTO t VALUES (1); FLUSH")
            assert session.query("SELECT x FROM u").rows() == [(1,)]  # other rows do not wait for it
        finally:
            broker.start()
        broker.send(topic, '{"k": "a", "v": 2}')
        deadline = time.monotonic() + 30
        while session.query("SELECT total FROM m").rows() != [(3,)] and time.monotonic() < deadline:
            try:
                session.run("FLUSH")
            except ConnectorError:
                time.sleep(0.5)
        assert session.query("SELECT total FROM m").rows() == [(3,)]
        assert [json.loads(value or b"")["total"] for _, _, value in broker.read(to)] == [1, 3]


def test_columns_that_come_and_go_in_the_middle_of_a_topic(broker: Broker) -> None:
    topic = broker.topic(1)
    broker.send(topic, '{"k": "a", "v": 1}', '{"k": "b", "v": 2, "new": {"x": 1}}', '{"v": 3}', '{"k": {"x": 1}, "v": "four"}')
    with Session() as session:
        session.run(f"CREATE SOURCE c (k text, v int) {topic_in(broker, topic)} FORMAT PLAIN ENCODE JSON; FLUSH")
        assert session.query("SELECT k, v FROM c").rows() == [("a", 1), ("b", 2), (None, 3), ('{"x":1}', None)]
        (shown,) = session.query("SHOW ERRORS").rows()
        assert f"{topic}, partition 0, offset 3" in str(shown)


def test_a_message_of_ten_megabytes_is_read_and_written(broker: Broker) -> None:
    limit = 30 << 20
    topic, to = (broker.topic(1, **{"max.message.bytes": str(limit)}) for _ in range(2))
    text = "x" * (10 << 20)
    broker.send(topic, json.dumps({"k": "a", "v": text}), '{"k": "b", "v": "y"}', **{"message.max.bytes": limit})
    sink = topic_in(broker, to, f", properties.message.max.bytes = '{limit}'")
    with Session() as session:
        session.run(f"CREATE SOURCE c (k text, v text) {topic_in(broker, topic)} FORMAT PLAIN ENCODE JSON; FLUSH")
        assert session.query("SELECT k, length(v) FROM c").rows() == [("a", len(text)), ("b", 1)]
        session.run(f"CREATE SINK s FROM c {sink} FORMAT PLAIN ENCODE JSON; FLUSH")
    assert [len(json.loads(value or b"")["v"]) for _, _, value in broker.read(to)] == [len(text), 1]


def test_wrong_credentials_are_named_without_them(broker: Broker, impatient: None) -> None:
    secrets = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "me",
        "sasl.password": "hunter2",
    }
    connection = Connection(broker.servers, secrets)
    with pytest.raises(ConnectorError, match=broker.servers) as caught, connection.consumer() as consumer:
        connection.partitions(consumer, Topics(("t",)))
    assert "hunter2" not in f"{caught.value}{connection!r}"


def test_of_two_writers_with_one_transactional_id_the_first_is_fenced(broker: Broker) -> None:
    topic, connection = broker.topic(1), Connection(broker.servers)

    def writer() -> BucketWriter:
        return BucketWriter(connection, topic, MessageFormat(("k",), "text", "append"), 0, topic, int)

    def batch(value: str) -> pa.RecordBatch:
        return pa.RecordBatch.from_pydict({"k": ["a"], "v": [value]})

    def overtaken() -> Iterator[pa.RecordBatch]:
        yield batch("of the first")
        assert [each.to_pylist() for each in writer()([batch("of the second")])] == [[{"written": 1}]]
        yield batch("of the first")

    with pytest.raises(FencedWriterError, match=f"writes as '{topic}"):
        list(writer()(overtaken()))
    assert [value for _, _, value in broker.read(topic)] == [b"of the second"]


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_a_table_that_another_writer_changes_has_the_rows_of_both(kind: str, tmp_path: Path) -> None:
    """Rows between two batches stay; columns that were taken away stop the writer before its batch."""
    table: Any = delta.Table(str(tmp_path / "t")) if kind == "delta" else iceberg.Table("db.t", catalog_in(tmp_path))
    table.prepared(ROWS.schema)
    assert table.merge(ROWS.to_batches(), ("k",), "ours", 0) == 2
    table.merge(pa.table({"k": ["c"], "v": [7]}).to_batches(), ("k",), "theirs", 0)
    table.merge(pa.table({"k": ["a", "c"], "v": [9, 8]}).to_batches(), ("k",), "ours", 1)
    assert read(table) == [{"k": "a", "v": 9}, {"k": "b", "v": 2}, {"k": "c", "v": 8}]
    assert (table.taken("ours"), table.taken("theirs")) == (1, 0)
    with pytest.raises(TableSchemaError, match="table absent, rows"):
        table.prepared(ROWS.append_column("w", pa.array([1, 2])).schema)


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
@pytest.mark.parametrize("way", ["append", "merge"])
def test_two_queries_that_write_a_table_at_once_lose_nothing_and_write_nothing_twice(kind: str, way: str, tmp_path: Path) -> None:
    """Their commits conflict: each is tried again on what the other has made of the table, and keys of both stay."""

    def opened() -> Any:
        return delta.Table(str(tmp_path / "t")) if kind == "delta" else iceberg.Table("db.t", catalog)

    catalog = catalog_in(tmp_path)
    opened().prepared(ROWS.schema)
    key = ("k",) if way == "merge" else ()

    def write(query: str) -> None:
        table = opened()
        for number in range(6):
            rows = pa.table({"k": [query, f"{query}{number}"], "v": [number, number]})
            if way == "merge" or kind == "iceberg":
                table.merge(rows.to_batches(), key, query, number)
            else:
                there = table.prepared(rows.schema)
                writer = delta.FileWriter(table.uri, table.storage, rows.schema, (), "part")
                table.append(there, [each for batch in writer(rows.to_batches()) for each in batch.to_pylist()], query, number)

    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(write, query) for query in ("a", "b")]:
            done.result()
    wanted = [{"k": f"{query}{number}", "v": number} for query in ("a", "b") for number in range(6)]
    if way == "merge":
        wanted += [{"k": query, "v": 5} for query in ("a", "b")]
    else:
        wanted += [{"k": query, "v": number} for query in ("a", "b") for number in range(6)]
    assert sorted(read(opened()), key=str) == sorted(wanted, key=str)
    assert (opened().taken("a"), opened().taken("b")) == (5, 5)
