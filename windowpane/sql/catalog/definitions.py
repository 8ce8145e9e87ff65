"""CREATE and DROP: what they add to the catalog, the store and the maintenance of views, and how a session finds it again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

from sqlglot import exp

from windowpane.errors import MistakeError, SqlError, SqlNameError, UnsupportedSqlError, present
from windowpane.sql.bind.late_rows import LATE_ROWS, WATERMARK, late_rows_of
from windowpane.sql.bind.queries import QueryBinder
from windowpane.sql.catalog import made_by, views
from windowpane.sql.catalog.entries import (
    Catalog,
    IndexInfo,
    SinkInfo,
    TableInfo,
    ViewInfo,
    query_of_sink,
    read_by,
    replaced_by,
    sink_of_query,
)
from windowpane.sql.catalog.relations import PlainView, Relation, StoredColumn
from windowpane.sql.catalog.renaming import Edit, edited, followed_name, move_stored, own_name, read_names
from windowpane.sql.embedded import sinks, tables
from windowpane.sql.embedded.declared_tables import declared_columns, table_info
from windowpane.sql.embedded.file_sources import columns_of_files
from windowpane.sql.embedded.storage import Storage
from windowpane.sql.expressions.binder import name_of
from windowpane.sql.expressions.expr import quoted
from windowpane.sql.expressions.types import as_declared, declaration
from windowpane.sql.failures.malformed_rows import MALFORMED_COLUMNS, MalformedRows
from windowpane.sql.nodes import Node, Over, compile_plan, scanned
from windowpane.sql.optimize import planned
from windowpane.sql.parse.naming import check_relation
from windowpane.sql.parse.positions import Place, Text
from windowpane.sql.parse.reader import read_script
from windowpane.sql.parse.statements import CreateIndex, CreateSink, CreateTable, CreateView, Drop, Insert, Rename, Statement
from windowpane.sql.results import Result
from windowpane.sql.streaming.clock import Watermarks
from windowpane.sql.upkeep.deliveries import Deliveries
from windowpane.sql.upkeep.view_runner import ViewRunner
from windowpane.sql.values import zone
from windowpane.sql.windows.default_frames import DEFAULT_FRAME, ROWS, TIES, ties_sql, windows_with_ties
from windowpane.sql.windows.emit_on_close import emit_on_close

_INDEX_NOTICE = "An index has no effect here: views keep what their own operators need, and queries read whole columns."
STRICT_MODE = "streaming_expr_strict_mode"
"""The parameter that makes an expression that fails an error of its view; it is for views that are made while it is set."""
_USUAL = {DEFAULT_FRAME: ROWS, LATE_ROWS: WATERMARK, zone.TIME_ZONE: zone.UTC, STRICT_MODE: "false"}
"""The parameters that a definition keeps as they were when it was made, and their values where nothing is kept."""


class Definitions:
    """Runs CREATE and DROP. A definition is kept as its text, and read again when the store is opened."""

    def __init__(
        self,
        storage: Storage,
        catalog: Catalog,
        clock: Watermarks,
        runner: ViewRunner,
        deliveries: Deliveries,
        parameters: Mapping[str, str],
    ) -> None:
        self._storage, self._catalog, self._clock, self._runner = storage, catalog, clock, runner
        self._deliveries, self._parameters = deliveries, parameters
        self._made_with = dict[str, str]()
        self._told_of_ties = False

    def binder(self, text: Text, *, streaming: bool = False) -> QueryBinder:
        frame = self._setting(DEFAULT_FRAME)
        return QueryBinder(self._catalog, text, self._storage.constant, streaming=streaming, default_frame=frame)

    def _setting(self, name: str) -> str:
        """Return a parameter, or what it was when the definition was made that is read again."""
        return self._made_with.get(name, self._parameters[name])

    @property
    def is_strict(self) -> bool:
        """Whether an expression that fails is an error of its view."""
        return self._setting(STRICT_MODE) in ("true", "on", "1")

    def told_of_ties(self, windows: Iterable[Over]) -> str:
        """Return the notice of windows in which rows tie and that name no frame, once; ``""`` if there are none."""
        if self._told_of_ties or not any(True for _ in windows):
            return ""
        self._told_of_ties = True
        return TIES

    def ties_now(self, node: Node, by_default: Mapping[str, str]) -> Iterator[Over]:
        """Yield the windows of a query that name no frame and in which rows tie as they are stored now."""
        for window in windows_with_ties(node, by_default):
            if not self._storage.is_empty(ties_sql(window)):
                yield window

    def writer(self, text: Text) -> tables.TableWriter:
        return tables.TableWriter(self._storage, self._clock, self.binder(text), text)

    def flush(self) -> None:
        """Take in new files, and the changes of tables for the views."""
        self._runner.flush(lambda table: self.writer(Text(table.text)))

    def restore(self) -> None:
        for name, text in self._storage.run("SELECT name, text FROM windowpane.catalog ORDER BY position"):
            with self.made_as(name):
                self._define_again(text)

    @contextmanager
    def made_as(self, name: str) -> Iterator[None]:
        """Read a definition with the parameters that it was made with."""
        found = self._storage.run("SELECT setting, value FROM windowpane.settings WHERE name = ?", [name])
        around, self._made_with = self._made_with, {**_USUAL, **dict(found)}
        try:
            with zone.within(self._made_with[zone.TIME_ZONE]):
                yield
        finally:
            self._made_with = around

    def _define_again(self, text: str) -> None:
        statement = read_script(text)[0]
        if isinstance(statement, CreateTable):
            self._add_table(statement, Text(text), is_new=False)
        elif isinstance(statement, CreateView):
            self._add_view(statement, Text(text), is_new=False)
        elif isinstance(statement, CreateSink):
            self._add_sink(statement, Text(text), is_new=False)
        elif isinstance(statement, CreateIndex):
            self._add_index(statement, Text(text))

    def open(self) -> None:
        """Define again what the store holds, if this version made it."""
        self.restore()
        made_by.check(self._storage, self._catalog.tables(), self._catalog.views())

    def remember(self, name: str, text: str) -> None:
        last = self._storage.value("SELECT coalesce(max(position), 0) FROM windowpane.catalog")
        self._storage.run("INSERT INTO windowpane.catalog VALUES (?, ?, ?)", [last + 1, name, text])
        for setting, usual in _USUAL.items():
            if self._parameters[setting] != usual:
                self._storage.run("INSERT INTO windowpane.settings VALUES (?, ?, ?)", [name, setting, self._parameters[setting]])

    def _is_free(self, name: str, place: Place, *, guarded: bool) -> bool:
        kind = self._catalog.kind(name)
        if kind is not None and not guarded:
            raise place.error(SqlNameError, f"there is a {kind} {name!r} already. Drop it, or choose another name.")
        check_relation(name, self._catalog.entries, place)
        if sink_of_query(name) is not None or replaced_by(name) is not None:
            raise place.error(SqlNameError, f"the name {name!r} is windowpane's own. Choose another.")
        return kind is None

    def create_table(self, statement: CreateTable, text: Text) -> Result:
        if self._is_free(statement.name, statement.place, guarded=statement.if_not_exists):
            self._add_table(statement, text, is_new=True)
            lasting = self._lasting_text(statement)
            self.remember(statement.name, lasting)
            if not statement.columns:
                self._define_again(lasting)  # as it is found when the store is opened
        return Result("CREATE_SOURCE" if statement.is_source else "CREATE_TABLE")

    def _lasting_text(self, statement: CreateTable) -> str:
        """Return the definition of a table with its columns: the query and the files that told them may be gone later."""
        if statement.columns:
            return statement.definition
        info = self._catalog.entries[statement.name]
        if not isinstance(info, TableInfo):
            raise MistakeError("the table was just made")
        columns = ", ".join(f"{quoted(column.name)} {declaration(column.type)}" for column in info.relation.visible)
        if statement.query is None:
            return statement.with_columns(columns)
        return f"CREATE TABLE {quoted(statement.name)} ({columns}){' APPEND ONLY' if statement.append_only else ''}"

    def _add_table(self, statement: CreateTable, text: Text, *, is_new: bool) -> None:
        self._runner.check_source(statement.options, statement.place, is_new=is_new)
        columns = declared_columns(statement, text)
        bound = None
        if statement.query is not None:
            bound = self.binder(text).bind(statement.query)
            columns = columns or tuple(StoredColumn(column.name, as_declared(column.type)) for column in bound.outputs)
        columns = columns or columns_of_files(self._storage, statement.options["path"], statement.place)
        info = table_info(statement, columns, text, self._setting(LATE_ROWS))
        if is_new:
            tables.create(self._storage, info)
            self._runner.create_table(info)
        self._catalog.entries[statement.name] = info
        if bound is not None and statement.query is not None and is_new:
            self.writer(text).insert(Insert(statement.place, statement.text, statement.name, (), statement.query), info)

    def create_view(self, statement: CreateView, text: Text) -> Result:
        notice = ""
        if self._is_free(statement.name, statement.place, guarded=statement.if_not_exists):
            if statement.materialized:
                self.flush()
            notice = self._add_view(statement, text, is_new=True)
            self.remember(statement.name, statement.text)
        return Result("CREATE_MATERIALIZED_VIEW" if statement.materialized else "CREATE_VIEW", notice=notice)

    def _add_view(self, statement: CreateView, text: Text, *, is_new: bool) -> str:
        if not statement.materialized:
            binder = self.binder(text)
            bound = binder.bind(statement.query)
            if is_new:
                views.check_count(statement, bound, text)
            self._catalog.entries[statement.name] = PlainView(
                statement.name,
                statement.query,
                text.text,
                statement.text,
                statement.column_names,
                binder.names_read(),
                binder.default_frame,
            )
            return ""
        plan = self.plan(statement, text, is_new=is_new)
        self.add(statement.name, plan, statement.text, is_new=is_new)
        return self.told_of_ties(windows_with_ties(plan.node, plan.by_default)) if is_new else ""

    def add(self, name: str, plan: views.ViewPlan, text: str, *, is_new: bool) -> None:
        """Add a materialized view; a new one begins with the rows of what it reads."""
        job = self._runner.job(name, plan.node, strict=self.is_strict)
        info = ViewInfo(plan.relation, plan.node, plan.ids, text, scanned(plan.node), plan.reads, self.is_strict, job)
        if is_new:
            views.create(self._storage, plan)
            made_by.remember(self._storage, [info])
            self._runner.create(info)
        self._catalog.entries[name] = info

    def _late_rows(self, statement: CreateSink, text: Text) -> views.ViewPlan:
        """Return the plan of the rows that a table or a view is too late for, with the windows that they missed.

        Raises:
            SqlError: there is no such relation, or late rows are not kept for it, or judged in several places of it.
        """
        name, binder = statement.source or "", self.binder(text, streaming=True)
        entry = self._catalog.entries.get(name)
        query: exp.Expr = exp.select("*").from_(exp.Table(this=exp.to_identifier(name, quoted=True)))
        with self.made_as(name):
            if isinstance(entry, ViewInfo):
                made = read_script(entry.text)[0]
                if isinstance(made, CreateView):
                    query, binder = made.query, self.binder(Text(entry.text), streaming=True)
            found = late_rows_of(binder.bind(query).node, binder.ids)
        if not found:
            instead = (
                "SET late_rows = 'open_windows' before its tables are made, with a watermark, APPEND ONLY and without a key."
            )
            raise text.unsupported(None, f"LATE ROWS OF {name}, which keeps none,", instead)
        if len(found) > 1:
            instead = "Name a view with one of them, or a table."
            raise text.unsupported(None, f"LATE ROWS OF {name}, which judges them in {len(found)} places,", instead)
        hidden = CreateView(statement.place, statement.text, query_of_sink(statement.name), query, materialized=True)
        plan = views.view_plan(hidden, found[0], planned(found[0].node, binder.ids), text)
        return replace(plan, reads=frozenset({name}) | binder.names_read())

    def plan(self, statement: CreateView, text: Text, *, is_new: bool = True) -> views.ViewPlan:
        """Return the plan of a materialized view; one that exists already is not refused again."""
        binder = self.binder(text, streaming=True)
        bound = binder.bind(statement.query)
        node = planned(bound.node, binder.ids)
        if statement.on_window_close:
            node = emit_on_close(node, text, statement.query, binder.window_places, binder.ids)
        if is_new:
            views.check_streamable(node, binder, statement, text)
        plan = views.view_plan(statement, bound, node, text)
        return replace(plan, reads=binder.names_read(), by_default=binder.by_default)

    def create_index(self, statement: CreateIndex, text: Text) -> Result:
        """Run CREATE INDEX: its name is taken, nothing else changes."""
        if self._is_free(statement.name, statement.place, guarded=statement.if_not_exists):
            self._add_index(statement, text)
            self.remember(statement.name, statement.text)
        return Result("CREATE_INDEX", notice=_INDEX_NOTICE)

    def _add_index(self, statement: CreateIndex, text: Text) -> None:
        relation = self._catalog.find(statement.relation)
        if not isinstance(relation, Relation):
            raise text.name_error(None, f"there is no table or materialized view {statement.relation!r} to index.")
        names = [column.name for column in relation.visible]
        for name in statement.columns:
            if name not in names:
                raise text.name_error(None, f"{statement.relation!r} has no column {name!r}; it has {', '.join(names)}.")
        index = IndexInfo(statement.name, statement.relation, statement.columns, statement.text)
        self._catalog.entries[statement.name] = index

    def create_sink(self, statement: CreateSink, text: Text) -> Result:
        notice = ""
        if self._is_free(statement.name, statement.place, guarded=statement.if_not_exists):
            if statement.rows != "MALFORMED":  # what a flush finds malformed before the sink is there, it does not get
                self.flush()
            notice = self._add_sink(statement, text, is_new=True)
            self.remember(statement.name, statement.text)
        return Result("CREATE_SINK", notice=notice)

    def _add_sink(self, statement: CreateSink, text: Text, *, is_new: bool) -> str:
        place, source, notice = statement.place, statement.source, ""
        if statement.rows == "MALFORMED":
            source = self._add_malformed(statement, is_new=is_new)
        elif statement.rows == "LATE":
            source = query_of_sink(statement.name)
            self.add(source, self._late_rows(statement, text), statement.text, is_new=is_new)
        elif statement.query is not None:
            source = query_of_sink(statement.name)
            notice = self._add_view(view_of(statement), text, is_new=is_new)
        if source is None:
            raise MistakeError("a sink has a relation or a query")
        relation = self._catalog.find(source)
        if relation is None or isinstance(relation, PlainView):
            raise place.error(SqlNameError, f"there is no table or materialized view {source!r} to sink from.")
        sinks.check_options(statement.name, statement.options, relation, place)
        followed = (statement.source or "") if statement.rows == "MALFORMED" else ""
        info = SinkInfo(statement.name, source, statement.options, statement.text, followed)
        self._deliveries.open(info, is_new=is_new)
        self._catalog.entries[statement.name] = info
        return notice

    def _add_malformed(self, statement: CreateSink, *, is_new: bool) -> str:
        """Add the table of a sink that the malformed rows of a source go to, and return its name.

        Raises:
            SqlError: there is no such source, or none of its rows can be malformed here.
        """
        entry, place, name = self._catalog.entries.get(statement.source or ""), statement.place, query_of_sink(statement.name)
        if not isinstance(entry, TableInfo) or not entry.options:
            raise place.error(SqlNameError, f"there is no source {statement.source!r} with malformed rows to sink from.")
        text = f"CREATE TABLE {quoted(name)} ({MALFORMED_COLUMNS}) APPEND ONLY"
        made = read_script(text)[0]
        if not isinstance(made, CreateTable):
            raise MistakeError("the text is that of a table")
        self._add_table(made, Text(text), is_new=is_new)
        if is_new:
            MalformedRows(self._storage).send(entry.relation.name, name)
        return name

    def check_kind(self, kind: str, name: str, place: Place) -> None:
        """Refuse a name that is of no such entry."""
        known = self._catalog.kind(name)
        if known != kind:
            found = "nothing of that name" if known is None else f"it is a {known}"
            raise place.error(SqlNameError, f"there is no {kind} {name!r}: {found}.")

    def redefine(self, name: str, text: str, readers: Iterable[str]) -> None:
        """Give an entry another definition, behind all others, and those that read it behind it; all are read again."""
        self._forget(name)
        self.remember(name, text)
        for reader in readers:
            last = self._storage.value("SELECT max(position) FROM windowpane.catalog")
            self._storage.run("UPDATE windowpane.catalog SET position = ? WHERE name = ?", [last + 1, reader])
        self._catalog.entries = {}
        self.restore()

    def rename(self, statement: Rename, text: Text) -> Result:
        """Run ALTER ... RENAME TO: texts and stored names are edited, and all definitions read again, as at a start."""
        self.check_kind(statement.kind, statement.name, statement.place)
        self._is_free(statement.new_name, statement.place, guarded=False)
        self._runner.check_rename(statement.name, statement.place)
        old, new = statement.name, statement.new_name
        plans = {view.relation.name: compile_plan(view.node) for view in self._catalog.views()}
        for name, kept in self._storage.run("SELECT name, text FROM windowpane.catalog"):
            with self.made_as(name):
                edits = self._edits(kept, name, old, new)
            if edits:
                self._storage.run("UPDATE windowpane.catalog SET text = ? WHERE name = ?", [edited(kept, edits), name])
        move_stored(self._storage, old, new)
        move_stored(self._storage, query_of_sink(old), query_of_sink(new))
        self._catalog.entries = {}
        try:
            self.restore()
            self._check_same_plans(plans, old, new)
        except SqlError as error:
            message = f"renaming {old!r} is not supported: a definition that reads it would mean something else ({error}). "
            message += "DROP that one, rename, and CREATE it anew."
            raise statement.place.error(UnsupportedSqlError, message) from error
        made_by.forget(self._storage, old)
        made_by.remember(self._storage, self._catalog.views())
        self._runner.renamed(old, new)
        return Result(f"ALTER_{statement.kind.upper().replace(' ', '_')}")

    def _edits(self, text: str, name: str, old: str, new: str) -> list[Edit]:
        statement, edits = read_script(text)[0], []
        if name == old:
            edits.append(own_name(text, new))
        if isinstance(statement, CreateSink) and statement.source == old:
            edits.append(followed_name(text, new))
        if isinstance(statement, CreateIndex) and statement.relation == old:
            edits.append(followed_name(text, new))
        if isinstance(statement, CreateView | CreateSink) and statement.query is not None:
            materialized = isinstance(statement, CreateSink) or statement.materialized
            binder = self.binder(Text(text), streaming=materialized)
            binder.bind(statement.query)
            edits += read_names([read for read in binder.reads if name_of(read.this) == old], statement.query, new)
        return edits

    def _check_same_plans(self, plans: Mapping[str, str], old: str, new: str) -> None:
        storages = f"main.{quoted(old)}", f"main.{quoted(new)}"
        for view in self._catalog.views():
            name = view.relation.name
            before = plans[old if name == new else query_of_sink(old) if name == query_of_sink(new) else name]
            if compile_plan(view.node) != before.replace(*storages):
                raise SqlNameError(f"the plan of {name!r} would change", 1, 1)

    def drop(self, statement: Drop, text: Text) -> Result:
        kind = self._catalog.kind(statement.name)
        tag = Result(f"DROP_{statement.kind.upper().replace(' ', '_')}")
        if kind is None and statement.if_exists:
            return tag
        place = statement.place
        self.check_kind(statement.kind, statement.name, place)
        for dependent in self.dependents(statement.name):
            if not statement.cascade:
                message = f"{dependent!r} reads {statement.name!r}. Drop it first, or write CASCADE."
                raise place.error(UnsupportedSqlError, message)
            self.drop(Drop(place, "", self._catalog.kind(dependent) or "", dependent, True, True), text)
        if statement.kind == "materialized view":
            self._deliveries.check_drop(statement.name)
        self.remove(statement.name)
        return tag

    def _view_behind(self, name: str) -> str | None:
        entry = self._catalog.entries.get(name)
        owned = isinstance(entry, SinkInfo) and entry.source == query_of_sink(name)
        return query_of_sink(name) if owned else None

    def dependents(self, name: str) -> list[str]:
        """Return what reads a relation; a sink for the view behind it."""
        found = []
        for other, entry in self._catalog.entries.items():
            if name in read_by(entry) and other != name and not isinstance(entry, IndexInfo):
                found.append(sink_of_query(other) or other)
        return found

    def remove(self, name: str) -> None:
        behind = self._view_behind(name)
        entry = self._catalog.entries.pop(name)
        for index in self._catalog.indexes(name):
            self.remove(index.name)
        if isinstance(entry, TableInfo):
            tables.drop(self._storage, entry)
            self._runner.drop_table(entry)
            self._clock.drop(name)
        elif isinstance(entry, SinkInfo):
            self._deliveries.drop(name)
        elif isinstance(entry, ViewInfo):
            self._runner.drop(entry)
            self._deliveries.drop_view(entry)
            made_by.forget(self._storage, name)
            self._storage.run(f"DROP TABLE {entry.relation.storage}")
        self._forget(name)
        if behind is not None:
            self.remove(behind)

    def _forget(self, name: str) -> None:
        for table in ("catalog", "settings"):
            self._storage.run(f"DELETE FROM windowpane.{table} WHERE name = ?", [name])


def view_of(statement: Statement) -> CreateView:
    """Return the view that a statement makes, which may be that of a sink with a query."""
    if isinstance(statement, CreateView):
        return statement
    if not isinstance(statement, CreateSink):
        raise MistakeError("the statement makes a view")
    name, query, closes = query_of_sink(statement.name), present(statement.query, "the sink has one"), statement.on_window_close
    return CreateView(statement.place, statement.text, name, query, materialized=True, on_window_close=closes)
