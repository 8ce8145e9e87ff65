"""Keeps materialized views and sinks up to date: one flush takes all changes of tables through every view, in order.

State in memory is only what the store can give again: the last changelog of each view (``None`` stands for all rows, of a view
that had none before), and caches of operators, which are
dropped when a transaction is rolled back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import pyarrow as pa

from windowpane.errors import UnsupportedSqlError, UnsupportedStoreError
from windowpane.sql import file_sources, views
from windowpane.sql.catalog import Catalog, SinkInfo, TableInfo, ViewInfo
from windowpane.sql.expr import quoted
from windowpane.sql.nodes import Node, explain_plan
from windowpane.sql.outbox import Outbox, next_batch
from windowpane.sql.places import Place
from windowpane.sql.relations import PlainView, Relation
from windowpane.sql.served import ServedViews
from windowpane.sql.sinks import Delivery
from windowpane.sql.storage import Storage
from windowpane.sql.streaming.clock import Watermarks
from windowpane.sql.streaming.deltas import WEIGHT, Inserts, apply_to, kept, netted, with_words
from windowpane.sql.tables import TableWriter


class Upkeep:
    """The views and sinks of a session at work."""

    def __init__(self, storage: Storage, catalog: Catalog, clock: Watermarks, served: ServedViews | None) -> None:
        """Keep up what ``catalog`` holds; ``served`` are its views elsewhere, if they stand there."""
        self._storage, self._catalog, self._clock, self._served = storage, catalog, clock, served
        self._changes: dict[str, pa.Table | None] = {}
        self._sinks: dict[str, Delivery] = {}

    def open(self) -> None:
        """Take up what the store holds, once the catalog is read.

        Raises:
            UnsupportedStoreError: views of the store keep their state in Spark's checkpoints.
        """
        rows = self._storage.run("SELECT name FROM windowpane.streams WHERE spread ORDER BY name")
        if rows:
            raise UnsupportedStoreError(self._storage.path, ", ".join(row[0] for row in rows))
        self._take_up_served()
        self.deliver()

    def _take_up_served(self) -> None:
        if self._served is not None:
            with self._storage.transaction():
                self._served.take_up(self._catalog.views())

    def close(self) -> None:
        """Stop what runs between statements: here a connection at most."""
        if self._served is not None:
            self._served.close()

    def is_unfilled(self, name: str) -> bool:
        """Whether a view has not had its first rows: never after the statement that made it."""
        return False

    def forget(self) -> None:
        """Drop what is only held in memory of a transaction that was rolled back."""
        self._clock.reload()
        for view in self._catalog.views():
            view.job.forget()
        self._sinks = {}
        for sink in self._catalog.sinks():
            self.open_sink(sink, is_new=False)

    def deliver(self) -> None:
        """Hand what waits in outboxes to the server of the views, and to the stores of sinks.

        Raises:
            WindowpaneError: one of them cannot take it, which goes on waiting. The others have taken theirs.
        """
        failures: list[Exception] = []
        deliveries: list[Callable[[], None]] = [sink.deliver for sink in self._sinks.values()]
        if self._served is not None:
            deliveries.insert(0, partial(self._served.deliver, self._catalog.views()))
        for deliver in deliveries:
            try:
                deliver()
            except Exception as failure:
                failures.append(failure)
        if failures:
            raise failures[0]

    def flush(self) -> None:
        """Bring every view up to date with its tables."""
        changes = self._pending()
        self._changes.clear()
        for view in self._catalog.views():
            delta = self._advance(view, {name: changes[name] for name in view.reads if name in changes})
            if delta is not None:
                changes[view.relation.name] = delta
        self._fill_outboxes(changes)
        self._clear_pending()

    def _pending(self) -> dict[str, str]:
        """Return the changes of tables that wait and that somebody reads, by name; ``_clear_pending`` ends the wait."""
        changes: dict[str, str] = {}
        read = set().union(*(view.reads for view in self._catalog.views()), (box.relation.name for box in self._outboxes()))
        for table in self._catalog.tables():
            relation = table.relation
            if relation.name not in read or self._storage.is_empty(table.pending):
                continue
            if self._storage.is_empty(f"{table.pending} WHERE {quoted(WEIGHT)} < 0"):
                changes[relation.name] = Inserts(table.pending)
                continue
            delta = netted(self._storage, f"SELECT * FROM {table.pending}", [column.name for column in relation.columns])
            if delta is not None:
                changes[relation.name] = delta
        return changes

    def _clear_pending(self) -> None:
        for table in self._catalog.tables():
            self._storage.run(f"DELETE FROM {table.pending}")

    def fill(self, view: ViewInfo) -> None:
        """Run a new view on what its relations hold."""
        changes: dict[str, str] = {name: whole(self._relation(name)) for name in view.reads}
        self._advance(view, changes, initial=True)

    def drop(self, view: ViewInfo) -> None:
        """Forget a view and the state behind it."""
        view.job.drop()
        if self._served is not None:
            self._served.drop(view)
        self._changes.pop(view.relation.name, None)

    def gather(self) -> None:
        """Wait until tables with a connector hold what there is to read."""

    def check_source(self, options: Mapping[str, str], place: Place) -> None:
        """Refuse a connector, or options of one, that rows cannot be read with.

        Raises:
            SqlError: naming them.
        """
        file_sources.check_options(options, place)

    def take_files(self, table: TableInfo, writer: TableWriter) -> None:
        """Insert the rows of files that are new into a table with a connector."""
        file_sources.take_new_files(self._storage, table, writer)

    def add_table(self, table: TableInfo) -> None:
        """Begin to fill a new table, if it has a connector: the next flush does."""

    def drop_table(self, table: TableInfo) -> None:
        """Stop filling a table."""

    def _relation(self, name: str) -> Relation:
        found = self._catalog.find(name)
        assert found is not None
        assert not isinstance(found, PlainView)
        return found

    def _advance(self, view: ViewInfo, changes: Mapping[str, str], *, initial: bool = False) -> str | None:
        """Run the job of a view on changes, keep what it gives, and return that in stored names."""
        self._storage.run("SET error_on_division_by_zero = false")
        named = self._keep(view, view.job.run(changes, initial=initial))
        self._storage.run("SET error_on_division_by_zero = true")
        return named

    def _keep(self, view: ViewInfo, delta: str | None) -> str | None:
        """Change the stored rows of a view by what its job gave, and return that in stored names."""
        if delta is None:
            return None
        relation, query = view.relation, f"({views.in_stored_names(view.ids, delta, WEIGHT)})"
        names = [column.name for column in relation.columns]
        if isinstance(delta, Inserts) and self._storage.is_empty(relation.storage):
            apply_to(self._storage, relation.storage, Inserts(query), names, relation.key)
            self._changes[relation.name] = None
            return None if self._storage.is_empty(relation.storage) else whole(relation)
        named = kept(self._storage, Inserts(query) if isinstance(delta, Inserts) else query)
        if named is not None:
            apply_to(self._storage, relation.storage, named, names, relation.key)
            self._changes[relation.name] = self._storage.arrow(f"SELECT * FROM {named}")
        return named

    def changelog(self, view: ViewInfo) -> pa.Table:
        """Return what the last flush, or its creation, changed in a view: the columns users see, and ``_change_type``."""
        relation = view.relation
        changes = self._changes.get(relation.name)
        if changes is None:
            some = "" if relation.name in self._changes else " LIMIT 0"
            changes = self._storage.arrow(f"SELECT * FROM {whole(relation)}{some}")
        return with_words(changes, relation.key).drop_columns([column.name for column in relation.columns if column.hidden])

    def explain(self, node: Node) -> list[str]:
        """Return how a plan would run as a view, as lines."""
        return explain_plan(node)

    def serve(self, view: ViewInfo) -> None:
        """Begin to show a new view where views are served."""
        if self._served is not None:
            self._served.add(view)

    def check_drop(self, view: str) -> None:
        """Refuse to drop a view that cannot be dropped where it is served.

        Raises:
            StoreError: saying why.
        """
        if self._served is not None:
            self._served.try_to_drop(view)

    def check_rename(self, name: str, place: Place) -> None:
        """Refuse to rename what stands under its name outside of the store, too.

        Raises:
            SqlError: it is a materialized view on a PostgreSQL server, or its state is in checkpoints of Spark.
        """
        if self._served is not None and isinstance(self._catalog.entries[name], ViewInfo):
            message = f"renaming {name!r}, a table on the PostgreSQL server, is not supported. CREATE a VIEW with the new name."
            raise UnsupportedSqlError(message, place.line, place.column)

    def renamed(self, old: str, new: str) -> None:
        """Go on with an entry of the catalog under its new name."""
        self.forget()
        if old in self._changes:
            self._changes[new] = self._changes.pop(old)

    def open_sink(self, sink: SinkInfo, *, is_new: bool) -> None:
        """Let the changes of a relation wait for a sink; a new one begins with all rows there are."""
        relation = self._relation(sink.source)
        delivery = Delivery(self._storage, sink, relation)
        if is_new:
            delivery.outbox.create()
            rows = self._storage.arrow(f"SELECT * FROM {whole(self._relation(sink.source))}")
            delivery.outbox.put(with_words(rows, relation.key), next_batch(self._storage))
        self._sinks[sink.name] = delivery

    def drop_sink(self, name: str) -> None:
        """Forget a sink, and what waits for it."""
        self._sinks.pop(name).outbox.drop()

    def _outboxes(self) -> list[Outbox]:
        served = [] if self._served is None else self._served.outboxes(self._catalog.views())
        return [*served, *(sink.outbox for sink in self._sinks.values())]

    def _fill_outboxes(self, changes: Mapping[str, str]) -> None:
        boxes = [box for box in self._outboxes() if box.relation.name in changes]
        number = next_batch(self._storage) if boxes else 0
        for box in boxes:
            rows = self._storage.arrow(f"SELECT * FROM {changes[box.relation.name]}")
            box.put(with_words(rows, box.relation.key), number)


def whole(relation: Relation) -> Inserts:
    """Return the rows of a relation as a batch."""
    return Inserts(f"(SELECT *, 1 AS {quoted(WEIGHT)} FROM {relation.storage})")
