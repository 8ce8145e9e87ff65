"""Documents of JSON as the texts of their fields, as they are written: Spark's functions would read numbers as doubles."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from windowpane.malformed import json_cells


@dataclass(frozen=True)
class Fields:
    """Of rows whose last column is a document: the others, a text for each field, and the document where it is no object."""

    fields: tuple[str, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            *others, documents = batch.columns
            names = [*batch.schema.names[:-1], *self.fields, batch.schema.names[-1]]
            yield pa.RecordBatch.from_arrays([*others, *self._texts(documents)], names=names)

    def _texts(self, documents: pa.Array) -> Iterator[pa.Array]:
        given = [(str(at), each.encode()) for at, each in enumerate(documents.to_pylist()) if each is not None]
        cells = json_cells(given, self.fields)
        rows = np.full(len(documents), -1)
        rows[[int(position) for position in cells.positions]] = np.arange(len(cells.positions))
        places = pa.array(rows, mask=rows < 0)
        for name in self.fields:
            yield pa.array(cells.columns[name], pa.string()).take(places)
        yield documents.take(pa.array(np.arange(len(rows)), mask=rows >= 0))
