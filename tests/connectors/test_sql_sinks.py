"""Sources and sinks of SQL in Kafka, Delta and Iceberg, by RisingWave's own words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.connectors.conftest import Broker
from tests.connectors.test_tables import catalog_in, read
from windowpane.connectors import delta, iceberg
from windowpane.errors import ConnectorError, SqlNameError, SqlRunError, UnknownTopicError, UnsupportedSqlError
from windowpane.sql import Session

VIEW = """
CREATE TABLE t (id int PRIMARY KEY, k varchar, v int);
CREATE MATERIALIZED VIEW s AS SELECT k, sum(v) AS total FROM t GROUP BY k;
"""

TOPIC = "connector = 'kafka', topic = 't', properties.bootstrap.server = '127.0.0.1:9', primary_key = 'k',"


def test_a_view_into_kafka_as_upserts_over_a_restart(broker: Broker, tmp_path: Path) -> None:
    topic, store = broker.topic(1), str(tmp_path / "store.duckdb")
    with Session(store=store) as session:
        session.run(VIEW)
        session.run(
            f"CREATE SINK out FROM s WITH (connector = 'kafka', topic = '{topic}', primary_key = 'k', "
            f"properties.bootstrap.server = '{broker.servers}', properties.client.id = 'me', type = 'upsert')"
        )
        session.run("INSERT INTO t VALUES (1, 'a', 5), (2, 'b', 7); FLUSH")
    with Session(store=store) as session:
        session.run("INSERT INTO t VALUES (3, 'a', 1); DELETE FROM t WHERE id = 2; FLUSH")
    found = [(json.loads(key or b""), value and json.loads(value)) for _, key, value in broker.read(topic)]
    assert sorted(found[:2], key=repr) == [({"k": "a"}, {"k": "a", "total": 5}), ({"k": "b"}, {"k": "b", "total": 7})]
    assert sorted(found[2:], key=repr) == [({"k": "a"}, {"k": "a", "total": 6}), ({"k": "b"}, None)]


def test_views_into_tables(tmp_path: Path) -> None:
    merged, catalog = delta.Table(str(tmp_path / "merged")), catalog_in(tmp_path)
    with Session() as session:
        session.run(VIEW)
        session.run(f"CREATE SINK d FROM s WITH (connector = 'deltalake', type = 'upsert', location = '{merged.uri}')")
        session.run(
            "CREATE SINK i AS SELECT id, v FROM t WITH (connector = 'iceberg', type = 'append-only', database.name = 'db', "
            f"table.name = 'rows', catalog.type = 'sql', catalog.uri = '{catalog['uri']}', "
            f"warehouse.path = '{catalog['warehouse']}')"
        )
        session.run("INSERT INTO t VALUES (1, 'a', 5), (2, 'b', 7); FLUSH")
        session.run("INSERT INTO t VALUES (3, 'a', 1); FLUSH")
        assert [(row["k"], row["total"]) for row in read(merged)] == [("a", 6), ("b", 7)]
        assert [tuple(row.values()) for row in read(iceberg.Table("db.rows", catalog))] == [(1, 5), (2, 7), (3, 1)]
        session.run("DELETE FROM t WHERE id = 3")
        with pytest.raises(SqlRunError, match=r"rows of the sink were changed \(delete\)"):
            session.run("FLUSH")


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ("connector = 'kafka', topic = 't'", SqlNameError, "needs the option 'properties.bootstrap.server'"),
        ("connector = 'deltalake', type = 'upsert', locations = 'x'", SqlNameError, "needs the option 'location'"),
        (
            "connector = 'deltalake', type = 'upsert', location = 'x', tipe = 'y'",
            SqlNameError,
            "no option 'tipe'. Did you mean 'type'",
        ),
        ("connector = 'deltalake', type = 'replace', location = 'x'", UnsupportedSqlError, "There is 'append-only', 'upsert'"),
        (f"{TOPIC} type = 'append-only') FORMAT UPSERT ENCODE JSON; (", UnsupportedSqlError, "is not FORMAT UPSERT"),
        (f"{TOPIC} type = 'replace'", UnsupportedSqlError, "There is 'append-only', 'upsert', 'debezium'"),
        ("connector = 'blackhole', type = 'append-only', tipe = 'y'", SqlNameError, "no option 'tipe'"),
    ],
)
def test_options_that_are_none_are_refused(options: str, error: type[Exception], words: str) -> None:
    with Session() as session:
        session.run(VIEW)
        with pytest.raises(error, match=words):
            session.run(f"CREATE SINK o FROM s WITH ({options})".removesuffix("; ()"))


SOURCE = """
CREATE SOURCE c (k varchar, v int) INCLUDE partition AS p INCLUDE key
WITH (connector = 'kafka', topic = '{topic}', properties.bootstrap.server = '{servers}', scan.startup.mode = 'earliest')
FORMAT PLAIN ENCODE JSON;
CREATE MATERIALIZED VIEW s AS SELECT k, p, _rw_kafka_key AS m, sum(v) AS total FROM c GROUP BY k, p, _rw_kafka_key;
"""


SINKS = """
CREATE MATERIALIZED VIEW t AS SELECT k, sum(v) AS total FROM c GROUP BY k;
CREATE SINK by_kafka FROM t WITH (connector = 'kafka', topic = '{topic}', properties.bootstrap.server = '{servers}',
    primary_key = 'k') FORMAT UPSERT ENCODE JSON;
