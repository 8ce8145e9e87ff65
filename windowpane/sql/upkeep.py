"""Keeps materialized views and sinks up to date: one flush takes all changes of tables through every view, in order.

State in memory is only what the store can give again: the last changelog of each view, and caches of operators, which are
dropped when a transaction is rolled back.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from windowpane.sql import views
from windowpane.sql.catalog import Catalog, SinkInfo, ViewInfo
from windowpane.sql.expr import quoted
from windowpane.sql.outbox import Outbox
from windowpane.sql.relations import PlainView, Relation
from windowpane.sql.storage import Storage
from windowpane.sql.streaming.clock import Watermarks
from windowpane.sql.streaming.deltas import WEIGHT, apply_to, netted, with_words


class Upkeep:
    """The views and sinks of a session at work."""

    def __init__(self, storage: Storage, catalog: Catalog, clock: Watermarks) -> None:
        """Keep up what ``catalog`` holds."""
        self._storage, self._catalog, self._clock = storage, catalog, clock
        self.changelogs: dict[str, pa.Table] = {}
        self.outboxes: dict[str, Outbox] = {}

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
        changes: dict[str, str] = {}
        for table in self._catalog.tables():
            columns = [column.name for column in table.relation.columns]
            delta = netted(self._storage, f"SELECT * FROM {table.pending}", columns)
            self._storage.run(f"DELETE FROM {table.pending}")
            if delta is not None:
                changes[table.relation.name] = delta
        for view in self._catalog.views():
            delta = self._advance(view, {name: changes[name] for name in view.reads if name in changes})
            if delta is not None:
                changes[view.relation.name] = delta
        self._fill_outboxes(changes)

    def fill(self, view: ViewInfo) -> None:
        """Run a new view on what its relations hold."""
        changes = {}
        for name in view.reads:
            rows = f"SELECT *, 1 AS {quoted(WEIGHT)} FROM {self._relation(name).storage}"
            changes[name] = self._storage.temporary(rows)
        self._advance(view, changes, initial=True)

    def _relation(self, name: str) -> Relation:
        found = self._catalog.find(name)
        assert found is not None
        assert not isinstance(found, PlainView)
        return found

    def _advance(self, view: ViewInfo, changes: Mapping[str, str], *, initial: bool = False) -> str | None:
        """Run the job of a view on changes, keep what it gives, and return that in stored names."""
        relation = view.relation
        columns = [column.name for column in relation.columns]
        self._storage.run("SET error_on_division_by_zero = false")
        delta = view.job.run(changes, initial=initial)
        self._storage.run("SET error_on_division_by_zero = true")
        named = None if delta is None else self._storage.temporary(views.in_stored_names(view.ids, delta, WEIGHT))
        if named is not None:
            apply_to(self._storage, relation.storage, named, columns, relation.key)
        changed = named or f"(SELECT *, 1 AS {quoted(WEIGHT)} FROM {relation.storage} LIMIT 0)"
        raw = self._storage.arrow(f"SELECT * FROM {changed}")
        words = with_words(raw, relation.key)
        self.changelogs[relation.name] = words.drop_columns([column.name for column in relation.columns if column.hidden])
        return named

    def open_sink(self, sink: SinkInfo, *, is_new: bool) -> None:
        """Let the changes of a relation wait for a sink; a new one begins with all rows there are."""
        relation = self._relation(sink.source)
        box = Outbox(self._storage, sink, relation)
        if is_new:
            box.create()
            rows = self._storage.arrow(f"SELECT *, 1 AS {quoted(WEIGHT)} FROM {relation.storage}")
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
