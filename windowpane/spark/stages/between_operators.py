"""Passing: from one operator to the next of a chain, in ``mapInArrow``.

Main rows become columns again, for Spark to hash and the next encoder to pack. A blob of another output (late rows of the first
operator) travels as it is, in a column of its own, and leaves the chain at its end under its old number, which it says itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from windowpane.engines.program import MAIN
from windowpane.hidden_columns import PASSED
from windowpane.spark.stages.blobs import unpack

_OUTPUT = b"windowpane.output"


@dataclass(frozen=True)
class NextOperatorRows:
    """Turns (output, blob) of one operator into rows of ``schema`` and ``PASSED``."""

    schema: pa.Schema

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Pass on the batches of one partition."""
        for batch in batches:
            for output, blob in zip(batch.column(0), batch.column(1), strict=True):
                table = unpack(blob.as_py())
                passed = self._rows(table) if output.as_py() == MAIN else self._unread(blob.as_py())
                yield from passed.combine_chunks().to_batches()

    def _rows(self, table: pa.Table) -> pa.Table:
        rows = table.select(self.schema.names).cast(self.schema)
        return rows.append_column(PASSED, pa.nulls(rows.num_rows, pa.binary()))

    def _unread(self, blob: bytes) -> pa.Table:
        columns = [pa.nulls(1, field.type) for field in self.schema]
        return pa.table([*columns, pa.array([blob], pa.binary())], schema=self.schema.append(pa.field(PASSED, pa.binary())))


def marked(table: pa.Table, output: int) -> pa.Table:
    """Return a table that says which output it is of, wherever it is passed on to."""
    return table.replace_schema_metadata({**(table.schema.metadata or {}), _OUTPUT: str(output)})


def output_passed(table: pa.Table) -> int | None:
    """Return the number of the output that a table is passed on for, ``None`` for rows of the operator itself."""
    number = (table.schema.metadata or {}).get(_OUTPUT)
    return None if number is None else int(number)
