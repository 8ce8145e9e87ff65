"""Rows of a source as the tasks of a view take them: with ids, with the types of the source, and without late ones.

Late rows are those behind the watermark before the batch, as in a table. The driver keeps it to the microsecond and sends it to
the tasks of the batch; the tasks report how far the rows advance it and how many were late.

The hidden id of a row is made of three numbers: the one at which the ids of its batch begin, which the driver keeps with the
watermark, the row's place in its task, and the number of the task. A batch that is run again gives ids that no other row has.
Where rows of a source enter a plan in two places, Spark reads the source twice; then the number of the task is the one that Spark
gives in the column ``PARTITION``, so that a row has one id.
"""

from __future__ import annotations

import json
import time
from collections.abc import Container, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import uuid4

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windowpane.errors import MistakeError, SqlRunError
from windowpane.hidden_columns import PARTITION, SPLIT
from windowpane.sql.catalog.entries import ROW_ID, TableInfo
from windowpane.sql.embedded.message_rows import is_topic
from windowpane.sql.embedded.tables import check_nulls
from windowpane.sql.expressions.expr import quoted
from windowpane.sql.expressions.types import TIMESTAMP, VARCHAR
from windowpane.sql.failures.malformed_rows import NOTHING, Found
from windowpane.sql.on_spark.ingest import arriving, given_columns, has_misread
from windowpane.sql.on_spark.rowwise import task_storage, without_zone
from windowpane.sql.on_spark.stages import INPUT
from windowpane.sql.parse.connector_options import idleness
from windowpane.sql.streaming.clock import Splits
from windowpane.sql.windows.time_functions import instant_sql

_PARTITIONS = 1 << 16
"""Ids of rows that are set aside for each place in a task: one for each task."""

_RUN = uuid4().hex
"""This process: time in which no driver runs does not count as the silence of a partition."""

_CHUNK = 100_000
"""So many rows are taken together at least, where there are more."""


@dataclass(frozen=True)
class Report:
    """What a task has read of a source.

    Args:
        reached: the watermark that its rows alone would make, in microseconds, by partition of Kafka; ``None`` is the partition
            of other rows.
        idle: how long the watermark waits for a partition that is silent, in microseconds; ``None`` is for ever.
    """

    source: str
    reached: Mapping[str | None, int]
    late: int
    rows: int
    malformed: Found = NOTHING
    idle: int | None = None


@dataclass(frozen=True)
class Progress:
    """The progress of a view in the sources that it reads itself: the driver keeps it, and sends it to the tasks of a batch.

    Args:
        reached: the watermarks of the sources, in microseconds.
        others: the watermarks of other relations, as SQL, from change sets.
        first_id: the number at which the ids of the next rows begin.
        splits: of sources with partitions, how far each has come, as text; when that was, and in which run of a driver.
    """

    reached: Mapping[str, int] = field(default_factory=dict)
    others: Mapping[str, str] = field(default_factory=dict)
    first_id: int = 0
    splits: Mapping[str, tuple[str, int, str]] = field(default_factory=dict)

    def text(self) -> str:
        return json.dumps([dict(self.reached), dict(self.others), self.first_id, dict(self.splits)])

    @classmethod
    def of(cls, text: str | None) -> Progress:
        """Return it from text; ``None`` is the progress before the first batch."""
        return cls() if text is None else cls(*json.loads(text))

    def at(self, source: str, reached: int | None) -> Progress:
        """Return it with the watermark of a source at ``reached``, if that is later."""
        if reached is None:
            return self
        return replace(self, reached={**self.reached, source: max(reached, self.reached.get(source, reached))})

    def behind(self, reports: Iterable[Report | Mapping[str, str]]) -> Progress:
        """Return it behind a batch, from what its tasks reported: of a change set its watermarks."""
        reached, others, rows = dict(self.reached), dict(self.others), 0
        latest: dict[str, dict[str, int]] = {source: {} for source in self.splits}
        idle: dict[str, int | None] = {}
        for report in reports:
            if not isinstance(report, Report):
                others |= report
                continue
            rows = max(rows, report.rows)
            for split, micros in report.reached.items():
                if split is None:
                    reached[report.source] = max(micros, reached.get(report.source, micros))
                else:
                    idle[report.source], marks = report.idle, latest.setdefault(report.source, {})
                    marks[split] = max(micros, marks.get(split, micros))
        splits = {}
        for source, marks in latest.items():
            state, splits[source] = self._after(source, marks, idle.get(source))
            if state is not None:
                reached[source] = state
        return Progress(reached, others, self.first_id + rows * _PARTITIONS, splits)

    def _after(self, source: str, latest: Mapping[str, int], idle: int | None) -> tuple[int | None, tuple[str, int, str]]:
        """Return the watermark of a source behind rows that reach to ``latest``, and what is known of its partitions then."""
        text, counted, run = self.splits.get(source, (None, None, None))
        now = time.time_ns() // 1_000
        found = Splits.of(text, counted if run == _RUN else None).behind(latest, idle, now)
        return found.watermark, (found.text(), now, _RUN)


