"""Rows as messages of Kafka, written by the bucket that they are of, exactly once.

A writer is a bucket of the query, whose number is in the checkpoint: a batch that is run again hands the same rows to the same
writer, in whatever task. It writes a batch in one transaction, and in that transaction commits the batch's number as the offset
of a consumer group of its own. Before it writes it begins anew under its transactional id, which ends whatever transaction was
left open, and then reads the number back: a batch that it has is passed over. So each row is there once for whoever reads
committed messages. The driver keeps the last whole batch in a group of the query, which tells checkpoint and topic apart.

    group <query>.<writer>, partition 0: the number behind the last batch of the writer
    group <query>,          partition 0: the number behind the last batch of all writers
"""

from __future__ import annotations

import json
import math
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from windowpane.arrays.values import JsonValue, Value
from windowpane.connectors.kafka_client import PATIENCE, Connection
from windowpane.connectors.message_formats import Avro, Protobuf
from windowpane.connectors.record_formats import avro_writer, protobuf_writer
from windowpane.errors import ConnectorError, FencedWriterError, InvalidSpecError, MessageError, UnknownTopicError
from windowpane.state.pairs import NONE
from windowpane.windowing.outputs import CHANGE_TYPE, DELETE, INSERT, UPDATE_PREIMAGE

if TYPE_CHECKING:
    from confluent_kafka import Consumer, KafkaError, TopicPartition
    from confluent_kafka import Message as KafkaMessage

FORMATS = ("json", "text", "bytes")
GUARANTEES = ("exactly_once", "at_least_once")
CHANGES = ("append", "upsert", "debezium")
WRITTEN = "written long"
_NO_ANSWER = ("_TIMED_OUT", "_TRANSPORT", "_ALL_BROKERS_DOWN")

Message = tuple[bytes | None, bytes | None]  # Key and value


@dataclass(frozen=True)
class MessageFormat:
    """How rows are written as messages."""

    key: tuple[str, ...]  # the columns of the key, none for messages without one
    value: str | Avro | Protobuf  # one of ``FORMATS``, or records
    changes: str  # one of ``CHANGES``
    key_as_object: bool = False  # whether a key of one column is a JSON object, too
    schema: int | None = None  # the number of Avro's schema in a registry

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Message]:
        # rows that a change has replaced, the new row of which is still to come
        before: dict[bytes | None, list[dict[str, JsonValue]]] = {}
        for batch in batches:
            rows = pa.Table.from_batches([batch])
            if rows.num_rows:
                yield from self._messages(rows, before)
        for key, rows in before.items():
            for row in rows:
                yield key, _change(row, None, "d")

    def _messages(self, rows: pa.Table, before: dict[bytes | None, list[dict[str, JsonValue]]]) -> Iterator[Message]:
        keys = self._keys(rows)
        if self.changes == "append":
            yield from zip(keys, self._values(rows), strict=True)
            return
        kinds = rows[CHANGE_TYPE].to_pylist() if CHANGE_TYPE in rows.column_names else [INSERT] * rows.num_rows
        rows = rows.select([name for name in rows.column_names if name != CHANGE_TYPE])
        if self.changes == "upsert":
            for key, value, kind in zip(keys, self._values(rows), kinds, strict=True):
                if kind != UPDATE_PREIMAGE:
                    yield key, None if kind == DELETE else value
            return
        for key, row, kind in zip(keys, _plain(rows), kinds, strict=True):
            if kind == UPDATE_PREIMAGE:
                before.setdefault(key, []).append(row)
            elif kind == DELETE:
                yield key, _change(row, None, "d")
            else:
                replaced = before.get(key)
                yield key, _change(replaced.pop(0) if replaced else None, row, "c" if kind == INSERT else "u")

    def _records(self, rows: pa.Table) -> list[bytes | None]:
        if isinstance(self.value, Avro):
            write, found = avro_writer(self.value, self.schema), rows.to_pylist()
        else:
            write, found = protobuf_writer(self.value), _plain(rows)  # type: ignore[arg-type]
        try:
            return [write(row) for row in found]
        except ValueError as error:
            raise InvalidSpecError(
                f"sinks.kafka: a row with the columns {', '.join(rows.column_names)} is none of the schema in value=: {error}. "
                "Nothing of its batch was committed by this writer; cast or select the rows."
            ) from None

    def _keys(self, rows: pa.Table) -> list[bytes | None]:
        if not self.key:
            return [None] * rows.num_rows
        chosen = rows.select(self.key)
        if len(self.key) > 1 or self.key_as_object:
            return [_json(row) for row in _plain(chosen)]
        return [_bytes(value[self.key[0]]) for value in _plain(chosen, keeps_bytes=True)]

    def _values(self, rows: pa.Table) -> list[bytes | None]:
        if self.value == "json":
            return [_json(row) for row in _plain(rows)]
        if not isinstance(self.value, str):
            return self._records(rows)
        rest = [name for name in rows.column_names if name not in self.key] if rows.num_columns > 1 else rows.column_names
        if len(rest) != 1:
            raise InvalidSpecError(
                f"value={self.value!r}: rows have the columns {', '.join(rest)} beside the key, and a message has one value. "
                "Select one, or say value='json'."
            )
        return [_bytes(value[rest[0]]) for value in _plain(rows.select(rest), keeps_bytes=True)]


