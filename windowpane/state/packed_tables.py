"""Packed tables: an Arrow table as a small blob, each integer column as narrow as its values.

Layout: a framed Arrow IPC stream, compressed with LZ4. A column of integers is stored as the distance from its least value, in
the narrowest unsigned type that holds the greatest; type and least value stand in the metadata of its field. Times and counters
of one page lie close together, so a column of int64 usually takes one to four bytes a value before it is compressed.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from windowpane.state.codec import frame, unframe

_KIND, _VERSION = "packed-table", 1
_LEAST, _TYPE = b"least", b"type"
_WIDE = {str(kind): kind for kind in (pa.int64(), pa.int32(), pa.int16())}
_NARROW = ((8, pa.uint8()), (16, pa.uint16()), (32, pa.uint32()))
_OPTIONS = pa.ipc.IpcWriteOptions(compression="lz4")


def pack_table(table: pa.Table) -> bytes:
    """Return ``table`` as a blob that ``unpack_table`` reads back.

    Example:
        >>> unpack_table(pack_table(pa.table({"n": [10**12, 10**12 + 1]})))["n"].to_pylist()
        [1000000000000, 1000000000001]
    """
    columns = [_narrowed(field, column) for field, column in zip(table.schema, table.columns, strict=True)]
    fields = [field for field, _ in columns]
    batch = pa.RecordBatch.from_arrays([column for _, column in columns], schema=pa.schema(fields)) if columns else None
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, pa.schema(fields), options=_OPTIONS) as writer:
        if batch is not None:
            writer.write_batch(batch)
    return frame(_KIND, _VERSION, sink.getvalue().to_pybytes())


def unpack_table(blob: bytes) -> pa.Table:
    """Return the table of a blob.

    Raises:
        UnknownStateFormatError: the blob is none of these, or of an unknown version.
    """
    table = pa.ipc.open_stream(unframe(_KIND, _VERSION, blob)).read_all()
    columns = [_widened(field, column) for field, column in zip(table.schema, table.columns, strict=True)]
    return pa.table(columns, names=table.column_names)


def _narrowed(field: pa.Field, column: pa.ChunkedArray) -> tuple[pa.Field, pa.Array]:
    values = column.combine_chunks()
    if str(field.type) not in _WIDE:
        return field, values
    bounds = pc.min_max(values).as_py()
    least = bounds["min"] or 0
    span = (bounds["max"] or 0) - least
    for bits, kind in _NARROW:
        if bits < field.type.bit_width and span < 1 << bits:
            packed = pc.subtract(values, pa.scalar(least, field.type)).cast(kind, safe=False)
            return pa.field(field.name, kind, metadata={_LEAST: str(least), _TYPE: str(field.type)}), packed
    return field, values


def _widened(field: pa.Field, column: pa.ChunkedArray) -> pa.ChunkedArray:
    if not field.metadata or _LEAST not in field.metadata:
        return column
    kind = _WIDE[field.metadata[_TYPE].decode()]
    return pc.add(column.cast(kind, safe=False), pa.scalar(int(field.metadata[_LEAST]), kind))
