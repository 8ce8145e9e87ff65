"""Served views: where the store of a session is a PostgreSQL server, every materialized view stands there as a table.

The rows of a view, and the changes that its table has yet to see, stand in the state file; the changes leave it when PostgreSQL
has committed them together with the number of their batch. A crash between the two delivers a batch again, which changes nothing.

Layout: ``windowpane.served`` holds for each view its source, under which PostgreSQL counts batches, ``whole``, the number of the
batch that holds all rows (the first one, or one that mends the table), the last number delivered, and whether the view is dropped
here while its table may still be there. What waits is in an outbox named by the source. Changes of one transaction here have one
number, and become one transaction there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

import pyarrow as pa

from windowpane.engines.over.program import CHANGE_TYPE, INSERT
from windowpane.errors import StoreError
from windowpane.sql.catalog.entries import ViewInfo, sink_of_query
from windowpane.sql.catalog.relations import Relation
from windowpane.sql.embedded.outbox import Outbox, next_batch
from windowpane.sql.embedded.state_file import Server
from windowpane.sql.embedded.storage import Storage
from windowpane.sql.expressions.types import JSONB
from windowpane.stores import Batch

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
        """Return a batch that waits."""
        return _batch(self.relation, self.outbox.batch(number), number, self.source, is_whole=number == self.whole)


class ServedViews:
    """The views of a session as tables of a PostgreSQL server."""

    def __init__(self, storage: Storage, server: Server) -> None:
        """Serve views of ``storage`` on ``server``."""
        self._storage, self._server = storage, server

    def close(self) -> None:
        """Disconnect."""
        self._server.close()

    # --- in a transaction ------------------------------------------------------------------------------

    def take_up(self, views: Sequence[ViewInfo]) -> None:
        """Serve views that are not, and let tables be filled anew that do not stand where the state left them.

        So it is where one of the two was restored from an older copy, or a table was dropped.
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

    def add(self, view: ViewInfo) -> None:
        """Begin to serve a view, with the rows it has.

        Raises:
            WindowpaneError: PostgreSQL cannot be reached, or refuses it.
        """
        relation = view.relation
        if sink_of_query(relation.name) is not None:
            return
        with self._server.at_work() as server:
            server.try_to_create(_batch(relation, self._content(relation).slice(0, 0), 0, ""))
        source = f"{self._server.state} {relation.name} {next_batch(self._storage)}"
        self._storage.run("INSERT INTO windowpane.served VALUES (?, ?, 0, ?, false)", [relation.name, source, _NEVER])
        self._outbox(relation, source).create()
        self._fill(relation, source)

    def _fill(self, relation: Relation, source: str, above: int = 0) -> None:
        """Let all rows of a view wait, in place of what waits."""
        number, outbox = next_batch(self._storage, above), self._outbox(relation, source)
        outbox.clear()
        outbox.put(self._content(relation), number)
        self._storage.run("UPDATE windowpane.served SET whole = ? WHERE source = ?", [number, source])

    def _content(self, relation: Relation) -> pa.Table:
        return self._storage.arrow(f"SELECT *, '{INSERT}' AS {CHANGE_TYPE} FROM {relation.storage}")

    def _outbox(self, relation: Relation, source: str) -> Outbox:
        return Outbox(self._storage, source, relation)

    def outboxes(self, views: Iterable[ViewInfo]) -> list[Outbox]:
        """Return where changes of views wait."""
        return [table.outbox for table in self._tables(views)]

    def _tables(self, views: Iterable[ViewInfo]) -> list[_Table]:
        relations = {view.relation.name: view.relation for view in views}
        rows = self._storage.run("SELECT view, source, whole, last FROM windowpane.served WHERE NOT dropped")
        found = [(relations[view], source, whole, last) for view, source, whole, last in rows if view in relations]
        return [_Table(*entry, self._outbox(entry[0], entry[1])) for entry in found]

    def try_to_drop(self, view: str) -> None:
        """Find what would be refused where a view is dropped.

        Raises:
            StoreError: PostgreSQL cannot be reached, or something there depends on the table.
        """
        if sink_of_query(view) is None:
            with self._server.at_work() as server:
                server.try_to_drop(view)

    def drop(self, view: ViewInfo) -> None:
        """Serve a view no longer."""
        for table in self._tables([view]):
            table.outbox.drop()
            self._storage.run("UPDATE windowpane.served SET dropped = true WHERE source = ?", [table.source])

    # --- after it --------------------------------------------------------------------------------------

    def deliver(self, views: Iterable[ViewInfo]) -> None:
        """Bring the tables in PostgreSQL up to date, in the order of what happened here.

        Raises:
            StoreError: PostgreSQL cannot be reached, or refuses a value; what waits goes on waiting.
        """
        try:
            self._deliver(views)
        except StoreError as error:
            waits = f"What changed is kept in {self._storage.path!r}; the next FLUSH tries again."
            raise StoreError(error.store, f"{error.reason}\n{waits}") from error

    def _deliver(self, views: Iterable[ViewInfo]) -> None:
        for name, source in self._storage.run("SELECT view, source FROM windowpane.served WHERE dropped"):
            with self._server.at_work() as server:
                server.drop(name, source)
            self._storage.run("DELETE FROM windowpane.served WHERE source = ?", [source])
        tables = self._tables(views)
        due = [(table, table.due) for table in tables]
        for number in sorted(set(chain.from_iterable(numbers for _, numbers in due))):
            self._hand_over([table for table, numbers in due if number in numbers], number)

    def _hand_over(self, tables: Sequence[_Table], number: int) -> None:
        with self._server.at_work() as server:
            server.apply(table.batch(number) for table in tables)
        with self._storage.transaction():
            for table in tables:
                table.outbox.delivered(number)
                self._storage.run("UPDATE windowpane.served SET last = ? WHERE source = ?", [number, table.source])


def _batch(relation: Relation, changes: pa.Table, number: int, source: str, *, is_whole: bool = False) -> Batch:
    # As a key, jsonb would be one where its texts are two.
    columns = [column for column in relation.columns if column.name not in relation.key]
    types = {column.name: "jsonb" for column in columns if column.type == JSONB}
    types |= {column.name: "jsonb[]" for column in columns if column.type.element == JSONB}
    return Batch(relation.name, relation.key, changes, number, source, is_whole, types)
