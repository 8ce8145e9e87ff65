r"""Records of Avro and Protocol Buffers as JSON documents: how SQL reads them, whose columns take fields by name.

Numbers are numbers, but a decimal is the text of one, which loses no digit; an instant, a date and a time are texts of ISO 8601,
bytes are text as PostgreSQL writes them (``\x6162``), a map is an object. So a record and a document of JSON with the same fields
are one row.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import date, datetime, time
from decimal import Decimal
from math import isfinite
from pathlib import Path
from typing import Literal
from urllib.parse import quote, urlsplit, urlunsplit

from windowpane.arrays.values import JsonValue, Value
from windowpane.connectors.message_formats import Avro, Protobuf
from windowpane.connectors.object_stores import Location, is_remote
from windowpane.connectors.record_formats import avro_values, descriptor_of, protobuf_reader, resolved
from windowpane.errors import InvalidSpecError, MissingExtraError

REGISTRY, USERNAME, PASSWORD = "schema.registry", "schema.registry.username", "schema.registry.password"
LOCATION, MESSAGE = "schema.location", "message"
"""The options of ``ENCODE AVRO | PROTOBUF (...)``, in RisingWave's words."""
RECORDS = ("avro", "protobuf")
"""The words behind ENCODE of formats whose messages are records of a schema."""


def record_format(options: Mapping[str, str], side: Literal["value", "key"] = "value") -> Avro | Protobuf | None:
    """Return what the messages of a topic are, by the options of a source of SQL; ``None`` where they are no records of a schema.

    ``side``: which part of a message; a key is a record only where a registry knows its schema.

    Raises:
        InvalidSpecError: the schema is not there, or none.
        ConnectorError: the registry does not answer, or has no such subject.
    """
    kind, registry = options.get("encode", "json").lower(), _registry(options)
    if kind not in RECORDS or (side == "key" and (kind == "protobuf" or registry is None)):
        return None
    MissingExtraError.unless("kafka", "fastavro" if kind == "avro" else "google.protobuf")
    if kind == "protobuf":
        found = Protobuf(options[MESSAGE], _content(options[LOCATION]), registry is not None)
        descriptor_of(found)
        return found
    if registry is not None:
        topic = options["topic"].split(",")[0].strip()
        return resolved(Avro(None, registry, f"{topic}-{side}"))
    try:
        return Avro(json.loads(_content(options[LOCATION])))
    except ValueError as error:
        raise InvalidSpecError(f"{LOCATION} = {_shown(options[LOCATION])!r}: the schema is no JSON: {error}.") from None


def _registry(options: Mapping[str, str]) -> str | None:
    """Return the address of a registry with who asks."""
    if REGISTRY not in options:
        return None
    parts = urlsplit(options[REGISTRY])
    if USERNAME not in options:
        return options[REGISTRY]
    who = ":".join(quote(options.get(name, ""), safe="") for name in (USERNAME, PASSWORD))
    return urlunsplit(parts._replace(netloc=f"{who}@{parts.netloc.rpartition('@')[2]}"))


def _content(path: str) -> bytes:
    if is_remote(path):
        location = Location(path)
        return b"".join(location.read(each) for each in location.paths())
    try:
        return Path(path.removeprefix("file://")).read_bytes()
    except OSError as error:
        raise InvalidSpecError(f"{LOCATION} = {path!r}: it cannot be read: {error.strerror}.") from None


def _shown(path: str) -> str:
    return str(Location(path)) if is_remote(path) else path


def fields_of(format: Avro | Protobuf, *, of_changes: bool = False) -> tuple[str, ...] | None:
    """Return the names of the fields of a row, ``None`` where the schema does not say.

    ``of_changes``: a row is what is ``after`` a change.
    """
    if isinstance(format, Protobuf):
        return tuple(each.name for each in descriptor_of(format).fields)
    fields: JsonValue = (format.schema or {}).get("fields", ())
    if not of_changes:
        return tuple(each["name"] for each in fields)
    kinds = [kind for each in fields if each["name"] in ("before", "after") for kind in _kinds(each["type"])]
    found = next((kind["fields"] for kind in kinds if isinstance(kind, Mapping) and "fields" in kind), None)
    return None if found is None else tuple(each["name"] for each in found)


def _kinds(kind: JsonValue) -> list[JsonValue]:
    return kind if isinstance(kind, list) else [kind]


def json_reader(format: Avro | Protobuf) -> Callable[[bytes], bytes]:
    """Return what reads one message as a document of JSON; it raises ``ValueError`` where the message is none of the format."""
    read = avro_values(format) if isinstance(format, Avro) else protobuf_reader(format)

    def document(message: bytes) -> bytes:
        return json.dumps(_plain(read(message)), ensure_ascii=False).encode()

    return document


def _plain(value: Value) -> JsonValue:
    """Return a value as the decoder of JSON would give it."""
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, float):
        return value if isfinite(value) else str(value).replace("inf", "Infinity").replace("nan", "NaN")
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, bytes):
        return f"\\x{value.hex()}"
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {_name(name): _plain(each) for name, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, list | tuple) else str(value)


def _name(name: object) -> str:
    return str(name).lower() if isinstance(name, bool) else str(name)
