"""What Delta and Iceberg have in common: rows by file, the schema compared, a changelog folded to what it leaves of each key."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa

from windowpane.arrays.values import Value
from windowpane.errors import InvalidSpecError, TableSchemaError
from windowpane.windowing.outputs import CHANGE_TYPE, DELETE, UPDATE_PREIMAGE

_FILE_ROWS = 1_000_000  # So many rows of a batch are one file of a task, at most


def by_file(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Yield the rows of a task, those of one file together."""
    pending: list[pa.RecordBatch] = []
    for batch in batches:
        if batch.num_rows:
            pending.append(batch)
        if sum(each.num_rows for each in pending) >= _FILE_ROWS:
            yield pa.Table.from_batches(pending)
            pending = []
    if pending:
        yield pa.Table.from_batches(pending)


def compared(table: str, there: pa.Schema, rows: pa.Schema, evolve: bool) -> list[pa.Field]:
    """Return the columns that a table lacks, to be added.

    Raises:
        TableSchemaError: the columns differ, in more than columns to add where it may evolve.
    """
    stored = {field.name: field.type for field in there}
    given = {field.name: field.type for field in rows}
    differences = {
        name: (_text(stored.get(name)), _text(given.get(name)))
        for name in dict.fromkeys((*stored, *given))
        if not _same(stored.get(name), given.get(name))
    }
    unmended = {name: each for name, each in differences.items() if not evolve or None not in each}
    if unmended:
        raise TableSchemaError(table, unmended)
    return [field for field in rows if field.name not in stored]


def _text(kind: pa.DataType | None) -> str | None:
    return None if kind is None else str(kind)


def _same(one: pa.DataType | None, other: pa.DataType | None) -> bool:
    return one is not None and other is not None and plain_type(one).equals(plain_type(other))


def plain_type(kind: pa.DataType) -> pa.DataType:
    """Return a type as tables have it: one of text, one of bytes, one of lists, and fields that may be null."""
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind):
        return pa.binary()
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(pa.field("element", plain_type(kind.value_type)))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, plain_type(field.type)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(plain_type(kind.key_type), plain_type(kind.item_type))
    return kind


def plain_schema(columns: Iterable[pa.Field]) -> pa.Schema:
    return pa.schema([pa.field(each.name, plain_type(each.type)) for each in columns])


def folded(batches: Iterable[pa.RecordBatch], schema: pa.Schema, key: Sequence[str]) -> tuple[pa.Table, pa.Array]:
    """Return the last row of each key in a changelog, in the columns of ``schema``, and whether it is deleted.

    Rows without ``_change_type`` replace the row of their key.
    """
    table = pa.Table.from_batches(list(batches))
    if not table.num_rows:
        return schema.empty_table(), pa.array([], pa.bool_())
    kinds = table[CHANGE_TYPE].to_pylist() if CHANGE_TYPE in table.column_names else [None] * table.num_rows
    last: dict[tuple[object, ...], int] = {}
    for number, row in enumerate(keys_of(table, key)):
        if kinds[number] != UPDATE_PREIMAGE:
            last[row] = number
    chosen = sorted(last.values())
    rows = table.select(schema.names).cast(schema).take(pa.array(chosen, pa.int64()))
    return rows, pa.array([kinds[number] == DELETE for number in chosen], pa.bool_())


def keys_of(rows: pa.Table, key: Sequence[str]) -> list[tuple[Value, ...]]:
    """Return the key of each row; NaN equals NaN."""
    columns = ([math.nan if each != each else each for each in rows[name].to_pylist()] for name in key)
    return list(zip(*columns, strict=True))


def refuse_nested(table: str, rows: pa.Schema, key: Sequence[str]) -> None:
    """Refuse a key that tables do not compare: arrays, structs and maps."""
    for name in key:
        if pa.types.is_nested(kind := rows.field(name).type):
            raise InvalidSpecError(
                f"key of {table}: {name!r} is {kind}, and tables are merged by columns of plain types. Name those of its fields "
                "that identify a row, columns that .select(...) of the results or of the sink makes."
            )
