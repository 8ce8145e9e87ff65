"""A session: SQL statements run against tables and materialized views in one DuckDB database, with Spark or without."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import duckdb
import pyarrow as pa

from windowpane.errors import (
    MistakeError,
    SparkGoneError,
    SqlNameError,
    SqlTypeError,
    UnexpectedError,
    UnsupportedSqlError,
    WindowpaneError,
)
from windowpane.guidance import Guided
from windowpane.sql.bind.bound_query import BoundQuery
from windowpane.sql.bind.late_rows import LATE_ROWS, OPEN_WINDOWS, WATERMARK
from windowpane.sql.bind.scope import Column
from windowpane.sql.catalog import questions
from windowpane.sql.catalog.definitions import STRICT_MODE, Definitions
from windowpane.sql.catalog.entries import Catalog, TableInfo, ViewInfo, beside, query_of_sink, shown_name
from windowpane.sql.catalog.relations import PlainView
from windowpane.sql.catalog.replacing import Replacing
from windowpane.sql.embedded import tables
from windowpane.sql.embedded.postgres_views import ViewTables
from windowpane.sql.embedded.state_file import Server, opened
from windowpane.sql.embedded.storage import Storage
from windowpane.sql.expressions.expr import MismatchError, quoted
from windowpane.sql.expressions.types import BIGINT, INTERVAL, TIMESTAMPTZ, VARCHAR, SqlType
from windowpane.sql.failures.bad_values import BadValues
from windowpane.sql.failures.duck_words import types_without_meaning
from windowpane.sql.nodes import Node, explain_plan
from windowpane.sql.parse.byte_sizes import read_size
from windowpane.sql.parse.positions import Place, Text
from windowpane.sql.parse.reader import read_statement, split
from windowpane.sql.parse.statements import (
    CreateIndex,
    CreateSink,
    CreateTable,
    CreateView,
    Delete,
    Describe,
    Drop,
    Explain,
    ExplainAnalyze,
    Flush,
    Insert,
    Query,
    Rename,
    SetParameter,
    Show,
    Statement,
    Update,
)
from windowpane.sql.results import Result
from windowpane.sql.streaming.clock import Watermarks
from windowpane.sql.streaming.matching import matched
from windowpane.sql.upkeep.deliveries import Deliveries
from windowpane.sql.upkeep.embedded_runner import EmbeddedRunner
from windowpane.sql.upkeep.view_runner import ViewRunner
from windowpane.sql.values import zone
from windowpane.sql.windows.continuous import refuse_pipeline
from windowpane.sql.windows.default_frames import DEFAULT_FRAME, RANGE, ROWS, explained

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")

_CHOICES = {
    DEFAULT_FRAME: {ROWS: "RisingWave", RANGE: "PostgreSQL and Flink"},
    LATE_ROWS: {WATERMARK: "RisingWave", OPEN_WINDOWS: "Flink and Arroyo"},
}
"""The values that a parameter can have, and who has them."""
MOST_BYTES = "max_result_size"
"""The parameter for the largest result of a query that is returned as one table."""


class Session(Guided):
    """Tables, materialized views and the statements on them.

    Changes of tables are kept at once and reach the views with the next ``FLUSH`` (or ``WAIT``); ``SET rw_implicit_flush = true``
    flushes after every change.

    Without Spark a session runs views itself: each statement and each flush is one transaction of the store. With Spark each view
    is a streaming query with a checkpoint in a folder beside the store, and a flush is one batch of each query that has something
    new. Results are the same.

    With a PostgreSQL server as the store, every materialized view has a table there, brought up to date after each flush, exactly
    once. Tables, the state of operators and the catalog are kept in a DuckDB file, ``state``, and queries read it.

    Args:
        spark: a SparkSession, classic or of Spark Connect, ``None`` to run without Spark. A string in its place is the store.
        store: path of a DuckDB file, created if it does not exist, ``":memory:"``, or the ``postgresql://`` URL of a database.
        state: with a URL, the DuckDB file beside it; ``None`` means ``<database>.state.duckdb`` in the working directory.
        clock: returns ``now()``, a time with a zone, at each statement and each flush. ``None`` is the machine's clock.

    Raises:
        UnsupportedStoreError: the store cannot be opened in this mode.
        MisplacedStateError: the views of this database belong to another state, or the state to another database.
        StoreError: the server cannot be reached, or another process has the file open.

    Example:
        >>> session = Session(store=":memory:")
        >>> _ = session.run("CREATE TABLE t (k int, v int); CREATE MATERIALIZED VIEW mv AS SELECT k, sum(v) FROM t GROUP BY k")
        >>> _ = session.run("INSERT INTO t VALUES (1, 2), (1, 3); FLUSH")
        >>> session.query("SELECT * FROM mv").rows()
        [(1, 5)]
    """

    def __init__(
        self,
        spark: SparkSession | str | None = None,
        store: str = ":memory:",
        state: str | None = None,
        *,
        clock: Callable[[], datetime] | None = None,
    ) -> None:
        """Open the store, with the tables and views that are in it."""
        if isinstance(spark, str):
            store, spark = spark, None
        self._now = clock
        self._storage, server = opened(store, state)
        try:
            with SparkGoneError.instead():
                self._take_up(spark, f"Session(store={store!r})", server)
        except BaseException:
            self._storage.close()
            raise

    def _take_up(self, spark: SparkSession | None, statement: str, server: Server | None) -> None:
        view_tables = None if server is None else ViewTables(self._storage, server)
        self._catalog = Catalog()
        self._clock = Watermarks(self._storage)
        self._parameters: dict[str, str] = {
            "rw_implicit_flush": "false",
            zone.TIME_ZONE: zone.UTC,
            STRICT_MODE: "false",
            DEFAULT_FRAME: ROWS,
            LATE_ROWS: WATERMARK,
            MOST_BYTES: "1GB",
        }
        self._bad_values = BadValues(self._storage)
        deliveries = Deliveries(self._storage, self._catalog, view_tables)
        try:
            self._runner = self._chosen_runner(spark, deliveries)
        except BaseException:
            deliveries.close()
            self._storage.close()
            raise
        self._definitions = Definitions(self._storage, self._catalog, self._clock, self._runner, deliveries, self._parameters)
        self._replacing = Replacing(self._definitions, self._storage, self._catalog, self._runner, deliveries)
        try:
            with _reported(statement):
                self._replacing.open()
                self._definitions.open()
                self._runner.open()
        except BaseException:
            with suppress(Exception):  # what could not be opened may not close either
                self._runner.close()
            raise

    def _chosen_runner(self, spark: SparkSession | None, deliveries: Deliveries) -> ViewRunner:
        shared = self._storage, self._catalog, self._clock, deliveries, self._bad_values
        if spark is None:
            return EmbeddedRunner(*shared)
        from windowpane.sql.on_spark.spark_runner import SparkRunner

        return SparkRunner(spark, *shared, self._parameters)

    def close(self) -> None:
        """Stop the queries of views, if there are any, and close the store."""
        try:
            self._runner.close()
        finally:
            self._storage.close()

    def __enter__(self) -> Session:
        """Return the session itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the session."""
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
        """Run the statements of a script one by one, yielding the outcome of each as soon as it is known.

        Views that are made one behind the other get their first rows together: on Spark their queries start side by side.
        """
        return self._outcomes(text, None)

    def stream(self, text: str, rows: int = 10_000) -> Generator[Result]:
        """Run the statements of a script one by one, and yield the rows of queries in parts, as they are computed.

        A SELECT is read no further than the parts are taken, and its result may have any size. It shows the rows that were stored
        when it began; other statements may run between its parts. A failure in the middle is raised after the parts before it.

        Args:
            text: the script.
            rows: how many rows a part has at most.

        Yields:
            the outcome of each statement; of a query its parts, ``more`` true in all but the last.

        Example:
            >>> session = Session()
            >>> parts = session.stream("SELECT generate_series(1, 1000000000) AS n", rows=3)
            >>> next(parts).rows()
            [(1,), (2,), (3,)]
            >>> parts.close()
        """
        return self._outcomes(text, rows)

    def _outcomes(self, text: str, rows: int | None) -> Generator[Result]:
        made: list[tuple[CreateView, Result]] = []  # views that wait for their first rows

        def filled() -> list[Result]:
            found, made[:] = made[:], []
            if found:
                with _reported(found[0][0].text, found[0][0].place):
                    self._deliver([statement for statement, _ in found])
            return [result for _, result in found]

        try:
            for cursor in split(text):
                place = cursor.place  # where the statement begins: reading moves the cursor to its end
                with _reported(cursor.text, place):
                    statement = read_statement(cursor)
                    if isinstance(statement, CreateView) and not self._replaces(statement):
                        made.append((statement, self._done(statement, Text(text))))
                        continue
                yield from filled()
                with _reported(cursor.text, place):
                    if isinstance(statement, Query) and rows is not None:
                        yield from self._parts(statement, Text(text), rows)
                        continue
                    result = self._execute(statement, Text(text))
                yield result
        except Exception:
            filled()  # the statements before the one that failed were run
            raise
        yield from filled()

    def query(self, text: str) -> Result:
        """Run one statement and return its outcome.

        Raises:
            ResultSizeError: its rows have more bytes than ``max_result_size``; ``stream`` reads any number of them.
        """
        results = self.run(text)
        return results[-1] if results else Result("")

    def changelog(self, view: str) -> pa.Table:
        """Return what the last flush (or its creation) changed in a materialized view.

        The columns are the view's, and ``_change_type``: insert, update_preimage, update_postimage, delete. A row appears at
        most once (an update as its two halves), and only if a value of it changed.

        Raises:
            ResultSizeError: the changes have more bytes than ``max_result_size``.
        """
        entry = self._catalog.entries.get(view)
        if not isinstance(entry, ViewInfo):
            raise SqlNameError(f"there is no materialized view {view!r}.", 1, 1)
        return self._runner.changes.changelog(entry, self._most_bytes)

    def relations(self) -> list[str]:
        """Return the names that FROM can have."""
        return self._catalog.names()

    def definitions(self) -> dict[str, str]:
        """Return the statements that made what the store holds, by name, as they are kept."""
        return dict(self._storage.run("SELECT name, text FROM windowpane.catalog ORDER BY position"))

    def columns(self, relation: str) -> list[str]:
        """Return the names of a relation's columns."""
        found = self._catalog.find(relation)
        return [column.name for column in found.visible] if found is not None and not isinstance(found, PlainView) else []

    def execute(self, statement: Statement, text: Text) -> Result:
        """Run one statement that was parsed already; ``text`` is the script that has it."""
        with _reported(statement.text, statement.place):
            return self._execute(statement, text)

    def _execute(self, statement: Statement, text: Text) -> Result:
        if isinstance(statement, CreateView) and self._replaces(statement):
            return self._replace(statement, text)
        result = self._done(statement, text)
        if self._changes_views(statement):
            self._deliver([statement])
        return result

    def _done(self, statement: Statement, text: Text) -> Result:
        """Do what a statement says, but for delivering what that changes in views."""
        runners: Mapping[type[Statement], Callable[[Any, Text], Result]] = {
            CreateTable: self._definitions.create_table,
            CreateView: self._definitions.create_view,
            CreateSink: self._definitions.create_sink,
            CreateIndex: self._definitions.create_index,
            Drop: self._definitions.drop,
            Rename: self._definitions.rename,
            Insert: self._insert,
            Update: self._change,
            Delete: self._change,
            Query: self._select,
            Explain: self._explain,
            ExplainAnalyze: self._explain_analyze,
            Show: self._show,
            Describe: self._describe,
            Flush: self._flush_statement,
            SetParameter: self._set,
        }
        return self._within(statement, text, lambda: runners[type(statement)](statement, text))

    def _replaces(self, statement: CreateView) -> bool:
        return statement.must_exist or (statement.replaces and statement.name in self._catalog.entries)

    def _replace(self, statement: CreateView, text: Text) -> Result:
        """Build a view beside another one, which serves until it has caught up, and swap them."""
        planned = self._within(statement, text, lambda: self._replacing.begin(statement, text))
        failure: WindowpaneError | None = None
        try:
            try:
                self._runner.deliver()
            except WindowpaneError as error:
                if any(self._runner.is_unfilled(beside(name)) for name in planned.built):
                    raise
                failure = error  # of another view
            self._within(statement, text, lambda: self._replacing.swap(planned))
        except BaseException:
            self._runner.attempt(lambda: self._replacing.abandon(planned))
            raise
        self._deliver([statement])
        if failure is not None:
            raise failure
        return Result("ALTER_MATERIALIZED_VIEW" if statement.must_exist else "CREATE_MATERIALIZED_VIEW")

    def _within(self, statement: Statement, text: Text, action: Callable[[], T]) -> T:
        """Do what a statement says, at the clock and in the time zone of the session, as one transaction."""
        if self._now is not None:
            self._storage.set_clock(self._now())
        self._runner.prepare(statement, partial(self._upcoming, statement, text))
        try:
            with zone.within(self._parameters[zone.TIME_ZONE]):
                return self._runner.attempt(action)
        except MismatchError as error:
            raise statement.place.error(SqlTypeError, str(error)) from None
        except duckdb.BinderException as error:
            message = types_without_meaning(error)
            if message is None:
                raise
            raise statement.place.error(SqlTypeError, message) from error

    def _upcoming(self, statement: Statement, text: Text) -> Node | None:
        """Return the plan of the view that a statement makes, ``None`` if it makes none, or if running it will fail."""
        if not isinstance(statement, CreateView) or not statement.materialized:
            return None
        try:
            with zone.within(self._parameters[zone.TIME_ZONE]):
                return self._definitions.plan(statement, text).node
        except (WindowpaneError, MismatchError, duckdb.Error, RecursionError):
            return None

    def _changes_views(self, statement: Statement) -> bool:
        changes = isinstance(statement, Insert | Update | Delete) and self._flushes_at_once
        return changes or isinstance(statement, Flush | CreateView | CreateSink | Drop)

    @property
    def _flushes_at_once(self) -> bool:
        return self._parameters["rw_implicit_flush"] in ("true", "on", "1")

    def _deliver(self, statements: Sequence[Statement]) -> None:
        """Deliver the changes of statements; a view that cannot have its first rows is not made, nor are those behind it.

        What fails behind a DROP is of another view or sink, and waits for the next flush, which reports it.

        Raises:
            StaleViewError: after a flush, some views could not take its changes.
            UnreadableFileError: after a flush, a file of a source could not be read; all others were.
        """
        try:
            behind = self._runner.deliver()
        except BaseException as error:
            if isinstance(statements[0], Drop) and isinstance(error, WindowpaneError):
                return
            made = [each for each in statements if isinstance(each, CreateView | CreateSink)]
            unfilled = [number for number, each in enumerate(made) if self._runner.is_unfilled(_view_of(each))]
            if unfilled:
                with self._storage.transaction():
                    for each in reversed(made[unfilled[0] :]):
                        self._definitions.remove(each.name)
            raise
        if behind is not None and not isinstance(statements[0], CreateView | CreateSink | Drop):
            raise behind

    # --- changes ---------------------------------------------------------------------------------------

    def _table(self, name: str, place: Place) -> TableInfo:
        entry = self._catalog.entries.get(name)
        if isinstance(entry, TableInfo):
            return entry
        kind = self._catalog.kind(name)
        found = "there is nothing of that name" if kind is None else f"it is a {kind}, and only tables are changed"
        raise place.error(SqlNameError, f"there is no table {name!r}: {found}.")

    def _insert(self, statement: Insert, text: Text) -> Result:
        refuse_pipeline(statement, self._catalog)
        info, writer = self._table(statement.table, statement.place), self._definitions.writer(text)
        return self._changed(f"INSERT 0 {writer.insert(statement, info)}", statement, writer, info)

    def _change(self, statement: Update | Delete, text: Text) -> Result:
        info, writer = self._table(statement.table, statement.place), self._definitions.writer(text)
        what = "UPDATE" if isinstance(statement, Update) else "DELETE"
        tables.refuse_append_only(info, what, statement.place)
        count = writer.update(statement, info) if isinstance(statement, Update) else writer.delete(statement, info)
        return self._changed(f"{what} {count}", statement, writer, info)

    def _changed(self, tag: str, statement: Insert | Update | Delete, writer: tables.TableWriter, info: TableInfo) -> Result:
        returned = Result("")
        if statement.returning is not None:
            returned = self._answer(writer.returned(statement.returning, info, removed=isinstance(statement, Delete)))
        if self._flushes_at_once:
            self._definitions.flush()
        return replace(returned, tag=tag)

    def _flush_statement(self, statement: Flush, text: Text) -> Result:
        self._definitions.flush()
        return Result("FLUSH")

    # --- questions -------------------------------------------------------------------------------------

    def _select(self, statement: Query, text: Text) -> Result:
        bound, notice = self._bound(statement, text)
        return replace(self._answer(bound), notice=notice)

    def _bound(self, statement: Query, text: Text, keep: Callable[[str], None] | None = None) -> tuple[BoundQuery, str]:
        """Return the plan of a query, and what a user should know of it; ``keep`` takes names of relations made for it."""
        if statement.on_window_close:
            place = statement.place
            message = "EMIT ON WINDOW CLOSE in a SELECT is not supported. CREATE MATERIALIZED VIEW ... EMIT ON WINDOW CLOSE is."
            raise place.error(UnsupportedSqlError, message)
        binder = self._definitions.binder(text)
        bound = binder.bind(statement.query)
        bound = replace(bound, node=matched(bound.node, self._storage, keep))
        return bound, self._definitions.told_of_ties(self._definitions.ties_now(bound.node, binder.by_default))

    def _answer(self, bound: BoundQuery) -> Result:
        return _result(bound, self._storage.answer(_shown_sql(bound), self._most_bytes), zone.current())

    def _parts(self, statement: Query, text: Text, rows: int) -> Iterator[Result]:
        """Yield the rows of a query in parts: each as soon as it is known whether another follows."""
        kept: list[str] = []

        def keep(relation: str) -> None:
            self._storage.retain(relation)
            kept.append(relation)

        (bound, notice), shown_in = self._within(statement, text, lambda: (self._bound(statement, text, keep), zone.current()))
        with zone.within(shown_in):
            query = _shown_sql(bound)
        first, last = 0, None
        try:
            with closing(self._storage.stream(query, rows)) as tables:
                for table in tables:
                    if last is not None:
                        yield replace(_result(bound, last, shown_in), first=first, more=True)
                        first += last.num_rows
                    last = table
        finally:
            for relation in kept:
                self._storage.release(relation)
        if last is None:
            raise MistakeError("a result has a table, though without rows")
        yield replace(_result(bound, last, shown_in), first=first, notice=notice)

    @property
    def _most_bytes(self) -> int:
        return read_size(self._parameters[MOST_BYTES]) or 0

    def _explain(self, statement: Explain, text: Text) -> Result:
        inner = statement.statement
        if isinstance(inner, CreateView) and inner.materialized:
            planned = self._replacing.plan(inner, text) if self._replaces(inner) else None
            plan = self._definitions.plan(inner, text) if planned is None else planned.plan
            lines, by_default = self._runner.explain(plan.node), plan.by_default
            lines = [*(planned.lines if planned is not None else []), *lines]
        elif isinstance(inner, Query | CreateView):
            binder = self._definitions.binder(text)
            lines, by_default = explain_plan(binder.bind(inner.query).node), binder.by_default
        else:
            place = statement.place
            raise place.error(UnsupportedSqlError, "EXPLAIN of this statement is not supported. EXPLAIN of a query or a view is.")
        return _lines([*lines, *explained(by_default)])

    def _explain_analyze(self, statement: ExplainAnalyze, text: Text) -> Result:
        view = self._catalog.entries.get(statement.name)
        if not isinstance(view, ViewInfo):
            place = statement.place
            message = f"there is no materialized view {statement.name!r}. SHOW MATERIALIZED VIEWS lists them."
            raise place.error(SqlNameError, message)
        return _lines([*self._runner.explain(view.node, view), *self._runner.cost(view)])

    def _show(self, statement: Show, text: Text) -> Result:
        if statement.what.upper() == "ERRORS":
            return _by_name(self._storage.arrow(_ERRORS), _OF_ERRORS)
        if statement.what.upper() == "WATERMARKS":
            return _by_name(self._clock.listed(), {"Name": VARCHAR, "Watermark": VARCHAR, "Late Rows": BIGINT})
        return _columns(questions.show(self._catalog, self._parameters, statement))

    def _describe(self, statement: Describe, text: Text) -> Result:
        return _columns(questions.describe(self._catalog, statement.name, statement.place, self._definitions.binder(text)))

    def _set(self, statement: SetParameter, text: Text) -> Result:
        if statement.name == "batch_expr_strict_mode" and statement.value.lower() in ("false", "off", "0"):
            message = (
                "SET batch_expr_strict_mode = false is not supported. In a SELECT a value that an expression fails on is an "
                "error; in a materialized view it is NULL, and SHOW ERRORS lists it."
            )
            raise statement.place.error(UnsupportedSqlError, message)
        if statement.name == MOST_BYTES and read_size(statement.value) is None:
            message = f"{MOST_BYTES} = {statement.value!r} is no size. Write bytes, with a unit or without: '512MB', '4GB', or 0."
            raise statement.place.error(SqlTypeError, message)
        ways = _CHOICES.get(statement.name, {})
        if ways and statement.value.lower() not in ways:
            known = " or ".join(f"'{way}', as in {where}" for way, where in ways.items())
            raise statement.place.error(SqlTypeError, f"{statement.name} = {statement.value!r} is not known. Write {known}.")
        self._parameters[statement.name] = statement.value if statement.name == zone.TIME_ZONE else statement.value.lower()
        return Result("SET_VARIABLE")


