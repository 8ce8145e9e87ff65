"""Columns of Arrow tables as single arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from windowpane.arrays import Integers


def flat(column: object) -> pa.Array:
    """Return a column as one array; Arrow copies a column that is one chunk already, so that is taken as it is.

    Lists and structs are copied all the same: who reads their values does not look where a slice of them begins.
    """
    if not isinstance(column, pa.ChunkedArray):
        return column
    return column.chunk(0) if column.num_chunks == 1 and not pa.types.is_nested(column.type) else column.combine_chunks()


def structs(table: pa.Table) -> pa.StructArray:
    """Return the rows of a table as structs; older versions of Arrow have no type for a table without rows."""
    return flat(table.to_struct_array()) if table.num_rows else pa.array([], pa.struct(table.schema))


def padded(table: pa.Table, columns: pa.Schema, names: Sequence[str] | None = None) -> pa.Table:
    """Return the columns ``names`` of a table, or those of a schema; columns of the schema that it does not have are NULL."""
    wanted, held = columns.names if names is None else list(names), table.column_names
    if held == wanted:
        return table
    for field in columns:
        if field.name not in held:
            table = table.append_column(field, pa.nulls(table.num_rows, field.type))
    return table.select(wanted)


def text_bounds(values: pa.LargeBinaryArray) -> Integers:
    """Return where in their bytes the values of an array begin, and where the last one ends."""
    bounds: Integers = np.frombuffer(values.buffers()[1], np.int64)[values.offset : values.offset + len(values) + 1]
    return bounds


def replaced(table: pa.Table, name: str, column: object) -> pa.Table:
    """Return a table with another column under a name that it has."""
    return table.set_column(table.column_names.index(name), name, column)


def with_columns(table: pa.Table, columns: Mapping[str, object]) -> pa.Table:
    """Return a table with these columns: each in place of the one of its name, or behind all others."""
    for name, column in columns.items():
        table = replaced(table, name, column) if name in table.column_names else table.append_column(name, column)
    return table


def side_by_side(table: pa.Table, other: pa.Table) -> pa.Table:
    """Return the columns of a table, then those of another one."""
    return pa.table([*table.columns, *other.columns], names=[*table.column_names, *other.column_names])


def split(rows: pa.Table, column: str) -> list[tuple[int, pa.Table]]:
    """Return (value, its rows without the column) for each value of an int64 column, in order; rows keep theirs."""
    if not rows.num_rows:
        return []
    values, body = rows[column].to_numpy(), rows.drop_columns([column])
    if (values[1:] < values[:-1]).any():
        order = np.argsort(values, kind="stable")
        values, body = values[order], body.take(pa.array(order))
    firsts = np.flatnonzero(np.append(True, values[1:] != values[:-1]))
    spans = zip(values[firsts].tolist(), firsts.tolist(), [*firsts[1:].tolist(), len(values)], strict=True)
    return [(value, body.slice(first, end - first)) for value, first, end in spans]