CREATE SINK by_delta FROM t WITH (connector = 'deltalake', type = 'upsert', location = '{folder}/d');
CREATE SINK by_iceberg FROM t WITH (connector = 'iceberg', type = 'upsert', database.name = 'db', table.name = 'totals',
    catalog.type = 'sql', catalog.uri = '{uri}', warehouse.path = '{warehouse}');
CREATE SINK by_files FROM t WITH (connector = 'parquet', path = '{folder}/files');
"""


@pytest.mark.spark
def test_a_topic_into_a_view_without_a_jar(spark: Any, broker: Broker, tmp_path: Path) -> None:
    topic, out, catalog = broker.topic(1), broker.topic(1), catalog_in(tmp_path)
    broker.send(topic, (b"x", b'{"k": "a", "v": 1}'), (b"x", b"no"), (b"x", b'{"k": "a", "v": 2}'))
    with Session(spark, str(tmp_path / "views.duckdb")) as session:
        session.run(SOURCE.format(topic=topic, servers=broker.servers))
        session.run(SINKS.format(topic=out, servers=broker.servers, folder=tmp_path, **catalog))
        session.run("FLUSH")
        assert session.query("SELECT k, p, m, total FROM s").rows() == [("a", "0", b"x", 3)]
        assert f"{topic}, partition 0, offset 1" in str(session.query("SHOW ERRORS").rows())
        given = "connector = 'kafka', topic = 't', properties.bootstrap.server = 's'"
        for option, words in (("tpoic = 't'", "Did you mean 'topic'"), ("scan.startup.mode = 'soon'", "There is 'earliest'")):
            with pytest.raises((SqlNameError, UnsupportedSqlError), match=words):
                session.run(f"CREATE SOURCE d (k varchar) WITH ({given}, {option})")
        broker.send(topic, (b"x", b'{"k": "a", "v": 4}'))
        session.run("FLUSH")
    assert [json.loads(value or b"")["total"] for _, _, value in broker.read(out)] == [3, 7]
    tables = delta.Table(str(tmp_path / "d")), iceberg.Table("db.totals", catalog)
    assert [[(row["k"], row["total"]) for row in read(table)] for table in tables] == [[("a", 7)], [("a", 7)]]
    files = sorted((tmp_path / "files").glob("*.parquet"))
    assert [row["total"] for file in files for row in pq.read_table(file).to_pylist()] == [3, 3, 7]


def test_a_sink_whose_target_is_not_there_is_not_made(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("windowpane.connectors.kafka_client.PATIENCE", 1.0)
    topic = broker.topic(1)

    def sink(topic: str, servers: str, more: str = "") -> str:
        into = f"connector = 'kafka', topic = '{topic}', properties.bootstrap.server = '{servers}', primary_key = 'k'{more}"
        return f"CREATE SINK s FROM t WITH ({into}) FORMAT UPSERT ENCODE JSON"

    store = "s3.access.key = 'me', s3.secret.key = 'hunter2', s3.endpoint = 'http://127.0.0.1:1', s3.region = 'us-east-1'"
    refused = [
        (UnknownTopicError, "no topic 'mistyped'", sink("mistyped", broker.servers)),
        (ConnectorError, "does not answer", sink(topic, "127.0.0.1:1")),
        (ConnectorError, "Did you mean 'sasl.password'", sink(topic, broker.servers, ", properties.sasl.pasword = 'hunter2'")),
        (
            ConnectorError,
            r"Delta table 's3://tables/t'",
            f"CREATE SINK s FROM t WITH (connector = 'deltalake', location = 's3://tables/t', type = 'append-only', {store})",
        ),
        (SqlNameError, "'locaton' is no option of it", "CREATE SINK s FROM t WITH (connector = 'deltalake', locaton = 'x')"),
        (UnsupportedSqlError, "Did you mean 'deltalake'", "CREATE SINK s FROM t WITH (connector = 'delta', location = 'x')"),
    ]
    with Session() as session:
        session.run("CREATE TABLE t (k int PRIMARY KEY); INSERT INTO t VALUES (1)")
        for error, words, text in refused:
            with pytest.raises(error, match=words) as caught:
                session.run(text)
            assert "hunter2" not in str(caught.value)
            assert session.query("SHOW SINKS").rows() == []
        session.run(sink(topic, broker.servers))
    assert [value for _, _, value in broker.read(topic)] == [b'{"k":1}']
