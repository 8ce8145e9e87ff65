"""Records of Avro and Protocol Buffers: the columns that they are, and one message read as a row of them.

Types: an instant, a date, a time or a decimal of Avro's logical types is one of Arrow's; an enum is text, a fixed is bytes. Of
Protocol Buffers an unsigned 64-bit number is a decimal, a Timestamp an instant, an enum text; a field that has presence and is
not set is NULL.
"""

from __future__ import annotations

import io
import json
import urllib.request
from base64 import b64encode
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote, unquote, urlsplit, urlunsplit
from uuid import UUID

import pyarrow as pa

from windowpane.arrays.values import JsonValue, Row, Value
from windowpane.connectors.message_formats import Avro, Protobuf
from windowpane.errors import ConnectorError, InvalidSpecError, MissingExtraError, UnsupportedTypeError

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor, FieldDescriptor
    from google.protobuf.message import Message as ProtobufMessage

_HEADER = 5  # Bytes: a zero, and the number of the schema
_PATIENCE = 10.0
_NOT_FOUND = 404  # What a registry answers that does not know a schema
_UTC = pa.timestamp("us", "UTC")

# --- Avro ----------------------------------------------------------------------------------------------

_PRIMITIVE = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
    "enum": pa.string(),
    "fixed": pa.binary(),
}
_LOGICAL = {
    "timestamp-millis": _UTC,
    "timestamp-micros": _UTC,
    "local-timestamp-millis": pa.timestamp("us"),
    "local-timestamp-micros": pa.timestamp("us"),
    "date": pa.date32(),
    "time-millis": pa.time64("us"),
    "time-micros": pa.time64("us"),
    "uuid": pa.string(),
}


def resolved(format: Avro) -> Avro:
    """Return a format with the schema of its columns: that of the registry where none was given.

    Raises:
        ConnectorError: the registry does not answer, or has no such subject.
        InvalidSpecError: there is neither a schema nor a subject of a registry.
    """
    MissingExtraError.unless("kafka", "fastavro")
    if format.schema is not None:
        return format
    if format.registry is None or format.subject is None:
        raise InvalidSpecError("wp.avro() needs a schema, or registry= and subject=.")
    found = _asked(format.registry, f"subjects/{quote(format.subject, safe='')}/versions/latest")
    return replace(format, schema=json.loads(found["schema"]))


def avro_columns(format: Avro) -> pa.Schema:
    kind = _avro_type(format.schema, {})
    if not pa.types.is_struct(kind):
        raise InvalidSpecError(f"wp.avro(...): a message is a record, and the schema is of {kind}.")
    return pa.schema(list(kind))


def _avro_type(schema: JsonValue, named: dict[str, pa.DataType]) -> pa.DataType:
    if isinstance(schema, list):
        kinds = [each for each in schema if each != "null"]
        if len(kinds) != 1:
            raise UnsupportedTypeError(f"wp.avro(...): a union of {schema!r} has no one type; only one with null does.")
        return _avro_type(kinds[0], named)
    if isinstance(schema, str):
        found = _PRIMITIVE.get(schema, named.get(schema))
        if found is None:
            raise UnsupportedTypeError(f"wp.avro(...): there is no type {schema!r}, or it holds itself.")
        return found
    kind, logical = schema["type"], schema.get("logicalType")
    if logical == "decimal":
        return pa.decimal128(int(schema["precision"]), int(schema.get("scale", 0)))
    if logical in _LOGICAL:
        return _LOGICAL[logical]
    if kind == "record":
        made = pa.struct([pa.field(each["name"], _avro_type(each["type"], named)) for each in schema["fields"]])
    elif kind == "array":
        made = pa.list_(_avro_type(schema["items"], named))
    elif kind == "map":
        made = pa.map_(pa.string(), _avro_type(schema["values"], named))
    else:
        made = _avro_type(kind, named)
    if "name" in schema:
        named[schema["name"]] = made
        named[f"{schema.get('namespace', '')}.{schema['name']}".lstrip(".")] = made
    return made


def avro_reader(format: Avro) -> Callable[[bytes], Row]:
    """Return what reads one message as a row; it raises ``ValueError`` where the message is none."""
    values = avro_values(format)

    def read(document: bytes) -> Row:
        found = values(document)
        if not isinstance(found, dict):
            raise ValueError("it is no record")
        return {name: _plain(value) for name, value in found.items()}

    return read


def avro_values(format: Avro) -> Callable[[bytes], Value]:
    """Return what reads one message as fastavro does, a record or another value; it raises ``ValueError`` where it is none."""
    from fastavro import schemaless_reader

    wanted: JsonValue = _parsed(format.schema)

    def read(document: bytes) -> Value:
        writer = wanted
        if format.registry is not None:
            writer = _schema(format.registry, _number(document))
            document = document[_HEADER:]
        body = io.BytesIO(document)
        try:
            found = schemaless_reader(body, writer, wanted)
        except ConnectorError:
            raise
        except Exception as error:
            raise ValueError(f"it is no record of this schema: {type(error).__name__}: {error}") from None
        if body.tell() != len(document):
            raise ValueError(f"it is no record of this schema: {len(document) - body.tell()} bytes are left behind it")
        return found

    return read


