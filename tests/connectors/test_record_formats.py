"""Messages of Avro and Protocol Buffers: the columns that they are, and rows of them."""

from __future__ import annotations

import io
import json
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from google.protobuf import descriptor_pb2, timestamp_pb2
from google.protobuf.descriptor_pool import Default
from google.protobuf.message_factory import GetMessageClass

import windowpane as wp
from windowpane.connectors.json_records import json_reader
from windowpane.connectors.kafka_values import RecordDecoder
from windowpane.connectors.kafka_writing import MessageFormat
from windowpane.connectors.record_formats import columns_of, record_reader, resolved
from windowpane.errors import ConnectorError, InvalidSpecError, UnsupportedTypeError

AT = datetime(2024, 1, 1, tzinfo=UTC)
OLD: dict[str, Any] = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [
        {"name": "user", "type": ["null", "string"]},
        {"name": "amount", "type": {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "tags", "type": {"type": "array", "items": {"type": "enum", "name": "Tag", "symbols": ["new", "gift"]}}},
        {"name": "first", "type": {"type": "record", "name": "Item", "fields": [{"name": "id", "type": "int"}]}},
        {"name": "second", "type": ["null", "Item"], "default": None},
    ],
}
NEW = {**OLD, "fields": [*OLD["fields"], {"name": "country", "type": "string", "default": "none"}]}
ORDER = {"user": "a", "amount": Decimal("1.50"), "at": AT, "tags": ["gift"], "first": {"id": 1}, "second": None}


def written(schema: Any, record: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(json.loads(json.dumps(schema))), record)
    return out.getvalue()


def decoded(format: Any, *documents: bytes | None, needed: str | None = None) -> Any:
    return RecordDecoder("orders", columns_of(format), record_reader(format), needed)(
        documents, lambda number: (f"offset {number}", None)
    )


def test_an_avro_record_is_a_row() -> None:
    found = decoded(wp.avro(json.dumps(OLD)), written(OLD, ORDER), written(OLD, {**ORDER, "user": None}))
    assert found.rows.to_pylist() == [ORDER, {**ORDER, "user": None}]
    assert found.rows.schema.field("amount").type == pa.decimal128(10, 2)
    assert (found.kept, found.met) == (None, [])


def test_what_is_no_record_is_malformed() -> None:
    good = written(OLD, ORDER)
    found = decoded(wp.avro(OLD), good, good + b"x", b"", None)
    assert found.kept.to_pylist() == [True, False, False, False]
    assert [(each.position, each.reason.partition(":")[0]) for each in found.met] == [
        ("offset 1", "it is no record of this schema"),
        ("offset 2", "it is no record of this schema"),
        ("offset 3", "it has no value"),
    ]
    assert "event time" in decoded(wp.avro(OLD), written(OLD, {**ORDER, "user": None}), needed="user").met[0].reason
    with pytest.raises(UnsupportedTypeError, match="has no one type"):
        columns_of(wp.avro({"type": "record", "name": "R", "fields": [{"name": "x", "type": ["int", "string"]}]}))
    with pytest.raises(InvalidSpecError, match="needs a schema, or registry"):
        resolved(wp.avro())


@pytest.fixture
def registry() -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = {"/schemas/ids/1": OLD, "/schemas/ids/2": NEW, "/subjects/orders-value/versions/latest": NEW}.get(self.path)
            self.send_response(404 if found is None else 200)
            self.end_headers()
            self.wfile.write(json.dumps({"schema": json.dumps(found), "id": 2}).encode())

        def log_message(self, *given: Any) -> None:
            return

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://me:hunter2@127.0.0.1:{server.server_port}"
    server.shutdown()


def test_records_of_several_schemas_are_read_as_the_newest(registry: str) -> None:
    format = resolved(wp.avro(registry=registry, subject="orders-value"))
    messages = (
        b"\0" + (1).to_bytes(4, "big") + written(OLD, ORDER),
        b"\0" + (2).to_bytes(4, "big") + written(NEW, {**ORDER, "country": "fr"}),
    )
    found = decoded(format, *messages, b"no header")
    assert found.rows.to_pylist() == [{**ORDER, "country": "none"}, {**ORDER, "country": "fr"}]
    assert [each.reason for each in found.met] == ["it does not begin with the header of a schema registry"]
    assert "hunter2" not in repr(format)
    with pytest.raises(ConnectorError, match="404") as caught:
        resolved(wp.avro(registry=registry, subject="nowhere"))
    assert "hunter2" not in str(caught.value)


