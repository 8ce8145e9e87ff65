"""Views as tables of a PostgreSQL server: where it is the store of a session, every materialized view has a table there.

The rows of a view, and the changes that its table does not have yet, are in the state file; the changes are removed when
PostgreSQL has committed them with the number of their batch. A crash between the two delivers a batch again, without effect.

Layout: ``windowpane.served`` holds for each view its source, under which PostgreSQL counts batches, ``whole``, the number of the
batch that holds all rows (the first one, or one that mends the table), the last number delivered, and whether the view is dropped
in the state file, though its table may still exist. Changes that wait are in an outbox named by the source. Changes of one
transaction here have one number, and become one transaction there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

import pyarrow as pa

from windowpane.errors import StoreError
from windowpane.sql.catalog.entries import ViewInfo, replaced_by, sink_of_query
from windowpane.sql.catalog.relations import Relation
from windowpane.sql.embedded.outbox import Outbox, next_batch
from windowpane.sql.embedded.state_file import Server
from windowpane.sql.embedded.storage import Storage
from windowpane.sql.expressions.types import JSONB
from windowpane.stores import Batch
from windowpane.windowing.outputs import CHANGE_TYPE, INSERT

_NEVER = -1


@dataclass(frozen=True)
class _Table:
    """How far the table of a view is; see the module."""

    relation: Relation
    source: str
    whole: int
    last: int
    outbox: Outbox

    @property
    def due(self) -> list[int]:
        """The numbers of the batches that wait; the first is due though it may have no rows."""
        first = [self.whole] if self.last < self.whole else []
        return sorted({*first, *self.outbox.numbers()})

    def batch(self, number: int) -> Batch:
        return _batch(self.relation, self.outbox.batch(number), number, self.source, is_whole=number == self.whole)


class ViewTables:
    """The tables of a PostgreSQL server that hold the views of a session."""

    def __init__(self, storage: Storage, server: Server) -> None:
        self._storage, self._server = storage, server

    def close(self) -> None:
        self._server.close()

    # --- in a transaction ------------------------------------------------------------------------------

    def take_up(self, views: Sequence[ViewInfo]) -> None:
        """Make tables for views that have none, and fill tables anew that do not match the state.

        They differ where one of the two was restored from an older copy, or a table was dropped.
        """
        with self._server.at_work() as server:
            numbers = server.numbers()
        tables = {table.relation.name: table for table in self._tables(views)}
        for view in views:
            table = tables.get(view.relation.name)
            if table is None:
                self.add(view)
                continue
            number = numbers.get(table.source, _NEVER)
            if number != table.last and number not in table.due:
                self._fill(table.relation, table.source, above=number)

    def add(self, view: ViewInfo, *, replaces: bool = False) -> None:
        """Make a table for a view, with the rows it has."""
        relation = view.relation
        if sink_of_query(relation.name) is not None or replaced_by(relation.name) is not None:
            return
        with self._server.at_work() as server:
            server.try_to_create(_batch(relation, self._no_rows(relation), 0, ""), replaces=replaces)
        source = f"{self._server.state} {relation.name} {next_batch(self._storage)}"
        self._storage.run(
            "INSERT INTO windowpane.served (view, source, whole, last, dropped) VALUES (?, ?, 0, ?, false)",
            [relation.name, source, _NEVER],
        )
        self._outbox(relation, source).create()
        self._fill(relation, source)

    def _fill(self, relation: Relation, source: str, above: int = 0) -> None:
        """Let all rows of a view wait, in place of the changes that wait."""
        number, outbox = next_batch(self._storage, above), self._outbox(relation, source)
        outbox.clear()
        outbox.put_all(number)
        self._storage.run("UPDATE windowpane.served SET whole = ? WHERE source = ?", [number, source])

    def _no_rows(self, relation: Relation) -> pa.Table:
        return self._storage.arrow(f"SELECT *, '{INSERT}' AS {CHANGE_TYPE} FROM {relation.storage} LIMIT 0")

    def _outbox(self, relation: Relation, source: str) -> Outbox:
        return Outbox(self._storage, source, relation)

    def outboxes(self, views: Iterable[ViewInfo]) -> list[Outbox]:
        return [table.outbox for table in self._tables(views)]

    def _tables(self, views: Iterable[ViewInfo]) -> list[_Table]:
        relations = {view.relation.name: view.relation for view in views}
        rows = self._storage.run("SELECT view, source, whole, last FROM windowpane.served WHERE NOT dropped")
        found = [(relations[view], source, whole, last) for view, source, whole, last in rows if view in relations]
        return [_Table(*entry, self._outbox(entry[0], entry[1])) for entry in found]

    def try_to_drop(self, view: str) -> None:
        """Check that a view can be dropped."""
        if sink_of_query(view) is None:
            with self._server.at_work() as server:
                server.try_to_drop(view)

    def drop(self, view: ViewInfo) -> None:
        """Forget a view; its table is dropped with the next delivery, or by the first batch of a view in its place."""
        for table in self._tables([view]):
            table.outbox.drop()
        self._storage.run("UPDATE windowpane.served SET dropped = true WHERE view = ?", [view.relation.name])

    # --- after it --------------------------------------------------------------------------------------

    def deliver(self, views: Iterable[ViewInfo]) -> None:
        """Bring the tables in PostgreSQL up to date, in the order of the changes here.

        Raises:
            StoreError: PostgreSQL cannot be reached, or refuses a value; the changes still wait.
        """
        try:
            self._deliver(views)
        except StoreError as error:
            waits = f"What changed is kept in {self._storage.path!r}; the next FLUSH tries again."
            raise StoreError(error.store, f"{error.reason}\n{waits}") from error

    def _deliver(self, views: Iterable[ViewInfo]) -> None:
        tables = self._tables(views)
        due = [(table, table.due) for table in tables]
        anew = {table.relation.name for table, numbers in due if table.whole in numbers}
        dropped = self._storage.run("SELECT view, source FROM windowpane.served WHERE dropped")
        for name, source in dropped:
            if name not in anew:
                with self._server.at_work() as server:
                    server.drop(name, source)
                self._storage.run("DELETE FROM windowpane.served WHERE source = ?", [source])
        for number in sorted(set(chain.from_iterable(numbers for _, numbers in due))):
            ready = [table for table, numbers in due if number in numbers]
            new = {table.relation.name for table in ready if number == table.whole}
            self._hand_over(ready, number, [(name, source) for name, source in dropped if name in new])

    def _hand_over(self, tables: Sequence[_Table], number: int, replaced: Sequence[tuple[str, str]]) -> None:
        batches = [table.batch(number) for table in tables]
        with self._server.at_work() as server:
            server.apply_all(batches, replaced)
        with self._storage.transaction():
            for _, source in replaced:
                self._storage.run("DELETE FROM windowpane.served WHERE source = ?", [source])
            for table in tables:
                table.outbox.delivered(number)
                self._storage.run("UPDATE windowpane.served SET last = ? WHERE source = ?", [number, table.source])


def _batch(relation: Relation, changes: pa.Table, number: int, source: str, *, is_whole: bool = False) -> Batch:
    # In a key, jsonb would make one value of two texts.
    columns = [column for column in relation.columns if column.name not in relation.key]
    types = {column.name: "jsonb" for column in columns if column.type == JSONB}
    types |= {column.name: "jsonb[]" for column in columns if column.type.element == JSONB}
    return Batch(relation.name, relation.key, changes, number, source, is_whole, types)
