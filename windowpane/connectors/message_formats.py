"""What is in the bytes of a message: what users write for ``value`` and ``key``. Small: it comes with ``import windowpane``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from windowpane.arrays.values import Value

PLAIN = ("text", "bytes")


@dataclass(frozen=True)
class Json:
    """A JSON object a message, with these columns."""

    schema: object  # DDL or StructType


@dataclass(frozen=True)
class Avro:
    """An Avro record a message, in its binary form; behind a header with the number of its schema where there is a registry."""

    schema: Mapping[str, Value] | None  # that of the columns, ``None`` for the latest of the registry's subject
    registry: str | None = field(default=None, repr=False)  # its URL, which may hold a password
    subject: str | None = None


@dataclass(frozen=True)
class Protobuf:
    """A message of Protocol Buffers a message of Kafka; behind the header of a schema registry where it was written with one."""

    name: str  # the full name of the message's type
    descriptors: bytes = field(repr=False)  # a serialized FileDescriptorSet that has it and what it imports
    with_header: bool = False


@dataclass(frozen=True)
class AsJson:
    """A record as a document of JSON in ``value``; where a message is none, its text and the reason stand beside it."""

    record: Avro | Protobuf