def message_class() -> Any:
    kinds = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="shop/tests.proto", package="shop", syntax="proto3")
    file.dependency.append(timestamp_pb2.DESCRIPTOR.name)
    kind = file.enum_type.add(name="Kind")
    kind.value.add(name="NEW", number=0)
    kind.value.add(name="GIFT", number=1)
    item = file.message_type.add(name="Item")
    item.field.add(name="id", number=1, type=kinds.TYPE_UINT64, label=kinds.LABEL_OPTIONAL)
    order = file.message_type.add(name="Order")
    order.field.add(name="user", number=1, type=kinds.TYPE_STRING, label=kinds.LABEL_OPTIONAL)
    order.field.add(
        name="at", number=2, type=kinds.TYPE_MESSAGE, label=kinds.LABEL_OPTIONAL, type_name=".google.protobuf.Timestamp"
    )
    order.field.add(name="items", number=3, type=kinds.TYPE_MESSAGE, label=kinds.LABEL_REPEATED, type_name=".shop.Item")
    order.field.add(name="kind", number=4, type=kinds.TYPE_ENUM, label=kinds.LABEL_OPTIONAL, type_name=".shop.Kind")
    Default().AddSerializedFile(file.SerializeToString())
    return GetMessageClass(Default().FindMessageTypeByName("shop.Order"))


def test_a_message_of_protocol_buffers_is_a_row() -> None:
    kind = message_class()
    order = kind(user="a", items=[{"id": 2**63}], kind=1)
    order.at.FromDatetime(AT)
    found = decoded(wp.protobuf(kind), order.SerializeToString(), kind().SerializeToString(), b"\xff")
    assert found.rows.to_pylist() == [
        {"user": "a", "at": AT, "items": [{"id": Decimal(2**63)}], "kind": "GIFT"},
        {"user": "", "at": None, "items": [], "kind": "NEW"},
    ]
    assert [each.position for each in found.met] == ["offset 2"]
    header = b"\0" + (1).to_bytes(4, "big")
    with_header = decoded(
        wp.protobuf(kind, registry=True), header + b"\0" + order.SerializeToString(), header + b"\2\0" + order.SerializeToString()
    )
    assert with_header.rows["user"].to_pylist() == ["a", "a"]
    with pytest.raises(InvalidSpecError, match="needs descriptors"):
        wp.protobuf("shop.Order")


def messages(sink: Any, rows: pa.Table) -> list[bytes | None]:
    """Return the values that a sink of Kafka writes of rows."""
    form: MessageFormat = sink.format
    return [value for _, value in form(rows.to_batches())]


def test_rows_are_written_as_records_of_avro(registry: str) -> None:
    rows = pa.Table.from_pylist([{**ORDER, "country": "fr"}, {**ORDER, "user": None, "country": "de"}], columns_of(wp.avro(NEW)))
    plain = messages(wp.sinks.kafka("orders", servers="s", value=wp.avro(OLD)), rows.drop_columns(["country"]))
    schema = fastavro.parse_schema(json.loads(json.dumps(OLD)))
    assert [fastavro.schemaless_reader(io.BytesIO(each or b""), schema, None) for each in plain] == [
        ORDER,
        {**ORDER, "user": None},
    ]
    known = wp.sinks.kafka("orders", servers="s", value=wp.avro(registry=registry, subject="orders-value"))
    found = [each or b"" for each in messages(known, rows)]
    assert [each[:5] for each in found] == [b"\0" + (2).to_bytes(4, "big")] * 2
    assert decoded(wp.avro(NEW, registry=registry), *found).rows.to_pylist() == rows.to_pylist()
    sink = wp.sinks.kafka("orders", servers="s", value=wp.avro(NEW))
    with pytest.raises(InvalidSpecError, match=r"none of the schema in value=: .*Field user is specified"):
        messages(sink, rows.drop_columns(["user"]))
    with pytest.raises(InvalidSpecError, match="none of the schema in value="):
        messages(sink, rows.append_column("further", pa.array([1, 2])))
    with pytest.raises(InvalidSpecError, match="leave schema out"):
        wp.sinks.kafka("orders", servers="s", value=wp.avro(NEW, registry=registry))


