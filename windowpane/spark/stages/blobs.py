"""Tables as blobs: how rows travel between the stages, many at a time."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from windowpane.arrays.columns import flat
from windowpane.engines.program import MAIN
from windowpane.hidden_columns import PASSED
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


@dataclass(frozen=True)
class Decoder:
    """Unpacks blobs in ``mapInArrow``, and leaves the columns of ``schema``, in its order and types.

    Batches are (blob), all of one output. With ``passes`` they are (output, blob), and blobs of outputs other than the main one
    come along unread, in a column ``PASSED``.
    """

    schema: pa.Schema
    passes: bool = False

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        prepare_worker()
        for batch in batches:
            outputs = batch.column(0).to_pylist() if self.passes else [MAIN] * batch.num_rows
            for output, blob in zip(outputs, batch.columns[-1].to_pylist(), strict=True):
                yield from self._rows(output, blob).combine_chunks().to_batches()

    def _rows(self, output: int, blob: bytes) -> pa.Table:
        if output != MAIN:
            columns = [*(pa.nulls(1, field.type) for field in self.schema), pa.array([blob], pa.binary())]
            return pa.table(columns, schema=self.schema.append(pa.field(PASSED, pa.binary())))
        rows = unpack(blob).select(self.schema.names).cast(self.schema)
        return rows.append_column(PASSED, pa.nulls(rows.num_rows, pa.binary())) if self.passes else rows