_TOO_DEEP = (
    "parts stand inside one another too deeply, deeper than Python's stack. A long chain of operators does it as well: write IN "
    "in place of many OR, VALUES in place of many UNION ALL, or make a view of an inner part."
)


def _view_of(statement: CreateView | CreateSink) -> str:
    return statement.name if isinstance(statement, CreateView) else query_of_sink(statement.name)


@contextmanager
def _reported(statement: str, place: Place | None = None) -> Iterator[None]:
    """The boundary of a statement: a failure that is none of our errors is a mistake of ours, and is reported as one."""
    try:
        yield
    except RecursionError as error:
        if place is None:
            raise UnexpectedError(statement, error) from error
        raise place.error(UnsupportedSqlError, _TOO_DEEP) from None
    except Exception as error:
        if isinstance(error, WindowpaneError) and not isinstance(error, MistakeError):
            raise
        if SparkGoneError.explains(error):
            raise SparkGoneError from error
        raise UnexpectedError(statement, error) from error


_ERRORS = """
SELECT COLUMNS('c.') FROM (
    SELECT view AS c0, expression AS c1, value AS c2, error AS c3, count AS c4, first_seen AS c5, NULL AS c6, NULL AS c7,
        NULL AS c8, 0 AS part, row_number() OVER (ORDER BY first_seen, view, expression, value) AS place
    FROM windowpane.errors
    UNION ALL SELECT reader, NULL, value, reason, count, first_seen, source, position, field,
        1, row_number() OVER (ORDER BY first_seen, source, reader, position IS NULL, rowid)
    FROM windowpane.malformed
) ORDER BY part, place
"""
"""The values that expressions of views failed on, and behind them the malformed rows of sources."""

