"""Messages that Spark's own connector reads: its options from those of ``read_kafka``, and its rows as messages.

Spark keeps account of offsets. Rows are handed over as they are, and become columns where rows are encoded, as messages do that
tasks read by themselves.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import functions as F

from windowpane.arrays.values import Row
from windowpane.connectors.kafka_reading import ClientMessage, Messages, Span
from windowpane.errors import InvalidSpecError, MissingJarError
from windowpane.spark.session.reasons import SPARK_ERRORS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_PACKAGE = "org.apache.spark:spark-sql-kafka-0-10_2.13"
_COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers")


@dataclass(frozen=True)
class SparkConnector:
    """What a read of Kafka is to bring, said to Spark."""

    read: Any  # a ``kafka.Read``

    def rows(self, spark: SparkSession, *, streaming: bool) -> DataFrame:
        """Return the DataFrame of its messages.

        Raises:
            MissingJarError: Spark has no connector for Kafka.
        """
        reader = (spark.readStream if streaming else spark.read).format("kafka").options(**self._options(streaming))
        try:
            return reader.load().select(*(F.col(name) for name in _COLUMNS))
        except SPARK_ERRORS as error:
            condition = error.getCondition() if isinstance(error, AnalysisException) else None
            if "DATA_SOURCE_NOT_FOUND" in f"{condition} {error}" or "Failed to find" in str(error):
                raise MissingJarError(_PACKAGE, str(spark.version)) from None
            raise

    def _options(self, streaming: bool) -> dict[str, str]:
        read, topics = self.read, self.read.topics
        if read.group is not None:
            raise InvalidSpecError("read_kafka(through='spark', group=...): Spark tells no consumer group; leave it out.")
        found = {
            "kafka.bootstrap.servers": read.connection.servers,
            "kafka.isolation.level": "read_committed",
            "failOnDataLoss": str(not read.goes_on).lower(),
            "includeHeaders": "true",
            **{f"kafka.{name}": str(value) for name, value in read.connection.options.items()},
            **_place("starting", read.starting, topics.names),
        }
        found |= {"subscribe": ",".join(topics.names)} if topics.pattern is None else {"subscribePattern": topics.pattern}
        if streaming and read.max_rows is not None:
            found["maxOffsetsPerTrigger"] = str(read.max_rows)
        return found if streaming else {**found, **_place("ending", read.ending, topics.names)}


def _place(side: str, place: object, topics: tuple[str, ...]) -> dict[str, str]:
    if isinstance(place, str) and (place in ("earliest", "latest") or place.startswith("{")):
        return {f"{side}Offsets": place}
    if isinstance(place, str):
        place = datetime.fromisoformat(place)
    if isinstance(place, datetime):
        place = round((place if place.tzinfo else place.astimezone()).timestamp() * 1_000)
    if isinstance(place, Mapping):
        by_topic = place if all(isinstance(each, Mapping) for each in place.values()) else {topics[0]: place}
        return {f"{side}Offsets": json.dumps(by_topic)}
    return {f"{side}Timestamp": str(place)}


@dataclass(frozen=True)
class _Row:
    """A row of Spark's connector with the methods of a message of librdkafka."""

    row: Row

    def value(self) -> bytes | None:
        found: bytes | None = self.row["value"]
        return found

    def key(self) -> bytes | None:
        found: bytes | None = self.row["key"]
        return found

    def offset(self) -> int:
        return int(self.row["offset"])

    def timestamp(self) -> tuple[int, int]:
        """Return its kind, none of librdkafka's where there is none, and milliseconds."""
        found: datetime | None = self.row["timestamp"]
        return (0, 0) if found is None else (self.row["timestampType"] + 1, round(found.timestamp() * 1_000))

    def headers(self) -> list[tuple[str, bytes]] | None:
        found = self.row["headers"]
        return None if found is None else [(each["key"], each["value"]) for each in found]


def handed_over(batch: pa.RecordBatch) -> Iterator[Messages]:
    """Yield the rows of a batch as messages, those of one partition together."""
    rows = (_Row(each) for each in batch.to_pylist())
    for (topic, partition), found in groupby(rows, key=lambda each: (each.row["topic"], each.row["partition"])):
        messages: list[ClientMessage] = list(found)
        yield Messages(Span(topic, partition, messages[0].offset(), messages[-1].offset() + 1), messages)
