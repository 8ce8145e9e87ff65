"""Keeps materialized views and sinks up to date: one flush takes all changes of tables through every view, in order.

State in memory is only what the store can give again: the last changelog of each view, and caches of operators, which are
dropped when a transaction is rolled back.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from windowpane.errors import UnsupportedStoreError
from windowpane.sql import file_sources, views
from windowpane.sql.catalog import Catalog, SinkInfo, TableInfo, ViewInfo
from windowpane.sql.expr import quoted
from windowpane.sql.nodes import Node, explain_plan
from windowpane.sql.outbox import Outbox
from windowpane.sql.places import Place
from windowpane.sql.relations import PlainView, Relation
from windowpane.sql.storage import Storage
from windowpane.sql.streaming.clock import Watermarks
from windowpane.sql.streaming.deltas import WEIGHT, apply_to, netted, with_words
from windowpane.sql.tables import TableWriter


class Upkeep:
    """The views and sinks of a session at work."""

    def __init__(self, storage: Storage, catalog: Catalog, clock: Watermarks) -> None:
        """Keep up what ``catalog`` holds."""
        self._storage, self._catalog, self._clock = storage, catalog, clock
        self._changes: dict[str, pa.Table] = {}
        self.outboxes: dict[str, Outbox] = {}

    def open(self) -> None:
        """Take up what the store holds, once the catalog is read.

        Raises:
            UnsupportedStoreError: views of the store keep their state in Spark's checkpoints.
        """
        rows = self._storage.run("SELECT name FROM windowpane.streams WHERE spread ORDER BY name")
        if rows:
            raise UnsupportedStoreError(self._storage.path, ", ".join(row[0] for row in rows))
        self.deliver()

    def close(self) -> None:
        """Nothing runs between statements."""

    def is_unfilled(self, name: str) -> bool:
        """Whether a view has not had its first rows: never after the statement that made it."""
        return False

    def forget(self) -> None:
        """Drop what is only held in memory of a transaction that was rolled back."""
        self._clock.reload()
        for view in self._catalog.views():
            view.job.forget()
        self.outboxes = {}
        for sink in self._catalog.sinks():
            self.open_sink(sink, is_new=False)

    def deliver(self) -> None:
        """Hand what waits in outboxes to the stores of their sinks."""
        for box in self.outboxes.values():
            box.deliver()

    def flush(self) -> None:
        """Bring every view up to date with its tables."""
        changes = self._pending()
        self._changes.clear()
        for view in self._catalog.views():
            delta = self._advance(view, {name: changes[name] for name in view.reads if name in changes})
            if delta is not None:
                changes[view.relation.name] = delta
        self._fill_outboxes(changes)

    def _pending(self) -> dict[str, str]:
        """Take the changes of tables that wait, netted, by name."""
        changes: dict[str, str] = {}
        for table in self._catalog.tables():
            columns = [column.name for column in table.relation.columns]
            delta = netted(self._storage, f"SELECT * FROM {table.pending}", columns)
            self._storage.run(f"DELETE FROM {table.pending}")
            if delta is not None:
                changes[table.relation.name] = delta
        return changes

    def fill(self, view: ViewInfo) -> None:
        """Run a new view on what its relations hold."""
        changes = {name: self._storage.temporary(self._content(name)) for name in view.reads}
        self._advance(view, changes, initial=True)

    def drop(self, view: ViewInfo) -> None:
        """Forget a view and the state behind it."""
        view.job.drop()
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

    def _content(self, name: str) -> str:
        """Return the rows of a relation as a batch of changes."""
        return f"SELECT *, 1 AS {quoted(WEIGHT)} FROM {self._relation(name).storage}"

    def _relation(self, name: str) -> Relation:
        found = self._catalog.find(name)
        assert found is not None
        assert not isinstance(found, PlainView)
        return found

    def _advance(self, view: ViewInfo, changes: Mapping[str, str], *, initial: bool = False) -> str | None:
        """Run the job of a view on changes, keep what it gives, and return that in stored names."""
        self._storage.run("SET error_on_division_by_zero = false")
        delta = view.job.run(changes, initial=initial)
        self._storage.run("SET error_on_division_by_zero = true")
        return self._keep(view, delta)

    def _keep(self, view: ViewInfo, delta: str | None) -> str | None:
        """Change the stored rows of a view by what its job gave, and return that in stored names."""
        named = None if delta is None else self._storage.temporary(views.in_stored_names(view.ids, delta, WEIGHT))
        if named is not None:
            relation = view.relation
            apply_to(self._storage, relation.storage, named, [column.name for column in relation.columns], relation.key)
            self._changes[relation.name] = self._storage.arrow(f"SELECT * FROM {named}")
        return named

    def changelog(self, view: ViewInfo) -> pa.Table:
        """Return what the last flush, or its creation, changed in a view: the columns users see, and ``_change_type``."""
        relation = view.relation
        changes = self._changes.get(relation.name)
        if changes is None:
            changes = self._storage.arrow(f"{self._content(relation.name)} LIMIT 0")
        return with_words(changes, relation.key).drop_columns([column.name for column in relation.columns if column.hidden])

    def explain(self, node: Node) -> list[str]:
        """Return how a plan would run as a view, as lines."""
        return explain_plan(node)

    def open_sink(self, sink: SinkInfo, *, is_new: bool) -> None:
        """Let the changes of a relation wait for a sink; a new one begins with all rows there are."""
        relation = self._relation(sink.source)
        box = Outbox(self._storage, sink, relation)
        if is_new:
            box.create()
            rows = self._storage.arrow(self._content(sink.source))
            box.put(with_words(rows, relation.key), self._next_batch())
        self.outboxes[sink.name] = box

    def _next_batch(self) -> int:
        """Return the number of the next batch for sinks."""
        number = int(self._storage.value("SELECT coalesce(max(value), 0) + 1 FROM windowpane.counters WHERE name = '/batch'"))
        self._storage.run("DELETE FROM windowpane.counters WHERE name = '/batch'")
        self._storage.run("INSERT INTO windowpane.counters VALUES ('/batch', ?)", [number])
        return number

    def _fill_outboxes(self, changes: Mapping[str, str]) -> None:
        sinks = [sink for sink in self._catalog.sinks() if sink.source in changes]
        number = self._next_batch() if sinks else 0
        for sink in sinks:
            rows = self._storage.arrow(f"SELECT * FROM {changes[sink.source]}")
            self.outboxes[sink.name].put(with_words(rows, self._relation(sink.source).key), number)