def _change(before: object, after: object, op: str) -> bytes:
    """Return what Debezium says of a change: the row before, the one after, and whether it is c, u or d."""
    return _json({"before": before, "after": after, "op": op})


def _json(row: object) -> bytes:
    return json.dumps(row, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


def _bytes(value: object) -> bytes | None:
    if value is None or isinstance(value, bytes):
        return value
    return value.encode() if isinstance(value, str) else _json(value)


def _plain(rows: pa.Table, keeps_bytes: bool = False) -> list[dict[str, JsonValue]]:
    """Return rows as JSON has them.

    Instants are ISO 8601, those of a time zone in UTC; dates, times, decimals, and what a double has beside numbers, are text;
    bytes are base64; the keys of a map are text.
    """
    columns = [_plain_column(rows[field.name], keeps_bytes) for field in rows.schema]
    return [dict(zip(rows.column_names, values, strict=True)) for values in zip(*columns, strict=True)]


def _plain_column(column: pa.ChunkedArray, keeps_bytes: bool) -> list[JsonValue]:
    kind = column.type
    if pa.types.is_timestamp(kind):
        return list(_instants(column).to_pylist())
    if (
        pa.types.is_integer(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_string(kind)
        or (pa.types.is_binary(kind) and keeps_bytes)
    ):
        return list(column.to_pylist())
    return [_plain_value(value, kind) for value in column.to_pylist()]


def _instants(column: pa.ChunkedArray) -> pa.ChunkedArray:
    text = pc.strftime(column.cast(pa.timestamp("us", column.type.tz)), "%Y-%m-%dT%H:%M:%S")
    return pc.binary_join_element_wise(text, "Z" if column.type.tz else "", "")


def _plain_value(value: Value, kind: pa.DataType) -> JsonValue:
    if value is None:
        return None
    if pa.types.is_floating(kind):
        return value if math.isfinite(value) else "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if pa.types.is_timestamp(kind):
        return _instants(pa.chunked_array([pa.array([value], kind)]))[0].as_py()
    if pa.types.is_struct(kind):
        return {field.name: _plain_value(value[field.name], field.type) for field in kind}
    if pa.types.is_map(kind):
        return {str(_plain_value(key, kind.key_type)): _plain_value(each, kind.item_type) for key, each in value}
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return [_plain_value(each, kind.value_type) for each in value]
    if isinstance(value, bytes):
        return b64encode(value).decode()
    return value if isinstance(value, bool | int | str) else value.isoformat() if hasattr(value, "isoformat") else str(value)


@dataclass(frozen=True)
class BucketWriter:
    """Writes the rows of a bucket in one batch; runs in tasks."""

    connection: Connection
    topic: str
    format: MessageFormat
    batch: int
    query: str | None  # the name of the query, ``None`` to write at least once
    bucket: Callable[[], int]  # returns the bucket that the task has the rows of
    writes_empty: bool = False  # whether a batch without rows is numbered, too, where no one else keeps the number

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        messages = self.format(batches)
        first = next(messages, None)
        written = 0 if first is None and not self.writes_empty else self._write(first, messages)
        yield pa.RecordBatch.from_pydict({"written": [written]}, pa.schema([("written", pa.int64())]))

    def _write(self, first: Message | None, rest: Iterator[Message]) -> int:
        from confluent_kafka import KafkaException

        name = None if self.query is None else f"{self.query}.{self.bucket()}"
        writer = Writer(self.connection, self.topic, name, compacted=self.format.changes == "upsert")
        try:
            return writer.write(self.batch, rest if first is None else chain([first], rest))
        except (KafkaException, SystemError) as error:
            # The client calls back with its own error raised, and Python makes a SystemError of the two.
            found = error.__cause__ if isinstance(error, SystemError) else error
            writer.abort()
            if not isinstance(found, KafkaException):
                raise
            raise writer.error(found.args[0]) from None
        except BaseException:
            writer.abort()
            raise


class Writer:
    """One writer of a batch: of Kafka's clients those that take part in its transaction."""

    def __init__(self, connection: Connection, topic: str, name: str | None, compacted: bool) -> None:
        from confluent_kafka import Producer

        self._connection, self._topic, self._name, self._needs_key = connection, topic, name, compacted
        settings = {"partitioner": "murmur2_random", "linger_ms": 20, "enable_idempotence": True}
        if name is not None:
            settings |= {"transactional_id": name, "transaction_timeout_ms": 600_000}
        self._failed: list[tuple[bytes | None, int, KafkaError]] = []
        with connection.named():
            self._producer = Producer(connection.settings(**settings))

    def write(self, batch: int, messages: Iterable[Message]) -> int:
        """Write a batch unless this writer has it; return how many messages were written."""
        if self._name is None:
            written = self._send(messages)
            self._flush()
            return written
        self._connection.asked(self._producer.init_transactions, PATIENCE)
        with self._connection.consumer(self._name) as consumer:
            if last_batch(self._connection, consumer, self._topic) >= batch:
                return 0
            self._producer.begin_transaction()
            written = self._send(messages)
            self._flush()
            member = consumer.consumer_group_metadata()
            self._connection.asked(
                self._producer.send_offsets_to_transaction, [_offset(self._topic, batch + 1)], member, PATIENCE
            )
            self._connection.asked(self._producer.commit_transaction, PATIENCE)
        return written

    def _send(self, messages: Iterable[Message]) -> int:
        return sum(self._produce(key, value) for key, value in messages)

    def _produce(self, key: bytes | None, value: bytes | None) -> int:
        from confluent_kafka import KafkaException

        if key is None and self._needs_key:
            raise MessageError(self._topic, None, len(value or b""), "its key is NULL, and an upsert replaces a row by its key")
        while True:
            try:
                self._producer.produce(self._topic, value, key, on_delivery=self._delivered)
                self._producer.poll(0)
                return 1
            except BufferError:
                self._producer.poll(0.1)
            except KafkaException as error:
                raise self._refused(key, len(value or b""), self._fatal(error.args[0])) from None

    def _fatal(self, error: KafkaError) -> KafkaError:
        """Return what ended the client, where an error says no more than that it has ended."""
        from confluent_kafka import KafkaException

        if error.name() != "_FATAL":
            return error
        try:
            self._producer.poll(1.0)
        except (KafkaException, SystemError) as raised:
            found = raised.__cause__ if isinstance(raised, SystemError) else raised
            return found.args[0] if isinstance(found, KafkaException) else error
        return self._failed[0][2] if self._failed else error

    def _delivered(self, error: KafkaError | None, message: KafkaMessage) -> None:
        if error is not None:
            self._failed.append((message.key(), len(message), error))

    def _flush(self) -> None:
        left = self._producer.flush(PATIENCE)
        if self._failed:
            raise self._refused(*self._failed[0])
        if left:
            raise ConnectorError(
                f"Kafka at {self._connection.servers}",
                f"{left} messages for topic {self._topic!r} were not taken within {PATIENCE:.0f} seconds; the batch runs again "
                "from the checkpoint when it answers",
            )

    def _refused(self, key: bytes | None, size: int, error: KafkaError) -> Exception:
        if error.name() in ("_FENCED", "INVALID_PRODUCER_EPOCH", "PRODUCER_FENCED") or error.name().startswith("_PURGE"):
            return self.error(error)
        found = self._connection.error(error, self._topic)
        if isinstance(found, UnknownTopicError) or error.name() in _NO_ANSWER:
            return found
        shown = None if key is None else key[:100].decode("utf-8", "replace")
        return MessageError(self._topic, shown, size, f"{error.str()} ({error.name()})")

    def error(self, error: KafkaError) -> Exception:
        """Return an error of the client by its name."""
        if error.name() in ("_FENCED", "INVALID_PRODUCER_EPOCH", "PRODUCER_FENCED"):
            return FencedWriterError(self._name or "")
        return self._connection.error(error, self._topic)

    def abort(self) -> None:
        """End the transaction as far as that can be done; the next one of this writer does it anyway."""
        from confluent_kafka import KafkaException

        self._producer.purge()
        if self._name is None:
            return
        try:
            self._producer.abort_transaction(5)
        except (KafkaException, SystemError):
            return


def _offset(topic: str, offset: int) -> TopicPartition:
    from confluent_kafka import TopicPartition

    return TopicPartition(topic, 0, offset)


def last_batch(connection: Connection, consumer: Consumer, topic: str) -> int:
    """Return the last batch that the group of a consumer has of a topic, ``NONE`` for none."""
    (found,) = connection.asked(consumer.committed, [_offset(topic, 0)], timeout=PATIENCE)
    return NONE if found.offset < 0 else int(found.offset) - 1


def keep_batch(connection: Connection, consumer: Consumer, topic: str, batch: int) -> None:
    """Keep the number of a batch whose writers have all written."""
    connection.asked(consumer.commit, offsets=[_offset(topic, batch + 1)], asynchronous=False)
