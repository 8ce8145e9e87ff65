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
from windowpane.spark.stages.blobs import pack, unpack

_OUTPUT = b"windowpane.output"
_READ = b"windowpane.read"
"""Marks malformed rows that no operator has counted yet."""

MALFORMED = -3
"""The number of the output of malformed rows."""


@dataclass(frozen=True)
class NextOperatorRows:
    """Turns (output, blob) of one operator into rows of ``schema`` and ``PASSED``."""

    schema: pa.Schema

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
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


def malformed_blob(rows: pa.Table) -> bytes:
    """Return malformed rows on their way to the output of them."""
    return pack(rows.replace_schema_metadata({_OUTPUT: str(MALFORMED), _READ: ""}))


def malformed_read(passed: Iterable[tuple[int, pa.Table]]) -> list[pa.Table]:
    """Return the malformed rows that no operator has counted yet, of what is passed on."""
    return [table for _, table in passed if _READ in (table.schema.metadata or {})]


def counted_once(passed: Iterable[tuple[int, pa.Table]]) -> Iterator[tuple[int, pa.Table]]:
    """Yield what is passed on behind an operator that has counted the malformed rows in it."""
    for output, table in passed:
        metadata = {name: value for name, value in (table.schema.metadata or {}).items() if name != _READ}
        yield output, table.replace_schema_metadata(metadata)


def output_passed(table: pa.Table) -> int | None:
    """Return the number of the output that a table is passed on for, ``None`` for rows of the operator itself."""
    number = (table.schema.metadata or {}).get(_OUTPUT)
    return None if number is None else int(number)


def parted(tables: list[pa.Table]) -> tuple[list[pa.Table], list[tuple[int, pa.Table]]]:
    """Return the rows for the engine, and what an earlier operator emitted to another output, by its number."""
    outputs = [output_passed(table) for table in tables]
    rows = [table for output, table in zip(outputs, tables, strict=True) if output is None]
    return rows, [(output, table) for output, table in zip(outputs, tables, strict=True) if output is not None]
