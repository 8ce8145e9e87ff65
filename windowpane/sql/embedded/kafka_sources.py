"""Topics as sources of a session without Spark: every flush takes the messages that are new, as one chunk.

``windowpane.offsets`` holds for each table, topic and partition the offset of the next message, and is written in the transaction
that takes the messages before it: a killed session goes on where its store is, and no message counts twice. Partitions that are
new begin at their first message.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from windowpane.connectors.kafka_client import Connection, Offsets, TopicOptions, Topics
from windowpane.connectors.kafka_reading import ABOUT, Messages, Span, SpanReader, check_behind, limited, spans
from windowpane.errors import MissingOffsetsError
from windowpane.hidden_columns import SPLIT
from windowpane.sql.catalog.entries import TableInfo
from windowpane.sql.embedded.message_rows import MOST, Document, MessageReading, MessageRows
from windowpane.sql.embedded.storage import Storage
from windowpane.sql.embedded.tables import TableWriter


@dataclass
class Topic:
    """The topic of a table, and what of it has been taken."""

    info: TableInfo
    options: TopicOptions = field(init=False)
    connection: Connection = field(init=False)
    topics: Topics = field(init=False)
    reading: MessageReading = field(init=False)

    def __post_init__(self) -> None:
        self.options = TopicOptions(self.info.options)
        self.connection, self.topics = self.options.connection, self.options.topics
        self.reading = MessageReading.of(self.info)

    def first(self, consumer: Any) -> Offsets:
        start = self.options.starting
        if isinstance(start, int):
            return self.connection.at_time(consumer, self.topics, start)
        return self.bounds(consumer)[0 if start == "earliest" else 1]

    def bounds(self, consumer: Any) -> tuple[Offsets, Offsets]:
        found = self.connection.bounds(consumer, self.topics)
        first, last = (
            {topic: {number: each[side] for number, each in numbers.items()} for topic, numbers in found.items()}
            for side in (0, 1)
        )
        return first, last

    def messages(self, start: Offsets, end: Offsets) -> Iterator[Messages]:
        """Yield the messages between two offsets."""
        reader = SpanReader(self.connection, False, _never)
        yield from reader(spans(start, end))


def _never(span: Span, at: int, to: int) -> None:
    """Take offsets that were passed over: none are."""


class TopicSources:
    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._opened: dict[str, tuple[Topic, Any]] = {}
        self._clients = ExitStack()

    def close(self) -> None:
        self._opened.clear()
        self._clients.close()

    def begin(self, info: TableInfo) -> None:
        """Note where a new table begins, as far as its topic has come by now."""
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
            consumer = topic.connection.consumer(topic.options.group or "windowpane")
            self._opened[name] = topic, self._clients.enter_context(consumer)
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
        if topic.options.group is not None:
            self._tell(topic, consumer, start)
        with topic.connection.named():
            first, last = topic.bounds(consumer)
        check_behind(start, last, goes_on=False)
        for each in spans(start, last):
            if each.start < (least := first[each.topic][str(each.partition)]):
                ends = last[each.topic][str(each.partition)]
                raise MissingOffsetsError(each.topic, each.partition, each.start, least, ends)
        end = limited(start, last, MOST)
        found = list(topic.messages(start, end))
        if found:
            documents = [
                Document(f"{each.span.topic}, {each.span.position(one.offset())}", one.value(), one.key())
                for each in found
                for one in each.messages
            ]
            rows = MessageRows(self._storage, info, writer, topic.reading)
            rows.append(documents, lambda what: pa.concat_arrays([_about(each, what) for each in found]))
        else:
            writer.pass_time(info)
        if end != start:
            self._keep(name, end)

    def _tell(self, topic: Topic, consumer: Any, offsets: Offsets) -> None:
        """Commit what the store has to the consumer group, for those who watch its lag; nothing is read from there."""
        from confluent_kafka import TopicPartition

        told = [TopicPartition(name, int(number), at) for name, numbers in offsets.items() for number, at in numbers.items()]
        with topic.connection.named():
            consumer.commit(offsets=told, asynchronous=True)


def _about(messages: Messages, what: str) -> pa.Array:
    if what == SPLIT:
        return pa.array([f"{messages.span.topic}/{messages.span.partition}"] * len(messages.messages), pa.string())
    if what == "key":
        return pa.array(messages.keys(), pa.binary())
    column = messages.about(what)
    return column if what == "timestamp" else column.cast(pa.string()) if what in ABOUT else column
