"""Tables as blobs: how rows travel between the stages, many at a time."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from windowpane.arrays.columns import flat
from windowpane.hidden_columns import PARTITION, POSITION
from windowpane.spark.internals.worker import prepare_worker
from windowpane.state.compact import coded_texts, from_stream, texts_repeat, to_stream


def pack(table: pa.Table) -> bytes:
    blob: bytes = to_stream(table, lists=True).to_pybytes()
    return blob


def coded(table: pa.Table, name: str) -> pa.Table:
    """Return a table with the texts of a column as codes, if they repeat: each once, and a number a row.

    They are fewer bytes in the shuffle, and each text is hashed once.
    """
    place, texts = table.schema.get_field_index(name), table[name]
    if not pa.types.is_string(texts.type) or not texts_repeat(whole := flat(texts)):
        return table
    codes = coded_texts(whole)
    return table.set_column(place, table.schema.field(place).with_type(codes.type), codes)


def unpack(blob: bytes | pa.Buffer, coded: Container[str] = ()) -> pa.Table:
    """Return the table of a blob made by ``pack``, coded texts spelled but for those of the columns ``coded``."""
    return from_stream(blob, coded)


def unpacked(blobs: Iterable[bytes], coded: Container[str] = ()) -> list[pa.Table]:
    """Return the tables of blobs in an order that is the same when a batch is run again: those of several tasks arrive in any.

    Rows that have their place in the input come in its order, which whoever puts them in order gains from.
    """
    found = [(blob, unpack(blob, coded)) for blob in blobs]
    return [table for _, table in sorted(found, key=lambda each: (_place(each[1]), each[0]))]


def _place(table: pa.Table) -> tuple[int, int]:
    """Return where in the input the first row of a table was, by its task and the position there."""
    if not table.num_rows or PARTITION not in table.column_names or POSITION not in table.column_names:
        return -1, -1
    return table[PARTITION][0].as_py(), table[POSITION][0].as_py()


HEARTBEAT: bytes = pack(pa.table({}))
"""A blob without rows, which only has its bucket called."""


_PROBES = b"windowpane.probes"
PROBE: bytes = pack(pa.table({}).replace_schema_metadata({_PROBES: b""}))
"""A blob of no rows, which has its bucket compare layouts, and is no call of its engine."""


def is_probe(table: pa.Table) -> bool:
    return _PROBES in (table.schema.metadata or {})


def is_heartbeat(table: pa.Table) -> bool:
    return not table.num_columns and not table.schema.metadata


@dataclass(frozen=True)
class Decoder:
    """Unpacks the blobs of one output in ``mapInArrow``, and leaves the columns of ``schema``, in its order and types."""

    schema: pa.Schema

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        prepare_worker()
        for batch in batches:
            for blob in batch.column(0):
                table = unpack(blob.as_py()).select(self.schema.names).cast(self.schema)
                yield from table.combine_chunks().to_batches()
