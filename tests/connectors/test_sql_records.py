"""Records of Avro and Protocol Buffers as sources of SQL, with a schema registry and without; a session without Spark."""

from __future__ import annotations

import json
import threading
from base64 import b64encode
from collections.abc import Callable, Iterator
from datetime import date
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

import windowpane as wp
from tests.connectors.conftest import Broker
from tests.connectors.test_record_formats import AT, message_class, written
from tests.connectors.test_sql_sources import topic_in
from windowpane.errors import ConnectorError, InvalidSpecError, SqlNameError, SqlRunError, UnsupportedSqlError
from windowpane.sql import Session

ORDER: dict[str, Any] = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "int"},
        {"name": "user", "type": ["null", "string"]},
        {"name": "amount", "type": {"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 2}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "raw", "type": "bytes"},
        {"name": "share", "type": "double"},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "item", "type": {"type": "record", "name": "Item", "fields": [{"name": "n", "type": "long"}]}},
    ],
}
COLUMNS = (
    'id int, "user" varchar, amount numeric, at timestamptz, day date, raw bytea, share double precision, tags varchar[], '
    "item jsonb"
)
SHOWN = "SELECT id, \"user\", amount::text, at, day, raw, share, tags, item ->> 'n' FROM o ORDER BY id"
KEY = {"type": "record", "name": "Key", "fields": [{"name": "id", "type": "int"}]}
CHANGE = {
    "type": "record",
    "name": "Envelope",
    "fields": [
        {"name": "before", "type": ["null", ORDER], "default": None},
        {"name": "after", "type": ["null", "Order"], "default": None},
        {"name": "op", "type": "string"},
    ],
}


Answers = Callable[[dict[int, Any], dict[str, int]], str]


