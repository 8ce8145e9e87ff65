"""The batches of views: how the query of a view starts, and how each batch reaches the store and the readers of the view.

A batch is taken in one transaction: the rows of the view, the changes for views that read it, its sinks, the state of operators
that run here, and the number of the batch. A batch that is repeated after a crash is skipped by its number. Until it is taken,
the change log of the view holds what tasks wrote.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from windowpane.sql.catalog.entries import Catalog, ViewInfo
from windowpane.sql.embedded.storage import Storage
from windowpane.sql.expressions.expr import quoted
from windowpane.sql.failures.malformed_rows import MalformedRows
from windowpane.sql.on_spark.batch_writing import LogWriter, Outcome
from windowpane.sql.on_spark.change_log import ChangeLog, write_shared
from windowpane.sql.on_spark.change_sets import ChangeFile
from windowpane.sql.on_spark.ingest import Ingest
from windowpane.sql.on_spark.pending_changes import PendingChanges
from windowpane.sql.on_spark.programs.query import streamed_changes
from windowpane.sql.on_spark.queries import ViewQueries
from windowpane.sql.on_spark.rowwise import typed
from windowpane.sql.on_spark.spread_plan import Direct, spread
from windowpane.sql.on_spark.stages import column_types
from windowpane.sql.on_spark.view_streams import ViewStreams, clock_name
from windowpane.sql.streaming.clock import Watermarks
from windowpane.sql.streaming.deltas import WEIGHT, Delta, Rows, instead
from windowpane.sql.upkeep.deliveries import Deliveries
from windowpane.sql.upkeep.stored_changes import StoredChanges
from windowpane.sql.windows.time_functions import instant_sql
from windowpane.state.pairs import NONE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from windowpane.spark.queries.batch_query import BatchExchange

PART_ROWS, PART_BYTES = 100_000, 16 * 2**20
"""So many changes of the store are in memory at once."""


@dataclass(frozen=True)
class HeldViews:
    """What holds the rows of views, and delivers them."""

    storage: Storage
    catalog: Catalog
    clock: Watermarks
    deliveries: Deliveries
    changes: StoredChanges


class ViewBatches:
    def __init__(
        self, spark: SparkSession, held: HeldViews, pending: PendingChanges, streams: ViewStreams, ingest: Ingest
    ) -> None:
        """Take the batches of queries on ``spark``; ``ingest`` has the rows of sources."""
        self._spark, self._pending, self._streams, self._ingest = spark, pending, streams, ingest
        self._storage, self._catalog, self._clock = held.storage, held.catalog, held.clock
        self._deliveries, self._changes = held.deliveries, held.changes
        self.queries = ViewQueries(spark, held.storage.path, pending, self.ingest)
        self.has_posted = False  # whether files were written since the last round, whose names may be rolled back
        self._taking: dict[str, threading.Lock] = {}

    def post(self, source: str, delta: Delta, readers: Sequence[str], file: str) -> None:
        """Write changes in the store to a file for the views that read them."""
        self.has_posted = True
        paths = [self.queries.received(reader) / f"{file}.parquet" for reader in readers]
        if paths and write_shared(self._storage.pieces(delta.relation, PART_ROWS, PART_BYTES), paths):
            names = self._storage.arrow(f"SELECT * EXCLUDE ({quoted(WEIGHT)}) FROM {delta} LIMIT 0").column_names
            ids = dict(zip(names, names, strict=True))
            for reader, path in zip(readers, paths, strict=True):
                self._pending.post(reader, ChangeFile(source, path.name, ids))

    def start(self, view: ViewInfo) -> None:
        if self._streams.is_program(view.relation.name):
            self._start_program(view)
        else:
            self._start_nodes(view)

    def _start_program(self, view: ViewInfo) -> None:
        exchange, plan = self._exchange(view), self._streams.program_of(view)
        source = self._streams.tables[plan.scan.relation]
        self._start(view, exchange, lambda spark: streamed_changes(plan, source, self._ingest.rows(source, spark), exchange))

    def _start_nodes(self, view: ViewInfo) -> None:
        name, exchange, plan = view.relation.name, self._exchange(view), self._streams.spread_of(view)
        tables = {source: self._streams.tables[source] for source in sorted(self._streams.own_sources(view))}
        direct, files = Direct(tables, self._ingest.rows, exchange, plan.groups), self.queries.received(name)

        def changes(spark: SparkSession) -> Any:
            change_sets = self.queries.change_sets(name, spark) if self._streams.takes_change_sets(name) else None
            return spread(plan.node, direct, spark, change_sets, files)

        self._start(view, exchange, changes)

    def _exchange(self, view: ViewInfo) -> BatchExchange:
        from windowpane.spark.queries.batch_query import BatchExchange

        return BatchExchange(self.queries.exchange_folder(view.relation.name))

    def _start(self, view: ViewInfo, exchange: BatchExchange, changes: Callable[[Any], Any]) -> None:
        """Start the query of a view from what makes its changes in a session."""
        name = view.relation.name
        writer, stream = LogWriter(self.queries.change_log(name), exchange), self._pending.stream(name)
        if writer.log.last() < stream.batch:
            writer.log.keep(stream.batch, Outcome(*self._streams.progress(name), {}).text())
        self.queries.start_view(name, changes, writer, partial(self.take, name))

    # --- in a batch, on a thread of its own ------------------------------------------------------------

    def ingest(self, name: str, batch: pa.Table, number: int) -> None:
        """Insert a batch into a table; one that was inserted before changes nothing."""
        taken = self._pending.stream(name).batch
        if number > taken:
            self.queries.pair(name).has_begun(taken, number - 1, number)
            self._ingest.take(name, batch, number)

    def take(self, name: str) -> None:
        """Bring the batches in the change log of a view to the store, in their order, and trim the log."""
        with self._taking.setdefault(name, threading.Lock()):
            view, log = self._catalog.view(name), self.queries.change_log(name)
            for number in log.numbers():
                if number > self._pending.stream(name).batch:
                    self._took(view, log, number, Outcome.of(log.outcome(number)))
            log.trim(self._pending.stream(name).batch)

    def _took(self, view: ViewInfo, log: ChangeLog, number: int, outcome: Outcome) -> None:
        """Write what a batch in the change log of a view changed, and the progress before the batch and behind it."""
        name = view.relation.name
        try:
            with self._storage.transaction():
                if self.queries.change_log(name) != log:
                    return  # the view was dropped meanwhile, and another view has its name
                stream, readers = self._pending.stream(name), self._streams.readers(name)
                is_taken_up = stream.batch == NONE and not self._storage.is_empty(view.relation.storage)
                for reader in () if is_taken_up else readers:
                    for file in log.share(number, self.queries.received(reader)):
                        self._pending.post(reader, ChangeFile(name, file.name, view.ids))
                delta = self._collected(view, log.changes(number), is_taken_up=is_taken_up)
                if is_taken_up and delta is not None:
                    self.post(name, delta, readers, f"{stream.folder}-{number}")
                self._deliveries.fill({} if delta is None else {name: delta})
                self._pending.took_directly(name, number, outcome.before.text(), outcome.after.text())
                self._show_watermarks(view, outcome)
                for source, found in outcome.malformed.items():
                    MalformedRows(self._storage).note(source, found, name)
        except BaseException:
            self._clock.reload()
            raise

    def _show_watermarks(self, view: ViewInfo, outcome: Outcome) -> None:
        """Store the watermarks of a view that reads sources itself, for users to see, and count the rows that were late."""
        for source in self._streams.own_sources(view):
            mark, name = self._streams.tables[source].watermark, clock_name(source, view.relation.name)
            if mark is not None and source in outcome.after.reached:
                micros = instant_sql(str(outcome.after.reached[source]), mark.type)
                self._clock.raise_to(name, self._storage.value(f"SELECT CAST({micros} AS VARCHAR)"), mark.type)
            self._clock.count_late(name, outcome.late.get(source, 0))

    def _collected(self, view: ViewInfo, changes: Iterable[pa.Table], *, is_taken_up: bool) -> Delta | None:
        """Keep the results of the operators of a view, and return them in stored names; tables are read one at a time.

        Args:
            view: the view.
            changes: the results.
            is_taken_up: whether the results are all rows, in place of those that the view had without Spark.
        """
        kinds = dict(column_types(view.node.columns))
        rows = typed(self._storage, changes, [(identity, kinds[identity]) for identity in view.ids.values()], list(view.ids))
        if is_taken_up:
            return self._changes.keep_stored(view, instead(self._storage, view.relation.storage, rows, view.relation.types))
        if rows is None:
            return None
        has_others = self._storage.run(f"SELECT 1 FROM {rows} WHERE {quoted(WEIGHT)} <> 1 LIMIT 1")
        delta = Delta(rows, Rows.ANY if has_others else Rows.INSERTED)
        passes_on = self._streams.only_passes_on(view)
        return self._changes.noted(view, delta) if passes_on else self._changes.keep_stored(view, delta)
