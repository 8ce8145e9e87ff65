"""``wp.sinks.kafka`` on a real broker: what is written, and that it is written once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import windowpane as wp
from tests.connectors.conftest import Broker
from tests.spark.helpers import Feed, instant
from windowpane import TumblingEventTimeWindows
from windowpane.connectors.kafka_client import Connection
from windowpane.connectors.kafka_writing import BucketWriter, MessageFormat
from windowpane.errors import InvalidSpecError, MessageError, UnknownTopicError

ROWS = pa.table({"k": ["a", "b"], "v": [1, 2]})


def write(broker: Broker, topic: str, rows: pa.Table, batch: int = 0, query: str | None = "q", **format: Any) -> int:
    given = MessageFormat(**({"key": ("k",), "value": "json", "changes": "append"} | format))
    (said,) = BucketWriter(Connection(broker.servers), topic, given, batch, query, int)(rows.to_batches())
    return int(said["written"][0].as_py())


def test_a_batch_that_is_repeated_is_written_once(broker: Broker) -> None:
    topic = broker.topic(1)
    assert [write(broker, topic, ROWS, batch) for batch in (0, 0, 1, 0)] == [2, 0, 2, 0]
    assert [(key, value) for _, key, value in broker.read(topic)] == [(b"a", b'{"k":"a","v":1}'), (b"b", b'{"k":"b","v":2}')] * 2


KILLED = """
import os, sys
import pyarrow as pa
from windowpane.connectors import kafka_writing as w
from windowpane.connectors.kafka_client import Connection
where, servers, topic = sys.argv[1:]
if where == "sent":
    w.Writer._flush = lambda self: (self._producer.flush(), os._exit(9))
if where == "numbered":
    import confluent_kafka
    class Dying(confluent_kafka.Producer):
        def commit_transaction(self, *given):
            os._exit(9)
    confluent_kafka.Producer = Dying
writer = w.BucketWriter(Connection(servers), topic, w.MessageFormat(("k",), "json", "append"), 0, "q", int)
list(writer(pa.table({"k": ["a", "b"], "v": [1, 2]}).to_batches()))
os._exit(9)
"""


@pytest.mark.parametrize("where", ["sent", "numbered", "committed"])
def test_a_writer_that_is_killed_has_written_all_or_nothing(broker: Broker, where: str) -> None:
    topic = broker.topic(1)
    killed = subprocess.run([sys.executable, "-c", KILLED, where, broker.servers, topic], env=os.environ, check=False)
    assert killed.returncode == 9
    assert write(broker, topic, ROWS) == (0 if where == "committed" else 2)
    assert [key for _, key, _ in broker.read(topic)] == [b"a", b"b"]


def test_changes_as_upserts_and_as_debezium_has_them(broker: Broker) -> None:
    kinds = ["insert", "update_preimage", "update_postimage", "delete"]
    rows = pa.table({"k": ["a", "a", "a", "a"], "v": [1, 1, 2, 2], "_change_type": kinds})
    upserts, changes = broker.topic(1), broker.topic(1)
    write(broker, upserts, rows, changes="upsert")
    write(broker, changes, rows, changes="debezium")
    assert [value for _, _, value in broker.read(upserts)] == [b'{"k":"a","v":1}', b'{"k":"a","v":2}', None]
    one, two = {"k": "a", "v": 1}, {"k": "a", "v": 2}
    assert [json.loads(value or b"") for _, _, value in broker.read(changes)] == [
        {"before": None, "after": one, "op": "c"},
        {"before": one, "after": two, "op": "u"},
        {"before": two, "after": None, "op": "d"},
    ]
    with pytest.raises(MessageError, match="its key is NULL"):
        write(broker, upserts, pa.table({"k": pa.array([None], pa.string()), "v": [1]}), 1, changes="upsert")


def test_a_key_is_where_kafkas_own_producers_put_it(broker: Broker) -> None:
    topic = broker.topic(4)
    write(broker, topic, pa.table({"k": ["a", "b", "c", "21", "foobar"], "v": [1] * 5}))
    # Utils.toPositive(Utils.murmur2(key)) % 4 of Kafka's clients: murmur2("21") = -973932308, murmur2("foobar") = -790332482
    placed = {key: partition for partition, key, _ in broker.read(topic)}
    assert (placed[b"21"], placed[b"foobar"]) == ((-973932308 & 0x7FFFFFFF) % 4, (-790332482 & 0x7FFFFFFF) % 4)


def test_values_of_every_type_are_json(broker: Broker) -> None:
    topic = broker.topic(1)
    nested = [{"at": instant(1), "of": [Decimal("1.50"), None]}]
    rows = pa.table(
        {
            "k": ["ü"],
            "at": pa.array([instant(1.5)], pa.timestamp("us", "UTC")),
            "d": pa.array([Decimal("12.30")]),
            "f": [float("nan")],
            "b": [b"\x00\xff"],
            "n": pa.array(nested, pa.struct([("at", pa.timestamp("us", "UTC")), ("of", pa.list_(pa.decimal128(5, 2)))])),
        }
    )
    write(broker, topic, rows)
    ((_, key, value),) = broker.read(topic)
    assert key == "ü".encode()
    assert json.loads(value or b"") == {
        "k": "ü",
        "at": "2024-01-01T00:00:01.500000Z",
        "d": "12.30",
        "f": "NaN",
        "b": "AP8=",
        "n": {"at": "2024-01-01T00:00:01.000000Z", "of": ["1.50", None]},
    }


def test_what_kafka_does_not_take_is_named(broker: Broker) -> None:
    topic = broker.topic(1, **{"max.message.bytes": "1000"})
    with pytest.raises(MessageError, match=rf"of \d+ bytes with key 'a' was not written to topic '{topic}'"):
        write(broker, topic, pa.table({"k": ["a"], "v": [os.urandom(5_000).hex()]}))
    assert broker.read(topic) == []
    with pytest.raises(InvalidSpecError, match="changes='upsert' needs key="):
        wp.sinks.kafka(topic, servers=broker.servers, changes="upsert")


@pytest.mark.spark
def test_windows_are_in_the_topic_once_over_a_restart(spark: Any, broker: Broker, tmp_path: Path) -> None:
    topic = broker.topic(2)
    feed = Feed(tmp_path / "in").add([("a", 1, 5), ("b", 2, 7)])
    counts = (
        wp.stream(feed.stream(spark), event_time="t", watermark="0 seconds")
        .key_by("k")
        .window(TumblingEventTimeWindows.of("10 seconds"))
        .aggregate(v=wp.sum("v"))
    )
    sink = wp.sinks.kafka(topic, servers=broker.servers, key="k")
    for rows in [("a", 12, 1)], [("a", 30, 1)]:
        query = counts.start(main=sink, checkpoint=str(tmp_path / "ck"), trigger={"availableNow": True})
        query.awaitTermination()
        feed.add(rows)
    # the query is killed between its writers and Spark's commit: its last batch is run again
    for commit in sorted((tmp_path / "ck" / "commits").iterdir())[-2:]:
        commit.unlink()
    query = counts.start(main=sink, checkpoint=str(tmp_path / "ck"), trigger={"availableNow": True})
    query.awaitTermination()
    found = sorted((key, json.loads(value or b"")["v"]) for _, key, value in broker.read(topic))
    assert found == [(b"a", 1), (b"a", 5), (b"b", 7)]
    with pytest.raises(Exception, match="no topic 'nowhere'") as caught:
        counts.start(main=wp.sinks.kafka("nowhere", servers=broker.servers), trigger={"availableNow": True}).awaitTermination()
    assert UnknownTopicError.__name__ in str(caught.value)
