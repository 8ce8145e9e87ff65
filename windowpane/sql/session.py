"""The embedded engine: SQL statements run against tables and materialized views in one DuckDB database."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pyarrow as pa

from windowpane.errors import SqlNameError, UnsupportedSqlError
from windowpane.sql import catalog_queries, file_sources, outbox, tables, views
from windowpane.sql.catalog import Catalog, SinkInfo, TableInfo, ViewInfo
from windowpane.sql.closing import emit_on_close
from windowpane.sql.expr import quoted
from windowpane.sql.nodes import Node, compile_plan, explain_plan
from windowpane.sql.places import Place, Text
from windowpane.sql.queries import BoundQuery, QueryBinder
from windowpane.sql.reader import read_script, read_statement, split
from windowpane.sql.relations import PlainView, StoredColumn
from windowpane.sql.results import Result
from windowpane.sql.statements import (
    CreateSink,
    CreateTable,
    CreateView,
    Delete,
    Describe,
    Drop,
    Explain,
    Flush,
    Insert,
    Query,
    SetParameter,
    Show,
    Statement,
    Update,
)
from windowpane.sql.storage import Storage
from windowpane.sql.streaming.clock import Watermarks
from windowpane.sql.streaming.deltas import WEIGHT, apply_to, netted, with_words
from windowpane.sql.streaming.job import Job
from windowpane.sql.types import VARCHAR


class Session:
    """Tables, materialized views and the statements on them.

    Changes of tables are kept at once and reach the views with the next ``FLUSH`` (or ``WAIT``); ``SET rw_implicit_flush = true``
    flushes after every change. Each statement and each flush is one transaction of the store.

    Args:
        store: path of a DuckDB file, created if it is not there, or ``":memory:"``.

    Example:
        >>> session = Session(":memory:")
        >>> _ = session.run("CREATE TABLE t (k int, v int); CREATE MATERIALIZED VIEW mv AS SELECT k, sum(v) FROM t GROUP BY k")
        >>> _ = session.run("INSERT INTO t VALUES (1, 2), (1, 3); FLUSH")
        >>> session.query("SELECT * FROM mv").rows()
        [(1, 5)]
    """

    def __init__(self, store: str = ":memory:") -> None:
        """Open the store, with the tables and views that are in it."""
        self._storage = Storage(store)
        self._catalog = Catalog()
        self._clock = Watermarks(self._storage)
        self._parameters: dict[str, str] = {"rw_implicit_flush": "false"}
        self._changes: dict[str, pa.Table] = {}
        self._outboxes: dict[str, outbox.Outbox] = {}
        self._restore()

    def close(self) -> None:
        """Close the store."""
        self._storage.close()

    def __enter__(self) -> Session:
        """Return the session itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the store."""
        self.close()

    # --- statements ------------------------------------------------------------------------------------

    def run(self, text: str) -> list[Result]:
        """Run the statements of a script, and return the outcome of each.

        Raises:
            SqlError: a statement is refused; those before it were run.
            SqlRunError: a statement failed; nothing of it was kept.
        """
        return list(self.steps(text))

    def steps(self, text: str) -> Iterator[Result]:
        """Run the statements of a script one by one, yielding the outcome of each as it is there."""
        for cursor in split(text):
            yield self.execute(read_statement(cursor), Text(text))

    def query(self, text: str) -> Result:
        """Run one statement and return its outcome."""
        results = self.run(text)
        return results[-1] if results else Result("")

    def changelog(self, view: str) -> pa.Table:
        """Return what the last flush (or its creation) changed in a materialized view.

        The columns are the view's, and ``_change_type``: insert, update_preimage, update_postimage, delete. A row appears at
        most once (an update as its two halves), and only if a value of it changed.
        """
        entry = self._catalog.entries.get(view)
        if not isinstance(entry, ViewInfo):
            raise SqlNameError(f"there is no materialized view {view!r}.", 1, 1)
        return self._changes[view]

    def relations(self) -> list[str]:
        """Return the names that can stand in FROM."""
        return self._catalog.names()

    def columns(self, relation: str) -> list[str]:
        """Return the names of a relation's columns."""
        found = self._catalog.find(relation)
        return [column.name for column in found.visible] if found is not None and not isinstance(found, PlainView) else []

    def execute(self, statement: Statement, text: Text) -> Result:
        """Run one statement that was read already; ``text`` is what it stands in."""
        runners: Mapping[type[Statement], Callable[[Any, Text], Result]] = {
            CreateTable: self._create_table,
            CreateView: self._create_view,
            CreateSink: self._create_sink,
            Drop: self._drop,
            Insert: self._insert,
            Update: self._update,
            Delete: self._delete,
            Query: self._select,
            Explain: self._explain,
            Show: self._show,
            Describe: self._describe,
            Flush: self._flush_statement,
            SetParameter: self._set,
        }
        try:
            with self._storage.transaction():
                result = runners[type(statement)](statement, text)
        except BaseException:
            self._forget()
            raise
        self._deliver()
        return result

    def _deliver(self) -> None:
        for box in self._outboxes.values():
            box.deliver()

    def _forget(self) -> None:
        """Drop what was only held in memory of a transaction that was rolled back."""
        self._clock.reload()
        for view in self._catalog.views():
            view.job.forget()

    # --- definitions -----------------------------------------------------------------------------------

    def _restore(self) -> None:
        rows = self._storage.run("SELECT text FROM windowpane.catalog ORDER BY position").fetchall()
        for (text,) in rows:
            statement = read_script(text)[0]
            if isinstance(statement, CreateTable):
                self._add_table(statement, Text(text), restore=True)
            elif isinstance(statement, CreateView):
                self._add_view(statement, Text(text), restore=True)
            elif isinstance(statement, CreateSink):
                self._add_sink(statement, Text(text), restore=True)
        self._deliver()

    def _remember(self, name: str, text: str) -> None:
        last = self._storage.value("SELECT coalesce(max(position), 0) FROM windowpane.catalog")
        self._storage.run("INSERT INTO windowpane.catalog VALUES (?, ?, ?)", [last + 1, name, text])

    def _is_free(self, name: str, place: Place, *, guarded: bool) -> bool:
        kind = self._catalog.kind(name)
        if kind is not None and not guarded:
            raise SqlNameError(f"there is a {kind} {name!r} already. Drop it, or choose another name.", place.line, place.column)
        return kind is None

    def _binder(self, text: Text, *, streaming: bool = False) -> QueryBinder:
        return QueryBinder(self._catalog, text, self._storage.constant, streaming=streaming)

    def _create_table(self, statement: CreateTable, text: Text) -> Result:
        if self._is_free(statement.name, statement.place, guarded=statement.if_not_exists):
            self._add_table(statement, text)
            self._remember(statement.name, statement.text)
        return Result("CREATE_SOURCE" if statement.is_source else "CREATE_TABLE")

    def _add_table(self, statement: CreateTable, text: Text, *, restore: bool = False) -> None:
        columns = tuple(StoredColumn(column.name, column.type, not_null=column.not_null) for column in statement.columns)
        bound = None
        if statement.query is not None:
            bound = self._binder(text).bind(statement.query)
            columns = columns or tuple(StoredColumn(column.name, column.type) for column in bound.outputs)
        file_sources.check_options(statement.options, statement.place)
        info = tables.table_info(statement, columns, text)
        if not restore:
            tables.create(self._storage, info)
        self._catalog.entries[statement.name] = info
        if bound is not None and statement.query is not None and not restore:
            self._writer(text).insert(Insert(statement.place, statement.text, statement.name, (), statement.query), info)

    def _create_view(self, statement: CreateView, text: Text) -> Result:
        if self._is_free(statement.name, statement.place, guarded=statement.if_not_exists):
            if statement.materialized:
                self._flush()
            self._add_view(statement, text)
            self._remember(statement.name, statement.text)
        return Result("CREATE_MATERIALIZED_VIEW" if statement.materialized else "CREATE_VIEW")

    def _add_view(self, statement: CreateView, text: Text, *, restore: bool = False) -> None:
        if not statement.materialized:
            self._binder(text).bind(statement.query)
            view = PlainView(statement.name, statement.query, text.text, statement.column_names)
            self._catalog.entries[statement.name] = view
            return
        plan = self._plan(statement, text)
        job = Job(statement.name, plan.node, self._storage, self._clock)
        info = ViewInfo(plan.relation, job, plan.ids, statement.text, frozenset(job.relations))
        self._changes[statement.name] = pa.table({})
        if not restore:
            views.create(self._storage, plan)
            self._fill(info)
        self._catalog.entries[statement.name] = info

    def _plan(self, statement: CreateView, text: Text) -> views.ViewPlan:
        binder = self._binder(text, streaming=True)
        bound = binder.bind(statement.query)
        node: Node = bound.node
        if statement.on_window_close:
            node = emit_on_close(node, text, statement.query, binder.window_places)
        views.check_streamable(node, binder, statement, text)
        return views.view_plan(statement, bound, node, text)

    def _fill(self, info: ViewInfo) -> None:
        """Run a new view on what its relations hold."""
        weight = quoted(WEIGHT)
        changes = {}
        for name in info.reads:
            found = self._catalog.find(name)
            assert found is not None
            assert not isinstance(found, PlainView)
            changes[name] = self._storage.temporary(f"SELECT *, 1 AS {weight} FROM {found.storage}")
        self._advance(info, changes, initial=True)

    def _create_sink(self, statement: CreateSink, text: Text) -> Result:
        if self._is_free(statement.name, statement.place, guarded=statement.if_not_exists):
            self._flush()
            self._add_sink(statement, text)
            self._remember(statement.name, statement.text)
        return Result("CREATE_SINK")

    def _add_sink(self, statement: CreateSink, text: Text, *, restore: bool = False) -> None:
        place, source = statement.place, statement.source
        if source is None or statement.query is not None:
            message = "CREATE SINK ... AS query is not supported. Make the query a materialized view, and the sink FROM it."
            raise UnsupportedSqlError(message, place.line, place.column)
        relation = self._catalog.find(source)
        if relation is None or isinstance(relation, PlainView):
            raise SqlNameError(f"there is no table or materialized view {source!r} to sink from.", place.line, place.column)
        outbox.check_options(statement.name, statement.options, relation, place)
        info = SinkInfo(statement.name, source, statement.options, statement.text)
        box = outbox.Outbox(self._storage, info, relation)
        if not restore:
            box.create()
            rows = self._storage.arrow(f"SELECT *, 1 AS {quoted(WEIGHT)} FROM {relation.storage}")
            box.put(with_words(rows, relation.key), self._next_batch())
        self._catalog.entries[statement.name] = info
        self._outboxes[statement.name] = box

    def _next_batch(self) -> int:
        """Return the number of the next batch for sinks."""
        number = int(self._storage.value("SELECT coalesce(max(value), 0) + 1 FROM windowpane.counters WHERE name = '/batch'"))
        self._storage.run("DELETE FROM windowpane.counters WHERE name = '/batch'")
        self._storage.run("INSERT INTO windowpane.counters VALUES ('/batch', ?)", [number])
        return number

    def _drop(self, statement: Drop, text: Text) -> Result:
        kind = self._catalog.kind(statement.name)
        tag = Result(f"DROP_{statement.kind.upper().replace(' ', '_')}")
        if kind is None and statement.if_exists:
            return tag
        place = statement.place
        if kind != statement.kind:
            found = "nothing of that name" if kind is None else f"it is a {kind}"
            raise SqlNameError(f"there is no {statement.kind} {statement.name!r}: {found}.", place.line, place.column)
        for dependent in self._dependents(statement.name):
            if not statement.cascade:
                message = f"{dependent!r} reads {statement.name!r}. Drop it first, or write CASCADE."
                raise UnsupportedSqlError(message, place.line, place.column)
            self._drop(Drop(place, "", self._catalog.kind(dependent) or "", dependent, True, True), text)
        self._remove(statement.name)
        return tag

    def _dependents(self, name: str) -> list[str]:
        found = []
        for other, entry in self._catalog.entries.items():
            reads = entry.reads if isinstance(entry, ViewInfo) else frozenset[str]()
            if isinstance(entry, PlainView):
                reads = frozenset(catalog_queries.tables_in(entry.query))
            elif isinstance(entry, SinkInfo):
                reads = frozenset({entry.source})
            if name in reads and other != name:
                found.append(other)
        return found

    def _remove(self, name: str) -> None:
        entry = self._catalog.entries.pop(name)
        if isinstance(entry, TableInfo):
            tables.drop(self._storage, entry)
            self._clock.drop(name)
        elif isinstance(entry, SinkInfo):
            self._outboxes.pop(name).drop()
        elif isinstance(entry, ViewInfo):
            entry.job.drop()
            self._storage.run(f"DROP TABLE {entry.relation.storage}")
        self._storage.run("DELETE FROM windowpane.catalog WHERE name = ?", [name])

    # --- changes ---------------------------------------------------------------------------------------

    def _writer(self, text: Text) -> tables.TableWriter:
        return tables.TableWriter(self._storage, self._clock, self._binder(text), text)

    def _table(self, name: str, place: Place) -> TableInfo:
        entry = self._catalog.entries.get(name)
        if isinstance(entry, TableInfo):
            return entry
        kind = self._catalog.kind(name)
        found = "there is nothing of that name" if kind is None else f"it is a {kind}, and only tables are changed"
        raise SqlNameError(f"there is no table {name!r}: {found}.", place.line, place.column)

    def _insert(self, statement: Insert, text: Text) -> Result:
        count = self._writer(text).insert(statement, self._table(statement.table, statement.place))
        return self._changed(f"INSERT 0 {count}")

    def _update(self, statement: Update, text: Text) -> Result:
        info = self._table(statement.table, statement.place)
        tables.refuse_append_only(info, "UPDATE", statement.place.line, statement.place.column)
        return self._changed(f"UPDATE {self._writer(text).update(statement, info)}")

    def _delete(self, statement: Delete, text: Text) -> Result:
        info = self._table(statement.table, statement.place)
        tables.refuse_append_only(info, "DELETE", statement.place.line, statement.place.column)
        return self._changed(f"DELETE {self._writer(text).delete(statement, info)}")

    def _changed(self, tag: str) -> Result:
        if self._parameters["rw_implicit_flush"] in ("true", "on", "1"):
            self._flush()
        return Result(tag)

    def _flush_statement(self, statement: Flush, text: Text) -> Result:
        self._flush()
        return Result("FLUSH")

    def _flush(self) -> None:
        """Bring every view up to date with its tables."""
        changes: dict[str, str] = {}
        for table in self._catalog.tables():
            file_sources.take_new_files(self._storage, table, self._writer(Text(table.text)))
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

    def _fill_outboxes(self, changes: Mapping[str, str]) -> None:
        sinks = [sink for sink in self._catalog.sinks() if sink.source in changes]
        number = self._next_batch() if sinks else 0
        for sink in sinks:
            found = self._catalog.find(sink.source)
            assert found is not None
            assert not isinstance(found, PlainView)
            rows = self._storage.arrow(f"SELECT * FROM {changes[sink.source]}")
            self._outboxes[sink.name].put(with_words(rows, found.key), number)

    def _advance(self, view: ViewInfo, changes: Mapping[str, str], *, initial: bool = False) -> str | None:
        """Run the job of a view on changes, keep what it gives, and return that in stored names."""
        relation = view.relation
        columns = [column.name for column in relation.columns]
        self._storage.run("SET error_on_division_by_zero = false")
        delta = view.job.run(changes, initial=initial)
        self._storage.run("SET error_on_division_by_zero = true")
        empty = self._storage.arrow(f"SELECT *, 1 AS {quoted(WEIGHT)} FROM {relation.storage} LIMIT 0")
        named = None if delta is None else netted(self._storage, views.in_stored_names(view.ids, delta, WEIGHT), columns)
        if named is not None:
            apply_to(self._storage, relation.storage, named, columns, relation.key)
        raw = empty if named is None else self._storage.arrow(f"SELECT * FROM {named}")
        words = with_words(raw, relation.key)
        self._changes[relation.name] = words.drop_columns([column.name for column in relation.columns if column.hidden])
        return named

    # --- questions -------------------------------------------------------------------------------------

    def _select(self, statement: Query, text: Text) -> Result:
        if statement.on_window_close:
            place = statement.place
            message = "EMIT ON WINDOW CLOSE in a SELECT is not supported. CREATE MATERIALIZED VIEW ... EMIT ON WINDOW CLOSE is."
            raise UnsupportedSqlError(message, place.line, place.column)
        bound = self._binder(text).bind(statement.query)
        return self._answer(bound)

    def _answer(self, bound: BoundQuery) -> Result:
        items = ", ".join(f"{quoted(column.id)} AS c{index}" for index, column in enumerate(bound.outputs))
        keys = "".join(f", {quoted(item.column)} AS o{index}" for index, item in enumerate(bound.order))
        order = f" ORDER BY {', '.join(item.sql for item in bound.order)}" if bound.order else ""
        table = self._storage.arrow(f"SELECT {items}{keys} FROM (SELECT * FROM ({compile_plan(bound.node)}){order})")
        names = tuple(column.name for column in bound.outputs)
        types = tuple(column.type for column in bound.outputs)
        return Result(f"SELECT {table.num_rows}", names, types, table, True, len(bound.order))

    def _explain(self, statement: Explain, text: Text) -> Result:
        inner = statement.statement
        if isinstance(inner, CreateView) and inner.materialized:
            lines = explain_plan(self._plan(inner, text).node)
        elif isinstance(inner, Query | CreateView):
            lines = explain_plan(self._binder(text).bind(inner.query).node)
        else:
            place = statement.place
            message = "EXPLAIN of this statement is not supported. EXPLAIN of a query or a view is."
            raise UnsupportedSqlError(message, place.line, place.column)
        return _lines("QUERY PLAN", lines)

    def _show(self, statement: Show, text: Text) -> Result:
        found = catalog_queries.show(self._catalog, self._parameters, statement)
        return _columns(found)

    def _describe(self, statement: Describe, text: Text) -> Result:
        return _columns(catalog_queries.describe(self._catalog, statement.name, statement.place, self._binder(text)))

    def _set(self, statement: SetParameter, text: Text) -> Result:
        self._parameters[statement.name] = statement.value.lower()
        return Result("SET_VARIABLE")


def _lines(name: str, lines: list[str]) -> Result:
    return _columns({name: list(lines)})


def _columns(found: Mapping[str, list[str]]) -> Result:
    table = pa.table({f"c{index}": pa.array(values, pa.string()) for index, values in enumerate(found.values())})
    return Result(f"SELECT {table.num_rows}", tuple(found), (VARCHAR,) * len(found), table, True)
