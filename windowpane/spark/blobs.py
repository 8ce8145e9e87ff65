"""Tables as blobs: how rows travel between the stages, many at a time."""

from __future__ import annotations

import pyarrow as pa

from windowpane.state.compact import from_stream, to_stream


def pack(table: pa.Table) -> bytes:
    """Return a table as one compact Arrow IPC stream."""
    blob: bytes = to_stream(table).to_pybytes()
    return blob


def unpack(blob: bytes | pa.Buffer) -> pa.Table:
    """Return the table of a blob made by ``pack``."""
    return from_stream(blob)
