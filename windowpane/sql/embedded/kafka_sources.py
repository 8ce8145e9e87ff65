"""Topics as sources of a session without Spark: every flush takes the messages that are new, as one chunk.

``windowpane.offsets`` holds for each table, topic and partition the offset of the next message, and is written in the transaction
that takes the messages before it: a killed session goes on where its store is, and no message counts twice. Partitions that are
new begin at their first message.

A message of FORMAT PLAIN is a row. Of UPSERT it is the row of its key, and without a value that row is deleted; of DEBEZIUM it
says what a row became, ``after``, and by ``op`` whether it was deleted. Of one key the last message of a flush counts: all are
in one partition, in order.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from windowpane.connectors.kafka_client import Connection, Offsets, Topics
from windowpane.connectors.kafka_reading import ABOUT, Messages, Span, SpanReader, check_behind, limited, spans
from windowpane.errors import MissingOffsetsError, SqlRunError
from windowpane.hidden_columns import ORIGIN
from windowpane.malformed import Cells, MalformedRow, json_cells, json_object, json_text, shortened
from windowpane.sql.catalog.entries import TableInfo
from windowpane.sql.embedded.file_sources import cast_of_text, nested_columns
from windowpane.sql.embedded.storage import Storage
from windowpane.sql.embedded.tables import TableWriter
from windowpane.sql.expressions.expr import quoted
from windowpane.sql.failures.malformed_rows import MalformedRows, found_in, text_rows
from windowpane.sql.parse.connector_options import ENCODE, FORMAT, INCLUDE, MILLIS, PROPERTIES, SERVERS, STARTUP
from windowpane.sql.streaming.deltas import WEIGHT, Delta, same

_MOST = 500_000  # So many messages of a topic are one chunk; the next flush takes further ones
_NO_VALUE = "it has no value: a tombstone deletes its key, and FORMAT PLAIN has rows alone"


@dataclass(frozen=True)
class Document:
    """One message: where it is, what is there to read, and what key it has."""

    origin: str
    value: bytes | None
    key: bytes | None


@dataclass
class Topic:
    """The topic of a table, and what of it has been taken."""

    info: TableInfo
    connection: Connection = field(init=False)
    topics: Topics = field(init=False)

    def __post_init__(self) -> None:
        options = self.info.options
        given = {name.removeprefix(PROPERTIES): value for name, value in options.items() if name.startswith(PROPERTIES)}
        others = {name: value for name, value in given.items() if name not in ("bootstrap.server", "group.id")}
        self.connection = Connection(options[SERVERS], others)
        self.topics = Topics(tuple(name.strip() for name in options["topic"].split(",")))

    def first(self, consumer: Any) -> Offsets:
        """Return where a new table begins."""
        options = self.info.options
        mode = options.get(STARTUP, "earliest").lower()
        if mode == "timestamp":
            return self.connection.at_time(consumer, self.topics, int(options[MILLIS]))
        return self.bounds(consumer)[0 if mode == "earliest" else 1]

    def bounds(self, consumer: Any) -> tuple[Offsets, Offsets]:
        found = self.connection.bounds(consumer, self.topics)
        first, last = (
            {topic: {number: each[side] for number, each in numbers.items()} for topic, numbers in found.items()}
            for side in (0, 1)
        )
        return first, last

    def messages(self, start: Offsets, end: Offsets) -> Iterator[Messages]:
        """Yield the messages between two offsets.

        Raises:
            MissingOffsetsError: Kafka has deleted some of them.
        """
        reader = SpanReader(self.connection, False, _never)
        for span in spans(start, end):
            yield from reader(span)


def is_topic(info: TableInfo) -> bool:
    """Whether a table is filled by Kafka."""
    return info.options.get("connector") == "kafka"


def check_topic(info: TableInfo) -> None:
    """Refuse a table whose columns or key its messages cannot fill.

    Raises:
        SqlRunError: which.
    """
    name, form = info.relation.name, info.options.get(FORMAT, "plain").lower()
    if form != "plain" and (info.relation.append_only or info.has_row_id):
        raise SqlRunError(f"FORMAT {form.upper()} of {name!r} changes rows: CREATE TABLE it with a PRIMARY KEY.")
    included = [each for each in info.options if each.startswith(INCLUDE)]
    rest = [each.name for each in info.relation.visible if f"{INCLUDE}{each.name}" not in included]
    if info.options.get(ENCODE, "json").lower() == "bytes" and len(rest) != 1:
        raise SqlRunError(f"ENCODE BYTES: a message is one column, and {name!r} has {', '.join(rest) or 'none'}.")


def _never(span: Span, at: int, to: int) -> None:
    """Take offsets that were passed over: none are."""


class TopicSources:
    """Takes the messages of all tables that are filled by Kafka."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._opened: dict[str, tuple[Topic, Any]] = {}
        self._clients = ExitStack()

    def close(self) -> None:
        """Close what is connected."""
        self._opened.clear()
        self._clients.close()

    def begin(self, info: TableInfo) -> None:
        """Note where a new table begins, as far as its topic has come by now.

        Raises:
            UnknownTopicError: there is no such topic.
            ConnectorError: Kafka does not answer.
        """
        topic, consumer = self._topic(info)
        with topic.connection.named():
            self._keep(info.relation.name, topic.first(consumer))

    def drop(self, name: str) -> None:
        self._opened.pop(name, None)
        self._storage.run("DELETE FROM windowpane.offsets WHERE relation = ?", [name])

    def _topic(self, info: TableInfo) -> tuple[Topic, Any]:
        name = info.relation.name
        if name not in self._opened:
            topic = Topic(info)
            group = info.options.get(f"{PROPERTIES}group.id", "windowpane")
            self._opened[name] = topic, self._clients.enter_context(topic.connection.consumer(group))
        return self._opened[name]

    def _offsets(self, name: str) -> Offsets:
        found: Offsets = {}
        for topic, number, following in self._storage.run(
            "SELECT topic, partition, following FROM windowpane.offsets WHERE relation = ?", [name]
        ):
            found.setdefault(topic, {})[str(number)] = int(following)
        return found

    def _keep(self, name: str, offsets: Offsets) -> None:
        self._storage.run("DELETE FROM windowpane.offsets WHERE relation = ?", [name])
        for topic, numbers in offsets.items():
            for number, following in numbers.items():
                row = [name, topic, int(number), following]
                self._storage.run("INSERT INTO windowpane.offsets VALUES (?, ?, ?, ?)", row)

    def take(self, info: TableInfo, writer: TableWriter) -> None:
        """Bring the new messages into a table, and the offsets behind them.

        Raises:
            ConnectorError: Kafka does not answer.
            MissingOffsetsError: messages were deleted before they were taken.
            MalformedRowError: a message cannot be read, and malformed rows of the source are to be an error.
        """
        name, (topic, consumer) = info.relation.name, self._topic(info)
        start = self._offsets(name)
        if f"{PROPERTIES}group.id" in info.options:
            self._tell(topic, consumer, start)
        with topic.connection.named():
            first, last = topic.bounds(consumer)
        check_behind(start, last, goes_on=False)
        for each in spans(start, last):
            if each.start < (least := first[each.topic][str(each.partition)]):
                ends = last[each.topic][str(each.partition)]
                raise MissingOffsetsError(each.topic, each.partition, each.start, least, ends)
        end = limited(start, last, _MOST)
        found = list(topic.messages(start, end))
        if found:
            _Chunk(self._storage, info, writer).append(found)
        if end != start:
            self._keep(name, end)

    def _tell(self, topic: Topic, consumer: Any, offsets: Offsets) -> None:
        """Commit what the store has to the consumer group, for those who watch its lag; nothing is read from there."""
        from confluent_kafka import TopicPartition

        told = [TopicPartition(name, int(number), at) for name, numbers in offsets.items() for number, at in numbers.items()]
        with topic.connection.named():
            consumer.commit(offsets=told, asynchronous=True)


