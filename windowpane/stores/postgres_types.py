"""The types of PostgreSQL for those of Arrow, and values in a spelling that PostgreSQL reads."""

from __future__ import annotations

from typing import Any

import duckdb
import pyarrow as pa

from windowpane.errors import UnsupportedTypeError
from windowpane.stores.names import quoted

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
        UnsupportedTypeError: there is none, as for structs, maps, and lists of lists; the message names the column.
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
    if _is_list(kind) and not pa.types.is_nested(kind.value_type):
        return f"{postgres_type(kind.value_type, column)}[]"
    raise UnsupportedTypeError(f"column {column!r}: there is no PostgreSQL type for {kind}. Cast it, or leave it out.")


def to_text(rows: pa.Table) -> pa.Table:
    """Return rows with instants, dates and intervals as text, alone and in lists: Python holds no year 10000 and no infinity."""
    spelled = {field.name: text for field in rows.schema if (text := _text_sql(quoted(field.name), field.type))}
    if not spelled:
        return rows
    items = [f"{spelled.get(name, quoted(name))} AS {quoted(name)}" for name in rows.column_names]
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("rows", rows)
        return connection.sql(f"SELECT {', '.join(items)} FROM rows").to_arrow_table()


def _text_sql(column: str, kind: pa.DataType) -> str | None:
    """Return a column as text, ``None`` if it holds no instants, dates or intervals."""
    if _is_list(kind) and _is_temporal(kind.value_type):
        return f"CAST({column} AS VARCHAR[])"
    return f"replace(CAST({column} AS VARCHAR), ' (BC)', ' BC')" if _is_temporal(kind) else None


def _is_temporal(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind) or pa.types.is_date(kind) or pa.types.is_interval(kind))


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind))
