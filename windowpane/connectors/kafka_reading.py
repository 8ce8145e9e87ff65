"""Messages of Kafka as Arrow, read in a task: a span of one partition, from one offset to another.

Offsets have gaps: markers of transactions and compacted messages are numbered, too. A span ends with the first message behind
it, or at the end of the partition, which says how far it goes. Only what is committed is counted when spans are made, so no span
waits for a transaction.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from windowpane.arrays.values import Value
from windowpane.connectors.kafka_client import PATIENCE, Connection, Offsets
from windowpane.errors import ConnectorError, MissingOffsetsError
from windowpane.malformed import Message

if TYPE_CHECKING:
    from confluent_kafka import Consumer

SPAN = "topic string, partition int, start bigint, end bigint"
MESSAGES = 50_000  # So many messages are decoded at once
_QUEUED, _FETCHED = 200_000, 2 << 20  # What is fetched behind a span's end is thrown away: messages, and bytes at a time
_WAIT = 0.1  # Seconds until what has come is taken, although it is less than was asked for: offsets have gaps
_HEADERS = pa.list_(pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())]))

ABOUT = {
    "topic": pa.string(),
    "partition": pa.int32(),
    "offset": pa.int64(),
    "timestamp": pa.timestamp("us", "UTC"),
    "headers": _HEADERS,
}
"""What there is of a message beside key and value."""


@dataclass(frozen=True)
class Span:
    topic: str
    partition: int
    start: int
    end: int  # the offset behind the last one

    def position(self, offset: int) -> str:
        return f"partition {self.partition}, offset {offset}"


class ClientMessage(Protocol):
    """A message as the client has it."""

    def value(self) -> bytes | None: ...
    def key(self) -> bytes | None: ...
    def offset(self) -> int: ...
    def timestamp(self) -> tuple[int, int]: ...
    def headers(self) -> list[tuple[str, bytes]] | None: ...


@dataclass(frozen=True)
class Messages:
    """Messages of one span, in their order."""

    span: Span
    messages: list[ClientMessage]

    def values(self) -> list[bytes | None]:
        return [message.value() for message in self.messages]

    def keys(self) -> list[bytes | None]:
        return [message.key() for message in self.messages]

    def place(self, number: int) -> tuple[str, Message]:
        """Return where a message is, as text, and what says so."""
        found = self.messages[number]
        message = Message(self.span.topic, self.span.partition, found.offset(), _microseconds(found), found.key())
        return self.span.position(found.offset()), message

    def about(self, name: str) -> pa.Array:
        """Return one of the columns of ``ABOUT``."""
        kind = ABOUT[name]
        if name in ("topic", "partition"):
            return pa.array([getattr(self.span, name)] * len(self.messages), kind)
        if name == "offset":
            return pa.array([message.offset() for message in self.messages], kind)
        if name == "timestamp":
            return pa.array([_microseconds(message) for message in self.messages], pa.int64()).cast(kind)
        return pa.array(
            [[{"key": key, "value": value} for key, value in message.headers() or ()] for message in self.messages], kind
        )


def _is_of(message: Value, span: Span) -> bool:
    return bool(message.partition() == span.partition and message.topic() == span.topic)


def _microseconds(message: ClientMessage) -> int | None:
    kind, milliseconds = message.timestamp()
    return milliseconds * 1_000 if kind else None


@dataclass(frozen=True)
class SpanReader:
    connection: Connection
    goes_on: bool  # whether messages that are gone are passed over
    gone: Callable[[Span, int, int], None]  # called with each run of offsets that is passed over

    def __call__(self, spans: Iterable[Span]) -> Iterator[Messages]:
        """Yield the messages of spans, one span after the other, over one connection."""
        wanted = list(spans)
        settings = {
            "enable_partition_eof": True,
            "queued_min_messages": min(_QUEUED, max((span.end - span.start for span in wanted), default=1)),
            "fetch_message_max_bytes": _FETCHED,
            "fetch_wait_max_ms": 50,  # at the end of a partition Kafka waits for so long before it says so
        }
        with self.connection.consumer(settings=settings) as consumer:
            for span in wanted:
                yield from self._read(consumer, span)

    def _read(self, consumer: Consumer, span: Span) -> Iterator[Messages]:
        from confluent_kafka import TopicPartition

        at, silent = span.start, 0.0
        consumer.assign([TopicPartition(span.topic, span.partition, at)])
        while at < span.end:
            found: list[Value] = consumer.consume(min(MESSAGES, span.end - at), timeout=_WAIT)
            ended = False
            if found and not _is_of(found[0], span):  # of the span before: what was fetched last comes first
                found = [message for message in found if _is_of(message, span)]
            messages: list[ClientMessage] = [message for message in found if message.error() is None]
            if messages and messages[-1].offset() >= span.end:  # offsets rise
                messages, ended = [message for message in messages if message.offset() < span.end], True
            for message in found if len(messages) < len(found) else ():
                error = message.error()
                if error is None or error.name() == "_PARTITION_EOF":
                    ended = ended or message.offset() >= span.end
                elif error.name() == "_AUTO_OFFSET_RESET":
                    at = self._first_left(consumer, span, at)
                    consumer.assign([TopicPartition(span.topic, span.partition, at)])
                elif not error.retriable():
                    raise self.connection.error(error, span.topic)
            if messages:
                at = messages[-1].offset() + 1
                yield Messages(span, messages)
            silent = 0.0 if found else silent + _WAIT
            if ended:
                return
            if silent > PATIENCE:
                raise ConnectorError(
                    f"Kafka at {self.connection.servers}",
                    f"it gave nothing of topic {span.topic!r}, {span.position(at)}, for {PATIENCE:.0f} seconds; the query goes "
                    "on from its checkpoint when it does",
                )

    def _first_left(self, consumer: Consumer, span: Span, at: int) -> int:
        first, last = self.connection.bounds_of(consumer, span.topic, span.partition)
        if not self.goes_on:
            raise MissingOffsetsError(span.topic, span.partition, at, first, last)
        left = first if first > at else span.end
        self.gone(span, at, min(left, span.end))
        return int(left)


def spans(start: Offsets, end: Offsets) -> list[Span]:
    """Return what is between two offsets; a partition that ``start`` does not know is new, and begins at its first offset."""
    return [
        Span(topic, int(number), begin, to)
        for topic, numbers in sorted(end.items())
        for number, to in sorted(numbers.items(), key=lambda each: int(each[0]))
        if (begin := start.get(topic, {}).get(number, 0)) < to
    ]


def for_tasks(spans: Sequence[Span]) -> Iterator[list[Span]]:
    """Yield spans by task: short ones share one, which then has about as many messages as are decoded at once."""
    together, messages = list[Span](), 0
    for span in spans:
        together.append(span)
        messages += span.end - span.start
        if messages >= MESSAGES:
            yield together
            together, messages = [], 0
    if together:
        yield together


def limited(start: Offsets, end: Offsets, rows: int) -> Offsets:
    """Return offsets up to ``end`` that are about ``rows`` messages ahead of ``start``: each partition goes on by its share."""
    left = {(each.topic, str(each.partition)): each.end - each.start for each in spans(start, end)}
    total = sum(left.values())
    if total <= rows:
        return end
    limit: Offsets = {}
    for topic, numbers in end.items():
        for number, to in numbers.items():
            many = left.get((topic, number), 0)
            limit.setdefault(topic, {})[number] = to - many + (max(1, rows * many // total) if many else 0)
    return limit


def check_behind(start: Offsets, end: Offsets, goes_on: bool) -> None:
    """Refuse partitions that have fewer messages than were read of them; going on takes them as they are."""
    for topic, numbers in start.items():
        for number, at in numbers.items():
            to = end.get(topic, {}).get(number)
            if to is not None and to >= at:
                continue
            if not goes_on:
                raise MissingOffsetsError(topic, int(number), at, 0, to or 0)
            end.setdefault(topic, {})[number] = at if to is None else to


def warn_of_gone(topic: str, position: str, count: int) -> None:
    logging.getLogger(__name__).warning("topic %s, %s: %d offsets are gone and were passed over", topic, position, count)
