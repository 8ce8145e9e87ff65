"""Tables as Arrow IPC blobs: how rows travel between the stages, several thousand at a time."""

from __future__ import annotations

import pyarrow as pa


def pack(table: pa.Table) -> bytes:
    """Return a table as one Arrow IPC stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    blob: bytes = sink.getvalue().to_pybytes()
    return blob


def unpack(blob: bytes) -> pa.Table:
    """Return the table of a blob made by ``pack``."""
    return pa.ipc.open_stream(blob).read_all()
