"""Wire: what an operator emitted, as rows of Spark's.

A row carries the number of an output and a table of it as a blob; one row, ``COUNTER_ROW``, carries counters. Main rows travel
as columns of their own where all their types have a plain form, arrays and structs of such types included: then Spark reads them
as they are, without another Python stage to unpack blobs. The plain form of a column of instants is their microseconds, which
PySpark's workers hand over untouched.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql import types as T

from windowpane.engines.program import MAIN
from windowpane.engines.protocol import COUNTERS, BucketOutput
from windowpane.errors import present
from windowpane.malformed import MALFORMED_COUNT, MALFORMED_ROWS, shown_row
from windowpane.spark.stages.blobs import pack
from windowpane.spark.stages.messages import counted_once, malformed_read, marked
from windowpane.spark.stages.types import TIMESTAMP, spark_schema
from windowpane.windowing.times import MIN
from windowpane.windowing.watermarks import WatermarkState

if TYPE_CHECKING:
    from pyspark.sql import Column

_SHOWN = 10  # So many malformed rows of a batch are shown in its progress

COUNTER_ROW = -1
WATERMARK_ROW = -2  # A row that reports the watermark of a bucket to the operator behind it, where Spark does not make it

LARGEST_BLOB = 16 << 20  # Bytes of a table that travels as one blob, about: the JVM holds several copies of a blob on its heap

_TAGGED = pa.schema([pa.field("output", pa.int32()), pa.field("blob", pa.binary())])
_PLAIN = (
    T.BooleanType,
    T.ByteType,
    T.ShortType,
    T.IntegerType,
    T.LongType,
    T.FloatType,
    T.DoubleType,
    T.DecimalType,
    T.StringType,
    T.BinaryType,
    T.DateType,
    T.TimestampType,
    T.TimestampNTZType,
)


@dataclass(frozen=True)
class Wire:
    # the columns of the main output that travel as columns; ``None`` where all outputs travel as blobs
    main: pa.Schema | None = None
    counters: tuple[str, ...] = COUNTERS  # the names of the counters
    # makes the blobs of the main output of what an engine emitted; ``None`` where it travels as it is
    main_blobs: Callable[[pa.Table], Iterable[bytes]] | None = None
    # whether tables of the main output are cut into pieces of about ``LARGEST_BLOB``: not where they are written to files
    cuts_main: bool = True
    # what the numbers of its other outputs are raised by, so that those of programs of a chain differ; each of their tables says
    # its number then. ``None`` where nothing passes them on
    numbered_from: int | None = None

    @property
    def schema(self) -> pa.Schema:
        plain = [] if self.main is None else [pa.field(_column(i), _plain(f.type)) for i, f in enumerate(self.main)]
        return pa.schema([*_TAGGED, *plain])

    @property
    def spark_schema(self) -> T.StructType:
        return spark_schema(self.schema)

    def rows(
        self, output: BucketOutput, passed: Sequence[tuple[int, pa.Table]] = (), own_watermark: WatermarkState | None = None
    ) -> pa.Table:
        return pa.concat_tables(list(self.frames(output, passed, own_watermark))).combine_chunks()

    def frames(
        self, output: BucketOutput, passed: Sequence[tuple[int, pa.Table]] = (), own_watermark: WatermarkState | None = None
    ) -> Iterator[pa.Table]:
        """Yield what a bucket emitted and passed on as rows of ``schema``, about ``LARGEST_BLOB`` at once, in single chunks."""
        waiting: list[pa.Table] = []
        size = 0
        for number, piece in self._cut(map(self._numbered, output.tables)):
            if waiting and size + piece.nbytes > LARGEST_BLOB:  # a piece alone is not copied
                yield pa.concat_tables(waiting).combine_chunks()
                waiting, size = [], 0
            waiting.append(
                self._main_rows(piece)
                if self.main is not None and number == MAIN
                else self._blob_rows(self.packed([(number, piece)]))
            )
            size += piece.nbytes
        counted = (COUNTER_ROW, _counted(output, self.counters, malformed_read(passed), own_watermark).encode())
        yield pa.concat_tables([*waiting, self._blob_rows([*self.packed(counted_once(passed)), counted])]).combine_chunks()

    def _cut(self, tables: Iterable[tuple[int, pa.Table]]) -> Iterator[tuple[int, pa.Table]]:
        for number, table in tables:
            for piece in [table] if number == MAIN and not self.cuts_main else _pieces(table):
                yield number, piece

    def _numbered(self, emitted: tuple[int, pa.Table]) -> tuple[int, pa.Table]:
        number, table = emitted
        if number <= MAIN or self.numbered_from is None:
            return emitted
        return number + self.numbered_from, marked(table, number + self.numbered_from)

    def _main_rows(self, table: pa.Table) -> pa.Table:
        main = present(self.main, "the caller has checked")
        columns = [table[field.name].cast(field.type).cast(_plain(field.type)) for field in main]
        outputs = pa.array(np.full(table.num_rows, MAIN, np.int32))
        return pa.table([outputs, pa.nulls(table.num_rows, pa.binary()), *columns], schema=self.schema)

    def packed(self, tables: Iterable[tuple[int, pa.Table]]) -> list[tuple[int, bytes]]:
        found: list[tuple[int, bytes]] = []
        for number, piece in self._cut(tables):
            blobs = [pack(piece)] if self.main_blobs is None or number != MAIN else self.main_blobs(piece)
            found += [(number, blob) for blob in blobs]
        return found

    def _blob_rows(self, rows: Sequence[tuple[int, bytes]]) -> pa.Table:
        columns = [pa.array([row[place] for row in rows], field.type) for place, field in enumerate(_TAGGED)]
        nulls = [pa.nulls(len(rows), field.type) for field in list(self.schema)[len(_TAGGED) :]]
        return pa.table([*columns, *nulls], schema=self.schema)

    def main_columns(self, names: Iterable[str]) -> list[Column]:
        main = present(self.main, "the caller has checked")
        return [_read(_column(main.get_field_index(name)), main.field(name).type).alias(name) for name in names]


def _pieces(table: pa.Table) -> Iterator[pa.Table]:
    step = max(1, table.num_rows * LARGEST_BLOB // max(1, table.nbytes))
    if table.num_rows <= step:
        yield table
        return
    for at in range(0, table.num_rows, step):
        yield table.slice(at, step)


def wire_of(arrow: pa.Schema, spark: T.StructType) -> Wire:
    """Return how main rows of these columns travel: as columns if each has a plain form and the type that Spark gives it."""
    natural = spark_schema(arrow)
    same = all(given.dataType == found.dataType for given, found in zip(spark.fields, natural.fields, strict=True))
    return Wire(arrow if same and all(_has_plain(field.dataType) for field in spark) else None)


def _counted(
    output: BucketOutput, names: Sequence[str], malformed: Sequence[pa.Table], own_watermark: WatermarkState | None
) -> str:
    """Return the text of a counter row: the counters, the malformed rows, and where it is the operator's own the watermark."""
    counters = [str(getattr(output.counters, name)) for name in names]
    counters += [str(sum(table.num_rows for table in malformed)), _some(malformed)]
    if own_watermark is not None:
        reached = "" if own_watermark.watermark == MIN else str(own_watermark.watermark + 1)
        counters += [reached, own_watermark.held_by.replace(",", ";")]
    return ",".join(counters)


