"""Reads that are planned beside the driver and done in tasks: a streaming data source whose rows say what a task is to read.

Its class is made anew for each read, so that it is pickled with what it reads: connections and their secrets travel in pickled
code, not in options, which plans and logs show.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias
from uuid import uuid4

from pyspark.sql import types as T
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from windowpane.arrays.values import JsonValue, Value

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

try:
    from pyspark.sql.streaming import datasource

    limits: Any = datasource
except ImportError:  # before Spark 4.2 a source says how far it goes, and is not asked for less
    limits = None
_AvailableNow: Any = object if limits is None else limits.SupportsTriggerAvailableNow

Offset: TypeAlias = JsonValue
"""Where a stream is, as its checkpoint has it; a subclass knows what is in it."""
ReadLimit: TypeAlias = Any
"""How much of a stream Spark asks for: a class of ``limits``, which earlier versions of Spark do not have."""


@dataclass
class Part(InputPartition):
    """What one task is to read, as rows."""

    rows: Sequence[tuple[Value, ...]]


class PlannedStream(DataSourceStreamReader, _AvailableNow):  # type: ignore[misc]
    """A stream whose offsets a subclass knows; ``parts`` are the rows of what lies between two."""

    _target: Offset | None = None

    def ends(self) -> Offset:
        raise NotImplementedError

    def parts(self, start: Offset, end: Offset) -> Sequence[tuple[Value, ...]]:
        raise NotImplementedError

    def tasks(self, start: Offset, end: Offset) -> Iterable[Sequence[tuple[Value, ...]]]:
        """Return the parts by task: each has one of its own."""
        return ([each] for each in self.parts(start, end))

    def latestOffset(self, start: Offset | None = None, limit: ReadLimit | None = None) -> Offset:  # noqa: N802
        return self.ends() if self._target is None else self._target

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._target = self.ends()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return limits.ReadAllAvailable()

    def partitions(self, start: Offset, end: Offset) -> list[Part]:
        return [Part(each) for each in self.tasks(start, end)]

    def read(self, partition: InputPartition) -> Iterator[tuple[Value, ...]]:
        yield from partition.rows  # type: ignore[attr-defined]


def planned(spark: SparkSession, schema: str, make: Callable[[], PlannedStream]) -> DataFrame:
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
