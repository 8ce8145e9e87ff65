"""``wp.read_kafka`` on a real broker."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import windowpane as wp
from tests.connectors.conftest import Broker
from tests.spark.helpers import instant, needs_limits, rows
from windowpane import TumblingEventTimeWindows
from windowpane.errors import MalformedRowError, UnknownTopicError

pytestmark = pytest.mark.spark

EVENTS = "k string, t timestamp, v long"


def event(k: str, t: float, v: int = 1) -> bytes:
    return json.dumps({"k": k, "t": instant(t).isoformat(), "v": v}).encode()


def written(folder: Path, spark: Any) -> list[tuple[Any, ...]]:
    return rows(spark.read.parquet(str(folder)).drop("query", "batch"))


@needs_limits
def test_a_slow_partition_loses_no_row_over_a_restart(spark: Any, broker: Broker, tmp_path: Path) -> None:
    topic = broker.topic(2)
    events = wp.read_kafka(
        spark, topic, servers=broker.servers, value=wp.json(EVENTS), event_time="t", delay="0 seconds", max_rows_per_batch=4
    )
    counts = (
        wp.stream(events).key_by("k").window(TumblingEventTimeWindows.of("10 seconds")).aggregate(n=wp.count(), v=wp.sum("v"))
    )
    assert "partition" in counts.explain()
    broker.send(topic, event("a", 1), event("a", 601), event("a", 602), partition=0)
    broker.send(topic, event("a", 2, 5), partition=1)
    for sent in [(event("a", 3, 7), event("a", 12))], [(event("a", 700),)]:
        query = counts.start(main=str(tmp_path / "out"), checkpoint=str(tmp_path / "ck"), trigger={"availableNow": True})
        query.awaitTermination()
        broker.send(topic, *sent[0], partition=1)
    query = counts.start(main=str(tmp_path / "out"), checkpoint=str(tmp_path / "ck"), trigger={"availableNow": True})
    query.awaitTermination()
    assert written(tmp_path / "out", spark) == [("a", 0, 10, 3, 13), ("a", 10, 20, 1, 1)]


def test_a_bounded_read_has_typed_values_and_what_is_included(spark: Any, broker: Broker) -> None:
    topic = broker.topic(1)
    broker.send(topic, (b"x", event("a", 1)), (b"y", event("b", 2)), (None, event("c", 3)))
    read = wp.read_kafka(
        spark,
        topic,
        servers=broker.servers,
        value=wp.json(EVENTS),
        key="text",
        include=("partition", "offset", "key"),
        streaming=False,
        ending={0: 2},
    )
    assert rows(read) == [("a", 1, 1, 0, 0, "x"), ("b", 2, 1, 0, 1, "y")]
    assert rows(wp.read_kafka(spark, topic, servers=broker.servers, value="text", starting={0: 2}, streaming=False)) == [
        (event("c", 3).decode(),)
    ]


@needs_limits
def test_malformed_messages_are_data(spark: Any, broker: Broker, tmp_path: Path) -> None:
    topic = broker.topic(1)
    broker.send(topic, event("a", 1), b"no", event("a", 2), (b"k", None), event("a", 30))
    events = wp.read_kafka(spark, topic, servers=broker.servers, value=wp.json(EVENTS), event_time="t", delay="0 seconds")
    counts = wp.stream(events).key_by("k").window(TumblingEventTimeWindows.of("10 seconds")).aggregate(n=wp.count())
    query = counts.start(
        main=str(tmp_path / "out"),
        malformed=str(tmp_path / "malformed"),
        checkpoint=str(tmp_path / "ck"),
        trigger={"availableNow": True},
    )
    query.awaitTermination()
    found = written(tmp_path / "malformed", spark)
    assert [(each[0], each[1], each[3]) for each in found] == [
        (topic, "partition 0, offset 1", "no"),
        (topic, "partition 0, offset 3", ""),
    ]
    assert [(topic, 0, 1, None), (topic, 0, 3, b"k")] == [(*each[5:8], each[9]) for each in found]
    assert all(each[8] is not None for each in found)
    assert written(tmp_path / "out", spark) == [("a", 0, 10, 2)]
    static = wp.read_kafka(spark, topic, servers=broker.servers, value=wp.json(EVENTS), streaming=False)
    with pytest.raises(Exception, match=rf"MalformedRowError: {topic}, partition 0, offset 1") as caught:
        static.collect()
    assert MalformedRowError.__name__ in str(caught.value)


def test_secrets_are_in_no_plan(spark: Any, broker: Broker, capsys: Any) -> None:
    topic = broker.topic(1)
    read = wp.read_kafka(spark, topic, servers=broker.servers, options={"sasl.password": "hunter2", "client.id": "me"})
    read.explain(True)
    assert "hunter2" not in capsys.readouterr().out + repr(read)
    with pytest.raises(UnknownTopicError, match="no topic 'nowhere'"):
        wp.read_kafka(spark, "nowhere", servers=broker.servers, streaming=False)