def _some(malformed: Sequence[pa.Table]) -> str:
    shown = [shown_row(row) for table in malformed for row in table.slice(0, _SHOWN).to_pylist()][:_SHOWN]
    return base64.b64encode(json.dumps(shown).encode()).decode() if shown else ""


def counter_columns(names: Sequence[str], with_watermark: bool = False) -> list[Column]:
    """Return the Columns that add up the counters of all rows, for ``DataFrame.observe``.

    With the watermark of counter rows: ``watermark``, in Spark's meaning (nothing before it is still expected), and
    ``watermark_held_by``, of the bucket that is furthest behind.
    """
    # As texts: the JVM parses one in a fraction of the time that it takes to put it together call by call.
    columns = [f"coalesce(sum(cast({_counter(i)} AS bigint)), 0L) AS {name}" for i, name in enumerate(names, start=1)]
    columns.append(f"coalesce(sum(cast({_counter(len(names) + 1)} AS bigint)), 0L) AS {MALFORMED_COUNT}")
    columns.append(f"max(nullif({_counter(len(names) + 2)}, '')) AS {MALFORMED_ROWS}")  # one bucket gets all of a batch
    if with_watermark:
        reached, held_by = (_counter(len(names) + i) for i in (3, 4))
        micros = f"cast(nullif({reached}, '') AS bigint)"
        columns.append(f"min(timestamp_micros({micros})) AS watermark")
        columns.append(f"coalesce(min_by({held_by}, {micros}), max({held_by})) AS watermark_held_by")
    return [F.expr(column) for column in columns]


def _counter(number: int) -> str:
    return f"CASE WHEN output = {COUNTER_ROW} THEN split_part(cast(blob AS string), ',', {number}) END"


def _column(index: int) -> str:
    return f"c{index}"


def _has_plain(kind: T.DataType) -> bool:
    if isinstance(kind, T.ArrayType):
        return _has_plain(kind.elementType)
    if isinstance(kind, T.StructType):
        return len(set(kind.names)) == len(kind) and all(_has_plain(field.dataType) for field in kind)
    return isinstance(kind, _PLAIN)


def _plain(kind: pa.DataType) -> pa.DataType:
    return pa.int64() if kind == TIMESTAMP else kind


def _read(column: str, kind: pa.DataType) -> Column:
    return F.timestamp_micros(column) if kind == TIMESTAMP else F.col(column)
