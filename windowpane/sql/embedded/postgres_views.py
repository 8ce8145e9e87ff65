"""Views as tables of a PostgreSQL server: where it is the store of a session, every materialized view has a table there.

The rows of a view, and the changes that its table does not have yet, are in the state file; the changes are removed when
PostgreSQL has committed them with the number of their batch. A crash between the two delivers a batch again, without effect.

Layout: ``windowpane.served`` holds for each view its source, under which PostgreSQL counts batches, ``whole``, the number of the
batch that holds all rows (the first one, or one that mends the table), the last number delivered, and whether the view is dropped
in the state file, though its table may still exist. Changes that wait are in an outbox named by the source. Changes of one
transaction here have one number, and become one transaction there.

On Spark, tasks may write the batches of a view (``by_tasks``): only PostgreSQL stores its rows, and nothing waits here. Such a
view begins with an empty batch, number 0, which makes its table, or empties it; batch n of the query has the number n + 1.
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
from windowpane.sql.expressions.expr import quoted
from windowpane.sql.expressions.types import JSONB, SqlType
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
        by_tasks = self.by_tasks()
        for view in views:
            table = tables.get(view.relation.name)
            if view.relation.name in by_tasks:
                continue
            if table is None:
                self.add(view)
                continue
            number = numbers.get(table.source, _NEVER)
            if number != table.last and number not in table.due:
                self._fill(table.relation, table.source, above=number)

    def add(self, view: ViewInfo, *, by_tasks: bool = False, replaces: bool = False) -> None:
        """Make a table for a view, with the rows it has; with none where tasks will write them.

        Args:
            view: the view.
            by_tasks: whether tasks will write its batches.
            replaces: whether it takes the place of one that was dropped.

        Raises:
            WindowpaneError: PostgreSQL cannot be reached, or refuses it.
        """
        relation = view.relation
        if sink_of_query(relation.name) is not None or replaced_by(relation.name) is not None:
            return
        with self._server.at_work() as server:
            server.try_to_create(_batch(relation, self._no_rows(relation), 0, ""), replaces=replaces)
        source = f"{self._server.state} {relation.name} {next_batch(self._storage)}"
        self._storage.run(
            "INSERT INTO windowpane.served VALUES (?, ?, 0, ?, false, ?)", [relation.name, source, _NEVER, by_tasks]
        )
        if not by_tasks:
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
        rows = self._storage.run("SELECT view, source, whole, last FROM windowpane.served WHERE NOT dropped AND NOT by_tasks")
        found = [(relations[view], source, whole, last) for view, source, whole, last in rows if view in relations]
        return [_Table(*entry, self._outbox(entry[0], entry[1])) for entry in found]

    def try_to_drop(self, view: str) -> None:
        """Check that a view can be dropped.

        Raises:
            StoreError: PostgreSQL cannot be reached, or something there depends on the table.
        """
        if sink_of_query(view) is None:
            with self._server.at_work() as server:
                server.try_to_drop(view)

    def drop(self, view: ViewInfo) -> None:
        """Forget a view; its table is dropped with the next delivery, or by the first batch of a view in its place."""
        for table in self._tables([view]):
            table.outbox.drop()
        self._storage.run("UPDATE windowpane.served SET dropped = true WHERE view = ?", [view.relation.name])

    # --- batches that tasks write ----------------------------------------------------------------------

    @property
    def url(self) -> str:
        """The URL of the server, for tasks."""
        return self._server.url

    def by_tasks(self) -> set[str]:
        """Return the views whose batches tasks write."""
        return {row[0] for row in self._storage.run("SELECT view FROM windowpane.served WHERE by_tasks AND NOT dropped")}

    def out_of_step(self) -> list[str]:
        """Return views whose batches tasks write, and whose tables do not match the state.

        A table may be one batch ahead, after a crash between the two: its number shows this when the batch is run again.
        """
        with self._server.at_work() as server:
            numbers = server.numbers()
        rows = self._storage.run("SELECT view, source, last FROM windowpane.served WHERE by_tasks AND NOT dropped")
        return [view for view, source, last in rows if numbers.get(source, _NEVER) not in (last, last + 1)]

    def begin_anew(self, view: ViewInfo) -> None:
        """Number the batches of a view anew, in a transaction; the first one empties its table."""
        source = f"{self._server.state} {view.relation.name} {next_batch(self._storage)}"
        self._storage.run(
            "UPDATE windowpane.served SET source = ?, last = ? WHERE view = ?", [source, _NEVER, view.relation.name]
        )

    def make_table(self, view: ViewInfo) -> None:
        """Make the table of a view whose batches tasks write, or empty it, if no batch has been written."""
        source, last = self._place(view)
        if last == _NEVER:
            batch = self._empty(view, 0, source, is_whole=True)
            with self._server.at_work() as server:
                server.apply_all([batch])
            self._storage.run("UPDATE windowpane.served SET last = 0 WHERE source = ?", [source])

    def stage(self, view: ViewInfo, number: int) -> str:
        """Return a new staging table for a batch of a view, which its query numbers."""
        batch = self._empty(view, number + 1, self._place(view)[0])
        with self._server.at_work() as server:
            return server.begin_staging(batch)

    def merge(self, view: ViewInfo, number: int, staging: str) -> None:
        """Apply a batch that tasks have brought, in the transaction that writes the progress of the view here."""
        source, _ = self._place(view)
        batch = self._empty(view, number + 1, source)
        with self._server.at_work() as server:
            server.apply(batch, staging)
        self._storage.run("UPDATE windowpane.served SET last = ? WHERE source = ?", [number + 1, source])

    def copy(self, view: ViewInfo) -> None:
        """Copy the rows of a view whose batches tasks write from PostgreSQL to the storage, in a transaction.

        Raises:
            StoreError: a crash left the two apart; FLUSH brings them together.
        """
        relation, (source, last) = view.relation, self._place(view)
        self._storage.run(f"DELETE FROM {relation.storage}")
        with self._server.at_work() as server:
            number = server.numbers().get(source, _NEVER)
            if number == _NEVER:
                return
            if number != last:
                raise StoreError(server.address, f"the table of {relation.name!r} is at batch {number}, not {last}. FLUSH first.")
            columns = {column.name: _text_sql(column.name, column.type) for column in relation.columns}
            items = ", ".join(_from_text(column.name, column.type) for column in relation.columns)
            for rows in server.rows(relation.name, columns):
                with self._storage.reading(rows) as arrived:
                    self._storage.run(f"INSERT INTO {relation.storage} SELECT {items} FROM {arrived}")

    def _place(self, view: ViewInfo) -> tuple[str, int]:
        """Return the source of a view, and the number of its last batch."""
        query = "SELECT source, last FROM windowpane.served WHERE view = ? AND NOT dropped"
        ((source, last),) = self._storage.run(query, [view.relation.name])
        return source, last

    def _empty(self, view: ViewInfo, number: int, source: str, *, is_whole: bool = False) -> Batch:
        rows = self._storage.arrow(f"SELECT * FROM {view.relation.storage} LIMIT 0")
        return _batch(view.relation, rows, number, source, is_whole=is_whole)

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


def _text_sql(name: str, kind: SqlType) -> str:
    """Return SQL of PostgreSQL that makes a text of a column, for ``_from_text``."""
    if kind.element is not None:
        return f"to_json({quoted(name)})"
    return f"encode({quoted(name)}, 'hex')" if kind.name == "bytea" else quoted(name)


def _from_text(name: str, kind: SqlType) -> str:
    """Return SQL of DuckDB that makes a column of its text."""
    text = quoted(name)
    if kind.element is not None:
        text = f"{text}::JSON"
    elif kind.name == "bytea":
        text = f"unhex({text})"
    elif kind.name in ("date", "timestamp", "timestamptz"):
        text = f"regexp_replace({text}, '^(\\S+)(.*) BC$', '\\1 (BC)\\2')"
    elif kind.name == "interval":
        text = f"replace({text}, '+', '')"
    return f"CAST({text} AS {kind.duckdb}) AS {quoted(name)}"
