"""Reads that are planned beside the driver and done in tasks: a streaming data source whose rows say what a task is to read.

Its class is made anew for each read, so that it is pickled with what it reads: connections and their secrets travel in pickled
code, not in options, which plans and logs show.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from pyspark.sql import types as T
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

try:
    from pyspark.sql.streaming import datasource

    limits: Any = datasource
except ImportError:  # before Spark 4.2 a source says how far it goes, and is not asked for less
    limits = None
_AvailableNow: Any = object if limits is None else limits.SupportsTriggerAvailableNow


@dataclass
class Part(InputPartition):
    """What one task is to read, as rows."""

    rows: Sequence[tuple[Any, ...]]


class PlannedStream(DataSourceStreamReader, _AvailableNow):  # type: ignore[misc]
    """A stream whose offsets a subclass knows; ``parts`` are the rows of what lies between two."""

    _target: Any = None

    def ends(self) -> Any:
        raise NotImplementedError

    def parts(self, start: Any, end: Any) -> Sequence[tuple[Any, ...]]:
        raise NotImplementedError

    def tasks(self, start: Any, end: Any) -> Iterable[Sequence[tuple[Any, ...]]]:
        """Return the parts by task: each has one of its own."""
        return ([each] for each in self.parts(start, end))

    def latestOffset(self, start: Any = None, limit: Any = None) -> Any:  # noqa: N802
        return self.ends() if self._target is None else self._target

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._target = self.ends()

    def getDefaultReadLimit(self) -> Any:  # noqa: N802
        return limits.ReadAllAvailable()

    def partitions(self, start: Any, end: Any) -> list[Part]:
        return [Part(each) for each in self.tasks(start, end)]

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        yield from partition.rows  # type: ignore[attr-defined]


def planned(spark: SparkSession, schema: str, make: Callable[[], PlannedStream]) -> Any:
    """Return a streaming DataFrame of the parts that a stream plans for its tasks."""
    registered = f"windowpane_{uuid4().hex[:12]}"

    class Planned(DataSource):
        @classmethod
        def name(cls) -> str:
            return registered

        def schema(self) -> str:
            return schema

        def streamReader(self, schema: T.StructType) -> PlannedStream:  # noqa: N802
            return make()

    spark.dataSource.register(Planned)
    return spark.readStream.format(registered).load()
