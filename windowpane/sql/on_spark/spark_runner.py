"""Views with Spark: every view is a streaming query, which answers each change set with a batch.

A flush is first a transaction, which takes the changes of tables and posts them to the views that read them. Then it visits the
views in rounds, each view behind those it reads: it writes change sets of what was posted, and waits for the answers. An answer
is one transaction, too, see ``view_batches``. If a crash stops the rounds, the next session continues them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from itertools import filterfalse
from typing import TYPE_CHECKING, TypeVar

from windowpane.errors import UnsupportedSqlError, UnsupportedStoreError, WindowpaneError
from windowpane.metrics.costs import batch_lines
from windowpane.sizes import Size
from windowpane.spark.queries.starting import warn_of_leaking_sockets
from windowpane.spark.session.worker_python import fork_workers
from windowpane.sql.catalog import questions
from windowpane.sql.catalog.entries import Catalog, TableInfo, ViewInfo, replaced_by
from windowpane.sql.catalog.relations import PlainView
from windowpane.sql.catalog.renaming import drop_state
from windowpane.sql.embedded.storage import Storage
from windowpane.sql.embedded.tables import TableWriter
from windowpane.sql.failures.bad_values import BadValues
from windowpane.sql.failures.malformed_rows import MalformedRows
from windowpane.sql.failures.stale import StaleViews, in_one_line
from windowpane.sql.nodes import ClockStamp, CloseSort, Node, TemporalFilter, every_node, explain_plan, scanned
from windowpane.sql.on_spark.change_sets import ChangeSet, sweep
from windowpane.sql.on_spark.connect_limits import ConnectLimits
from windowpane.sql.on_spark.ingest import Ingest, begins_anew, check_options, is_endless, is_replayable, with_connector
from windowpane.sql.on_spark.pending_changes import PendingChanges
from windowpane.sql.on_spark.programs.plan import StreamedPlan
from windowpane.sql.on_spark.stages import cut, spread_lines, stage_names
from windowpane.sql.on_spark.view_batches import HeldViews, ViewBatches
from windowpane.sql.on_spark.view_streams import ViewStreams, clock_name
from windowpane.sql.parse.positions import Place
from windowpane.sql.parse.statements import CreateSink, CreateTable, CreateView, Delete, Flush, Insert, Query, Statement, Update
from windowpane.sql.streaming.clock import Watermarks
from windowpane.sql.streaming.deltas import inserted
from windowpane.sql.streaming.physical import physical_lines
from windowpane.sql.upkeep.deliveries import Deliveries
from windowpane.sql.upkeep.stored_changes import StoredChanges, Swap
from windowpane.sql.upkeep.view_runner import ViewRunner
from windowpane.state.pairs import NONE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")

LARGE_CHANGE_SET = Size("bytes of the files of a change set that all tasks share", 32 * 2**20, (0, 1000))
"""Handing parts out costs a shuffle, and a start of the query before and behind. At 0 all change sets are shared."""


class SparkRunner(ViewRunner):
    def __init__(
        self,
        spark: SparkSession,
        storage: Storage,
        catalog: Catalog,
        clock: Watermarks,
        deliveries: Deliveries,
        bad_values: BadValues,
        parameters: Mapping[str, str],
    ) -> None:
        """Run the views of ``catalog``; ``parameters`` are those of ``SET``."""
        fork_workers(spark, __name__)
        self._spark, self._storage, self._catalog, self._clock = spark, storage, catalog, clock
        self._deliveries, self._bad_values, self._parameters = deliveries, bad_values, parameters
        self.changes = StoredChanges(storage, catalog)
        self._pending = PendingChanges(storage)
        self._streams = ViewStreams(catalog, self._pending)
        self._ingest = Ingest(storage, catalog, clock, self._pending)
        held = HeldViews(storage, catalog, clock, deliveries, self.changes)
        self._batches = ViewBatches(spark, held, self._pending, self._streams, self._ingest)
        self._queries = self._batches.queries
        self._connect = ConnectLimits(is_remote=self._queries.is_remote)
        self._is_due = True

    def open(self) -> None:
        """Continue with what the store holds, once the catalog is read; a view that fails is logged, and can be dropped.

        Raises:
            UnsupportedStoreError: tables were filled by a session without Spark.
            ChangedPlanError: a view would be planned in another way than the state in its checkpoint.
        """
        warn_of_leaking_sockets(self._spark)
        tables = with_connector(self._catalog.tables())
        self._refuse_tables_filled_elsewhere(tables)
        self._connect.check_store(self._storage, filter(self._is_stored, tables))
        with self._storage.transaction():
            self._adopt(tables)
            for table in filterfalse(is_replayable, tables):
                self._pending.begin_anew(table.relation.name)
        for view in self._catalog.views():
            self._streams.check_plan(view)
        self._queries.tidy()
        self._deliveries.take_up()
        for name, failure in self._bring_up_to_date().items():
            if not isinstance(failure, WindowpaneError):
                raise failure
            logging.getLogger(__name__).warning(
                "the view %r is behind: %s. FLUSH tries again; DROP it to be rid of it.", name, in_one_line(failure)
            )
        self._deliveries.hand_over(is_opening=True)

    def _adopt(self, tables: Sequence[TableInfo]) -> None:
        """Take up what was made without Spark: tables begin to be filled, views have the rows of what they read once more.

        Raises:
            UnsupportedStoreError: Spark does not run one of the views.
        """
        known = set(self._pending.names())
        for table in tables:
            if table.relation.name not in known:
                self._pending.open(table.relation.name)
        new = [view for view in self._catalog.views() if view.relation.name not in known]
        if new:
            self.flush(None)
        for view in new:
            drop_state(self._storage, view.relation.name)
            StaleViews(self._storage).drop(view.relation.name, view.reads)
            self._bad_values.forget_view(view.relation.name)
            try:
                self._fill(view)
            except UnsupportedSqlError as error:
                raise UnsupportedStoreError(
                    self._storage.path, f"Spark cannot take up {view.relation.name!r}: {error}"
                ) from error

    def _refuse_tables_filled_elsewhere(self, tables: Sequence[TableInfo]) -> None:
        """Refuse tables whose files or messages a session without Spark has read, and Spark has not: it would read them all."""
        read = "SELECT relation FROM windowpane.files UNION SELECT relation FROM windowpane.offsets"
        taken = {row[0] for row in self._storage.run(read)}
        taken -= {row[0] for row in self._storage.run("SELECT name FROM windowpane.streams WHERE batch >= 0")}
        names = [table.relation.name for table in tables if table.relation.name in taken]
        if names:
            raise UnsupportedStoreError(
                self._storage.path,
                f"{', '.join(names)} were filled without Spark, which would read their sources from the beginning, "
                "so each row would be there twice. Open it without Spark, or drop them there first and create them here.",
            )

    def close(self) -> None:
        self._queries.close()
        self._deliveries.close()

    # --- around a statement ----------------------------------------------------------------------------

    def prepare(self, statement: Statement, upcoming: Callable[[], Node | None]) -> None:
        """Wait until tables with a connector hold all rows that exist now, and the store has the rows that a query reads.

        Raises:
            UnsupportedSqlError: it reads a source whose rows are not stored.
        """
        if isinstance(statement, Flush | CreateView) or (isinstance(statement, CreateSink) and statement.rows != "MALFORMED"):
            self._gather(upcoming())  # a sink of malformed rows gets those of the rows that it finds waiting
        if isinstance(statement, CreateSink):
            self._connect.check_storing(self._filled([statement.source]))
        if isinstance(statement, Query | Insert | Update | Delete | CreateTable):
            self._check_reads(statement)

    def attempt(self, action: Callable[[], T]) -> T:
        try:
            with self.changes.transaction():
                return action()
        except BaseException:
            self._forget()
            raise

    def _forget(self) -> None:
        self._clock.reload()
        self._pending.forget()
        self._deliveries.forget()
        if self._batches.has_posted:
            with self._storage.transaction():  # no batch has files that nothing names yet
                self._queries.tidy()

    def _gather(self, new: Node | None) -> None:
        """Wait until tables with a connector hold all rows that exist now; not sources whose rows are not stored."""
        tables = [table for table in with_connector(self._catalog.tables()) if self._is_stored(table, new)]
        self._connect.check_storing(tables)
        for table in tables:
            self._queries.start_table(table.relation.name, partial(self._ingest.rows, table))
        for table in tables:
            self._queries.finish(table.relation.name, is_endless=is_endless(table))

    def _filled(self, names: Collection[str | None]) -> list[TableInfo]:
        """Return those of some relations that have a connector."""
        return [table for table in with_connector(self._catalog.tables()) if table.relation.name in names]

    def _is_stored(self, table: TableInfo, new: Node | None = None) -> bool:
        """Whether rows of a table with a connector go into the store: those of a source only if something reads them there."""
        name = table.relation.name
        if table.relation.kind != "source" or any(name in (sink.source, sink.malformed_of) for sink in self._catalog.sinks()):
            return True
        if any(name in view.reads - self._streams.own_sources(view) for view in self._catalog.views()):
            return True
        return new is not None and name in scanned(new) - self._streams.read_by(new)

    def _check_reads(self, statement: Statement) -> None:
        """Refuse to read a source whose rows are not stored."""
        read = questions.read_by(self._catalog, statement)
        for table in with_connector(self._catalog.tables()):
            name, place = table.relation.name, statement.place
            if name in read and not self._is_stored(table):
                message = f"reading source {name!r} on Spark is not supported: its rows are not stored. "
                message += "Make a materialized view of it, or CREATE TABLE instead of CREATE SOURCE."
                raise place.error(UnsupportedSqlError, message)

    def deliver(self) -> WindowpaneError | None:
        failures = list(self._bring_up_to_date().values())
        try:
            self._deliveries.hand_over()
        except Exception as failure:
            failures.append(failure)
        if failures:
            raise failures[0]
        return None

    def _bring_up_to_date(self) -> dict[str, Exception]:
        """Send every view the changes that wait for it, wait for the answers, and return why some views failed."""
        failures: dict[str, Exception] = {}
        self._batches.has_posted = False
        if self._is_due:
            self._is_due = False
            for views in _rounds(self._catalog.views()):
                for name in [view.relation.name for view in views if self._send(view)]:
                    try:
                        self._await(name)
                    except Exception as failure:
                        failures[name] = failure
        return failures

    # --- in its transaction ----------------------------------------------------------------------------

    def check_source(self, options: Mapping[str, str], place: Place, *, is_new: bool) -> None:
        check_options(options, place)

    def create_table(self, table: TableInfo) -> None:
        if "connector" in table.options:
            if table.relation.kind != "source":
                self._connect.check_storing([table])
            self._ingest.begin(table, self._spark)
            self._pending.open(table.relation.name)

    def drop_table(self, table: TableInfo) -> None:
        self._storage.run("DELETE FROM windowpane.files WHERE relation = ?", [table.relation.name])
        MalformedRows(self._storage).drop(table.relation.name)
        if "connector" in table.options:
            self._queries.drop(table.relation.name)
            self._pending.close(table.relation.name)

    def flush(self, writer: Callable[[TableInfo], TableWriter] | None) -> None:
        """Take the changes of tables, and post them to the views that read them."""
        changes = self.changes.of_tables(self._deliveries.followed())
        number = self._pending.begin(self._clock.values)
        self.changes.forget()
        for place, (name, delta) in enumerate(changes.items()):
            self._batches.post(name, delta, self._streams.readers(name), f"{number}-{place}")
        for view in self._unanswered():
            self._queries.drop(view.relation.name)
            self._pending.close(view.relation.name)
            self._fill(view)
        self._deliveries.fill(changes)
        self.changes.end_of_tables()
        self._is_due = True

    def _unanswered(self) -> list[ViewInfo]:
        """Return views that failed on their first change set: the rows of what they read may be others by now."""
        known = set(self._pending.names())
        views = [view for view in self._catalog.views() if view.relation.name in known]
        streams = [(view, self._pending.stream(view.relation.name)) for view in views]
        return [view for view, stream in streams if stream.plan.takes_change_sets and stream.batch == NONE]

    def create(self, view: ViewInfo) -> None:
        """Post the rows of its relations to a new view, and make its table in PostgreSQL, where views have tables there.

        Raises:
            UnsupportedSqlError: the view reads the clock, which views on Spark do not have, or must remember what it has emitted.
        """
        self._fill(view)
        own = self._streams.own_sources(view)
        begun = sorted(name for name in own if begins_anew(self._streams.tables[name]))
        if begun and replaced_by(view.relation.name) is not None:
            message = (
                f"the new view would have no row that {', '.join(map(repr, begun))} has sent before: their connectors begin "
            )
            raise UnsupportedSqlError(f"{message}with the rows of now. DROP the old view, and CREATE the new one.", 1, 1)
        self._deliveries.add_view(view)

    def _fill(self, view: ViewInfo) -> None:
        name, node = view.relation.name, view.node
        self._is_due = True
        plan = self._streams.plan(node)
        if not plan.is_program:
            self._check_nodes(list(every_node(node)))
        self._pending.open(name, plan)
        read = sorted(view.reads.difference(plan.sources))
        self._connect.check_storing(self._filled(read))
        for place, source in enumerate(read):
            self._batches.post(
                source, inserted(self._catalog.relation(source).storage), [name], f"{self._pending.number}-{place}"
            )

    def _check_nodes(self, nodes: Sequence[Node]) -> None:
        what = ""
        if any(isinstance(node, TemporalFilter | ClockStamp) for node in nodes):
            what = "now() or PROCTIME() in a materialized view on Spark"
        elif any(isinstance(node, CloseSort) and not all(node.watermarks[name].final for name in node.by) for node in nodes):
            what = "EMIT ON WINDOW CLOSE on Spark over a table that is not APPEND ONLY"
        if what:
            raise UnsupportedSqlError(f"{what} is not supported. Open the session without Spark.", 1, 1)

    def drop(self, view: ViewInfo) -> None:
        name = view.relation.name
        self._bad_values.drop(name)
        MalformedRows(self._storage).drop(name)
        self.changes.drop(name)
        self._queries.drop(name)
        for source in view.reads:
            self._clock.drop(clock_name(source, name))
        self._pending.close(name)

    def is_unfilled(self, name: str) -> bool:
        return name in {view.relation.name for view in self._catalog.views()} and not self._pending.stream(name).done

    def check_rename(self, name: str, place: Place) -> None:
        """Refuse to rename anything but plain views: checkpoints know the other names."""
        if not isinstance(self._catalog.entries[name], PlainView):
            message = f"renaming {name!r} on Spark is not supported, as checkpoints know it. CREATE a VIEW with the new name."
            raise place.error(UnsupportedSqlError, message)

    def renamed(self, old: str, new: str) -> None:
        self._forget()

    def goes_on(self, old: ViewInfo, node: Node) -> bool:
        return self._pending.stream(old.relation.name).plan == self._streams.plan(node)

    def settle(self, name: str) -> None:
        self._queries.drop(name)
        self._batches.take(name)

    def swapped(self, swap: Swap) -> None:
        """Continue with views that took the place of others; those that read them are sent what has changed."""
        for name, before in swap.names.items():
            self._queries.drop(before)
            for source in self._streams.own_sources(self._catalog.view(name)):
                self._clock.rename(clock_name(source, before), clock_name(source, name))
        self._forget()
        self.changes.swapped(swap)
        for place, (name, delta) in enumerate(swap.changes.items()):
            readers = [reader for reader in self._streams.readers(name) if reader not in swap.names]
            self._batches.post(name, delta, readers, f"{self._pending.number}-swap-{place}")
        self._deliveries.fill(swap.changes)
        self._is_due = True

    # --- questions -------------------------------------------------------------------------------------

    def explain(self, node: Node, view: ViewInfo | None = None) -> list[str]:
        plan = self._streams.program(node)
        if isinstance(plan, StreamedPlan):
            written = "  written: to a change log by the tasks, from there to the store by the driver"
            return [*plan.lines, written, *explain_plan(node, 1)]
        own, read = self._streams.read_by(node), scanned(node)
        lines = []
        if own:
            names = ", ".join(map(repr, sorted(own)))
            others = ", ".join(map(repr, sorted(read - own)))
            change_sets = f"; changes of {others} come in change sets" if others else ""
            lines.append(f"One streaming query on Spark from source {names}, whose rows are not stored{change_sets}")
        parts = self._streams.spread(node)
        above = [] if parts.groups is None else explain_plan(node, 1)
        nodes = physical_lines(parts.node, self._storage, paged=True, depth=1)
        return [*lines, *parts.lines, *spread_lines(cut(parts.node)), f"  on the nodes of SQL: {plan}", *nodes, *above]

    def cost(self, view: ViewInfo) -> list[str]:
        batch = self._queries.last_batch(view.relation.name)
        if batch is None:
            return ["cost: no batch has run in this session"]
        if self._streams.is_program(view.relation.name):
            return batch_lines(batch, [self._streams.program_of(view).operator_line])
        parts = self._streams.spread_of(view)
        return batch_lines(batch, [*(line.strip() for line in parts.lines[:1]), *stage_names(cut(parts.node))])

    # --- after the transaction: change sets and answers ----------------------------------------------------

    def _send(self, view: ViewInfo) -> bool:
        """Write the change sets that are due to a view; say whether it has something to answer."""
        name = view.relation.name
        if not self._streams.takes_change_sets(name):
            self._batches.start(view)
            return True
        own = self._streams.own_sources(view)
        while (change_set := self._due_change_set(view)) is not None:  # two, where a crash stopped the sending of the first one
            if not (own and self._queries.is_running(name)):  # it may be in the middle of a batch of its sources
                is_large = change_set.size(self._queries.inbox(name)) >= LARGE_CHANGE_SET.value
                self._queries.share_change_sets(name, is_shared=is_large)
            change_set.write(self._queries.inbox(name))
            with self._storage.transaction():
                self._pending.sent(name, change_set)
        stream = self._pending.stream(name)
        if stream.done == stream.sent and not own:
            return False
        self._batches.start(view)
        return True

    def _due_change_set(self, view: ViewInfo) -> ChangeSet | None:
        with self._storage.transaction():
            return self._pending.due_change_set(view.relation.name, self._streams.clock_of(view))

    def _await(self, name: str) -> None:
        never_rests = any(
            is_endless(self._streams.tables[source]) for source in self._streams.own_sources(self._catalog.view(name))
        )
        self._queries.finish(name, is_endless=never_rests)
        self._batches.take(name)
        with self._storage.transaction():
            self._pending.answered(name)
        if self._streams.takes_change_sets(name):
            sweep(self._queries.inbox(name))


def _rounds(views: Sequence[ViewInfo]) -> list[list[ViewInfo]]:
    """Return views in rounds: those of one read only tables and views of earlier ones."""
    depths: dict[str, int] = {}
    for view in views:
        depths[view.relation.name] = 1 + max((depths.get(source, 0) for source in view.reads), default=0)
    found: list[list[ViewInfo]] = [[] for _ in range(max(depths.values(), default=0))]
    for view in views:
        found[depths[view.relation.name] - 1].append(view)
    return found
