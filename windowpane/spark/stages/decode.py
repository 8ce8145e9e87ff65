"""Decode: the blobs of one output -> typed columns. Runs in ``mapInArrow``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from windowpane.spark.internals.worker import prepare_worker
from windowpane.spark.stages.blobs import unpack


@dataclass(frozen=True)
class Decoder:
    """Unpacks blobs and keeps the columns of ``schema``, in its order and types."""

    schema: pa.Schema

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Decode the batches of one partition."""
        prepare_worker()
        for batch in batches:
            for blob in batch.column(0):
                table = unpack(blob.as_py()).select(self.schema.names).cast(self.schema)
                yield from table.combine_chunks().to_batches()
