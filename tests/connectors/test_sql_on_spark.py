"""Topics as sources of SQL on Spark: changes, records, what is about a message, malformed rows, watermarks of partitions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.connectors.conftest import Broker
from tests.connectors.test_record_formats import written
from tests.connectors.test_sql_records import CHANGE, COLUMNS, KEY, ORDER, SHOWN, Answers, order, registry, row, with_number
from tests.connectors.test_sql_sources import topic_in
from windowpane.errors import SqlRunError
from windowpane.sql import Session

pytestmark = pytest.mark.spark
__all__ = ["registry"]


def test_changes_and_records_keep_tables_and_views(spark: Any, broker: Broker, registry: Answers, tmp_path: Path) -> None:
    """FORMAT UPSERT and DEBEZIUM, ENCODE JSON, AVRO and BYTES, INCLUDE: what a session without Spark has of the same messages."""
    upserts, changes, plain = broker.topic(2), broker.topic(1), broker.topic(1)
    subjects = {f"{plain}-value": 1, f"{upserts}-value": 1, f"{upserts}-key": 2, f"{changes}-value": 3}
    address = registry({1: ORDER, 2: KEY, 3: CHANGE}, subjects)
    who = "schema.registry.username = 'me', schema.registry.password = 'h:@ter2'"
    encode = f"ENCODE AVRO (schema.registry = '{address}', {who})"
    key = {number: with_number(2, KEY, {"id": number}) for number in (1, 2)}
    broker.send(upserts, *((key[each], with_number(1, ORDER, order(each))) for each in (1, 2)), (key[1], None))
    for before, after, op in ((None, 1, "c"), (None, 2, "r"), (1, 3, "u"), (2, None, "d")):
        change = {"before": before and order(before), "after": after and order(after), "op": op}
        broker.send(changes, (b"k", with_number(3, CHANGE, change)))
    broker.send(plain, (b"k", with_number(1, ORDER, order(1))), written(ORDER, order(2)), (b"t", None))
    store = str(tmp_path / "views.duckdb")
    with Session(spark, store) as session:
        session.run(f"CREATE TABLE u ({COLUMNS}, PRIMARY KEY (id)) {topic_in(broker, upserts)} FORMAT UPSERT {encode}")
        session.run(f"CREATE TABLE c ({COLUMNS}, PRIMARY KEY (id)) {topic_in(broker, changes)} FORMAT DEBEZIUM {encode}")
        about = "INCLUDE key AS k INCLUDE partition AS p INCLUDE offset AS n INCLUDE timestamp AS t"
        session.run(f"CREATE SOURCE s ({COLUMNS}) {about} {topic_in(broker, plain)} FORMAT PLAIN {encode}")
        session.run("CREATE MATERIALIZED VIEW o AS SELECT * FROM s; CREATE MATERIALIZED VIEW total AS SELECT sum(id) AS n FROM u")
        out = tmp_path / "bad"
        session.run(f"CREATE SINK bad FROM MALFORMED ROWS OF s WITH (connector = 'parquet', path = '{out}'); FLUSH")
        for name, rows in (("u", [row(2)]), ("c", [row(3)]), ("o", [row(1)])):
            assert session.query(SHOWN.replace("FROM o", f"FROM {name}")).rows() == rows
        assert session.query("SELECT k, p, n, t > timestamptz '2020-01-01' FROM o").rows() == [(b"k", "0", "0", True)]
        assert session.query("SELECT * FROM total").rows() == [(2,)]
        broker.send(upserts, (key[2], with_number(1, ORDER, order(2, user="b"))), (key[1], with_number(1, ORDER, order(1))))
        session.run("FLUSH")
        assert session.query('SELECT id, "user" FROM u ORDER BY id').rows() == [(1, "a"), (2, "b")]
        assert session.query("SELECT * FROM total").rows() == [(3,)]
        bad = sorted(pq.read_table(out).to_pylist(), key=lambda each: str(each["position"]))
        assert [(each["position"], each["reason"][:25]) for each in bad] == [
            (f"{plain}, partition 0, offset 1", "it does not begin with th"),
            (f"{plain}, partition 0, offset 2", "it has no value: a tombst"),
        ]
        with pytest.raises(SqlRunError, match="CREATE TABLE it with a PRIMARY KEY"):
            session.run(f"CREATE SOURCE d (id int) {topic_in(broker, upserts)} FORMAT UPSERT {encode}")
    broker.send(upserts, (key[2], None))
    with Session(spark, store) as session:
        session.run("FLUSH")
        assert session.query("SELECT id FROM u").rows() == [(1,)]


def test_bytes_and_malformed_rows_of_a_table(spark: Any, broker: Broker, tmp_path: Path) -> None:
    topic, bad = broker.topic(1), tmp_path / "bad"
    broker.send(topic, '{"k": 1}', "no", '{"k": "x"}')
    with Session(spark) as session:
        session.run(f"CREATE TABLE t (k int) {topic_in(broker, topic)} FORMAT PLAIN ENCODE JSON")
        session.run(f"CREATE SINK bad FROM MALFORMED ROWS OF t WITH (connector = 'parquet', path = '{bad}')")
        session.run(f"CREATE SOURCE b (m bytea) INCLUDE offset AS n {topic_in(broker, topic)} FORMAT PLAIN ENCODE BYTES")
        session.run("CREATE MATERIALIZED VIEW v AS SELECT m, n FROM b; FLUSH")
        assert session.query("SELECT m, n FROM v ORDER BY n").rows() == [(b'{"k": 1}', "0"), (b"no", "1"), (b'{"k": "x"}', "2")]
        assert session.query("SELECT count(*), count(k) FROM t").rows() == [(2, 1)]
    found = pq.read_table(bad).to_pylist()
    assert sorted((each["value"], each["column"] or "") for each in found) == [("no", ""), ("x", "k")]
