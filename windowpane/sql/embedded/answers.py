"""The rows of a query: in batches, read while DuckDB makes them, or as a table whose size has a bound.

DuckDB's own limit of memory does not count rows that it has returned, so a query of a billion rows, taken as one table, ends the
process. ``to_arrow_reader`` of a relation returns one vector of rows after the other, and computes no further than it is read.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import duckdb
import pyarrow as pa

from windowpane.errors import ResultSizeError
from windowpane.sql.failures.duck_words import raised_while_reading

VECTOR_ROWS = 2048
"""The rows that DuckDB computes at once. It makes larger batches before anyone can measure how large they are."""


def table_of(connection: duckdb.DuckDBPyConnection, sql: str, most: int) -> pa.Table:
    """Return the result of a query as a table."""
    with closing(_reader(connection, sql)) as reader:
        schema, read, size, rows = reader.schema, list[pa.RecordBatch](), 0, 0
        for batch in _batches(reader):
            read.append(batch)
            size, rows = size + batch.nbytes, rows + batch.num_rows
            if most and size > most:
                read.clear()
                raise ResultSizeError(most, rows)
    return pa.Table.from_batches(read, schema)


def parts_of(connection: duckdb.DuckDBPyConnection, sql: str, rows: int, most: int = 0) -> Iterator[pa.Table]:
    """Yield the result of a query in tables of about ``rows`` rows; at least one, without rows if there are none.

    Args:
        connection: where it runs.
        sql: the query.
        rows: that a table has at most.
        most: the bytes that it has at most, or those of one vector of rows; 0 for any number.
    """
    with closing(_reader(connection, sql)) as reader:
        schema, read, count, size = reader.schema, list[pa.RecordBatch](), 0, 0
        for batch in _batches(reader):
            for start in range(0, batch.num_rows, rows):
                piece = batch.slice(start, rows)
                if count and (count + piece.num_rows > rows or (most and size + piece.nbytes > most)):
                    yield pa.Table.from_batches(read, schema)
                    read, count, size = [], 0, 0
                read.append(piece)
                count, size = count + piece.num_rows, size + piece.nbytes
        yield pa.Table.from_batches(read, schema)


def _reader(connection: duckdb.DuckDBPyConnection, sql: str) -> pa.RecordBatchReader:
    return connection.sql(sql).to_arrow_reader(VECTOR_ROWS)


def _batches(reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    """Yield the batches of a reader, with its failures as DuckDB's errors: Arrow passes only their text."""
    try:
        yield from reader
    except OSError as error:
        raise raised_while_reading(error) from None
