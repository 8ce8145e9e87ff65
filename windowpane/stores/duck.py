"""The DuckDB store: tables in a DuckDB file, which one process has open at a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

import duckdb

from windowpane.arrays.values import Value
from windowpane.errors import InvalidSpecError, StoreError
from windowpane.state.pairs import NONE
from windowpane.stores.batches import IS_DELETED, NEEDS_ROW, Batch, quoted

_BATCHES = "CREATE TABLE IF NOT EXISTS windowpane_batches (source VARCHAR PRIMARY KEY, number BIGINT)"
_HELD, _COMING = "windowpane_held", "windowpane_coming"
"""The table and the rows in a statement: DuckDB takes ``t.a`` for a field where a column of structs is named ``t``."""

_LOCKED = "Could not set lock on file"  # Words of DuckDB's message; they may also be in the path, which it names, too


def check_path(path: str) -> None:
    """Refuse an address of something that is no file: DuckDB would look for a folder of its name.

    Raises:
        InvalidSpecError: saying its scheme, and no password.
    """
    scheme, colon, _ = path.partition("://")
    if colon and scheme != "file":
        raise InvalidSpecError(
            f"store={scheme + '://...'!r}: a store is the path of a DuckDB file, or a PostgreSQL server, 'postgresql://...'. "
            "For others write a function (DataFrame, batch_id), and give it to start(main=...)."
        )


def open_file(path: str) -> duckdb.DuckDBPyConnection:
    """Open a file, made if it does not exist, or ``":memory:"``.

    Raises:
        InvalidSpecError: it is an address, and no path.
        StoreError: another process has it open, it is no DuckDB file, or it cannot be made; nothing was changed.
    """
    check_path(path)
    try:
        return duckdb.connect(path)
    except duckdb.Error as error:
        said = str(error)
        if _LOCKED in said:
            way_out = "Close it there, or choose another store: one process at a time writes a store."
            said = f"another process has it open. {way_out}\n{said}"
        raise StoreError(path, said) from error


class DuckStore:
    """Applies batches to tables of a DuckDB file, created if it does not exist, or of ``":memory:"``. One process writes."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._connection = open_file(path)
        self._connection.execute(_BATCHES)

    def __repr__(self) -> str:
        return f"DuckStore({self._path!r})"

    def apply(self, batch: Batch) -> bool:
        with self._transaction():
            if batch.is_applied(self.taken(batch.source)):
                return False
            rows = batch.by_key()
            self._connection.register("windowpane_rows", rows)
            self._prepare(batch)
            if batch.is_whole:
                self._connection.execute(f"DELETE FROM {quoted(batch.table)}")
            self._merge(batch)
            self._connection.unregister("windowpane_rows")
            self._connection.execute("INSERT OR REPLACE INTO windowpane_batches VALUES (?, ?)", [batch.source, batch.number])
        return True

    def taken(self, source: str) -> int:
        last = self._connection.execute("SELECT number FROM windowpane_batches WHERE source = ?", [source]).fetchall()
        return int(last[0][0]) if last else NONE

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._connection.execute("BEGIN")
        try:
            yield
            self._connection.execute("COMMIT")
        except BaseException as error:
            with suppress(duckdb.Error):  # a commit that failed has ended the transaction
                self._connection.execute("ROLLBACK")
            if isinstance(error, duckdb.Error):
                raise StoreError(self._path, f"{error}\nNothing of the batch was written.") from error
            raise

    def _prepare(self, batch: Batch) -> None:
        expected = self._types("windowpane_rows")
        del expected[IS_DELETED], expected[NEEDS_ROW]
        expected |= batch.types
        known = self._connection.execute("SELECT 1 FROM information_schema.tables WHERE table_name = ?", [batch.table]).fetchall()
        if not known:
            columns = ", ".join(f"{quoted(name)} {kind}" for name, kind in expected.items())
            self._connection.execute(f"CREATE TABLE {quoted(batch.table)} ({columns})")
        batch.check_schema(self._types(quoted(batch.table)), expected)

    def _types(self, relation: str) -> dict[str, str]:
        rows = self._connection.execute(f"DESCRIBE SELECT * FROM {relation}").fetchall()
        return {row[0]: row[1] for row in rows}

    def _merge(self, batch: Batch) -> None:
        table = quoted(batch.table)
        same = (
            " AND ".join(f"{_HELD}.{quoted(name)} IS NOT DISTINCT FROM {_COMING}.{quoted(name)}" for name in batch.key) or "TRUE"
        )
        names = ", ".join(quoted(name) for name in batch.columns.names)
        key = ", ".join(f"{_COMING}.{quoted(name)}" for name in batch.key) or "NULL"
        absent = (
            f"SELECT {key} FROM windowpane_rows AS {_COMING} WHERE {NEEDS_ROW} "
            f"AND NOT EXISTS (SELECT 1 FROM {table} AS {_HELD} WHERE {same})"
        )
        batch.refuse_absent(self._connection.execute(f"{absent} LIMIT 1").fetchall())
        self._connection.execute(f"DELETE FROM {table} AS {_HELD} USING windowpane_rows AS {_COMING} WHERE {same}")
        self._connection.execute(f"INSERT INTO {table} ({names}) SELECT {names} FROM windowpane_rows WHERE NOT {IS_DELETED}")

    def read(self, query: str) -> list[tuple[Value, ...]]:
        return list(self._connection.execute(query).fetchall())

    def close(self) -> None:
        self._connection.close()
