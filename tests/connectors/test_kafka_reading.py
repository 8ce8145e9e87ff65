"""Spans of a topic as a task reads them: transactions, gaps, messages that are gone; on a real broker, without Spark."""

from __future__ import annotations

import time
from typing import Any

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient

import windowpane as wp
from tests.connectors.conftest import Broker
from windowpane.connectors.kafka_client import Connection, Topics
from windowpane.connectors.kafka_reading import Span, SpanReader, for_tasks, limited, spans
from windowpane.errors import ConnectorError, InvalidSpecError, MissingOffsetsError, UnknownTopicError


def never(*given: Any) -> None:
    raise ValueError(f"nothing was to be passed over: {given}")


def values(broker: Broker, span: Span, goes_on: bool = False, gone: Any = None) -> list[bytes | None]:
    reader = SpanReader(Connection(broker.servers), goes_on, gone or never)
    return [value for messages in reader([span]) for value in messages.values()]


def end_of(broker: Broker, topic: str) -> int:
    connection = Connection(broker.servers)
    with connection.consumer() as consumer:
        return connection.bounds(consumer, Topics((topic,)))[topic]["0"][1]


def test_only_what_is_committed_is_read_and_no_open_transaction_is_waited_for(broker: Broker) -> None:
    topic = broker.topic(1)
    producer = Producer({"bootstrap.servers": broker.servers, "transactional.id": topic})
    producer.init_transactions(30)
    for number in range(4):
        producer.begin_transaction()
        producer.produce(topic, str(number).encode())
        producer.flush()
        if number == 1:
            producer.abort_transaction()
        elif number < 3:
            producer.commit_transaction()
    end = end_of(broker, topic)
    assert end == 6  # three messages, each with the marker of its transaction behind it; the fourth is open
    assert values(broker, Span(topic, 0, 0, end)) == [b"0", b"2"]
    assert values(broker, Span(topic, 0, 2, 4)) == []
    producer.commit_transaction()
    deadline = time.monotonic() + 20
    while (committed := end_of(broker, topic)) == end and time.monotonic() < deadline:
        time.sleep(0.05)  # the marker is written behind the answer
    assert values(broker, Span(topic, 0, end, committed)) == [b"3"]


def test_spans_of_a_task_are_read_one_after_the_other(broker: Broker) -> None:
    topic, other = broker.topic(3), broker.topic(1)
    for partition in range(3):
        producer = Producer({"bootstrap.servers": broker.servers})
        for number in range(2_000):
            producer.produce(topic, f"{partition} {number}".encode(), partition=partition)
        producer.flush()
    broker.send(other, *(str(number).encode() for number in range(40)))
    wanted = [Span(topic, 2, 0, 2_000), Span(topic, 0, 500, 501), Span(topic, 1, 1_990, 2_000), Span(other, 0, 3, 40)]
    found: dict[Span, list[bytes | None]] = {span: [] for span in wanted}
    for messages in SpanReader(Connection(broker.servers), False, never)(wanted):
        found[messages.span] += messages.values()
    assert [found[span] for span in wanted[:3]] == [
        [f"{span.partition} {number}".encode() for number in range(span.start, span.end)] for span in wanted[:3]
    ]
    assert found[wanted[3]] == [str(number).encode() for number in range(3, 40)]


def test_short_spans_share_a_task_and_long_ones_have_their_own() -> None:
    cut = [Span("t", number, 0, count) for number, count in enumerate((20_000, 20_000, 20_000, 90_000, 1))]
    assert [[span.partition for span in task] for task in for_tasks(cut)] == [[0, 1, 2], [3], [4]]
    assert list(for_tasks([])) == []


def test_messages_that_are_gone_stop_a_reader_or_are_passed_over_and_said(broker: Broker) -> None:
    topic, gone = broker.topic(1), list[Any]()
    broker.send(topic, *(str(number).encode() for number in range(5)))
    admin = AdminClient({"bootstrap.servers": broker.servers})
    for result in admin.delete_records([TopicPartition(topic, 0, 3)]).values():
        result.result()
    span = Span(topic, 0, 1, 5)
    with pytest.raises(MissingOffsetsError, match=r"to be read from offset 1 on, and Kafka has 3 to 4 there"):
        values(broker, span)
    assert values(broker, span, True, lambda *given: gone.append(given)) == [b"3", b"4"]
    assert gone == [(span, 1, 3)]
    assert values(broker, Span(topic, 0, 7, 9), True, lambda *given: gone.append(given)) == []
    assert gone[1:] == [(Span(topic, 0, 7, 9), 7, 9)]


def test_what_cannot_be_read_is_named(broker: Broker) -> None:
    connection = Connection(broker.servers)
    with pytest.raises(UnknownTopicError), connection.consumer() as consumer:
        connection.bounds(consumer, Topics(("nowhere",)))
    with pytest.raises(InvalidSpecError, match="is set by windowpane"):
        Connection(broker.servers, {"isolation.level": "read_uncommitted"})
    with pytest.raises(InvalidSpecError, match="'arrow' or 'spark'"):
        wp.read_kafka(None, "t", servers=broker.servers, through="java")  # type: ignore[arg-type]
    with (
        pytest.raises(ConnectorError, match="No such configuration property"),
        Connection(broker.servers, {"no.such": 1}).consumer(),
    ):
        pass
    away = Connection("127.0.0.1:1", {"socket.timeout.ms": 300, "sasl.password": "hunter2"})
    with pytest.raises(ConnectorError, match="127\\.0\\.0\\.1:1") as caught, away.consumer() as consumer:
        consumer.list_topics(timeout=0.5)
    assert "hunter2" not in str(caught.value) + repr(away)


def test_a_batch_takes_its_share_of_each_partition() -> None:
    start, end = {"t": {"0": 0, "1": 10}}, {"t": {"0": 100, "1": 20, "2": 5}}
    assert [(each.partition, each.start, each.end) for each in spans(start, end)] == [(0, 0, 100), (1, 10, 20), (2, 0, 5)]
    assert limited(start, end, 1_000) == end
    assert limited(start, end, 23) == {"t": {"0": 20, "1": 12, "2": 1}}
    assert limited(start, end, 1) == {"t": {"0": 1, "1": 11, "2": 1}}
