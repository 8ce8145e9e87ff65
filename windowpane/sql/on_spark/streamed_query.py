"""The streaming query of a view that is one: rows of the source -> a window program -> changes of the view, as blobs.

Late rows are those behind the watermark before the batch, as in a table: the driver knows it to the microsecond, tells it to the
tasks of the batch, and the tasks report how far the rows raise it and how many were late. The window operator makes the same
watermark itself, for that of Spark has milliseconds, and closes windows in the batch that completes them. Rows that are filtered
out, or late, still move it: each task adds one heartbeat with its latest time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from windowpane.sql.catalog.entries import ROW_ID, TableInfo
from windowpane.sql.expressions.expr import quoted
from windowpane.sql.expressions.types import SqlType
from windowpane.sql.on_spark.ingest import given_columns, read_sql
from windowpane.sql.on_spark.rowwise import task_storage
from windowpane.sql.on_spark.stages import INPUT
from windowpane.sql.on_spark.streamed_plan import StreamedGroups
from windowpane.sql.streaming.deltas import WEIGHT
from windowpane.state.compact import to_stream
from windowpane.windowing import aggregates
from windowpane.windowing.changes import CHANGE_TYPE, INSERT, UPDATE_POSTIMAGE
from windowpane.windowing.triggers.each_batch import EachBatch
from windowpane.windowing.watermarks import Watermarks

_TIME, _HEARTBEAT = "at", "heartbeat"
_INSTANT = pa.timestamp("us", "UTC")


@dataclass(frozen=True)
class Report:
    """What a task saw of the source.

    Args:
        reached: the watermark that its rows alone would make, in microseconds; ``None`` without rows.
        late: how many rows were behind the watermark.
    """

    reached: int | None
    late: int


def streamed_changes(plan: StreamedGroups, table: TableInfo, rows: Any, exchange: Any) -> Any:
    """Return the changes of the view as a DataFrame of blobs.

    Args:
        plan: the plan of the view.
        table: its source.
        rows: the streaming DataFrame of the source.
        exchange: the ``BatchExchange`` by which driver and tasks tell each other.
    """
    from windowpane.spark.sources.arrow_rows import mapped, read_columns
    from windowpane.stream import stream

    columns = [name for name in plan.scan.stored if name != ROW_ID]
    arriving = Arriving(plan, table, exchange.told, exchange.report)
    made = mapped(read_columns(rows, columns), arriving, _schema(plan))
    keyed: Any = stream(made, _TIME, _watermark(plan), _HEARTBEAT, name="windowpane_sql")
    keys = [f"k{number}" for number in range(len(plan.keys))]
    windowed = keyed.key_by(*keys).window(plan.assigner) if keys else keyed.window_all(plan.assigner)
    calls = {f"r{number}": _aggregate(call.function, call.argument, number) for number, call in enumerate(plan.calls)}
    if not plan.closes:
        windowed = windowed.trigger(EachBatch()).accumulation("retracting")
    result = windowed.aggregate(**(calls or {"r": aggregates.count()}))
    return result.df.mapInArrow(Leaving(plan).__call__, "blob binary")


def _watermark(plan: StreamedGroups) -> Watermarks:
    """Return the watermark of the operator.

    In SQL a row at the watermark is not late, and joins a session that ends there; in windowpane a session that ends there is
    closed. So that of sessions stays a microsecond more behind.
    """
    return Watermarks.bounded(plan.delay + plan.has_sessions).at_once()


def _aggregate(function: str, argument: str | None, number: int) -> Any:
    made = getattr(aggregates, function)
    return made() if argument is None else made(f"a{number}")


def _schema(plan: StreamedGroups) -> str:
    keys = [f"k{number} {kind}" for number, (_, kind) in enumerate(plan.keys)]
    arguments = [f"a{number} {call.spark}" for number, call in enumerate(plan.calls) if call.argument is not None]
    return ", ".join([f"{_TIME} timestamp", f"{_HEARTBEAT} boolean", *keys, *arguments])


@dataclass(frozen=True)
class Arriving:
    """Makes the rows that are grouped from those of the source, without late ones.

    Args:
        plan: the plan of the view.
        table: its source.
        told: returns the watermark before the batch, as SQL; ``None`` while there is none.
        report: takes what the task saw.
    """

    plan: StreamedGroups
    table: TableInfo
    told: Callable[[], str | None]
    report: Callable[[Report], None]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
        """Take the rows of one partition."""
        watermark, late = self.told(), 0
        reached: int | None = None
        latest: int | None = None
        for batch in batches:
            arrived = batch if isinstance(batch, pa.Table) else pa.Table.from_batches([batch])
            if not arrived.num_rows:
                continue
            made, seen = self._made(arrived, watermark)
            late += seen[2]
            reached, latest = _later(reached, seen[0]), _later(latest, seen[1])
            yield made
        if latest is not None:
            yield self._heartbeat(latest)
        self.report(Report(reached, late))

    def _made(self, arrived: pa.Table, watermark: str | None) -> tuple[pa.Table, tuple[int | None, int | None, int]]:
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
        names = [name for name in given_columns(self.table) if name in arrived.column_names]
        items = [f"{read_sql(name, arrived.schema.field(name).type, types[name].duckdb)} AS {quoted(name)}" for name in names]
        return ", ".join([*items, f"0::BIGINT AS {quoted(ROW_ID)}"])

    def _items(self) -> str:
        items = [f"{quoted(self.plan.time)} AS {_TIME}", f"FALSE AS {_HEARTBEAT}"]
        items += [f"{quoted(key.id)} AS k{number}" for number, (key, _) in enumerate(self.plan.keys)]
        calls = [(number, call) for number, call in enumerate(self.plan.calls) if call.argument is not None]
        return ", ".join([*items, *(f"CAST({call.argument} AS {call.kind}) AS a{number}" for number, call in calls)])

    def _heartbeat(self, latest: int) -> pa.Table:
        """Return a row that moves Spark's watermark, and is in no window."""
        names = [f"k{number}" for number in range(len(self.plan.keys))]
        names += [f"a{number}" for number, call in enumerate(self.plan.calls) if call.argument is not None]
        columns = [pa.array([latest], pa.int64()).cast(_INSTANT), pa.array([True]), *(pa.nulls(1) for _ in names)]
        return pa.table(columns, names=[_TIME, _HEARTBEAT, *names])


def _later(one: int | None, other: int | None) -> int | None:
    return other if one is None else one if other is None else max(one, other)


@dataclass(frozen=True)
class Leaving:
    """Makes changes of the view from windows: those that are closed, or what a batch changes of all."""

    plan: StreamedGroups

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
        plan = self.plan
        bounds = zip(("window_start", "window_end"), plan.bounds, strict=True)
        found = [(name, column) for name, column in bounds if column is not None]
        found += [(f"k{number}", column) for number, (column, _) in enumerate(plan.keys)]
        found += [(f"r{number}", call.result) for number, call in enumerate(plan.calls)]
        for name, column in found:
            yield f"CAST({name} AS {column.type.duckdb}) AS {quoted(column.id)}"
