"""Kafka as a DataFrame: Spark keeps account of offsets, and tasks read the messages between them where rows are encoded.

A streaming query plans spans of partitions (``Span``) for its tasks; a bounded read has them in its plan.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import astuple, dataclass, replace
from datetime import datetime
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyspark.sql import types as T

from windowpane.arrays.values import Value
from windowpane.connectors.json_records import json_reader
from windowpane.connectors.kafka_client import Connection, Offsets, Topics
from windowpane.connectors.kafka_reading import (
    ABOUT,
    SPAN,
    Messages,
    Span,
    SpanReader,
    check_behind,
    for_tasks,
    limited,
    spans,
    warn_of_gone,
)
from windowpane.connectors.kafka_values import Decoded, Decoder, RecordDecoder
from windowpane.connectors.message_formats import PLAIN, AsJson, Avro, Json, Protobuf
from windowpane.connectors.record_formats import columns_of, record_reader, resolved
from windowpane.connectors.typed_cells import TypedCells
from windowpane.errors import InvalidSpecError, MalformedRowError, MissingOffsetsError
from windowpane.hidden_columns import MISREAD, SPLIT, WHY_MISREAD
from windowpane.malformed import NO_VALUE, POLICIES, MalformedRow, Message, shortened
from windowpane.spark.sources.arrow_rows import ArrowRows, Reading
from windowpane.spark.sources.kafka_by_spark import SparkConnector, handed_over
from windowpane.spark.sources.planned import PlannedStream, ReadLimit, limits, planned
from windowpane.spark.sources.source import DELAYED, Given
from windowpane.spark.stages.types import arrow_schema, declared_schema, spark_schema
from windowpane.windowing.times import Duration, format_micros, to_micros
from windowpane.windowing.watermarks import Watermarks

if TYPE_CHECKING:
    from confluent_kafka import Consumer
    from pyspark.sql import DataFrame, SparkSession

Place = str | datetime | int | Mapping[Value, Value]
INCLUDED = ("key", *ABOUT)
_NAMES = ("earliest", "latest")


@dataclass(frozen=True)
class Read:
    """What a read of Kafka is to bring."""

    connection: Connection
    topics: Topics
    value: object
    key: object = "bytes"
    include: tuple[str, ...] = ()
    starting: Place = "earliest"
    ending: Place = "latest"
    max_rows: int | None = None
    goes_on: bool = False
    malformed: str = "fail"
    group: str | None = None
    event_time: str | None = None
    delay: Duration | None = None
    idle: Duration | None = None
    by_spark: bool = False  # whether Spark's own connector reads the messages

    def __post_init__(self) -> None:
        for role, format in (("value", self.value), ("key", self.key)):
            if not isinstance(format, Json | Avro | Protobuf | AsJson) and format not in PLAIN:
                raise InvalidSpecError(
                    f"{role}={format!r}: it is 'text', 'bytes', wp.json('user string, at timestamp'), wp.avro(...) or "
                    "wp.protobuf(...)."
                )
            if isinstance(format, Avro):
                object.__setattr__(self, role, resolved(format))
        for name in self.include:
            if name not in INCLUDED:
                raise InvalidSpecError(f"include={name!r}: a message has {', '.join(INCLUDED)}.")
        if self.malformed not in POLICIES:
            raise InvalidSpecError(f"malformed={self.malformed!r}: it is one of {', '.join(map(repr, POLICIES))}.")
        if self.max_rows is not None and self.max_rows < 1:
            raise InvalidSpecError(f"max_rows_per_batch={self.max_rows}: a batch takes at least one message.")
        if self.idle is not None and self.delay is None:
            raise InvalidSpecError("idle= without delay=: it says how long the watermark waits for a partition that is silent.")

    def rows(self, spark: SparkSession, *, streaming: bool) -> DataFrame:
        """Return the DataFrame, which knows how its rows are made and what its watermark is."""
        columns = self._columns(spark)
        reading = Reading(self.malformed, self.event_time)
        zone = str(spark.conf.get("spark.sql.session.timeZone"))
        reader = MessageReader(
            self, arrow_schema(columns, "read_kafka"), _typed(spark, self.value), _typed(spark, self.key), zone, reading
        )
        if self.by_spark:
            origin = SparkConnector(self).rows(spark, streaming=streaming)
        else:
            origin = self._stream(spark) if streaming else self._bounded(spark)
        made = ArrowRows(origin, reader, columns, reading=reading)
        seen = T.StructType([self._marked(field) for field in columns if field.name != SPLIT])
        shown = replace(made, function=replace(reader, schema=arrow_schema(seen, "read_kafka")), schema=seen)
        return Given(made, self.event_time, self._watermark()).put_on(shown.df)

    def _marked(self, field: T.StructField) -> T.StructField:
        if self.delay is None or field.name != self.event_time:
            return field
        return T.StructField(field.name, field.dataType, field.nullable, {DELAYED: format_micros(to_micros(self.delay))})

    def _watermark(self) -> Watermarks | None:
        if self.delay is None:
            return None
        made = Watermarks.bounded(self.delay).per_source(SPLIT)
        return made if self.idle is None else made.with_idleness(self.idle)

    def _columns(self, spark: SparkSession) -> T.StructType:
        """Return the columns: those of the value, what is included, and the partition for the watermark."""
        value = _typed(spark, self.value)
        if value is None:
            fields = [T.StructField("value", T.StringType() if self.value == "text" else T.BinaryType())]
        else:
            fields = list(value.fields)
        for name in self.include:
            if name == "key":
                plain = T.StringType() if self.key == "text" else T.BinaryType()
                fields.append(T.StructField(name, _typed(spark, self.key) or plain))
            else:
                fields.append(spark_schema(pa.schema([(name, ABOUT[name])]))[0])
        if self.delay is not None:
            fields.append(T.StructField(SPLIT, T.IntegerType() if self.topics.is_one else T.StringType()))
        names = [field.name.lower() for field in fields]
        twice = [name for name in names if names.count(name) > 1]
        if twice:
            raise InvalidSpecError(
                f"read_kafka: {twice[0]!r} is a column of the value and one of include=; leave one of them out."
            )
        if self.event_time is not None and self.event_time.lower() not in names:
            raise InvalidSpecError(f"event_time={self.event_time!r}: there is no such column; there are {', '.join(names)}.")
        return T.StructType(fields)

    def _stream(self, spark: SparkSession) -> DataFrame:
        if self.max_rows is not None and limits is None:
            raise InvalidSpecError(
                "max_rows_per_batch needs Spark 4.2: before, Spark does not tell a source where a batch begins."
            )
        return planned(spark, SPAN, partial(SpanStream, self))

    def _bounded(self, spark: SparkSession) -> DataFrame:
        with self.connection.consumer() as consumer:
            start = self.offsets(consumer, self.starting, "starting")
            end = self.offsets(consumer, self.ending, "ending")
            bounds = self.connection.bounds(consumer, self.topics)
        found = [_within(each, bounds, self.goes_on) for each in spans(start, end)]
        rows = [astuple(each) for each in found if each.start < each.end]
        return spark.createDataFrame(rows, SPAN)

    def offsets(self, consumer: Consumer, place: Place, role: str) -> Offsets:
        """Return the offsets of a place: a name, a time, or offsets by topic and partition."""
        if isinstance(place, str) and place in _NAMES:
            bounds = self.connection.bounds(consumer, self.topics)
            side = _NAMES.index(place)
            return {topic: {number: each[side] for number, each in numbers.items()} for topic, numbers in bounds.items()}
        if isinstance(place, datetime | int) and not isinstance(place, bool):
            moment = round(place.timestamp() * 1_000) if isinstance(place, datetime) else place
            return self.connection.at_time(consumer, self.topics, moment)
        if isinstance(place, str):
            try:
                if place.startswith("{"):
                    return self._given(consumer, json.loads(place), role)
                at = datetime.fromisoformat(place)
                return self.offsets(consumer, at if at.tzinfo else at.astimezone(), role)
            except ValueError:
                pass
        if isinstance(place, Mapping):
            return self._given(consumer, place, role)
        raise InvalidSpecError(
            f"{role}={place!r}: it is 'earliest', 'latest', a time (datetime, ISO 8601 or milliseconds since 1970), or offsets "
            "by partition, {0: 17, 1: 4}, of several topics {'orders': {0: 17}}."
        )

    def _given(self, consumer: Consumer, place: Mapping[Value, Value], role: str) -> Offsets:
        """Return offsets as they are given; -2 and -1 are the first and the last, as for Spark; others begin at the first."""
        by_topic = place if all(isinstance(each, Mapping) for each in place.values()) else {self.topics.names[0]: place}
        bounds = self.connection.bounds(consumer, self.topics)
        found: Offsets = {}
        for topic, numbers in bounds.items():
            given = {str(number): offset for number, offset in by_topic.get(topic, {}).items()}
            if unknown := given.keys() - numbers.keys():
                raise InvalidSpecError(
                    f"{role}={place!r}: topic {topic!r} has no partition {min(unknown)}; it has {len(numbers)}."
                )
            other = 0 if role == "starting" else 1
            named = {-2: 0, -1: 1}
            found[topic] = {
                number: int(given[number]) if given.get(number, -2 + other) >= 0 else each[named[given.get(number, -2 + other)]]
                for number, each in numbers.items()
            }
        if unknown := by_topic.keys() - found.keys():
            raise InvalidSpecError(f"{role}={place!r}: topic {min(unknown)!r} is not one of {self.topics}.")
        return found


_AS_JSON = T.StructType([T.StructField(name, T.StringType()) for name in ("value", MISREAD, WHY_MISREAD)])


def _typed(spark: SparkSession, format: object) -> T.StructType | None:
    if isinstance(format, AsJson):
        return _AS_JSON
    if isinstance(format, Avro | Protobuf):
        return spark_schema(columns_of(format))
    return declared_schema(spark, format.schema, "read_kafka") if isinstance(format, Json) else None


def _within(span: Span, bounds: Mapping[str, Mapping[str, tuple[int, int]]], goes_on: bool) -> Span:
    """Return a span of a bounded read, which ends at what there is."""
    first, last = bounds[span.topic][str(span.partition)]
    if span.start >= first or goes_on:
        return replace(span, start=max(span.start, first), end=min(span.end, last))
    raise MissingOffsetsError(span.topic, span.partition, span.start, first, last)


@dataclass(frozen=True)
class MessageReader:
    """Reads the spans that it is given, and decodes their messages; runs in tasks."""

    read: Read
    schema: pa.Schema  # the columns that it yields
    value: T.StructType | None  # the columns of the value, ``None`` where it is one
    key: T.StructType | None  # those of the key
    zone: str
    reading: Reading

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
        if self.read.by_spark:
            yield from (self._rows(messages) for batch in batches for messages in handed_over(batch))
            return
        reader = SpanReader(self.read.connection, self.read.goes_on, self._gone)
        yield from map(self._rows, reader(Span(**row) for batch in batches for row in batch.to_pylist()))

    def _gone(self, span: Span, at: int, to: int) -> None:
        warn_of_gone(span.topic, span.position(at), to - at)
        where = f"partition {span.partition}, offset {at} to {to - 1}"
        message = Message(span.topic, span.partition, at)
        self.reading.met.append(MalformedRow(span.topic, where, None, None, f"{to - at} offsets are gone from Kafka", message))

    def _rows(self, messages: Messages) -> pa.Table:
        columns: dict[str, pa.Array] = {}
        kept = None
        if isinstance(self.read.value, AsJson):
            columns = self._as_json(self.read.value, messages.values())
        elif self.value is None:
            columns["value"] = self._plain(self.read.value, messages, messages.values())
        else:
            decoded = self._decoded(self.read.value, self.value, messages, messages.values(), self.reading.event_time)
            columns, kept = {name: decoded.rows[name] for name in decoded.rows.column_names}, decoded.kept
        if kept is not None:
            chosen = np.flatnonzero(np.asarray(kept)).tolist()
            messages = Messages(messages.span, [messages.messages[number] for number in chosen])
        for name in self.schema.names:
            if name in columns:
                continue
            if name == SPLIT:
                split = messages.span.partition if self.read.topics.is_one else f"{messages.span.topic}/{messages.span.partition}"
                columns[name] = pa.array([split] * len(messages.messages), self.schema.field(name).type)
            elif name == "key":
                columns[name] = self._keys(messages)
            else:
                columns[name] = messages.about(name)
        return pa.table([columns[name] for name in self.schema.names], schema=self.schema)

    def _as_json(self, format: AsJson, values: list[bytes | None]) -> dict[str, pa.Array]:
        """Return records as documents, beside what is none and why."""
        read, rows = self._made_once(format.record, json_reader), list[tuple[bytes | None, str | None, str | None]]()
        for each in values:
            try:
                rows.append((None, "", NO_VALUE) if each is None else (read(each), None, None))
            except ValueError as error:
                rows.append((None, shortened((each or b"").decode("utf-8", "backslashreplace")), str(error).split("\n")[0]))
        columns: list[pa.Array | list[Value]] = [list(column) for column in zip(*rows, strict=True)] or [[], [], []]
        columns[0] = pa.array(columns[0], pa.binary()).cast(pa.string())
        return dict(zip(_AS_JSON.names, columns, strict=True))

    def _keys(self, messages: Messages) -> pa.Array:
        if self.key is None:
            return self._plain(self.read.key, messages, messages.keys())
        keys = messages.keys()
        given = [number for number, each in enumerate(keys) if each is not None]
        with_key = Messages(messages.span, [messages.messages[number] for number in given])
        decoded = self._decoded(self.read.key, self.key, with_key, with_key.keys(), None)
        found = decoded.rows.to_struct_array().to_pylist()
        is_row = iter([True] * len(given) if decoded.kept is None else decoded.kept.to_pylist())
        structs, rows = iter(found), []
        for each in keys:
            rows.append(next(structs) if each is not None and next(is_row) else None)
        return pa.array(rows, self.schema.field("key").type)

    def _plain(self, format: object, messages: Messages, found: list[bytes | None]) -> pa.Array:
        if format == "bytes":
            return pa.array(found, pa.binary())
        try:
            return pa.array(found, pa.binary()).cast(pa.string())
        except pa.ArrowInvalid:
            texts = [None if each is None else each.decode("utf-8", "replace") for each in found]
            for number, each in enumerate(found):
                if each is not None and texts[number] != each.decode("utf-8", "ignore"):
                    at, message = messages.place(number)
                    self._met(MalformedRow(messages.span.topic, at, None, texts[number], "it is not UTF-8", message))
            return pa.array(texts, pa.string())

    def _decoded(
        self, format: object, kind: T.StructType, messages: Messages, documents: list[bytes | None], needed: str | None
    ) -> Decoded:
        schema = arrow_schema(kind, "read_kafka")
        needed = needed if needed in schema.names else None
        decoder: Decoder | RecordDecoder
        if isinstance(format, Avro | Protobuf):
            decoder = RecordDecoder(messages.span.topic, schema, self._made_once(format, record_reader), needed)
        else:
            decoder = Decoder(messages.span.topic, TypedCells(schema, self.zone), self.reading.policy, needed)
        decoded = decoder(documents, messages.place)
        for each in decoded.met:
            self._met(each)
        return decoded

    def _made_once(
        self, format: Avro | Protobuf, make: Callable[[Avro | Protobuf], Callable[[bytes], Value]]
    ) -> Callable[[bytes], Value]:
        """Return what ``make`` makes of a format, which reads records: once a task."""
        made: dict[int, Callable[[bytes], Value]] = self.__dict__.setdefault("_readers", {})
        if id(format) not in made:
            made[id(format)] = make(format)
        found: Callable[[bytes], Value] = made[id(format)]
        return found

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in self.__dict__.items() if name != "_readers"}

    def _met(self, row: MalformedRow) -> None:
        if self.reading.policy == "fail":
            raise MalformedRowError(row)
        self.reading.met.append(row)


class SpanStream(PlannedStream):
    """The offsets of a stream, and the spans between them; runs beside the driver."""

    def __init__(self, read: Read) -> None:
        self._read = read
        self._target: Offsets | None = None

    @cached_property
    def _consumer(self) -> Consumer:
        opened = self._read.connection.consumer(self._read.group or "windowpane")
        self._opened = opened
        return opened.__enter__()

    def initialOffset(self) -> Offsets:  # noqa: N802
        with self._read.connection.named():
            return self._read.offsets(self._consumer, self._read.starting, "starting")

    def ends(self) -> Offsets:
        with self._read.connection.named():
            return self._read.offsets(self._consumer, "latest", "ending")

    def latestOffset(self, start: Offsets | None = None, limit: ReadLimit | None = None) -> Offsets:  # noqa: N802
        end = self.ends() if self._target is None else self._target
        if start is None:
            return end
        end = {**{topic: dict(numbers) for topic, numbers in end.items()}}
        check_behind(start, end, self._read.goes_on)
        return limited(start, end, limit.max_rows) if limits is not None and isinstance(limit, limits.ReadMaxRows) else end

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return limits.ReadAllAvailable() if self._read.max_rows is None else limits.ReadMaxRows(self._read.max_rows)

    def tasks(self, start: Offsets, end: Offsets) -> list[list[tuple[Value, ...]]]:
        return [[astuple(span) for span in task] for task in for_tasks(spans(start, end))]

    def commit(self, end: Offsets) -> None:
        """Tell the group of the query how far it is, for those who watch its lag; the checkpoint alone decides."""
        if self._read.group is None:
            return
        from confluent_kafka import KafkaException, TopicPartition

        reached = [TopicPartition(topic, int(number), to) for topic, numbers in end.items() for number, to in numbers.items()]
        try:
            self._consumer.commit(offsets=reached, asynchronous=False)
        except KafkaException as error:
            _warn_of_group(self._read.group, error)

    def stop(self) -> None:
        if "_consumer" in self.__dict__:
            self._opened.__exit__(None, None, None)
            del self.__dict__["_consumer"]

    def __getstate__(self) -> dict[str, object]:
        return {"_read": self._read, "_target": None}


def _warn_of_group(group: str, error: BaseException) -> None:
    logging.getLogger(__name__).warning("group %s was not told how far the query is: %s", group, error)