_OF_ERRORS = {
    **dict.fromkeys(("View", "Expression", "Value", "Error"), VARCHAR),
    "Count": BIGINT,
    "First Seen": TIMESTAMPTZ,
    **dict.fromkeys(("Source", "Position", "Column"), VARCHAR),
}


def _by_name(table: pa.Table, columns: Mapping[str, SqlType]) -> Result:
    """Return rows that begin with what they are about, as a user calls it."""
    named = pa.array([each and shown_name(each) for each in table["c0"].to_pylist()], pa.string())
    rows = table.set_column(0, "c0", named)
    return Result(f"SELECT {rows.num_rows}", tuple(columns), tuple(columns.values()), rows, True)


def _shown_sql(bound: BoundQuery) -> str:
    """Return a query as SQL: the columns that are shown, and behind them those that the rows are ordered by."""
    items = ", ".join(f"{_shown(column)} AS c{index}" for index, column in enumerate(bound.outputs))
    keys = "".join(f", {quoted(item.column)} AS o{index}" for index, item in enumerate(bound.order))
    return f"SELECT {items}{keys} FROM ({tables.ordered_sql(bound)})"


def _result(bound: BoundQuery, table: pa.Table, shown_in: str) -> Result:
    names = tuple(column.name for column in bound.outputs)
    types = tuple(column.type for column in bound.outputs)
    return Result(f"SELECT {table.num_rows}", names, types, table, True, len(bound.order), zone=shown_in)


def _shown(column: Column) -> str:
    return f"windowpane_interval_out({quoted(column.id)})" if column.type == INTERVAL else quoted(column.id)


def _lines(lines: list[str]) -> Result:
    return _columns({"QUERY PLAN": list(lines)})


def _columns(found: Mapping[str, list[str]]) -> Result:
    table = pa.table({f"c{index}": pa.array(values, pa.string()) for index, values in enumerate(found.values())})
    return Result(f"SELECT {table.num_rows}", tuple(found), (VARCHAR,) * len(found), table, True)


def storage_of(session: Session) -> Storage:
    """Return the store of a session, for those who look into it."""
    return session._storage
