"""The DuckDB database behind a session: tables, views, operator state and the catalog in one file, changed in transactions.

Layout: schema ``main`` holds tables and materialized views under their own names, with the columns users see first and the
hidden columns of the key behind them; schema ``windowpane`` holds the catalog, watermarks, counters, the pending changes and the
progress of views that run on Spark, and the progress of tables of views on a PostgreSQL server; schema ``windowpane_state`` holds
the state of operators, and the changes of tables that wait for a flush. One process writes. A statement and a flush are one
transaction each, so a crash leaves what the last one committed. Batches of streaming queries run in threads of their own: one
thread has the transaction, the others wait.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from windowpane.errors import NotAFolderError, SqlRunError, StoreError, StoreVersionError
from windowpane.sql.embedded.answers import parts_of, table_of
from windowpane.sql.embedded.macros import MACROS, NOW_VARIABLE
from windowpane.sql.embedded.waiting import Waiting
from windowpane.sql.failures.duck_words import in_sql_words
from windowpane.sql.scalar.registry import Macros, register
from windowpane.sql.values.far_instants import cells
from windowpane.stores.duck import open_file
from windowpane.windowing.intervals import Interval

_FORMAT = 1
"""The version of all that is in a store."""

_SET_UP = (
    "SET TimeZone = 'UTC'",
    "SET checkpoint_threshold = '128 MiB'",
    "CREATE SCHEMA IF NOT EXISTS windowpane",
    "CREATE SCHEMA IF NOT EXISTS windowpane_state",
    f"CREATE TABLE IF NOT EXISTS windowpane.format AS SELECT {_FORMAT} AS version",
    "CREATE TABLE IF NOT EXISTS windowpane.catalog (position BIGINT, name VARCHAR, text VARCHAR)",
    "CREATE TABLE IF NOT EXISTS windowpane.plans (view VARCHAR, plan VARCHAR)",
    "CREATE TABLE IF NOT EXISTS windowpane.kept (view VARCHAR, kept VARCHAR)",
    "CREATE TABLE IF NOT EXISTS windowpane.watermarks (relation VARCHAR, value VARCHAR, late BIGINT DEFAULT 0)",
    "CREATE TABLE IF NOT EXISTS windowpane.splits (relation VARCHAR, marks VARCHAR)",
    "CREATE TABLE IF NOT EXISTS windowpane.counters (name VARCHAR, value BIGINT, flushed BIGINT)",
    "CREATE TABLE IF NOT EXISTS windowpane.files (relation VARCHAR, path VARCHAR)",
    "CREATE TABLE IF NOT EXISTS windowpane.offsets (relation VARCHAR, topic VARCHAR, partition INTEGER, following BIGINT)",
    "CREATE TABLE IF NOT EXISTS windowpane.blobs (owner VARCHAR, key VARCHAR, blob BLOB)",
    "CREATE TABLE IF NOT EXISTS windowpane.streams (name VARCHAR, folder VARCHAR, batch BIGINT, sent BIGINT, "
    "done BIGINT, clock VARCHAR, plan VARCHAR, progress VARCHAR, due VARCHAR)",
    "CREATE TABLE IF NOT EXISTS windowpane.server (state VARCHAR, address VARCHAR)",
    "CREATE TABLE IF NOT EXISTS windowpane.served (view VARCHAR, source VARCHAR, whole BIGINT, last BIGINT, dropped BOOLEAN)",
    "CREATE TABLE IF NOT EXISTS windowpane.errors "
    "(view VARCHAR, expression VARCHAR, value VARCHAR, error VARCHAR, count BIGINT, first_seen TIMESTAMPTZ)",
    "CREATE TABLE IF NOT EXISTS windowpane.malformed (source VARCHAR, reader VARCHAR, position VARCHAR, field VARCHAR, "
    "value VARCHAR, reason VARCHAR, count BIGINT, first_seen TIMESTAMPTZ)",
    "CREATE TABLE IF NOT EXISTS windowpane.malformed_to (source VARCHAR, relation VARCHAR)",
    "CREATE TABLE IF NOT EXISTS windowpane.stale (view VARCHAR, reason VARCHAR)",
    "CREATE TABLE IF NOT EXISTS windowpane.sinks (name VARCHAR, id VARCHAR, last BIGINT)",
    "CREATE TABLE IF NOT EXISTS windowpane.settings (name VARCHAR, setting VARCHAR, value VARCHAR)",
    "CREATE TABLE IF NOT EXISTS windowpane.mail "
    "(name VARCHAR, number BIGINT, relation VARCHAR, file VARCHAR, change_set BIGINT, ids VARCHAR)",
)

_SHARING = "common_subexpressions"
"""The optimizer that computes an expression once that a query has twice."""


_REGISTERED = "already exists"
"""Words of DuckDB where the database has a function: connections of a process to one file share it."""
_OPEN_HERE = "a session of this process has it open. Close that one first, or use it: one session at a time writes a store."


class Storage:
    """A DuckDB connection with windowpane's schemas."""

    def __init__(self, path: str) -> None:
        """Open a file, in a folder that is made if it is missing, or ``:memory:``.

        Raises:
            StoreError: the file cannot be opened.
            StoreVersionError: it is a store of another format.
        """
        self.path = path
        if path != ":memory:":
            NotAFolderError.refuse("the folder of the store", Path(path).parent)
            Path(path).parent.mkdir(parents=True, exist_ok=True)
        self._connection = open_file(path)
        # A connection that is still open when Python ends keeps the functions of numerics alive, which DuckDB complains of.
        weakref.finalize(self, self._connection.close)
        try:
            self._check_format()
            for statement in (*_SET_UP, *MACROS):
                self._connection.execute(statement)
            register(self._connection)
        except BaseException as error:
            self._connection.close()
            if isinstance(error, duckdb.CatalogException) and _REGISTERED in str(error):
                raise StoreError(path, _OPEN_HERE) from None
            raise
        self._macros = Macros(self._connection)
        self._streams: weakref.WeakSet[Generator[pa.Table]] = weakref.WeakSet()
        self._is_closed = False
        self.lock = threading.RLock()  # a transaction holds it, and each statement outside of one
        self.rollbacks = 0  # how many transactions were rolled back: what was read in them may never have been so
        self._depth = 0
        self._numbers = 0
        self._temporaries: dict[str, int] = {}
        self._retained: set[str] = set()
        self._is_trying = False
        self.waiting = Waiting(self)
        self._type_names: dict[str, str] = {}

    def _check_format(self) -> None:
        tables = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'windowpane'"
        names = self._connection.execute(tables).fetchall()
        has_format = ("format",) in names
        found = self._connection.execute("SELECT version FROM windowpane.format").fetchall() if has_format else []
        if names and found != [(_FORMAT,)]:
            raise StoreVersionError(self.path, {"the format": (str(found[0][0]) if found else None, str(_FORMAT))})

    def close(self) -> None:
        self._is_closed = True
        for stream in list(self._streams):
            stream.close()
        self._connection.close()

    def run(self, sql: str, parameters: list[Any] | None = None) -> list[tuple[Any, ...]]:
        """Run one statement and return the rows of its result.

        Raises:
            SqlRunError: DuckDB refused a value, such as a division by zero.
            StoreError: the file cannot be read or written.
        """
        with self.lock, self._our_words():
            self._macros.define(sql)
            return self._connection.execute(sql, parameters).fetchall()

    def arrow(self, sql: str) -> pa.Table:
        with self.lock, self._our_words():
            self._macros.define(sql)
            return self._connection.sql(sql).to_arrow_table()

    def answer(self, sql: str, most: int) -> pa.Table:
        """Return the result of a user's query as an Arrow table of so many bytes at most, any number for 0."""
        with self.lock, self._our_words():
            self._macros.define(sql)
            return table_of(self._connection, sql, most)

    def stream(self, sql: str, rows: int) -> Generator[pa.Table]:
        """Yield the result of a query in tables of so many rows at most, as it is now, whatever changes meanwhile.

        It is read on a connection of its own, outside of the transaction: others of this session may run beside it.

        Raises:
            SqlRunError: the store was closed before the end of the result.
        """
        parts = self._parts(sql, rows)
        self._streams.add(parts)
        with closing(parts):
            yield from parts
        if self._is_closed:
            raise SqlRunError("the session was closed before all rows of the result were read.")

    def _parts(self, sql: str, rows: int) -> Generator[pa.Table]:
        with self.lock:
            reader = self._connection.cursor()
            for statement in ("SET TimeZone = 'UTC'", *MACROS):  # settings of each connection
                reader.execute(statement)
            Macros(reader).define(sql)
            clock = self._connection.execute(f"SELECT CAST(getvariable('{NOW_VARIABLE}') AS VARCHAR)").fetchall()[0][0]
        with closing(reader), self._our_words():
            if clock is not None:
                reader.execute(f"SET VARIABLE {NOW_VARIABLE} = TIMESTAMPTZ '{clock}'")
            yield from parts_of(reader, sql, rows)

    @contextmanager
    def _our_words(self) -> Iterator[None]:
        try:
            yield
        except duckdb.IOException as error:
            raise StoreError(self.path, str(error).split("\n")[0]) from error
        except duckdb.Error as error:
            if self._is_closed:
                raise StoreError(self.path, "this session is closed. Open another one.") from None
            translated = in_sql_words(error)
            if translated is None:
                raise
            raise translated from error

    def set_clock(self, now: datetime) -> None:
        self.run(f"SET VARIABLE {NOW_VARIABLE} = TIMESTAMPTZ '{now.isoformat()}'")

    def value(self, sql: str) -> Any:
        rows = self.run(sql)
        return rows[0][0] if rows else None

    def constant(self, sql: str) -> Any:
        """Return the value of an expression without columns; an interval keeps its months and days."""
        cell = cells(self.arrow(f"SELECT {sql} AS value").column(0))[0]
        if isinstance(cell, pa.MonthDayNano):
            return Interval(cell.months, cell.days, cell.nanoseconds // 1000)
        return cell

    def type_name(self, kind: str) -> str:
        """Return a type as DuckDB's own catalog writes it."""
        if kind not in self._type_names:
            self._type_names[kind] = str(self.value(f"SELECT typeof(CAST(NULL AS {kind}))"))
        return self._type_names[kind]

    def is_empty(self, relation: str) -> bool:
        """Whether a relation has no rows; of a temporary one it is known without a query."""
        if relation in self._temporaries:
            return self._temporaries[relation] == 0
        return not self.run(f"SELECT 1 FROM {relation} LIMIT 1")

    def count(self, relation: str) -> int:
        """Return how many rows a relation has; of a temporary one it is known without a query."""
        if relation in self._temporaries:
            return self._temporaries[relation]
        return int(self.value(f"SELECT count(*) FROM {relation}"))

    def has_state(self, name: str) -> bool:
        query = "SELECT 1 FROM information_schema.tables WHERE table_schema = 'windowpane_state' AND table_name = ?"
        return bool(self.run(query, [name]))

    def temporary(self, query: str) -> str:
        """Keep the result of a query until the transaction ends, and return the name to read it by."""
        self._numbers += 1
        name = f'temp."windowpane {self._numbers}"'
        self._temporaries[name] = int(self.run(f"CREATE TEMP TABLE {name} AS {query}")[0][0])
        return name

    def extend(self, name: str, query: str) -> None:
        self._temporaries[name] += int(self.run(f"INSERT INTO {name} {query}")[0][0])

    def pieces(self, relation: str, rows: int, most: int) -> Iterator[pa.Table]:
        """Yield a relation, as the transaction sees it, in Arrow tables, none of them without rows.

        Nothing else may run in the store before the last one.

        Args:
            relation: a name, or a query in parentheses.
            rows: that a table has at most.
            most: the bytes that it has at most, or those of one vector of rows.
        """
        with self.lock, self._our_words():
            self._macros.define(relation)
            for part in parts_of(self._connection, f"SELECT * FROM {relation}", rows, most):
                if part.num_rows:
                    yield part

    def retain(self, name: str) -> None:
        """Keep a temporary relation beyond its transaction, until it is released."""
        self._retained.add(name)

    def release(self, name: str) -> None:
        self.run(f"DROP TABLE IF EXISTS {name}")
        self._temporaries.pop(name, None)
        self._retained.discard(name)

    def temporary_from(self, table: pa.Table) -> str:
        """Keep an Arrow table until the transaction ends, and return the name to read it by."""
        with self.reading(table) as name:
            return self.temporary(f"SELECT * FROM {name}")

    def temporary_of(self, tables: Iterable[pa.Table], items: str = "*") -> str | None:
        """Keep ``items`` of Arrow tables of one kind, taken one at a time, as one relation; ``None`` if there is no table."""
        kept: str | None = None
        for table in tables:
            with self.reading(table) as name:
                if kept is None:
                    kept = self.temporary(f"SELECT {items} FROM {name}")
                else:
                    self.extend(kept, f"SELECT {items} FROM {name}")
        return kept

    @contextmanager
    def reading(self, table: pa.Table) -> Iterator[str]:
        """Let queries read an Arrow table for a while, without a copy, by the name that is given."""
        name = "windowpane_arrow"
        with self.lock:
            self._connection.register(name, table)
            try:
                yield name
            finally:
                with suppress(duckdb.TransactionException):  # an error has ended the transaction, which forgets the name itself
                    self._connection.unregister(name)

    def try_always(self) -> None:
        """Compute expressions inside ``TRY`` nowhere else, from now on."""
        self.run(f"SET disabled_optimizers = '{_SHARING}'")

    @contextmanager
    def trying(self) -> Iterator[None]:
        """Compute expressions inside ``TRY`` nowhere else: DuckDB would compute an expression in two of them once, outside."""
        self.try_always()
        self._is_trying = True
        try:
            yield
        finally:
            self._end_trying()

    def _end_trying(self) -> None:
        """Share expressions again, unless an error has ended the transaction: then its end does."""
        if self._is_trying:
            with suppress(duckdb.TransactionException):
                self._connection.execute("SET disabled_optimizers = ''")
                self._is_trying = False

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Do everything inside or nothing; a transaction inside another is part of it."""
        with self.lock:
            if self._depth:
                yield
            else:
                yield from self._outermost()

    def _outermost(self) -> Iterator[None]:
        self.run("BEGIN")
        self._depth = 1
        self._macros.begin()
        try:
            yield
            self._drop_temporaries()
            self.waiting.save()
            self.run("COMMIT")
        except BaseException:
            self.rollbacks += 1
            with suppress(duckdb.TransactionException):  # a COMMIT that failed has ended the transaction itself
                self._connection.execute("ROLLBACK")
            self._end_temporaries()
            self._macros.roll_back()
            self.waiting.forget()
            self._end_trying()
            raise
        finally:
            self._depth = 0

    def _drop_temporaries(self) -> None:
        for name in self._temporaries.keys() - self._retained:
            self.run(f"DROP TABLE {name}")
        self._end_temporaries()

    def _end_temporaries(self) -> None:
        self._temporaries.clear()
        self._retained.clear()


_PART_BYTES = 64 * 2**20
"""How much of the blobs of a flush is copied at once."""


def as_part(name: str) -> str:
    """Return a name as a part of the names of state, ``view/number/part``: two names are never one, whatever is in them.

    Example:
        >>> as_part("a/0")
        'a%2F0'
    """
    return name.replace("%", "%25").replace("/", "%2F")


def _parts(keys: Sequence[str], blobs: Mapping[str, bytes]) -> Iterator[list[str]]:
    """Yield the keys in parts whose blobs fit into memory twice."""
    part, size = list[str](), 0
    for key in keys:
        if part and size + len(blobs[key]) > _PART_BYTES:
            yield part
            part, size = [], 0
        part.append(key)
        size += len(blobs[key])
    if part:
        yield part


class DuckBlobs:
    """A blob store over a table, for engines that keep their state as blobs.

    Reads are cached; writes go to the table with ``save``, inside the transaction of the batch. ``forget`` drops the cache after
    a transaction that was rolled back.
    """

    is_near = True

    def __init__(self, storage: Storage, owner: str) -> None:
        self._storage, self._owner = storage, owner
        self._blobs: dict[str, bytes] | None = None
        self._changed: set[str] = set()

    def _loaded(self) -> dict[str, bytes]:
        if self._blobs is None:
            rows = self._storage.run("SELECT key, blob FROM windowpane.blobs WHERE owner = ?", [self._owner])
            self._blobs = {key: bytes(blob) for key, blob in rows}
        return self._blobs

    def get(self, key: str) -> bytes | None:
        return self._loaded().get(key)

    def prefetch(self, keys: Sequence[str]) -> None:
        """All blobs are read at once."""

    def put(self, key: str, blob: bytes) -> None:
        self._loaded()[key] = blob
        self._changed.add(key)

    def remove(self, key: str) -> None:
        if self._loaded().pop(key, None) is not None:
            self._changed.add(key)

    def save(self) -> None:
        """Write what changed, in few statements: one flush may change a thousand blobs."""
        blobs = self._loaded()
        changed = sorted(self._changed)
        with self._storage.reading(pa.table({"key": pa.array(changed, pa.string())})) as keys:
            stale = f"owner = ? AND key IN (SELECT key FROM {keys})"
            self._storage.run(f"DELETE FROM windowpane.blobs WHERE {stale}", [self._owner])
        for part in _parts([key for key in changed if key in blobs], blobs):
            rows = pa.table({"key": pa.array(part, pa.string()), "blob": pa.array([blobs[key] for key in part], pa.binary())})
            with self._storage.reading(rows) as written:
                self._storage.run(f"INSERT INTO windowpane.blobs SELECT ?, key, blob FROM {written}", [self._owner])
        self._changed.clear()

    def drop(self) -> None:
        self.forget()
        self._storage.run("DELETE FROM windowpane.blobs WHERE owner = ?", [self._owner])

    def forget(self) -> None:
        self._blobs = None
        self._changed.clear()
