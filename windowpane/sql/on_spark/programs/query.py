"""The streaming query of a view that is one: rows of the source -> a window or OVER program -> changes of the view, in files.

Tasks take the rows as ``source_rows`` says. The operator makes the same watermark as the driver itself, for that of Spark has
milliseconds, and closes windows in the batch that completes them. Rows that are filtered out, or late, still advance it: each
task adds one heartbeat with its latest time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from windowpane import aggregates
from windowpane.errors import MistakeError
from windowpane.hidden_columns import SPLIT
from windowpane.sql.catalog.entries import TableInfo
from windowpane.sql.expressions.expr import quoted
from windowpane.sql.expressions.types import TIMESTAMP
from windowpane.sql.on_spark.change_log import ToFiles
from windowpane.sql.on_spark.programs.calls import Call
from windowpane.sql.on_spark.programs.groups import StreamedGroups
from windowpane.sql.on_spark.programs.over import StreamedOver
from windowpane.sql.on_spark.programs.plan import StreamedPlan
from windowpane.sql.on_spark.rowwise import task_storage, without_zone
from windowpane.sql.on_spark.source_rows import Made, Progress, SourceRows, later
from windowpane.sql.on_spark.stages import INPUT
from windowpane.sql.streaming.deltas import WEIGHT
from windowpane.sql.streaming.over import over_spec
from windowpane.state.compact import to_stream
from windowpane.windowing.calls import WindowCall
from windowpane.windowing.expressions import Name
from windowpane.windowing.outputs import CHANGE_TYPE, INSERT, UPDATE_POSTIMAGE
from windowpane.windowing.triggers.each_batch import EachBatch
from windowpane.windowing.watermarks import Watermarks

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from windowpane.spark.sources.arrow_rows import ArrowRows

_TIME, _HEARTBEAT, _COUNTERS = "at", "heartbeat", "windowpane_sql"
_INSTANT = pa.timestamp("us", "UTC")


def streamed_changes(plan: StreamedPlan, table: TableInfo, rows: DataFrame, exchange: object) -> Any:
    """Return the changes of the view as a DataFrame of ``FILES``."""
    made = _program_result(plan, table, rows, exchange)._built.mapped(ToViewChanges(plan, ToFiles(exchange)))
    return made.withColumnRenamed("blob", "file")


def streamed_groups(plan: StreamedGroups, table: TableInfo, rows: DataFrame, exchange: object) -> Any:
    """Return the changes of groups below further nodes, and the watermarks, as ``mapped_with_reports`` does; see above."""
    return _program_result(plan, table, rows, exchange)._built.mapped_with_reports(ToViewChanges(plan, to_blobs))


def _program_result(plan: StreamedPlan, table: TableInfo, rows: DataFrame, exchange: object) -> Any:
    from windowpane.spark.sources.arrow_rows import mapped, read_columns

    source = SourceRows(table, exchange)
    carried = ", ".join(f"{column.name} {column.spark}" for column in plan.carried)
    schema = f"{_TIME} timestamp, {_HEARTBEAT} boolean" + f", {SPLIT} string" * source.has_splits + f", {carried}" * bool(carried)
    made = mapped(read_columns(rows, source.needed(plan.scan.stored)), ToOperatorRows(plan, source), schema)
    if not isinstance(plan, StreamedGroups | StreamedOver):
        raise MistakeError("there are two kinds")
    delay = plan.delay if isinstance(plan, StreamedOver) else plan.delay + _behind(plan)
    watermark = Watermarks.bounded(delay).at_once()
    if source.has_splits:
        watermark = replace(watermark.per_source(SPLIT), idleness=source.idle)
    return _over(plan, made, watermark) if isinstance(plan, StreamedOver) else _groups(plan, made, watermark)


def _groups(plan: StreamedGroups, made: ArrowRows, watermark: Watermarks) -> Any:
    from windowpane.stream import stream

    keyed: Any = stream(made, _TIME, watermark, _HEARTBEAT, name=_COUNTERS)
    keys = [f"k{number}" for number in range(len(plan.keys))]
    windowed = keyed.key_by(*keys).window(plan.assigner) if keys else keyed.window_all(plan.assigner)
    calls = {f"r{number}": _aggregate(call, number) for number, call in enumerate(plan.calls)}
    if not plan.closes:
        windowed = windowed.trigger(EachBatch()).accumulation("retracting")
    return windowed.aggregate(**(calls or {"r": aggregates.count()}))


def _behind(plan: StreamedGroups) -> int:
    """Return how many microseconds the watermark of the program stays behind that of SQL.

    In SQL a row at the watermark is not late, and joins a session that ends there; in windowpane a session that ends there is
    closed. So the watermark of sessions stays a microsecond more behind.
    """
    return int(plan.has_sessions)


def watermark_of(plan: StreamedGroups, reached: int) -> int:
    """Return the watermark of SQL where that of the program is ``reached``: rows at it are not late, those behind it are."""
    return reached + 1 + _behind(plan)


def _over(plan: StreamedOver, made: ArrowRows, watermark: Watermarks) -> Any:
    from windowpane.over import over

    spec, name = over_spec(plan.over), plan.name_of
    key = [name(each) for each in spec.key]
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
    return window.partition_by(*map(name, spec.partition_by)).select(*names, **calls).emit_on_window_close()


def _aggregate(call: Call, number: int) -> Any:
    made = getattr(aggregates, call.function)
    return made() if call.argument is None else made(f"a{number}")


@dataclass(frozen=True)
class ToOperatorRows:
    """Makes the rows for the operator from those of the source, without late ones."""

    plan: StreamedPlan
    source: SourceRows

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
        latest: dict[str | None, int | None] = {}
        for taken in self.source.taken(batches, self._made(), Progress.of(self.source.exchange.published())):
            latest[taken.split] = later(latest.get(taken.split), taken.latest)
            rows = taken.rows.set_column(0, _TIME, taken.rows[_TIME].cast(pa.int64()).cast(_INSTANT))
            yield rows if taken.split is None else rows.append_column(SPLIT, pa.array([taken.split] * rows.num_rows, pa.string()))
        for split, time in latest.items():
            if time is not None:
                yield self._heartbeat(time, split)

    def _made(self) -> Made:
        items = {_TIME: quoted(self.plan.time), _HEARTBEAT: "FALSE", **{each.name: each.value.sql for each in self.plan.carried}}
        known, carried = self.plan.unchanged, self.plan.carried
        unchanged = {each.name: known[each.value.column] for each in carried if each.value.column in known}
        return Made(items, self.plan.rows, unchanged)

    def _heartbeat(self, latest: int, split: str | None) -> pa.Table:
        """Return a row that advances the watermark, and is in no window."""
        names = [column.name for column in self.plan.carried]
        columns = [pa.array([latest], pa.int64()).cast(_INSTANT), pa.array([True]), *(pa.nulls(1) for _ in names)]
        row = pa.table(columns, names=[_TIME, _HEARTBEAT, *names])
        return row if split is None else row.append_column(SPLIT, pa.array([split]))


@dataclass(frozen=True)
class ToViewChanges:
    """Makes changes of the view from the results of the operator: rows that are final, or what a batch changes of all rows.

    Args:
        leave: makes blobs of the changes, or files, and returns their paths.
    """

    plan: StreamedPlan
    leave: Callable[[Iterable[pa.Table]], Iterable[bytes]]

    def __call__(self, batch: pa.RecordBatch) -> list[bytes]:
        """Take the results of a bucket, and return what ``leave`` makes of the changes."""
        if not batch.num_rows:
            return []
        changes = self._changes(batch)
        return list(self.leave([changes])) if changes.num_rows else []

    def _changes(self, batch: pa.RecordBatch) -> pa.Table:
        storage, columns = task_storage(), ", ".join(self._items())
        sign = f"CASE WHEN {CHANGE_TYPE} IN ('{INSERT}', '{UPDATE_POSTIMAGE}') THEN 1 ELSE -1 END"
        weight = f"{'1' if self.plan.closes else sign} AS {quoted(WEIGHT)}"
        times = [name for name, column in self.plan.results if column.type == TIMESTAMP]
        with storage.reading(without_zone(pa.Table.from_batches([batch]), times)) as name:
            groups = f"(SELECT {columns}, {weight} FROM {name})"
            return storage.arrow(self.plan.result.replace(INPUT, groups))

    def _items(self) -> Iterator[str]:
        for name, column in self.plan.results:
            yield column.item(name)


def to_blobs(changes: Iterable[pa.Table]) -> Iterator[bytes]:
    return (to_stream(table, "lz4").to_pybytes() for table in changes)