@dataclass(frozen=True)
class _Chunk:
    """The messages of one flush on their way into a table."""

    storage: Storage
    info: TableInfo
    writer: TableWriter

    def append(self, messages: Sequence[Messages]) -> None:
        included = self._included()
        columns = {name: pa.concat_arrays([_about(each, what) for each in messages]) for name, what in included.items()}
        documents = [
            Document(f"{each.span.topic}, {each.span.position(one.offset())}", one.value(), one.key())
            for each in messages
            for one in each.messages
        ]
        form = self.info.options.get(FORMAT, "plain").lower()
        if self.info.options.get(ENCODE, "json").lower() == "bytes":
            (column,) = [each.name for each in self.info.relation.visible if each.name not in included]
            rows = pa.table({column: pa.array([each.value for each in documents], pa.binary()), **columns})
            self.writer.append((f"SELECT * FROM {self.storage.temporary_from(rows)}", (column, *included)), self.info)
        elif form == "plain":
            self._take(documents, columns)
        else:
            self._take_changes(documents, columns, is_debezium=form == "debezium")

    def _included(self) -> dict[str, str]:
        """Return the columns of INCLUDE, and what of a message each is."""
        return {name.removeprefix(INCLUDE): what for name, what in self.info.options.items() if name.startswith(INCLUDE)}

    def _take_changes(self, documents: Sequence[Document], columns: Mapping[str, pa.Array], *, is_debezium: bool) -> None:
        """Take the rows away whose keys are deleted, and bring in the last row of each other key."""
        keys = self.info.relation.key
        of_messages = not is_debezium and all(name in columns for name in keys)
        last: dict[Any, tuple[int, bytes | None]] = {}
        found: list[MalformedRow] = []
        for number, each in enumerate(documents):
            try:
                events = _debezium(each, keys) if is_debezium else _upsert(each, None if of_messages else keys)
            except ValueError as error:
                shown = shortened((each.value or each.key or b"").decode("utf-8", "replace"))
                found.append(MalformedRow(self.info.relation.name, each.origin, None, shown, str(error)))
                continue
            last.update((key, (number, row)) for key, row in events)
        deleted = [key for key, (_, row) in last.items() if row is None]
        if deleted:
            self._delete([(key,) if of_messages else key for key in deleted], keys, is_text=not of_messages)
        kept = sorted((number, row) for number, row in last.values() if row is not None)
        rows = [Document(documents[number].origin, row, None) for number, row in kept]
        numbers = pa.array([number for number, _ in kept], pa.int64())
        self._take(rows, {name: column.take(numbers) for name, column in columns.items()}, found)

    def _delete(self, keys: Sequence[tuple[Any, ...]], names: Sequence[str], *, is_text: bool) -> None:
        types = {each.name: each.type for each in self.info.relation.visible}
        arrived = self.storage.temporary_from(
            pa.table({name: pa.array(column) for name, column in zip(names, zip(*keys, strict=True), strict=True)})
        )
        texts = [f"CAST({quoted(name)} AS JSON) ->> '$' AS {quoted(name)}" for name in names]
        read = [f"TRY({cast_of_text(name, types[name], False)}) AS {quoted(name)}" for name in names]
        gone = f"(SELECT {', '.join(read)} FROM (SELECT {', '.join(texts)} FROM {arrived}))" if is_text else arrived
        with self.storage.trying():
            old = f"SELECT s.*, -1 AS {quoted(WEIGHT)} FROM {self.info.relation.storage} AS s SEMI JOIN {gone} AS n"
            old = self.storage.temporary(f"{old} ON {same('s', 'n', names)}")
        self.writer.apply(Delta(old), self.info)

    def _take(
        self, documents: Sequence[Document], columns: Mapping[str, pa.Array], malformed: Sequence[MalformedRow] = ()
    ) -> None:
        """Insert the rows of documents, beside which are the columns of INCLUDE, and note what is malformed."""
        info, storage = self.info, self.storage
        types = {each.name: each.type for each in info.relation.visible if each.name not in {*columns, *info.generated}}
        nested = nested_columns(types)
        given = [(str(number), each.value) for number, each in enumerate(documents) if each.value is not None]
        cells = json_cells(given, list(types), nested)
        numbers = [int(each) for each in cells.positions]
        misread: list[tuple[str, str | None, str]] = [
            (documents[int(each.position)].origin, each.value, each.reason) for each in cells.misread
        ]
        misread += [(each.origin, None, _NO_VALUE) for each in documents if each.value is None]
        found = [*malformed, *(MalformedRow(info.relation.name, at, None, value, reason) for at, value, reason in misread)]
        casts = {name: cast_of_text(name, kind, name in nested) for name, kind in types.items()}
        most = MalformedRows(storage).most(info.relation.name)
        rows = text_rows(info, casts, beside={ORIGIN}, others=tuple(columns), most=most)
        noted, taken = found_in(found, most), pa.array(numbers, pa.int64())
        rows.refuse(noted)
        table = Cells(cells.columns, [documents[number].origin for number in numbers], ()).table(rows.policy)
        for name, column in columns.items():
            table = table.append_column(name, column.take(taken))
        arrived = storage.temporary_from(table)
        with storage.trying():
            noted = noted.and_more(rows.found(storage, arrived), most)
            self.writer.append((rows.lenient(arrived), (*casts, *columns)), info)
        MalformedRows(storage).note(info.relation.name, noted)


