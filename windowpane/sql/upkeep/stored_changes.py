"""Changes in the store: those of tables that wait for a flush, and those that a flush makes in the rows of views.

State in memory is only what the store can restore: the name of the last changelog of each view, a temporary relation
(``None`` is all rows, of a view that had none before), and which views have rows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa

from windowpane.sql.catalog import views
from windowpane.sql.catalog.entries import Catalog, ViewInfo
from windowpane.sql.catalog.relations import Relation
from windowpane.sql.embedded import tables
from windowpane.sql.embedded.storage import Storage
from windowpane.sql.streaming.deltas import Delta, apply_to, inserted, kept, settled, with_words


@dataclass(frozen=True)
class Swap:
    """Views that took the place of others.

    Args:
        names: by the name of each the one it had before; its own, if its state goes on.
        changes: by view, the rows that differ, in the columns that both have, for views and sinks that read it.
        reshaped: those with other columns or another key.
    """

    names: Mapping[str, str]
    changes: Mapping[str, Delta]
    reshaped: Collection[str]


class StoredChanges:
    def __init__(self, storage: Storage, catalog: Catalog) -> None:
        self._storage, self._catalog = storage, catalog
        self._last: dict[str, Delta | None] = {}
        self._had_rows: set[str] = set()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Do everything inside or nothing: a failure also restores the catalog and the changelogs."""
        entries, last = dict(self._catalog.entries), dict(self._last)
        try:
            with self._storage.transaction():
                yield
        except BaseException:
            self._catalog.entries, self._last = entries, last
            self._had_rows.clear()
            raise

    # --- tables ----------------------------------------------------------------------------------------

    def of_tables(self, followed: Collection[str]) -> dict[str, Delta]:
        """Return the changes that wait of tables that are read, by name; ``end_of_tables`` ends the wait.

        Args:
            followed: the relations that sinks or tables on the server read.
        """
        read = set(followed).union(*(view.reads for view in self._catalog.views()))
        changes: dict[str, Delta] = {}
        for table in self._catalog.tables():
            delta = tables.waiting_changes(self._storage, table) if table.relation.name in read else None
            if delta is not None:
                changes[table.relation.name] = delta
        return changes

    def end_of_tables(self) -> None:
        for table in self._catalog.tables():
            self._storage.waiting.end(table.relation.name, table.pending)

    # --- views -----------------------------------------------------------------------------------------

    def keep(self, view: ViewInfo, delta: Delta | None) -> Delta | None:
        """Change the stored rows of a view by the result of its job, and return that in stored names."""
        if delta is None:
            return None
        return self.keep_stored(view, delta.through(views.in_stored_names(view.ids, delta.relation)))

    def keep_stored(self, view: ViewInfo, delta: Delta | None) -> Delta | None:
        """Change the stored rows of a view by a batch in stored names, and return it with each row once."""
        if delta is None:
            return None
        relation, names = view.relation, [column.name for column in view.relation.columns]
        if delta.inserts and self._is_unfilled(relation):
            apply_to(self._storage, relation.storage, delta, names, relation.key)
            self.forget(relation.name)
            self._last[relation.name] = None
            return None if self._storage.is_empty(relation.storage) else inserted(relation.storage)
        named = self.noted(view, delta)
        if named is not None:
            apply_to(self._storage, relation.storage, named, names, relation.key)
        return named

    def noted(self, view: ViewInfo, delta: Delta) -> Delta | None:
        """Note a batch in stored names as the last changes of a view, and return it with each row once; no stored row changes."""
        named, name = self.settled(view, delta), view.relation.name
        if named is not None:
            self.forget(name)
            self._storage.retain(named.relation)
            self._last[name] = named
        return named

    def settled(self, view: ViewInfo, delta: Delta) -> Delta | None:
        """Return a batch of a view in stored names with each row once; ``None`` if no change remains."""
        batch = settled(self._storage, delta, view.relation.types)
        return None if batch is None else kept(self._storage, batch)

    def _is_unfilled(self, relation: Relation) -> bool:
        """Whether a view has no rows; the store is read until it has some."""
        if relation.name not in self._had_rows and not self._storage.is_empty(relation.storage):
            self._had_rows.add(relation.name)
        return relation.name not in self._had_rows

    def forget(self, *names: str) -> None:
        """Forget the last changelog of views, or of all."""
        for name in names or tuple(self._last):
            changes = self._last.pop(name, None)
            if changes is not None:
                self._storage.release(changes.relation)

    def drop(self, name: str) -> None:
        self.forget(name)
        self._had_rows.discard(name)

    def renamed(self, old: str, new: str) -> None:
        self._had_rows.clear()
        if old in self._last:
            self._last[new] = self._last.pop(old)

    def swapped(self, swap: Swap) -> None:
        """Continue with views in the place of others: their changelogs are what differs, or all rows where columns do."""
        self._had_rows.clear()
        for name, before in swap.names.items():
            self.forget(name, before)
            delta = swap.changes.get(name)
            if name in swap.reshaped:
                self._last[name] = None
            elif delta is not None:
                self._storage.retain(delta.relation)
                self._last[name] = delta

    def count(self, view: ViewInfo) -> int:
        """Return how many changes the last flush, or its creation, made in a view."""
        name = view.relation.name
        changes = self._last.get(name) or inserted(view.relation.storage)
        return self._storage.count(changes.relation) if name in self._last else 0

    def changelog(self, view: ViewInfo, most: int) -> pa.Table:
        """Return what the last flush, or its creation, changed in a view: the columns users see, and ``_change_type``.

        Raises:
            ResultSizeError: it has more than ``most`` bytes; 0 is no bound.
        """
        relation = view.relation
        some = "" if relation.name in self._last else " LIMIT 0"
        changes = self._storage.answer(f"SELECT * FROM {self._last.get(relation.name) or inserted(relation.storage)}{some}", most)
        return with_words(changes, relation.key).drop_columns([column.name for column in relation.columns if column.hidden])
