"""The PostgreSQL store: COPY into a staging table, then MERGE, in one transaction with the number of the batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from windowpane.errors import UnsupportedTypeError
from windowpane.stores.batches import GONE, Batch

if TYPE_CHECKING:
    import psycopg

_BATCHES = "CREATE TABLE IF NOT EXISTS windowpane_batches (source text PRIMARY KEY, number bigint NOT NULL)"
_STAGING = "windowpane_staging"


class PostgresStore:
    """Applies batches to tables of a PostgreSQL server, version 15 or newer. Several processes may write different tables.

    The table gets a unique index over the key in which NULLs are equal.

    Args:
        url: ``postgresql://user:password@host/database``.
    """

    def __init__(self, url: str) -> None:
        """Connect."""
        import psycopg

        self._url = url
        self._connection: psycopg.Connection[tuple[Any, ...]] = psycopg.connect(url)
        with self._connection.transaction():
            self._connection.execute("SET client_min_messages = warning")
            self._run(_BATCHES)

    def __repr__(self) -> str:
        return f"PostgresStore({self._url.rpartition('@')[2]!r})"

    def _run(self, statement: str, parameters: list[Any] | None = None) -> psycopg.Cursor[tuple[Any, ...]]:
        # Statements are put together here, from quoted names; psycopg wants to see that as bytes.
        return self._connection.execute(statement.encode(), parameters)

    def apply(self, batch: Batch) -> bool:
        """Apply a batch in one transaction; say whether it was new."""
        with self._connection.transaction():
            self._run("INSERT INTO windowpane_batches VALUES (%s, -1) ON CONFLICT DO NOTHING", [batch.source])
            last = self._run("SELECT number FROM windowpane_batches WHERE source = %s FOR UPDATE", [batch.source]).fetchone()
            if last is not None and last[0] >= batch.number:
                return False
            self._prepare(batch)
            self._stage(batch)
            self._run(_merge_sql(batch))
            self._run("UPDATE windowpane_batches SET number = %s WHERE source = %s", [batch.number, batch.source])
        return True

    def _prepare(self, batch: Batch) -> None:
        expected = {field.name: postgres_type(field.type, field.name) for field in batch.columns}
        found = self._run(
            "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute "
            "WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped ORDER BY attnum",
            [_quoted(batch.table)],
        )
        stored = {row[0]: row[1] for row in found.fetchall()}
        if stored:
            batch.check_schema(stored, expected)
            return
        columns = ", ".join(f"{_quoted(name)} {kind}" for name, kind in expected.items())
        self._run(f"CREATE TABLE {_quoted(batch.table)} ({columns})")
        if batch.key:
            key = ", ".join(_quoted(name) for name in batch.key)
            self._run(f"CREATE UNIQUE INDEX ON {_quoted(batch.table)} ({key}) NULLS NOT DISTINCT")

    def _stage(self, batch: Batch) -> None:
        rows = batch.by_key()
        self._run(f"CREATE TEMP TABLE {_STAGING} (LIKE {_quoted(batch.table)}, {GONE} boolean) ON COMMIT DROP")
        names = ", ".join(_quoted(name) for name in rows.column_names)
        with self._connection.cursor().copy(f"COPY {_STAGING} ({names}) FROM STDIN".encode()) as copy:
            for part in rows.to_batches(max_chunksize=10_000):
                columns = [_cells(column) for column in part.columns]
                for row in zip(*columns, strict=True):
                    copy.write_row(row)

    def read(self, query: str) -> list[tuple[Any, ...]]:
        """Return the rows of a query on the store."""
        with self._connection.transaction():
            return self._run(query).fetchall()

    def close(self) -> None:
        """Disconnect."""
        self._connection.close()


def _cells(column: pa.Array) -> list[Any]:
    if pa.types.is_interval(column.type):
        return [None if cell is None else _interval_text(cell) for cell in column.to_pylist()]
    return list(column.to_pylist())


def _interval_text(cell: Any) -> str:
    return f"{cell.months} months {cell.days} days {cell.nanoseconds // 1000} microseconds"


def _merge_sql(batch: Batch) -> str:
    names = [_quoted(name) for name in batch.columns.names]
    same = " AND ".join(f"t.{_quoted(name)} IS NOT DISTINCT FROM s.{_quoted(name)}" for name in batch.key) or "TRUE"
    sets = ", ".join(f"{name} = s.{name}" for name in names)
    return (
        f"MERGE INTO {_quoted(batch.table)} AS t USING {_STAGING} AS s ON {same} "
        f"WHEN MATCHED AND s.{GONE} THEN DELETE "
        f"WHEN MATCHED THEN UPDATE SET {sets} "
        f"WHEN NOT MATCHED AND NOT s.{GONE} THEN INSERT ({', '.join(names)}) VALUES ({', '.join(f's.{name}' for name in names)})"
    )


_TYPES: dict[Any, str] = {
    pa.bool_(): "boolean",
    pa.int8(): "smallint",
    pa.int16(): "smallint",
    pa.int32(): "integer",
    pa.int64(): "bigint",
    pa.float32(): "real",
    pa.float64(): "double precision",
    pa.date32(): "date",
    pa.month_day_nano_interval(): "interval",
}


def postgres_type(kind: pa.DataType, column: str) -> str:
    """Return the PostgreSQL type for an Arrow type, as ``format_type`` writes it.

    Raises:
        UnsupportedTypeError: there is none; the message names the column.
    """
    if kind in _TYPES:
        return _TYPES[kind]
    if pa.types.is_decimal(kind):
        return f"numeric({kind.precision},{kind.scale})"
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return "text"
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return "bytea"
    if pa.types.is_timestamp(kind):
        return "timestamp with time zone" if kind.tz else "timestamp without time zone"
    if pa.types.is_time(kind):
        return "time without time zone"
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return f"{postgres_type(kind.value_type, column)}[]"
    raise UnsupportedTypeError(f"column {column!r}: there is no PostgreSQL type for {kind}. Cast it before the sink.")


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
