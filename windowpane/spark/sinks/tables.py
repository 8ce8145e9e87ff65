"""Tables of Delta and Iceberg as sinks: tasks write files the driver commits them, or one task merges a batch by key."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from windowpane.connectors import delta, iceberg
from windowpane.connectors.tables import plain_schema, refuse_nested
from windowpane.errors import InvalidSpecError, present
from windowpane.planning.sinks import Selectable
from windowpane.spark.session.column_names import columns_needed
from windowpane.spark.stages.project import mapped_in_arrow
from windowpane.spark.stages.types import arrow_schema
from windowpane.state.pairs import Pair
from windowpane.windowing.outputs import CHANGE_TYPE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_MERGED = pa.schema([("rows", pa.int64())])


@dataclass(frozen=True)
class TableSink(Selectable):
    """Rows of each batch in a table, once; with a key the changelog is merged."""

    table: delta.Table | iceberg.Table
    key: tuple[str, ...] = ()
    compact_every: int | None = None  # after so many batches the small files of a Delta table are made large ones
    read_query: Callable[[DataFrame], str] | None = None  # returns the id of the query of a batch; ``start`` gives it

    def __call__(self, df: DataFrame, batch_id: int) -> None:
        raise InvalidSpecError(f"{self.table} numbers batches by query, and does not know the query here: give it to start(...).")

    @property
    def needs(self) -> dict[str, tuple[str, ...]]:
        return {f"key of {self.table}": self.key}

    def for_query(self, read: Callable[[DataFrame], str]) -> TableSink:
        return replace(self, read_query=read)

    @property
    def taker(self) -> str:
        return str(self.table)

    @property
    def way_out(self) -> str:
        return "Put copies back that belong together, or start with a new checkpoint and a new table."

    def taken(self, dataframe: DataFrame) -> int:
        """Return the number of the last batch of the query that the table has."""
        return int(self.table.taken(self._query(dataframe)))

    def take(self, dataframe: DataFrame, number: int, pair: Pair, settled: int) -> None:
        """Write one batch with its number, in one commit; see ``NumberedSink``."""
        query = self._query(dataframe)
        if pair.has_begun(self.taken(dataframe), settled, number):
            return
        key = columns_needed(dataframe.columns, self.needs, dataframe.sparkSession)
        rows = arrow_schema(dataframe.schema, str(self.table))
        if key:
            refuse_nested(str(self.table), rows, key)
            rows = pa.schema([each for each in rows if each.name != CHANGE_TYPE])
        if isinstance(self.table, delta.Table):
            self._into_delta(self.table, dataframe, rows, key, query, number)
        else:
            self._into_iceberg(self.table, dataframe, rows, key, query, number)

    def _into_delta(
        self, table: delta.Table, df: DataFrame, rows: pa.Schema, key: tuple[str, ...], query: str, number: int
    ) -> None:
        there = table.prepared(rows, feed=bool(key))
        if key:
            if not self._merged(df, key, query, number):
                table.append(there, [], query, number)
        else:
            columns = plain_schema(rows)
            by = tuple(there.metadata().partition_columns)
            writer = delta.FileWriter(table.uri, table.storage, columns, by, f"part-{number}")
            files = mapped_in_arrow(df, writer.__call__, delta.WRITTEN).collect()
            table.append(there, [each.asDict() for each in files], query, number)
        if self.compact_every is not None and number % self.compact_every == self.compact_every - 1:
            table.compact(present(table.opened(), "it was prepared"))

    def _into_iceberg(
        self, table: iceberg.Table, df: DataFrame, rows: pa.Schema, key: tuple[str, ...], query: str, number: int
    ) -> None:
        there = table.prepared(rows)
        if key or not table.takes_files(there):
            if not self._merged(df, key, query, number):
                table.append([], query, number)
            return
        columns = plain_schema(rows)
        writer = iceberg.FileWriter(table, columns, f"part-{number}")
        files = mapped_in_arrow(df, writer.__call__, iceberg.WRITTEN).collect()
        table.append([each.path for each in files], query, number)

    def _merged(self, df: DataFrame, key: tuple[str, ...], query: str, number: int) -> bool:
        """Merge a batch in one task; return whether there was one to run."""
        merge = Merge(self.table, key, query, number)
        return bool(mapped_in_arrow(df.coalesce(1), merge.__call__, "rows long").collect())

    def _query(self, dataframe: DataFrame) -> str:
        return "" if self.read_query is None else self.read_query(dataframe)


@dataclass(frozen=True)
class Merge:
    table: delta.Table | iceberg.Table
    key: tuple[str, ...]
    query: str
    number: int

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        merged = self.table.merge(batches, self.key, self.query, self.number)
        yield pa.RecordBatch.from_arrays([pa.array([merged], pa.int64())], schema=_MERGED)
