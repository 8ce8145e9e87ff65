"""The streaming query of a view that is one: rows of the source -> a window or OVER program -> changes of the view, as blobs.

Late rows are those behind the watermark before the batch, as in a table: the driver knows it to the microsecond, tells it to the
tasks of the batch, and the tasks report how far the rows raise it and how many were late. The operator makes the same
watermark itself, for that of Spark has milliseconds, and closes windows in the batch that completes them. Rows that are filtered
out, or late, still move it: each task adds one heartbeat with its latest time.

The hidden id of a row is made from the number at which the ids of its batch begin, which the driver keeps with the watermark, its
place in its task and the number of that: a batch that is run again gives ids that no other row has.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from windowpane.sql.catalog.entries import ROW_ID, TableInfo
from windowpane.sql.expressions.expr import quoted
from windowpane.sql.expressions.types import SqlType
from windowpane.sql.on_spark.ingest import given_columns, read_sql
from windowpane.sql.on_spark.rowwise import task_storage
from windowpane.sql.on_spark.stages import INPUT
from windowpane.sql.on_spark.streamed_plan import StreamedGroups, StreamedOver, StreamedPlan
from windowpane.sql.streaming.deltas import WEIGHT
from windowpane.sql.streaming.over import over_spec
from windowpane.state.compact import to_stream
from windowpane.windowing import aggregates
from windowpane.windowing.changes import CHANGE_TYPE, INSERT, UPDATE_POSTIMAGE
from windowpane.windowing.expressions import Name
from windowpane.windowing.over.calls import WindowCall
from windowpane.windowing.triggers.each_batch import EachBatch
from windowpane.windowing.watermarks import Watermarks

_TIME, _HEARTBEAT, _COUNTERS = "at", "heartbeat", "windowpane_sql"
_INSTANT = pa.timestamp("us", "UTC")


_PARTITIONS = 1 << 16
"""Ids of rows that are set aside for each place in a task: one for each task."""


@dataclass(frozen=True)
class Begin:
    """What the driver tells the tasks of a batch.

    Args:
        watermark: that before the batch, as SQL; ``None`` while there is none.
        first_id: the number at which the ids of its rows begin.
    """

    watermark: str | None
    first_id: int

    def text(self) -> str:
        """Return it as text."""
        return json.dumps([self.watermark, self.first_id])

    @classmethod
    def of(cls, text: str | None) -> Begin:
        """Return it from text; a batch that nobody told anything has no watermark."""
        return cls(None, 0) if text is None else cls(*json.loads(text))


@dataclass(frozen=True)
class Report:
    """What a task saw of the source.

    Args:
        reached: the watermark that its rows alone would make, in microseconds; ``None`` without rows.
        late: how many rows were behind the watermark.
        rows: how many rows there were.
    """

    reached: int | None
    late: int
    rows: int


def next_id(first: int, reports: Iterable[Report]) -> int:
    """Return the number at which the ids of the next batch begin."""
    return first + max((report.rows for report in reports), default=0) * _PARTITIONS


def streamed_changes(plan: StreamedPlan, table: TableInfo, rows: Any, exchange: Any) -> Any:
    """Return the changes of the view as a DataFrame of blobs.

    Args:
        plan: the plan of the view.
        table: its source.
        rows: the streaming DataFrame of the source.
        exchange: the ``BatchExchange`` by which driver and tasks tell each other.
    """
    from windowpane.spark.sources.arrow_rows import mapped, read_columns

    columns = [name for name in plan.scan.stored if name != ROW_ID]
    carried = ", ".join(f"{column.name} {column.spark}" for column in plan.carried)
    schema = f"{_TIME} timestamp, {_HEARTBEAT} boolean" + (f", {carried}" if carried else "")
    made = mapped(read_columns(rows, columns), Arriving(plan, table, exchange), schema)
    assert isinstance(plan, StreamedGroups | StreamedOver), "there are two kinds"
    operated = _over(plan, made) if isinstance(plan, StreamedOver) else _groups(plan, made)
    return operated.mapInArrow(Leaving(plan).__call__, "blob binary")


def _groups(plan: StreamedGroups, made: Any) -> Any:
    """Return the groups of windows: by a window program.

    In SQL a row at the watermark is not late, and joins a session that ends there; in windowpane a session that ends there is
    closed. So the watermark of sessions stays a microsecond more behind.
    """
    from windowpane.stream import stream

    watermark = Watermarks.bounded(plan.delay + plan.has_sessions).at_once()
    keyed: Any = stream(made, _TIME, watermark, _HEARTBEAT, name=_COUNTERS)
    keys = [f"k{number}" for number in range(len(plan.keys))]
    windowed = keyed.key_by(*keys).window(plan.assigner) if keys else keyed.window_all(plan.assigner)
    calls = {f"r{number}": _aggregate(call.function, call.argument, number) for number, call in enumerate(plan.calls)}
    if not plan.closes:
        windowed = windowed.trigger(EachBatch()).accumulation("retracting")
    return windowed.aggregate(**(calls or {"r": aggregates.count()})).df


def _over(plan: StreamedOver, made: Any) -> Any:
    """Return rows with the results of their calls: by an OVER program."""
    from windowpane.over import over

    spec, name = over_spec(plan.over), plan.name_of
    watermark, key = Watermarks.bounded(plan.delay).at_once(), [name(each) for each in spec.key]
    window: Any = over(made, _TIME, watermark, key, _HEARTBEAT, name=_COUNTERS).order_by(_TIME)
    calls = {
        f"r{number}": WindowCall(
            call.function,
            tuple(Name(name(each)) for each in call.arguments),
            call.frame,
            offset=call.offset,
            skips_nulls=call.ignore_nulls,
            condition=None if call.filter is None else Name(name(call.filter)),
            is_distinct=call.distinct,
            parameters=call.parameters,
        )
        for number, call in enumerate(spec.calls)
    }
    names = [column.name for column in plan.carried]
    return window.partition_by(*map(name, spec.partition_by)).select(*names, **calls).emit_on_window_close().df


def _aggregate(function: str, argument: str | None, number: int) -> Any:
    made = getattr(aggregates, function)
    return made() if argument is None else made(f"a{number}")


@dataclass(frozen=True)
class Arriving:
    """Makes the rows for the operator from those of the source, without late ones.

    Args:
        plan: the plan of the view.
        table: its source.
        exchange: tells what the batch begins with, and takes what the task saw.
    """

    plan: StreamedPlan
    table: TableInfo
    exchange: Any

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
        """Take the rows of one partition."""
        begin, late, rows = Begin.of(self.exchange.told()), 0, 0
        reached: int | None = None
        latest: int | None = None
        for batch in batches:
            arrived = batch if isinstance(batch, pa.Table) else pa.Table.from_batches([batch])
            if not arrived.num_rows:
                continue
            first = begin.first_id + rows * _PARTITIONS + self.exchange.partition
            made, seen = self._made(arrived, begin.watermark, first)
            late, rows = late + seen[2], rows + arrived.num_rows
            reached, latest = _later(reached, seen[0]), _later(latest, seen[1])
            yield made
        if latest is not None:
            yield self._heartbeat(latest)
        self.exchange.report(Report(reached, late, rows))

    def _made(self, arrived: pa.Table, watermark: str | None, first: int) -> tuple[pa.Table, tuple[int | None, int | None, int]]:
        ids = np.arange(first, first + arrived.num_rows * _PARTITIONS, _PARTITIONS)
        arrived = arrived.append_column(ROW_ID, pa.array(ids))
        storage, held = task_storage(), self.table.watermark
        assert held is not None
        column = quoted(held.column)
        with storage.reading(arrived) as name:
            source = f"(SELECT {self._read(arrived)} FROM {name})"
            late = "0" if watermark is None else f"count(*) - count(*) FILTER (WHERE {column} >= {watermark})"
            at = f"epoch_us({column})"
            ((reached, latest, number),) = storage.run(f"SELECT max(epoch_us({held.sql})), max({at}), {late} FROM {source}")
            kept = source if not number else f"(SELECT * FROM {source} WHERE {column} >= {watermark})"
            made = storage.arrow(f"SELECT {self._items()} FROM ({self.plan.rows.replace(INPUT, kept)})")
        return made.set_column(0, _TIME, made[_TIME].cast(pa.int64()).cast(_INSTANT)), (reached, latest, int(number))

    def _read(self, arrived: pa.Table) -> str:
        types: dict[str, SqlType] = {column.name: column.type for column in self.table.relation.columns}
        names = [name for name in given_columns(self.table) if name in arrived.column_names and name != ROW_ID]
        items = [f"{read_sql(name, arrived.schema.field(name).type, types[name].duckdb)} AS {quoted(name)}" for name in names]
        return ", ".join([*items, quoted(ROW_ID)])

    def _items(self) -> str:
        items = [f"{quoted(self.plan.time)} AS {_TIME}", f"FALSE AS {_HEARTBEAT}"]
        return ", ".join([*items, *(f"{column.sql} AS {column.name}" for column in self.plan.carried)])

    def _heartbeat(self, latest: int) -> pa.Table:
        """Return a row that moves Spark's watermark, and is in no window."""
        names = [column.name for column in self.plan.carried]
        columns = [pa.array([latest], pa.int64()).cast(_INSTANT), pa.array([True]), *(pa.nulls(1) for _ in names)]
        return pa.table(columns, names=[_TIME, _HEARTBEAT, *names])


def _later(one: int | None, other: int | None) -> int | None:
    return other if one is None else one if other is None else max(one, other)


@dataclass(frozen=True)
class Leaving:
    """Makes changes of the view from what the operator gives: rows that are final, or what a batch changes of all."""

    plan: StreamedPlan

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Take the windows of one partition."""
        storage, columns = task_storage(), ", ".join(self._items())
        came = f"CASE WHEN {CHANGE_TYPE} IN ('{INSERT}', '{UPDATE_POSTIMAGE}') THEN 1 ELSE -1 END"
        weight = f"{'1' if self.plan.closes else came} AS {quoted(WEIGHT)}"
        for batch in batches:
            if batch.num_rows:
                with storage.reading(pa.Table.from_batches([batch])) as name:
                    groups = f"(SELECT {columns}, {weight} FROM {name})"
                    made = storage.arrow(self.plan.result.replace(INPUT, groups))
                blobs = [to_stream(made).to_pybytes()] if made.num_rows else []
                yield pa.RecordBatch.from_arrays([pa.array(blobs, pa.binary())], ["blob"])

    def _items(self) -> Iterator[str]:
        for name, column in self.plan.results:
            yield f"CAST({name} AS {column.type.duckdb}) AS {quoted(column.id)}"