@pytest.fixture
def registry() -> Iterator[Answers]:
    """A schema registry that wants a user and a password: schemas by number, and numbers by subject."""
    servers = []

    def started(schemas: dict[int, Any], subjects: dict[str, int]) -> str:
        answers = {f"/schemas/ids/{number}": number for number in schemas}
        answers |= {f"/subjects/{name}/versions/latest": number for name, number in subjects.items()}

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                is_known = self.headers["Authorization"] == "Basic " + b64encode(b"me:h:@ter2").decode()
                number = answers.get(self.path)
                self.send_response(401 if not is_known else 404 if number is None else 200)
                self.end_headers()
                if is_known and number is not None:
                    self.wfile.write(json.dumps({"schema": json.dumps(schemas[number]), "id": number}).encode())

            def log_message(self, *given: Any) -> None:
                return

        servers.append(HTTPServer(("127.0.0.1", 0), Handler))
        threading.Thread(target=servers[-1].serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{servers[-1].server_port}"

    yield started
    for server in servers:
        server.shutdown()


def order(number: int, **other: Any) -> dict[str, Any]:
    made = {"id": number, "user": "a", "amount": Decimal("123456789012345678.25"), "at": AT, "day": date(2024, 2, 29)}
    return {**made, "raw": b"\x00ab\xff", "share": float("nan"), "tags": ["x", 'y"'], "item": {"n": 9007199254740993}, **other}


def row(number: int, **other: Any) -> tuple[Any, ...]:
    shown = {**order(number, **other)}
    return (
        *(shown["id"], shown["user"], str(shown["amount"]), AT, shown["day"], shown["raw"]),
        *(pytest.approx(shown["share"], nan_ok=True), shown["tags"], str(shown["item"]["n"])),
    )


def with_number(number: int, schema: Any, record: Any) -> bytes:
    return b"\0" + number.to_bytes(4, "big") + written(schema, record)


def test_records_of_a_schema_in_a_file(broker: Broker, tmp_path: Path) -> None:
    topic, schema = broker.topic(1), tmp_path / "order.avsc"
    schema.write_text(json.dumps(ORDER))
    broker.send(topic, written(ORDER, order(1)), b"\x01", written(ORDER, order(2, user=None, share=0.5)))
    source = f"CREATE SOURCE o ({COLUMNS}) INCLUDE offset AS n {topic_in(broker, topic)} FORMAT PLAIN ENCODE AVRO"
    with Session() as session:
        session.run(f"{source} (schema.location = '{schema}'); FLUSH")
        assert session.query(SHOWN).rows() == [row(1), row(2, user=None, share=0.5)]
        assert session.query("SELECT id, n FROM o ORDER BY id").rows() == [(1, "0"), (2, "2")]
        (error,) = session.query("SHOW ERRORS").dicts()
        assert "it is no record of this schema" in error["Error"]
        assert f"{topic}, partition 0, offset 1" in error["Position"]


def test_what_a_source_of_records_cannot_be(broker: Broker, tmp_path: Path) -> None:
    topic, schema = broker.topic(1), tmp_path / "order.avsc"
    schema.write_text(json.dumps(ORDER))
    into = f"{topic_in(broker, topic)} FORMAT PLAIN ENCODE"
    refused: list[tuple[type[Exception], str, str, str]] = [
        (SqlRunError, "'usr'.*Did you mean 'user'", "usr text", f"AVRO (schema.location = '{schema}')"),
        (InvalidSpecError, "cannot be read: No such file", "id int", f"AVRO (schema.location = '{schema}x')"),
        (SqlNameError, "needs schema.location", "id int", "AVRO"),
        (SqlNameError, "needs message", "id int", "PROTOBUF (schema.location = 'x')"),
        (SqlNameError, "no option 'schema.locaton'. Did you mean 'schema.location'", "id int", "AVRO (schema.locaton = 'x')"),
        (UnsupportedSqlError, "'schema.location' is not supported with ENCODE JSON", "id int", "JSON (schema.location = 'x')"),
        (
            InvalidSpecError,
            "no message 'shop.Order'",
            "id int",
            f"PROTOBUF (schema.location = '{schema}', message = 'shop.Order')",
        ),
    ]
    with Session() as session:
        for error, words, columns, encode in refused:
            with pytest.raises(error, match=words):
                session.run(f"CREATE SOURCE o ({columns}) {into} {encode}")


def test_records_that_a_registry_knows_are_rows_and_changes(broker: Broker, registry: Answers) -> None:
    plain, upserts, changes = (broker.topic(1) for _ in range(3))
    subjects = {f"{plain}-value": 1, f"{upserts}-value": 1, f"{upserts}-key": 2, f"{changes}-value": 3}
    address = registry({1: ORDER, 2: KEY, 3: CHANGE}, subjects)
    who = "schema.registry.username = 'me', schema.registry.password = 'h:@ter2'"
    encode = f"ENCODE AVRO (schema.registry = '{address}', {who})"
    broker.send(plain, with_number(1, ORDER, order(1)), written(ORDER, order(2)))
    key = with_number(2, KEY, {"id": 1}), with_number(2, KEY, {"id": 2})
    broker.send(upserts, (key[0], with_number(1, ORDER, order(1))), (key[1], with_number(1, ORDER, order(2))), (key[0], None))
    for before, after, op in ((None, 1, "c"), (None, 2, "r"), (1, 3, "u"), (2, None, "d")):
        change = {"before": before and order(before), "after": after and order(after), "op": op}
        broker.send(changes, (b"k", with_number(3, CHANGE, change)))
    with Session() as session:
        session.run(f"CREATE SOURCE o ({COLUMNS}) {topic_in(broker, plain)} FORMAT PLAIN {encode}; FLUSH")
        assert session.query(SHOWN).rows() == [row(1)]
        (error,) = session.query("SHOW ERRORS").dicts()
        assert "does not begin with the header of a schema registry" in error["Error"]
        session.run(f"CREATE TABLE u ({COLUMNS}, PRIMARY KEY (id)) {topic_in(broker, upserts)} FORMAT UPSERT {encode}")
        session.run(f"CREATE TABLE c ({COLUMNS}, PRIMARY KEY (id)) {topic_in(broker, changes)} FORMAT DEBEZIUM {encode}; FLUSH")
        assert session.query(SHOWN.replace("FROM o", "FROM u")).rows() == [row(2)]
        assert session.query(SHOWN.replace("FROM o", "FROM c")).rows() == [row(3)]
        with pytest.raises(ConnectorError, match="404") as caught:
            session.run(f"CREATE SOURCE d (id int) {topic_in(broker, changes + 'x')} FORMAT PLAIN {encode}")
        assert "h:@ter2" not in str(caught.value)


def test_messages_of_protocol_buffers(broker: Broker, tmp_path: Path) -> None:
    kind = message_class()
    topic, path = broker.topic(1), tmp_path / "shop.desc"
    path.write_bytes(wp.protobuf(kind).descriptors)
    order = kind(user="a", items=[{"id": 2**63}], kind=1)
    order.at.FromDatetime(AT)
    broker.send(topic, order.SerializeToString(), b"\xff", kind().SerializeToString())
    encode = f"ENCODE PROTOBUF (message = 'shop.Order', schema.location = '{path}')"
    with Session() as session:
        columns = '"user" text, at timestamptz, items jsonb, kind text'
        session.run(f"CREATE SOURCE o ({columns}) {topic_in(broker, topic)} FORMAT PLAIN {encode}; FLUSH")
        rows = session.query("SELECT \"user\", at, items -> 0 ->> 'id', kind FROM o ORDER BY kind").rows()
        assert rows == [("a", AT, str(2**63), "GIFT"), ("", None, None, "NEW")]
        (error,) = session.query("SHOW ERRORS").dicts()
        assert "it is no shop.Order" in error["Error"]


def test_a_schema_that_changes_in_the_middle_of_a_topic(broker: Broker, registry: Answers) -> None:
    """A record of another schema is read as that of the source, by Avro's rules; one that cannot be is malformed."""
    topic, fields = broker.topic(1), ORDER["fields"]
    wider = {**ORDER, "fields": [*fields, {"name": "country", "type": "string"}]}
    narrower = {**ORDER, "fields": [each for each in fields if each["name"] != "amount"]}
    promoted = {**ORDER, "fields": [{**each, "type": "float"} if each["name"] == "share" else each for each in fields]}
    address = registry({1: ORDER, 2: wider, 3: narrower, 4: promoted}, {f"{topic}-value": 1})
    encode = f"ENCODE AVRO (schema.registry = '{address.replace('://', '://me:h%3A%40ter2@')}')"
    with Session() as session:
        session.run(f"CREATE SOURCE o ({COLUMNS}) {topic_in(broker, topic)} FORMAT PLAIN {encode}")
        broker.send(topic, with_number(1, ORDER, order(1)), with_number(2, wider, {**order(2), "country": "fr"}))
        less = {name: value for name, value in order(3).items() if name != "amount"}
        broker.send(topic, with_number(3, narrower, less), with_number(4, promoted, order(4, share=0.5)))
        broker.send(topic, with_number(9, ORDER, order(5)))
        session.run("FLUSH")
        assert session.query(SHOWN).rows() == [row(1), row(2), row(4, share=0.5)]
        errors = {each["Position"][-1]: each["Error"] for each in session.query("SHOW ERRORS").dicts()}
        assert errors.keys() == {"2", "4"}
        assert "it is no record of this schema" in errors["2"]
        assert errors["4"] == "the registry has no schema 9"