@dataclass(frozen=True)
class Taken:
    """Rows of a source that a task has taken together.

    Args:
        rows: the result of the query on those that are not late.
        split: the partition of Kafka that they are of, ``None`` where that does not matter.
        reached: the watermark that all of them would make, in microseconds; ``None`` where none has a time.
    """

    rows: pa.Table
    reached: int | None
    latest: int | None
    late: int
    count: int
    malformed: Found = NOTHING
    split: str | None = None


@dataclass(frozen=True)
class Made:
    """A query on the rows of a source; with columns that are unchanged, it returns one row or none for each.

    Args:
        items: columns, by name, as SQL over ``rows``; none for all of them.
        rows: a query over ``INPUT``, which keeps the order of rows.
        unchanged: those of the items that are columns of the source, by name.
    """

    items: Mapping[str, str]
    rows: str
    unchanged: Mapping[str, str] = field(default_factory=dict)

    def sql(self, without: Container[str]) -> str:
        if not self.items:
            return self.rows
        items = ", ".join(f"{sql} AS {quoted(name)}" for name, sql in self.items.items() if name not in without)
        return f"SELECT {items} FROM ({self.rows})"


@dataclass(frozen=True)
class SourceRows:
    """Takes the rows of a source on a task."""

    table: TableInfo
    exchange: Any

    @property
    def name(self) -> str:
        return self.table.relation.name

    def needed(self, stored: Iterable[str]) -> list[str]:
        """Return the columns of the connector that some columns of the source need, its watermark, and what is beside them.

        One of the table at least, for rows without columns are none for Spark.
        """
        from windowpane.spark.sources.connectors import beside

        table, given = self.table, given_columns(self.table)
        wanted = {column.name for column in table.relation.visible if column.not_null}.union(stored)
        wanted = wanted.union(*(value.columns for value in table.generated.values()))
        if table.watermark is not None:
            wanted |= {table.watermark.column, *table.watermark.value.columns}
        needed = [name for name in given if name in wanted] or list(given[:1])
        others = beside(table.options["connector"], table.options)
        return [*needed, *(name for name in others if name != SPLIT or self.has_splits)]

    @property
    def has_splits(self) -> bool:
        return self.table.watermark is not None and is_topic(self.table)

    @property
    def idle(self) -> int | None:
        """How long the watermark waits for a partition that is silent, in microseconds; ``None`` is for ever."""
        return idleness(self.table.options)

    def taken(self, batches: Iterable[Any], made: Made, begin: Progress) -> Iterator[Taken]:
        """Yield the rows of one partition in pieces, and report on them at the end."""
        late = count = 0
        reached: dict[str | None, int] = {}
        malformed = NOTHING
        task = self.exchange.partition
        for arrived in _chunks(batches):
            if PARTITION in arrived.column_names:
                task = arrived[PARTITION][0].as_py()
                arrived = arrived.drop_columns([PARTITION])
            for split, part in _by_split(arrived):
                taken = replace(self._take(part, made, begin, begin.first_id + count * _PARTITIONS + task), split=split)
                if taken.rows.num_rows < taken.count:
                    made = replace(made, unchanged={})
                if taken.reached is not None:
                    reached[split] = max(taken.reached, reached.get(split, taken.reached))
                late, count, malformed = late + taken.late, count + taken.count, malformed.and_more(taken.malformed)
                yield taken
        if count:
            self.exchange.report(Report(self.name, reached, late, count, malformed, self.idle), (self.name, task))

    def watermark(self, micros: int) -> str:
        if self.table.watermark is None:
            raise MistakeError("the source has a watermark")
        return instant_sql(str(micros), self.table.watermark.type)

    def _take(self, arrived: pa.Table, made: Made, begin: Progress, first: int) -> Taken:
        ids = np.arange(first, first + arrived.num_rows * _PARTITIONS, _PARTITIONS)
        times = [column.name for column in self.table.relation.columns if column.type == TIMESTAMP]
        arrived = without_zone(arrived, times).append_column(ROW_ID, pa.array(ids))
        micros = begin.reached.get(self.name)
        limit = None if self.table.watermark is None or micros is None else self.watermark(micros)
        rows = arriving(self.table, arrived.schema, (ROW_ID,))
        with task_storage().reading(arrived) as name:
            if not has_misread(arrived):
                with suppress(SqlRunError, duckdb.Error):  # a value does not fit: each is read by itself
                    return self._on_time(arrived, made, rows.strict(name), limit)
            malformed = rows.found(task_storage(), name)
            return replace(self._on_time(arrived, made, rows.lenient(name), limit), malformed=malformed)

    def _on_time(self, arrived: pa.Table, made: Made, values: str, limit: str | None) -> Taken:
        """Return the result of the query on the rows that are not late."""
        storage, held, source = task_storage(), self.table.watermark, self._completed(values)
        check_nulls(storage, source, self.table.relation)
        if held is None:
            return Taken(self._made(arrived, made, source), None, None, 0, arrived.num_rows)
        seen = f"SELECT epoch_us({held.reached}), epoch_us({held.latest}), {self.table.late(limit)} FROM {source}"
        ((reached, latest, number),) = storage.run(seen)
        kept = self.table.on_time(source, limit) if number or self.table.keeps_late_rows else source
        return Taken(self._made(arrived, made, kept), reached, latest, int(number), arrived.num_rows)

    def _made(self, arrived: pa.Table, made: Made, source: str) -> pa.Table:
        """Run the query on rows. Texts bypass DuckDB, which would copy them twice, unless the query leaves rows out."""
        storage, texts = task_storage(), {column.name for column in self.table.relation.columns if column.type == VARCHAR}
        given = {column for column in arrived.column_names if column in texts and arrived[column].type == pa.string()}
        unchanged = {name: column for name, column in made.unchanged.items() if column in given}
        rows = storage.arrow(made.sql(unchanged).replace(INPUT, source))
        if not unchanged:
            return rows
        if rows.num_rows < arrived.num_rows:
            return storage.arrow(made.sql(()).replace(INPUT, source))
        for name, column in unchanged.items():
            rows = rows.append_column(name, arrived[column])
        return rows

    def _completed(self, values: str) -> str:
        """Return rows with the generated columns of the source, as SQL."""
        if not self.table.generated:
            return f"({values})"
        return f"(SELECT *, {self.table.generated_sql} FROM ({values}))"


def _by_split(rows: pa.Table) -> Iterator[tuple[str | None, pa.Table]]:
    """Yield the rows of each partition of Kafka, where they say which: a task has most often one."""
    if SPLIT not in rows.column_names:
        yield None, rows
        return
    names, splits = rows[SPLIT], rows.drop_columns([SPLIT])
    for name in names.unique():
        yield name.as_py(), splits.filter(pc.equal(names, name))


def later(one: int | None, other: int | None) -> int | None:
    return other if one is None else one if other is None else max(one, other)


def _chunks(batches: Iterable[Any]) -> Iterator[pa.Table]:
    """Yield rows in tables of ``_CHUNK`` rows or a batch more."""
    held: list[pa.Table] = []
    for batch in batches:
        if batch.num_rows:
            held.append(batch if isinstance(batch, pa.Table) else pa.Table.from_batches([batch]))
        if sum(table.num_rows for table in held) >= _CHUNK:
            yield pa.concat_tables(held)
            held = []
    if held:
        yield pa.concat_tables(held)
