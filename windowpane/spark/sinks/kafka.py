"""Kafka as a sink: the tasks of a batch write, the driver keeps the number of the last whole batch; see ``kafka_writing``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark import TaskContext

from windowpane.connectors.kafka_client import Connection, Topics
from windowpane.connectors.kafka_writing import WRITTEN, BucketWriter, MessageFormat, keep_batch, last_batch
from windowpane.errors import InvalidSpecError
from windowpane.planning.sinks import Selectable
from windowpane.spark.session.column_names import columns_needed
from windowpane.spark.stages.project import mapped_in_arrow
from windowpane.state.pairs import Pair

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class KafkaSink(Selectable):
    """Messages of each batch, at least once: a batch that is repeated is written again."""

    connection: Connection
    topic: str
    format: MessageFormat

    @property
    def needs(self) -> dict[str, tuple[str, ...]]:
        return {"key of sinks.kafka": self.format.key}

    def __call__(self, df: DataFrame, batch_id: int) -> None:
        """Write one batch."""
        with self.connection.consumer() as consumer:
            self.connection.partitions(consumer, Topics((self.topic,)))
        self._write(df, batch_id, None)

    def _write(self, df: DataFrame, batch: int, query: str | None) -> None:
        key = columns_needed(df.columns, self.needs, df.sparkSession)
        writer = BucketWriter(self.connection, self.topic, replace(self.format, key=key), batch, query, _bucket)
        mapped_in_arrow(df, writer.__call__, WRITTEN).write.format("noop").mode("append").save()


@dataclass(frozen=True)
class KafkaTransactions(KafkaSink):
    """Messages of each batch, exactly once for readers of committed messages."""

    read_query: Callable[[DataFrame], str] | None = None  # returns the id of the query of a batch; ``start`` gives it

    def __call__(self, df: DataFrame, batch_id: int) -> None:
        raise InvalidSpecError(
            f"sinks.kafka({self.topic!r}) numbers batches by query, and does not know the query here: give it to start(...), or "
            "say guarantee='at_least_once'."
        )

    def for_query(self, read: Callable[[DataFrame], str]) -> KafkaTransactions:
        return replace(self, read_query=read)

    @property
    def taker(self) -> str:
        return f"topic {self.topic!r} of Kafka at {self.connection.servers}"

    @property
    def way_out(self) -> str:
        return (
            "Start with a new checkpoint and a new topic, or put copies back that belong together. Kafka forgets the number of a "
            "query that has not run for offsets.retention.minutes, seven days unless set: after such a time, too, start anew."
        )

    def taken(self, dataframe: DataFrame) -> int:
        """Return the number of the last batch that all writers have written."""
        with self.connection.consumer(self._name(dataframe), {"isolation_level": "read_uncommitted"}) as consumer:
            self.connection.partitions(consumer, Topics((self.topic,)))
            return last_batch(self.connection, consumer, self.topic)

    def take(self, dataframe: DataFrame, number: int, pair: Pair, settled: int) -> None:
        """Write one batch, then its number; see ``NumberedSink``."""
        if pair.has_begun(self.taken(dataframe), settled, number):
            return
        self._write(dataframe, number, self._name(dataframe))
        with self.connection.consumer(self._name(dataframe)) as consumer:
            keep_batch(self.connection, consumer, self.topic, number)

    def _name(self, dataframe: DataFrame) -> str:
        return f"windowpane.{'' if self.read_query is None else self.read_query(dataframe)}.{self.topic}"


def _bucket() -> int:
    """Return the bucket of the query that this task has the rows of: partitions of state are numbered as buckets are."""
    context = TaskContext.get()
    return 0 if context is None else int(context.partitionId())
