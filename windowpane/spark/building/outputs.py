"""Outputs: which rows of an operator belong to an output, and the columns they hold. Small and picklable, for batch functions."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql import types as T

from windowpane.engines.program import MAIN, WINDOW_END
from windowpane.hidden_columns import PASSED, PREFIX
from windowpane.spark.sources.source import OWN_WATERMARK, PASSED_ON
from windowpane.spark.sources.source import WINDOW_END as END_OF_WINDOW
from windowpane.spark.stages.blobs import Decoder
from windowpane.spark.stages.project import quoted
from windowpane.spark.stages.wire import Wire

ToBlobs = Callable[[pa.RecordBatch], Iterable[bytes]]


@dataclass(frozen=True)
class _Mapped:
    """A function on rows of an output, their columns by other names: the blobs that leave the operator in their place.

    It is unpickled when it is called first: the process beside the driver that plans a stateful operator calls nothing, and would
    import all that the function needs.
    """

    columns: pa.Schema
    names: Mapping[str, str]
    pickled: bytes

    @cached_property
    def function(self) -> ToBlobs:
        found: ToBlobs = pickle.loads(self.pickled)
        return found

    def __call__(self, table: pa.Table) -> Iterator[bytes]:
        rows = table.select(self.columns.names).cast(self.columns).combine_chunks()
        for batch in rows.to_batches():
            arrays = [batch[name] for name in self.names.values()]
            yield from self.function(pa.RecordBatch.from_arrays(arrays, names=list(self.names)))


@dataclass(frozen=True)
class Output:
    """One output of a program.

    Args:
        name: ``"main"`` or the name of a side output.
        number: the number that tags its rows.
        arrow: names and types of its columns as the operator emits them.
        spark: the same as Spark has them.
        with_system: whether rows keep the columns that a window downstream needs.
        passing: the numbers of other rows whose blobs come along, in ``PASSED``: of side outputs, and ``WATERMARK_ROW``.
        own_watermark: the watermark as text where the operator makes it itself, ``None`` where Spark passes it on.
    """

    name: str
    number: int
    arrow: pa.Schema
    spark: T.StructType
    with_system: bool = False
    passing: tuple[int, ...] = ()
    own_watermark: str | None = None

    def of(self, rows: Any, wire: Wire) -> Any:
        names = [name for name in self.arrow.names if self.with_system or not name.startswith(PREFIX)]
        read = self.read(rows, wire, names)
        if self.number != MAIN:
            return read
        passed = {PASSED_ON: END_OF_WINDOW} if self.own_watermark is None else {OWN_WATERMARK: self.own_watermark}
        marked = F.col(WINDOW_END).alias(WINDOW_END, metadata=passed)
        return read.select(*[marked if name == WINDOW_END else F.col(quoted(name)) for name in names], *self.passed)

    @property
    def passed(self) -> list[Any]:
        return [F.col(PASSED)] if self.passing else []

    @property
    def column_names(self) -> tuple[str, ...]:
        return tuple(self.emitted)

    @property
    def emitted(self) -> Mapping[str, str]:
        """The columns that users see, each by its name, with the name that it has in ``arrow``."""
        return {name: name for name in self.arrow.names if not name.startswith(PREFIX)}

    def mapped_by(self, function: ToBlobs) -> Callable[[pa.Table], Iterator[bytes]]:
        """Return what makes blobs of rows of this output, as an engine emits them, by a function that can be pickled."""
        names = self.emitted
        arrow = pa.schema([self.arrow.field(name) for name in dict.fromkeys(names.values())])
        return _Mapped(arrow, names, pickle.dumps(function))

    def read(self, rows: Any, wire: Wire, names: Sequence[str]) -> Any:
        """Return columns of this output: as they travelled, or from its blobs."""
        if self.passing:
            return self._with_passed(rows, wire, names)
        tagged = rows.filter(F.col("output") == self.number)
        if self.number == MAIN and wire.main is not None:
            return tagged.select(*wire.main_columns(names))
        arrow = pa.schema([self.arrow.field(name) for name in names])
        return tagged.select("blob").mapInArrow(Decoder(arrow).__call__, T.StructType([self.spark[name] for name in names]))

    def _with_passed(self, rows: Any, wire: Wire, names: Sequence[str]) -> Any:
        tagged = rows.filter(F.col("output").isin(self.number, *self.passing))
        if wire.main is not None:
            passed = F.when(F.col("output") != self.number, F.col("blob")).alias(PASSED)
            return tagged.select(*wire.main_columns(names), passed)
        arrow = pa.schema([self.arrow.field(name) for name in names])
        carried = T.StructType([*(self.spark[name] for name in names), T.StructField(PASSED, T.BinaryType(), True)])
        return tagged.select("output", "blob").mapInArrow(Decoder(arrow, passes=True).__call__, carried)