_EXACT_DECIMAL = "windowpane-decimal"


def _parsed(schema: JsonValue) -> JsonValue:
    """Return a schema as fastavro takes it; decimals are read here, where fastavro would round those of too many digits."""
    from fastavro import parse_schema
    from fastavro.read import LOGICAL_READERS

    for kind in ("bytes", "fixed"):
        LOGICAL_READERS[f"{kind}-{_EXACT_DECIMAL}"] = _decimal
    return parse_schema(_with_exact_decimals(json.loads(json.dumps(schema))))


def _with_exact_decimals(schema: JsonValue) -> JsonValue:
    if isinstance(schema, list):
        return [_with_exact_decimals(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    exact = {"logicalType": _EXACT_DECIMAL} if schema.get("logicalType") == "decimal" else {}
    within = {name: _with_exact_decimals(schema[name]) for name in ("type", "fields", "items", "values") if name in schema}
    return {**schema, **within, **exact}


def _decimal(data: bytes, writer: dict[Any, Any] | None, reader: dict[Any, Any] | None = None) -> Decimal:
    said = writer or {}
    sign, digits, _ = Decimal(int.from_bytes(data, "big", signed=True)).as_tuple()
    if len(digits) > int(said["precision"]):
        raise ValueError(f"a decimal has {len(digits)} digits, and its precision is {said['precision']}")
    return Decimal((sign, digits, -int(said.get("scale", 0))))


def _plain(value: Value) -> Value:
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    return value


def _number(document: bytes) -> int:
    if len(document) < _HEADER or document[0] != 0:
        raise ValueError("it does not begin with the header of a schema registry")
    return int.from_bytes(document[1:_HEADER], "big")


@cache
def _schema(registry: str, number: int) -> JsonValue:
    try:
        found = _asked(registry, f"schemas/ids/{number}")
    except ConnectorError as error:
        if isinstance(error.__cause__, HTTPError) and error.__cause__.code == _NOT_FOUND:
            raise ValueError(f"the registry has no schema {number}") from None
        raise
    return _parsed(json.loads(found["schema"]))


def _asked(registry: str, what: str) -> JsonValue:
    """Return an answer of a schema registry."""
    parts = urlsplit(registry)
    shown = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
    request = urllib.request.Request(f"{shown.rstrip('/')}/{what}")
    if parts.username is not None:
        who = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        request.add_header("Authorization", "Basic " + b64encode(who.encode()).decode())
    try:
        with urllib.request.urlopen(request, timeout=_PATIENCE) as answer:
            return json.load(answer)
    except (URLError, OSError, ValueError) as error:
        raise ConnectorError(f"schema registry {shown}", f"{what}: {error}") from error


# --- Protocol Buffers ----------------------------------------------------------------------------------

_NUMBERS = {
    1: pa.float64(), 2: pa.float32(), 3: pa.int64(), 4: pa.decimal128(20, 0), 5: pa.int32(), 6: pa.decimal128(20, 0),
    7: pa.int64(), 8: pa.bool_(), 9: pa.string(), 12: pa.binary(), 13: pa.int64(), 14: pa.string(), 15: pa.int32(),
    16: pa.int64(), 17: pa.int32(), 18: pa.int64(),
}  # fmt: skip
"""Arrow's types by the number of a field's type in ``descriptor.proto``."""
_MESSAGES = (10, 11)
_UNSIGNED = (4, 6)
_ENUM = 14
_TIMESTAMP = "google.protobuf.Timestamp"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def descriptor_of(format: Protobuf) -> Descriptor:
    """Return the descriptor of a message.

    Raises:
        InvalidSpecError: the descriptors have none of that name, or are none.
    """
    from google.protobuf import descriptor_pb2, descriptor_pool
    from google.protobuf.message import DecodeError

    pool = descriptor_pool.DescriptorPool()
    try:
        for each in descriptor_pb2.FileDescriptorSet.FromString(format.descriptors).file:
            pool.Add(each)
        return pool.FindMessageTypeByName(format.name)
    except (DecodeError, KeyError, TypeError) as error:
        raise InvalidSpecError(
            f"wp.protobuf: the descriptors have no message {format.name!r}, or lack what it imports: {error}"
        ) from None


def protobuf_columns(format: Protobuf) -> pa.Schema:
    MissingExtraError.unless("kafka", "google.protobuf")
    return pa.schema(list(_struct(descriptor_of(format), ())))


def _struct(descriptor: Descriptor, within: tuple[str, ...]) -> pa.DataType:
    if descriptor.full_name in within:
        raise UnsupportedTypeError(f"wp.protobuf: {descriptor.full_name!r} holds itself, and a column has no end then.")
    within = (*within, descriptor.full_name)
    return pa.struct([pa.field(each.name, _field_type(each, within)) for each in descriptor.fields])


def _field_type(field: FieldDescriptor, within: tuple[str, ...]) -> pa.DataType:
    if _is_map(field):
        key, value = (field.message_type.fields_by_name[name] for name in ("key", "value"))
        return pa.map_(_field_type(key, within), _field_type(value, within))
    if field.type in _MESSAGES:
        kind = _UTC if field.message_type.full_name == _TIMESTAMP else _struct(field.message_type, within)
    else:
        kind = _NUMBERS[field.type]
    return pa.list_(kind) if _is_repeated(field) else kind


def _is_repeated(field: FieldDescriptor) -> bool:
    known = getattr(field, "is_repeated", None)  # protobuf 6.31 has it, and in place of it 7 has no label
    return bool(field.label == field.LABEL_REPEATED if known is None else known)


def _is_map(field: FieldDescriptor) -> bool:
    return bool(field.type in _MESSAGES and field.message_type.GetOptions().map_entry)


def protobuf_reader(format: Protobuf) -> Callable[[bytes], Row]:
    """Return what reads one message as a row; it raises ``ValueError`` where the message is none."""
    from google.protobuf.message import DecodeError
    from google.protobuf.message_factory import GetMessageClass

    kind = GetMessageClass(descriptor_of(format))

    def read(document: bytes) -> Row:
        if format.with_header:
            _number(document)
            document = _without_places(document[_HEADER:])
        try:
            found = kind.FromString(document)
        except DecodeError as error:
            raise ValueError(f"it is no {format.name}: {error}") from None
        return _row(found)

    return read


def _without_places(document: bytes) -> bytes:
    """Return a message without the place of its type in its file, zigzag numbers behind their count, that a registry's has."""
    places, at = 0, 0
    for number in range(1 << 10):
        value, shift = 0, 0
        while True:
            if at >= len(document):
                raise ValueError("its header is cut")
            byte = document[at]
            at, value, shift = at + 1, value | (byte & 0x7F) << shift, shift + 7
            if byte < 0x80:
                break
        if number == 0:
            places = value >> 1
        if number == places:
            return document[at:]
    raise ValueError("its header has no end")


def _row(message: ProtobufMessage) -> Row:
    return {field.name: _value(message, field) for field in message.DESCRIPTOR.fields}


def _value(message: ProtobufMessage, field: FieldDescriptor) -> Value:
    if _is_repeated(field):
        found = getattr(message, field.name)
        if _is_map(field):
            value = field.message_type.fields_by_name["value"]
            return {key: _one(each, value) for key, each in sorted(found.items())}
        return [_one(each, field) for each in found]
    if field.has_presence and not message.HasField(field.name):
        return None
    return _one(getattr(message, field.name), field)


def _one(value: Value, field: FieldDescriptor) -> Value:
    if field.type in _MESSAGES:
        if field.message_type.full_name == _TIMESTAMP:
            try:
                return _EPOCH + timedelta(seconds=value.seconds, microseconds=value.nanos // 1_000)
            except OverflowError:
                raise ValueError(f"{field.name!r} is no time of the years 1 to 9999: {value.seconds} seconds") from None
        return _row(value)
    if field.type == _ENUM:
        named = field.enum_type.values_by_number.get(value)
        return str(value) if named is None else named.name
    return Decimal(value) if field.type in _UNSIGNED else value


def record_reader(format: Avro | Protobuf) -> Callable[[bytes], Row]:
    """Return what reads one message of a format as a row."""
    return avro_reader(format) if isinstance(format, Avro) else protobuf_reader(format)


def columns_of(format: Avro | Protobuf) -> pa.Schema:
    return avro_columns(format) if isinstance(format, Avro) else protobuf_columns(format)


# --- Rows as messages ----------------------------------------------------------------------------------


def number_of(format: Avro) -> int | None:
    """Return the number that a registry knows the schema of a subject by, ``None`` where there is no registry."""
    if format.registry is None or format.subject is None:
        return None
    return int(_asked(format.registry, f"subjects/{quote(format.subject, safe='')}/versions/latest")["id"])


def avro_writer(format: Avro, number: int | None) -> Callable[[Row], bytes]:
    """Return what writes a row of Python's values as a record, behind the number of its schema if there is one.

    Raises:
        ValueError: when it writes a row that is none of the schema.
    """
    from fastavro import parse_schema, schemaless_writer

    schema: JsonValue = parse_schema(json.loads(json.dumps(format.schema)))
    header = b"" if number is None else b"\0" + number.to_bytes(_HEADER - 1, "big")

    def write(row: Row) -> bytes:
        out = io.BytesIO()
        try:
            schemaless_writer(out, schema, row, strict_allow_default=True)
        except Exception as error:
            raise ValueError(f"{type(error).__name__}: {error}") from None
        return header + out.getvalue()

    return write


def protobuf_writer(format: Protobuf) -> Callable[[Row], bytes]:
    """Return what writes a row of values of JSON as a message.

    Raises:
        ValueError: when it writes a row with other fields, or values that do not fit.
    """
    from google.protobuf.json_format import ParseDict, ParseError
    from google.protobuf.message_factory import GetMessageClass

    kind = GetMessageClass(descriptor_of(format))

    def write(row: Row) -> bytes:
        try:
            return bytes(ParseDict(dict(row), kind()).SerializeToString(deterministic=True))
        except (ParseError, TypeError, ValueError) as error:
            raise ValueError(str(error)) from None

    return write
