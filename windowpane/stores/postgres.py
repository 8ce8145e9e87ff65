"""The PostgreSQL store: COPY into a staging table, then MERGE, in one transaction with the number of the batch.

A batch has its rows, or tasks bring them, each by a connection of its own (``stage``). Tasks write to a staging table that every
connection sees, unlogged, named by the source and the number of the batch. A task writes its part in one transaction, in place of
the rows of an earlier attempt; the transaction that merges the batch drops the table.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pyarrow as pa

from windowpane.arrays.values import Value
from windowpane.errors import MissingExtraError, StoreError
from windowpane.state.pairs import NONE
from windowpane.stores.batches import IS_DELETED, NEEDS_ROW, Batch, quoted
from windowpane.stores.postgres_types import postgres_type, to_text

if TYPE_CHECKING:
    import psycopg

_BATCHES = "CREATE TABLE IF NOT EXISTS windowpane_batches (source text PRIMARY KEY, number bigint NOT NULL)"
_STAGING = "windowpane_staging"
_PART, _PLACE = "windowpane_part", "windowpane_n"
"""Columns of a staging table that tasks write: the task that brought a row, and the place of the row among those of the task."""


class PostgresStore:
    """Applies batches to tables of a PostgreSQL server, version 15 or newer. Several processes may write different tables.

    A table that it creates gets a unique index over the key in which NULLs are equal.

    Args:
        url: ``postgresql://user:password@host/database``.

    Raises:
        StoreError: the server cannot be reached; so does every method.
    """

    def __init__(self, url: str) -> None:
        MissingExtraError.unless("postgres", "psycopg")
        import psycopg

        try:
            self._connection: psycopg.Connection[tuple[Value, ...]] = psycopg.connect(url)
        except psycopg.Error as error:
            raise StoreError("PostgreSQL", str(error).strip()) from None
        with self.transaction():
            self.run("SET client_min_messages = warning")
            self.run(_BATCHES)

    def __repr__(self) -> str:
        return f"PostgresStore({self.address!r})"

    @property
    def address(self) -> str:
        info = self._connection.info
        return f"{info.host}:{info.port}/{info.dbname}"

    @property
    def database(self) -> str:
        return str(self._connection.info.dbname)

    @contextmanager
    def transaction(self, *, is_trial: bool = False) -> Iterator[None]:
        """Do everything inside or nothing; in a trial nothing is kept, it only finds errors."""
        import psycopg

        try:
            with self._connection.transaction(force_rollback=is_trial):
                yield
        except psycopg.Error as error:
            raise StoreError(self.address, _reason(error)) from error

    def run(self, statement: str, parameters: list[Value] | None = None) -> psycopg.Cursor[tuple[Value, ...]]:
        # Statements are built here, from quoted names; psycopg wants those as bytes.
        return self._connection.execute(statement.encode(), parameters)

    def apply(self, batch: Batch, staging: str | None = None) -> bool:
        """Apply a batch in one transaction, of rows in ``staging`` if tasks have brought them there; say whether it was new."""
        with self.transaction():
            self.run(f"INSERT INTO windowpane_batches VALUES (%s, {NONE}) ON CONFLICT DO NOTHING", [batch.source])
            if batch.is_applied(self._taken(batch.source, "FOR UPDATE")):
                self.drop_staging(batch.source)
                return False
            self.prepare(batch)
            if batch.is_whole:
                self.run(f"DELETE FROM {quoted(batch.table)}")
            staging = self._staged(batch) if staging is None else staging
            for is_null in self._nulls(batch, staging, f"WHERE {NEEDS_ROW}"):
                batch.refuse_absent(self.run(_absent_sql(batch, staging, is_null)).fetchall())
            self._merge(batch, staging)
            self.drop_staging(batch.source)
            self.run("UPDATE windowpane_batches SET number = %s WHERE source = %s", [batch.number, batch.source])
        return True

    def taken(self, source: str) -> int:
        with self.transaction():
            return self._taken(source)

    def _taken(self, source: str, lock: str = "") -> int:
        last = self.run(f"SELECT number FROM windowpane_batches WHERE source = %s {lock}", [source]).fetchone()
        return NONE if last is None else int(last[0])

    def begin_staging(self, batch: Batch) -> str:
        name = f"{_staging_of(batch.source)}{batch.number}"
        with self.transaction():
            self.prepare(batch)
            self.drop_staging(batch.source)
            columns = f"LIKE {quoted(batch.table)}, {IS_DELETED} boolean, {NEEDS_ROW} boolean, {_PART} integer, {_PLACE} bigint"
            self.run(f"CREATE UNLOGGED TABLE {name} ({columns})")
        return name

    def stage(self, staging: str, part: int, tables: Iterable[pa.Table]) -> None:
        """Bring one part of a batch to its staging table.

        Args:
            staging: its name.
            part: number of the part.
            tables: the rows, with ``IS_DELETED``, and where the table must have their keys with ``NEEDS_ROW``; the last one of a
                key counts, and rows that are not deleted before all others.
        """
        with self.transaction():
            self.run("SELECT pg_advisory_xact_lock(hashtext(%s), %s)", [staging, part])
            self.run(f"DELETE FROM {staging} WHERE {_PART} = %s", [part])
            first = 0
            for rows in tables:
                places = pa.array(range(first, first + rows.num_rows), pa.int64())
                first += rows.num_rows
                named = rows.append_column(_PART, pa.repeat(part, rows.num_rows)).append_column(_PLACE, places)
                self._copy(staging, named)

    def drop_staging(self, source: str) -> None:
        """Drop the staging tables of a source, which a crash may have left."""
        name = _staging_of(source)
        found = self.run("SELECT relname FROM pg_class WHERE relkind = 'r' AND starts_with(relname, %s)", [name])
        for (table,) in found.fetchall():
            self.run(f"DROP TABLE {table}")

    def prepare(self, batch: Batch) -> None:
        """Create the table of a batch, unless it exists, with these columns."""
        expected = {field.name: postgres_type(field.type, field.name) for field in batch.columns} | dict(batch.types)
        found = self.run(
            "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute "
            "WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped ORDER BY attnum",
            [quoted(batch.table)],
        )
        stored = {row[0]: row[1] for row in found.fetchall()}
        if stored:
            batch.check_schema(stored, expected)
            return
        columns = ", ".join(f"{quoted(name)} {kind}" for name, kind in expected.items())
        self.run(f"CREATE TABLE {quoted(batch.table)} ({columns})")
        if batch.key:
            key = ", ".join(quoted(name) for name in batch.key)
            self.run(f"CREATE UNIQUE INDEX ON {quoted(batch.table)} ({key}) NULLS NOT DISTINCT")

    def _staged(self, batch: Batch) -> str:
        self.run(f"DROP TABLE IF EXISTS pg_temp.{_STAGING}")
        columns = f"LIKE {quoted(batch.table)}, {IS_DELETED} boolean, {NEEDS_ROW} boolean, "
        columns += f"{_PART} integer DEFAULT 0, {_PLACE} bigint DEFAULT 0"
        self.run(f"CREATE TEMP TABLE {_STAGING} ({columns}) ON COMMIT DROP")
        self._copy(_STAGING, batch.by_key())
        return _STAGING

    def _copy(self, table: str, rows: pa.Table) -> None:
        rows = to_text(rows)
        names = ", ".join(quoted(name) for name in rows.column_names)
        with self._connection.cursor().copy(f"COPY {table} ({names}) FROM STDIN".encode()) as copy:
            for part in rows.to_batches(max_chunksize=10_000):
                for row in zip(*(column.to_pylist() for column in part.columns), strict=True):
                    copy.write_row(row)

    def _merge(self, batch: Batch, staging: str) -> None:
        """Merge a staging table: rows with NULL in the same columns of the key together.

        PostgreSQL finds rows by an index, or by hashes, only where ``=`` or ``IS NULL`` compares them.
        """
        self.run(f"ANALYZE {staging}")
        for is_null in self._nulls(batch, staging):
            self.run(_merge_sql(batch, staging, is_null))

    def _nulls(self, batch: Batch, staging: str, where: str = "") -> list[dict[str, bool]]:
        nulls = ", ".join(f"{quoted(name)} IS NULL" for name in batch.key) or "false"
        patterns = self.run(f"SELECT DISTINCT {nulls} FROM {staging} {where}").fetchall()
        return [dict(zip(batch.key, pattern, strict=False)) for pattern in patterns]

    def read(self, query: str) -> list[tuple[Value, ...]]:
        with self.transaction():
            return self.run(query).fetchall()

    def close(self) -> None:
        self._connection.close()


def _reason(error: psycopg.Error) -> str:
    """Return the message of the server, without its hints, which are about statements that no user wrote."""
    said = [part for part in (error.diag.message_primary, error.diag.message_detail) if part]
    return ". ".join(said) or str(error).strip()


def _staging_of(source: str) -> str:
    return f"{_STAGING}_{hashlib.sha256(source.encode()).hexdigest()[:16]}_"


def _of_pattern(is_null: Mapping[str, bool]) -> str:
    """Return which rows of a staging table have NULL in these columns of the key, and no others."""
    return " AND ".join(f"{quoted(name)} IS {'' if null else 'NOT '}NULL" for name, null in is_null.items()) or "true"


def _same_key(is_null: Mapping[str, bool]) -> str:
    pairs = [(quoted(name), null) for name, null in is_null.items()]
    return " AND ".join(f"t.{name} IS NULL" if null else f"t.{name} = s.{name}" for name, null in pairs) or "true"


def _absent_sql(batch: Batch, staging: str, is_null: Mapping[str, bool]) -> str:
    key = ", ".join(f"s.{quoted(name)}" for name in batch.key) or "NULL"
    needed = f"(SELECT * FROM {staging} WHERE {NEEDS_ROW} AND {_of_pattern(is_null)}) AS s"
    there = f"SELECT 1 FROM {quoted(batch.table)} AS t WHERE {_same_key(is_null)}"
    return f"SELECT {key} FROM {needed} WHERE NOT EXISTS ({there}) LIMIT 1"


def _merge_sql(batch: Batch, staging: str, is_null: Mapping[str, bool]) -> str:
    """Return the statement that merges rows of a staging table, one for each key; ``is_null`` says which by column of the key."""
    names = [quoted(name) for name in batch.columns.names]
    sets = ", ".join(f"{name} = s.{name}" for name in names)
    key = "".join(f"{quoted(name)}, " for name in batch.key)
    last = f"SELECT{f' DISTINCT ON ({key[:-2]})' * bool(key)} * FROM {staging} WHERE {_of_pattern(is_null)} "
    last += f"ORDER BY {key}{IS_DELETED}, {_PART} DESC, {_PLACE} DESC" + ("" if key else " LIMIT 1")
    values = f"({', '.join(names)}) VALUES ({', '.join(f's.{name}' for name in names)})"
    return (
        f"MERGE INTO {quoted(batch.table)} AS t USING ({last}) AS s ON {_same_key(is_null)} "
        f"WHEN MATCHED AND s.{IS_DELETED} THEN DELETE "
        f"WHEN MATCHED THEN UPDATE SET {sets} "
        f"WHEN NOT MATCHED AND NOT s.{IS_DELETED} THEN INSERT {values}"
    )