def _about(messages: Messages, what: str) -> pa.Array:
    if what == "key":
        return pa.array(messages.keys(), pa.binary())
    column = messages.about(what)
    return column if what == "timestamp" else column.cast(pa.string()) if what in ABOUT else column


Event = tuple[Any, bytes | None]
"""The key of a row, and the row, ``None`` where it is deleted."""


def _upsert(document: Document, keys: Sequence[str] | None) -> Iterable[Event]:
    """Return the change of a message of FORMAT UPSERT; ``keys`` are read from its key, which is the key itself for ``None``."""
    if document.key is None:
        raise ValueError("it has no key, and FORMAT UPSERT needs one")
    if keys is None:
        return [(document.key, document.value)]
    found = _object(document.key) if len(keys) > 1 or document.key[:1] == b"{" else {keys[0]: _scalar(document.key)}
    return [(_key_of(found, keys), document.value)]


def _debezium(document: Document, keys: Sequence[str]) -> Iterable[Event]:
    """Return the changes of a message of FORMAT DEBEZIUM; a tombstone behind a deleted row says nothing new."""
    if document.value is None:
        return []
    found = _object(document.value)
    found = found.get("payload") or found
    before, after, kind = found.get("before"), found.get("after"), found.get("op")
    if kind not in ("c", "r", "u", "d") or (after is None) != (kind == "d"):
        raise ValueError("it is no change of Debezium's: before, after and op")
    if kind == "d":
        return [(_key_of(before, keys), None)]
    row = json_text(after).encode()
    old = [] if not isinstance(before, dict) or _key_of(before, keys) == _key_of(after, keys) else [(_key_of(before, keys), None)]
    return [*old, (_key_of(after, keys), row)]


def _object(document: bytes) -> dict[str, Any]:
    found = json_object(document)
    if isinstance(found, str):
        raise ValueError(found)
    return found


def _scalar(document: bytes) -> Any:
    """Return a key of one column: a text of JSON, or else what is written."""
    text = document.decode("utf-8")
    return json.loads(text) if text[:1] == text[-1:] == '"' and len(text) > 1 else text


def _key_of(row: Any, keys: Sequence[str]) -> tuple[str, ...]:
    """Return the values of a key as JSON."""
    if not isinstance(row, dict) or any(row.get(name) is None for name in keys):
        raise ValueError(f"it has no value of the key ({', '.join(keys)})")
    return tuple(json_text(row[name]) for name in keys)