def test_rows_are_written_as_messages_of_protocol_buffers() -> None:
    kind = message_class()
    form = wp.protobuf(kind)
    given = [
        {"user": "a", "at": AT, "items": [{"id": Decimal(2**63)}], "kind": "GIFT"},
        {"user": None, "at": None, "items": [], "kind": None},
    ]
    first, second = messages(wp.sinks.kafka("orders", servers="s", value=form), pa.Table.from_pylist(given, columns_of(form)))
    order = kind(user="a", items=[{"id": 2**63}], kind=1)
    order.at.FromDatetime(AT)
    assert (kind.FromString(first), kind.FromString(second)) == (order, kind())
    with pytest.raises(InvalidSpecError, match='no field named "other"'):
        messages(wp.sinks.kafka("orders", servers="s", value=form), pa.table({"other": [1]}))
    with pytest.raises(InvalidSpecError, match="is read alone"):
        wp.sinks.kafka("orders", servers="s", value=wp.protobuf(kind, registry=True))


def _record(kind: Any) -> dict[str, Any]:
    return {"type": "record", "name": "R", "fields": [{"name": "x", "type": kind}]}


def _decimals(precision: int, scale: int) -> dict[str, Any]:
    return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}


def test_a_decimal_of_more_digits_than_its_precision_is_malformed() -> None:
    """Avro's precision is the most digits that there are: fastavro would round 12345.67 to 12350."""
    narrow, wide = _record(_decimals(4, 2)), _record(_decimals(10, 2))
    documents = [written(wide, {"x": Decimal(text)}) for text in ("12345.67", "-12.34", "0.00", "-0.01")]
    found = decoded(wp.avro(json.dumps(narrow)), *documents)
    assert found.rows["x"].to_pylist() == [Decimal("-12.34"), Decimal("0.00"), Decimal("-0.01")]
    assert [each.position for each in found.met] == ["offset 0"]
    assert "7 digits, and its precision is 4" in found.met[0].reason
    read = json_reader(wp.avro(json.dumps(narrow)))
    assert read(documents[1]) == b'{"x": "-12.34"}'
    with pytest.raises(ValueError, match="7 digits"):
        read(documents[0])


def test_decimals_within_other_values_are_exact() -> None:
    kind = {"type": "map", "values": ["null", {"type": "array", "items": _decimals(38, 10)}]}
    value = {"x": {"a": [Decimal("1234567890123456789012345678.0123456789")], "b": None}}
    found = decoded(wp.avro(json.dumps(_record(kind))), written(_record(kind), value))
    assert [dict(each) for each in found.rows["x"].to_pylist()] == [value["x"]]


def test_a_value_that_its_column_does_not_hold_is_malformed() -> None:
    reads = iter([{"x": Decimal("1.5")}, {"x": Decimal("1.25")}, {"x": Decimal("2.5")}])
    decoder = RecordDecoder("orders", pa.schema([("x", pa.decimal128(3, 1))]), lambda _: next(reads), None)
    found = decoder([b"a", b"b", b"c"], lambda number: (f"offset {number}", None))
    assert found.rows["x"].to_pylist() == [Decimal("1.5"), Decimal("2.5")]
    assert [(each.position, each.value) for each in found.met] == [("offset 1", "b")]


def test_an_instant_that_python_does_not_have_is_malformed() -> None:
    """A Timestamp of Protocol Buffers holds 64 bits of seconds."""
    kind = message_class()
    far, near = kind(user="far"), kind(user="near")
    far.at.seconds = 2**40
    found = decoded(wp.protobuf(kind), far.SerializeToString(), near.SerializeToString())
    assert found.rows["user"].to_pylist() == ["near"]
    assert [each.position for each in found.met] == ["offset 0"]
    with pytest.raises(ValueError, match="no time of the years 1 to 9999"):
        json_reader(wp.protobuf(kind))(far.SerializeToString())


def test_a_map_of_protocol_buffers_is_an_object_where_it_is_empty_too() -> None:
    pool = descriptor_pb2.FileDescriptorSet()
    kinds = descriptor_pb2.FieldDescriptorProto
    file = pool.file.add(name="maps.proto", package="maps", syntax="proto3")
    counts = file.message_type.add(name="Counts")
    entry = counts.nested_type.add(name="OfEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, type=kinds.TYPE_STRING, label=kinds.LABEL_OPTIONAL)
    entry.field.add(name="value", number=2, type=kinds.TYPE_INT32, label=kinds.LABEL_OPTIONAL)
    counts.field.add(name="of", number=1, type=kinds.TYPE_MESSAGE, label=kinds.LABEL_REPEATED, type_name=".maps.Counts.OfEntry")
    form = wp.protobuf("maps.Counts", pool.SerializeToString())
    full = b"\n\x05\n\x01a\x10\x01"  # of = {"a": 1}
    assert [json_reader(form)(each) for each in (b"", full)] == [b'{"of": {}}', b'{"of": {"a": 1}}']
    assert decoded(form, b"", full).rows["of"].to_pylist() == [[], [("a", 1)]]
