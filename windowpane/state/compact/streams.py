"""Compact tables: Arrow IPC streams with integers and times in as few bytes as their values need.

A state call costs some 20 ms a megabyte, a shuffled megabyte several copies, and most 64-bit columns of partials and results hold
small counts, or one time over and over. So a column of 64-bit integers, timestamps or durations is stored as the distance from
its least value, in 8, 16 or 32 bits. The field's metadata say how to read it; a stream without them reads as it is. Where that
is asked for, lists of integers are stored so, too, and texts that repeat, in lists and in columns, with each text once.

Pure functions: nothing here mutates or needs recovery.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from windowpane.sizes import Size
from windowpane.state.compact.distances import distance_type, distances
from windowpane.state.compact.lists import with_compact_lists, with_plain_lists
from windowpane.state.compact.texts import with_coded_texts, with_plain_texts

_BASE = b"windowpane.base"
_FEW_ROWS = Size("rows not worth storing compactly", 64, (1, 3))
"""Below so many rows there is nothing to gain."""
SMALL = Size("rows stored compactly by numpy", 1 << 13, (1, 4, 20))
"""So few that a call of Arrow's functions costs more than what it does."""


def to_stream(
    table: pa.Table, compression: str | None = None, *, lists: bool = False, structs: bool = False, texts: bool = False
) -> pa.Buffer:
    """Return a table as a compact Arrow IPC stream.

    Args:
        table: the table.
        compression: as Arrow names it (``lz4``, ``zstd``), ``None`` for none.
        lists: whether lists of integers and of texts may be stored compactly, too.
        structs: whether lists of structs may be, as well.
        texts: whether columns of texts that repeat may be stored with each text once.
    """
    stored = table if table.num_rows < _FEW_ROWS.value else _narrowed(table)
    stored = with_compact_lists(stored, structs) if lists or structs else stored
    stored = with_coded_texts(stored) if texts else stored
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, stored.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
        writer.write_table(stored)
    return sink.getvalue()


def from_stream(stream: bytes | memoryview | pa.Buffer, coded: Container[str] = ()) -> pa.Table:
    """Return the table that ``to_stream`` was given, coded texts spelled but for those of the columns ``coded``."""
    return with_plain_texts(with_plain_lists(_widened(pa.ipc.open_stream(stream).read_all())), coded)


def _narrowed(table: pa.Table) -> pa.Table:
    fields, columns = [], []
    for field, column in zip(table.schema, table.columns, strict=True):
        found = _narrow(column) if _is_wide(field.type) else None
        if found is not None:
            base, column = found
            field = pa.field(field.name, column.type, metadata={_BASE: f"{base} {_name(field.type)}".encode()})
        fields.append(field)
        columns.append(column)
    return pa.table(columns, schema=pa.schema(fields, table.schema.metadata))


def _narrow(column: pa.ChunkedArray) -> tuple[int, pa.Array | pa.ChunkedArray] | None:
    """Return the least value and the distances from it, ``None`` if they take 64 bits all the same."""
    numbers = _whole(column)
    if numbers is None:
        return distances(column.cast(pa.int64()))
    least, greatest = int(numbers.min()), int(numbers.max())
    kind = distance_type(greatest - least)
    return None if kind is None else (least, pa.array((numbers - least).astype(kind.to_pandas_dtype())))


def _whole(column: pa.ChunkedArray) -> npt.NDArray[Any] | None:
    """Return a column of few rows as numpy sees it, ``None`` for others."""
    if column.null_count or column.num_chunks != 1 or len(column) > SMALL.value:
        return None
    values = column.chunk(0)
    numbers: npt.NDArray[Any] = (values if pa.types.is_integer(values.type) else values.view(pa.int64())).to_numpy()
    return numbers


def _widened(table: pa.Table) -> pa.Table:
    if not any(field.metadata and _BASE in field.metadata for field in table.schema):
        return table
    fields, columns = [], []
    for field, column in zip(table.schema, table.columns, strict=True):
        if field.metadata and _BASE in field.metadata:
            base, _, name = field.metadata[_BASE].decode().partition(" ")
            kind = _TYPES[name]
            column = _widen(column, int(base), kind)
            field = pa.field(field.name, kind)
        fields.append(field)
        columns.append(column)
    return pa.table(columns, schema=pa.schema(fields, table.schema.metadata))


def _widen(column: pa.ChunkedArray, base: int, kind: pa.DataType) -> pa.Array | pa.ChunkedArray:
    distances = _whole(column)
    if distances is None:
        numbers = column.cast(pa.int64())
        return (numbers if base == 0 else pc.add(numbers, base)).cast(kind)
    return pa.array(np.add(distances, base, dtype=np.int64)).view(kind)


_UNITS = ("s", "ms", "us", "ns")
_TYPES = {
    "int64": pa.int64(),
    **{f"timestamp {unit}": pa.timestamp(unit) for unit in _UNITS},
    **{f"timestamp {unit} UTC": pa.timestamp(unit, "UTC") for unit in _UNITS},
    **{f"duration {unit}": pa.duration(unit) for unit in _UNITS},
}
_NAMES = {kind: name for name, kind in _TYPES.items()}


def _is_wide(kind: pa.DataType) -> bool:
    return kind in _NAMES


def _name(kind: pa.DataType) -> str:
    return _NAMES[kind]
