"""The types of PostgreSQL for those of Arrow, and values in a spelling that PostgreSQL reads.

What PostgreSQL has no columns for, structs, maps and lists of these or of lists, is ``jsonb``: structs and maps are objects.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable

import duckdb
import pyarrow as pa

from windowpane.arrays.values import Value
from windowpane.errors import UnsupportedTypeError
from windowpane.stores.batches import quoted

_TYPES: dict[pa.DataType, str] = {
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
    """Return the PostgreSQL type for an Arrow type, as ``format_type`` writes it."""
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
    if _is_json(kind):
        return "jsonb"
    if _is_list(kind):
        return f"{postgres_type(kind.value_type, column)}[]"
    raise UnsupportedTypeError(f"column {column!r}: there is no PostgreSQL type for {kind}. Cast it, or leave it out.")


def to_text(rows: pa.Table) -> pa.Table:
    """Return rows with instants, dates and intervals as text, alone and in lists: Python holds no year 10000 and no infinity.

    What is ``jsonb`` is the text of it.
    """
    if not any(_is_json(field.type) or _text_sql("", field.type) for field in rows.schema):
        return rows
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("rows", rows)
        types = dict(zip(rows.column_names, connection.table("rows").types, strict=True))
        items = [f"{_item(field, types[field.name])} AS {quoted(field.name)}" for field in rows.schema]
        spelled: pa.Table = connection.sql(f"SELECT {', '.join(items)} FROM rows").to_arrow_table()
    for number, field in enumerate(rows.schema):
        if _is_json(field.type):
            kind = spelled.schema.field(number).type
            texts = [None if value is None else _json_text(value, kind) for value in spelled.column(number).to_pylist()]
            spelled = spelled.set_column(number, field.name, pa.array(texts, pa.string()))
    return spelled


def _item(field: pa.Field, kind: object) -> str:
    column = quoted(field.name)
    if _is_json(field.type):
        return f"CAST({column} AS {_without_times(kind)})"
    return _text_sql(column, field.type) or column


def _without_times(kind: pa.DataType) -> str:
    """Return a type of DuckDB with text in place of instants, dates, times and intervals."""
    if kind.id == "list":
        return f"{_without_times(kind.children[0][1])}[]"
    if kind.id == "struct":
        return f"STRUCT({', '.join(f'{quoted(name)} {_without_times(each)}' for name, each in kind.children)})"
    if kind.id == "map":
        return f"MAP({', '.join(_without_times(each) for _, each in kind.children)})"
    return "VARCHAR" if kind.id.startswith(("time", "date", "interval")) else str(kind)


def _json_text(value: Value, kind: pa.DataType) -> str:
    """Return a value as JSON, as ``to_jsonb`` of PostgreSQL writes it: numbers that JSON does not have are text."""
    if value is None:
        return "null"
    if pa.types.is_struct(kind):
        return _object((field.name, _json_text(value[field.name], field.type)) for field in kind)
    if pa.types.is_map(kind):
        return _object((str(key), _json_text(each, kind.item_type)) for key, each in value)
    if _is_list(kind):
        return f"[{', '.join(_json_text(each, kind.value_type) for each in value)}]"
    if isinstance(value, bytes):
        return json.dumps(f"\\x{value.hex()}")
    if isinstance(value, bool | str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, float) and not math.isfinite(value):
        return '"NaN"' if math.isnan(value) else f'"{"-" if value < 0 else ""}Infinity"'
    return str(value)


def _object(members: Iterable[tuple[str, str]]) -> str:
    return f"{{{', '.join(f'{json.dumps(name, ensure_ascii=False)}: {text}' for name, text in members)}}}"


def _text_sql(column: str, kind: pa.DataType) -> str | None:
    """Return a column as text, ``None`` if it holds no instants, dates or intervals."""
    if _is_list(kind) and _is_temporal(kind.value_type):
        return f"CAST({column} AS VARCHAR[])"
    return f"replace(CAST({column} AS VARCHAR), ' (BC)', ' BC')" if _is_temporal(kind) else None


def _is_temporal(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind) or pa.types.is_date(kind) or pa.types.is_interval(kind))


def _is_json(kind: pa.DataType) -> bool:
    nested = kind.value_type if _is_list(kind) else kind
    return bool(pa.types.is_nested(nested))


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind))
