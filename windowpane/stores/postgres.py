"""The PostgreSQL store: COPY into a staging table, then MERGE, in one transaction with the number of the batch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from windowpane.errors import MissingExtraError, StoreError
from windowpane.stores.batches import GONE, Batch
from windowpane.stores.names import quoted
from windowpane.stores.postgres_types import postgres_type, to_text

if TYPE_CHECKING:
    import psycopg

_BATCHES = "CREATE TABLE IF NOT EXISTS windowpane_batches (source text PRIMARY KEY, number bigint NOT NULL)"
_STAGING = "windowpane_staging"


class PostgresStore:
    """Applies batches to tables of a PostgreSQL server, version 15 or newer. Several processes may write different tables.

    A table that it creates gets a unique index over the key in which NULLs are equal.

    Args:
        url: ``postgresql://user:password@host/database``.

    Raises:
        StoreError: the server cannot be reached; so does every method.
    """

    def __init__(self, url: str) -> None:
        """Connect."""
        MissingExtraError.unless("postgres", "psycopg")
        import psycopg

        try:
            self._connection: psycopg.Connection[tuple[Any, ...]] = psycopg.connect(url)
        except psycopg.Error as error:
            raise StoreError("PostgreSQL", str(error).strip()) from None
        with self.transaction():
            self.run("SET client_min_messages = warning")
            self.run(_BATCHES)

    def __repr__(self) -> str:
        return f"PostgresStore({self.address!r})"

    @property
    def address(self) -> str:
        """Where the server is, as ``host:port/database``."""
        info = self._connection.info
        return f"{info.host}:{info.port}/{info.dbname}"

    @property
    def database(self) -> str:
        """The name of the database."""
        return str(self._connection.info.dbname)

    @contextmanager
    def transaction(self, *, is_trial: bool = False) -> Iterator[None]:
        """Do everything inside or nothing; nothing at all in a trial, which only finds what would be refused.

        Raises:
            StoreError: the server refused something, or cannot be reached.
        """
        import psycopg

        try:
            with self._connection.transaction(force_rollback=is_trial):
                yield
        except psycopg.Error as error:
            raise StoreError(self.address, _reason(error)) from error

    def run(self, statement: str, parameters: list[Any] | None = None) -> psycopg.Cursor[tuple[Any, ...]]:
        """Run one statement in a transaction."""
        # Statements are put together here, from quoted names; psycopg wants to see that as bytes.
        return self._connection.execute(statement.encode(), parameters)

    def apply(self, batch: Batch) -> bool:
        """Apply a batch in one transaction; say whether it was new."""
        with self.transaction():
            self.run("INSERT INTO windowpane_batches VALUES (%s, -1) ON CONFLICT DO NOTHING", [batch.source])
            last = self.run("SELECT number FROM windowpane_batches WHERE source = %s FOR UPDATE", [batch.source]).fetchone()
            if last is not None and last[0] >= batch.number:
                return False
            self.prepare(batch)
            if batch.is_whole:
                self.run(f"DELETE FROM {quoted(batch.table)}")
            self._stage(batch)
            self.run(_merge_sql(batch))
            self.run("UPDATE windowpane_batches SET number = %s WHERE source = %s", [batch.number, batch.source])
        return True

    def prepare(self, batch: Batch) -> None:
        """Create the table of a batch, unless it is there, with these columns.

        Raises:
            ChangedViewSchemaError: it has others.
        """
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

    def _stage(self, batch: Batch) -> None:
        rows = to_text(batch.by_key())
        self.run(f"DROP TABLE IF EXISTS pg_temp.{_STAGING}")
        self.run(f"CREATE TEMP TABLE {_STAGING} (LIKE {quoted(batch.table)}, {GONE} boolean) ON COMMIT DROP")
        names = ", ".join(quoted(name) for name in rows.column_names)
        with self._connection.cursor().copy(f"COPY {_STAGING} ({names}) FROM STDIN".encode()) as copy:
            for part in rows.to_batches(max_chunksize=10_000):
                for row in zip(*(column.to_pylist() for column in part.columns), strict=True):
                    copy.write_row(row)

    def read(self, query: str) -> list[tuple[Any, ...]]:
        """Return the rows of a query on the store."""
        with self.transaction():
            return self.run(query).fetchall()

    def close(self) -> None:
        """Disconnect."""
        self._connection.close()


def _reason(error: psycopg.Error) -> str:
    """Return what the server said, without its hints, which are about statements that nobody wrote."""
    said = [part for part in (error.diag.message_primary, error.diag.message_detail) if part]
    return ". ".join(said) or str(error).strip()


def _merge_sql(batch: Batch) -> str:
    names = [quoted(name) for name in batch.columns.names]
    same = " AND ".join(f"t.{quoted(name)} IS NOT DISTINCT FROM s.{quoted(name)}" for name in batch.key) or "TRUE"
    sets = ", ".join(f"{name} = s.{name}" for name in names)
    return (
        f"MERGE INTO {quoted(batch.table)} AS t USING {_STAGING} AS s ON {same} "
        f"WHEN MATCHED AND s.{GONE} THEN DELETE "
        f"WHEN MATCHED THEN UPDATE SET {sets} "
        f"WHEN NOT MATCHED AND NOT s.{GONE} THEN INSERT ({', '.join(names)}) VALUES ({', '.join(f's.{name}' for name in names)})"
    )
