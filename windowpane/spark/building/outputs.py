"""Outputs: which rows of an operator belong to an output, and the columns they hold. Small and picklable, for batch functions."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, reduce
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql import types as T

from windowpane.engines.program import LATE, MAIN
from windowpane.errors import present
from windowpane.hidden_columns import FIRING_WATERMARK, PASSED, PREFIX, TIME
from windowpane.spark.building.expressions import column_of, columns_in
from windowpane.spark.sources.source import DELAY, OWN_TIME, OWN_WATERMARK, PASSED_ON, ROW_TIME, Source
from windowpane.spark.sources.source import WINDOW_END as END_OF_WINDOW
from windowpane.spark.stages.blobs import Decoder
from windowpane.spark.stages.types import spark_schema
from windowpane.spark.stages.wire import Wire
from windowpane.windowing.aggregates.results import Select, Step
from windowpane.windowing.expressions import Expression, Name, names_in
from windowpane.windowing.outputs import CHANGE_TYPE, DELETE, INSERT, UPDATE_POSTIMAGE, UPDATE_PREIMAGE, OutputTag

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ToBlobs = Callable[[pa.RecordBatch], Iterable[bytes]]
_COMPUTED = "rows that leave an operator as blobs have no column that Spark computes"
Selected = tuple[tuple[str, Expression], ...]


def time_mark(source: Source, kind: str, behind: int) -> dict[str, object]:
    """Return the metadata of the event time of rows that leave at most ``behind`` microseconds behind the watermark."""
    own = source.own_watermark
    return {PASSED_ON: kind, DELAY: source.delay + behind} if own is None else {OWN_WATERMARK: repr(own), OWN_TIME: kind}


def time_marks(
    source: Source, selected: Selected, behind: int | None, event_time: str | None = None
) -> dict[str, Mapping[str, object]]:
    """Return the marks of rows that leave with their event time, at most ``behind`` microseconds behind; none without a bound.

    It is the column ``event_time`` of the operator's output, or that of the source.
    """
    if behind is None or not source.has_watermark:
        return {}
    metadata = time_mark(source, END_OF_WINDOW if source.is_window_end else ROW_TIME, behind)
    time = source.event_time if event_time is None else event_time
    return {name: metadata for name, made in selected if isinstance(made, Name) and made.name == time}


def stepped(rows: DataFrame, step: Step, carried: Sequence[str] = ()) -> DataFrame:
    """Return rows behind a step; columns that are ``carried`` stay, and so do rows that are only handed on."""
    if isinstance(step, Select):
        return rows.select(*[column_of(made).alias(name) for name, made in step.columns], *carried)
    condition = column_of(step.condition)
    kept = rows.filter(F.coalesce(condition, F.lit(False)) | F.col(PASSED).isNotNull() if PASSED in carried else condition)
    if not step.of_changes:
        return kept
    word = F.col(CHANGE_TYPE)
    alone = F.when(word == UPDATE_PREIMAGE, DELETE).when(word == UPDATE_POSTIMAGE, INSERT).otherwise(word)
    return kept.withColumn(CHANGE_TYPE, alone)


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


@dataclass(frozen=True, eq=False)
class Output:
    """One output of a program, whose columns Spark computes from those that the operator emits."""

    name: str  # ``"main"`` or the name of a side output
    number: int  # the number that tags its rows
    arrow: pa.Schema  # names and types of its columns as the operator emits them
    spark: T.StructType  # the same as Spark has them
    # the columns that users see, each an expression over those of ``arrow``; ``None`` for all that are not hidden
    selected: Selected | None = None
    # metadata of columns that the watermark is passed on with, by name
    marks: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    with_system: bool = False  # whether rows keep the columns that a window downstream needs
    # the numbers of other rows whose blobs come along, in ``PASSED``: of side outputs, and ``WATERMARK_ROW``
    passing: tuple[int, ...] = ()
    steps: tuple[Step, ...] = ()  # what Spark does with its rows before a sink

    @classmethod
    def late(
        cls, tag: OutputTag | None, arrow: pa.Schema | None, known: T.StructType | None, number: int = LATE
    ) -> dict[str, Output]:
        """Return the output of late rows by its name, nothing where there is none; ``known`` has types of Spark's by name."""
        if tag is None or arrow is None:
            return {}
        return {tag.name: cls(tag.name, number, arrow, spark_schema(arrow, known))}

    def of(self, rows: DataFrame, wire: Wire) -> DataFrame:
        system = [name for name in (TIME, FIRING_WATERMARK) if self.with_system and name in self.arrow.names]
        needed = {*system, *(name for _, expression in self._columns for name in names_in(expression))}
        if any(columns_in(expression) for _, expression in self._columns):  # whose names only Spark knows
            needed.update(self.arrow.names)
        read = self.read(rows, wire, [name for name in self.arrow.names if name in needed] or self.arrow.names[:1])
        columns = [column_of(expression).alias(name, **self._marked(name)) for name, expression in self._columns]
        carried = [*system, *([PASSED] if self.passing else [])]
        return reduce(lambda found, step: stepped(found, step, carried), self.steps, read.select(*columns, *carried))

    def _marked(self, name: str) -> dict[str, object]:
        return {"metadata": dict(self.marks[name])} if name in self.marks else {}

    @cached_property
    def _columns(self) -> Selected:
        own = tuple((name, Name(name)) for name in self.arrow.names if not name.startswith(PREFIX))
        return own if self.selected is None else self.selected

    @property
    def column_names(self) -> tuple[str, ...]:
        chosen = next((step.columns for step in reversed(self.steps) if isinstance(step, Select)), self._columns)
        return tuple(name for name, _ in chosen)

    def mapped_by(self, function: ToBlobs) -> Callable[[pa.Table], Iterator[bytes]]:
        """Return what makes blobs of rows of this output, as an engine emits them, by a function that can be pickled."""
        names = {name: emitted for name, (_, emitted) in present(self._emitted, _COMPUTED).items()}
        arrow = pa.schema([self.arrow.field(name) for name in dict.fromkeys(names.values())])
        return _Mapped(arrow, names, pickle.dumps(function))

    @property
    def is_as_emitted(self) -> bool:
        """Whether its rows are those that the operator emits, with none, some, or all of their columns."""
        return self._emitted is not None

    def schemas_as_emitted(self) -> tuple[pa.Schema, T.StructType]:
        """Return the columns of such rows, as Arrow and as Spark have them."""
        found = present(self._emitted, _COMPUTED).items()
        arrow = pa.schema([self.arrow.field(emitted).with_name(name) for name, (_, emitted) in found])
        marks = {name: dict(self.marks.get(column, {})) for name, (column, _) in found}
        return arrow, T.StructType(
            [T.StructField(name, self.spark[emitted].dataType, True, marks[name]) for name, (_, emitted) in found]
        )

    @cached_property
    def _emitted(self) -> dict[str, tuple[str, str]] | None:
        """Each column with the one before all steps, and that of the operator, which it is.

        ``None`` where Spark computes one, or leaves rows out.
        """
        chosen = {name: name for name, _ in self._columns}
        for step in self.steps:
            if not isinstance(step, Select):
                return None
            names = [(name, chosen.get(made.name) if isinstance(made, Name) else None) for name, made in step.columns]
            chosen = {name: before for name, before in names if before is not None}
            if len(chosen) < len(names):
                return None
        emitted = {name: made.name for name, made in self._columns if isinstance(made, Name) and made.name in self.arrow.names}
        if len(emitted) < len(self._columns):
            return None
        return {name: (before, emitted[before]) for name, before in chosen.items()}

    def read(self, rows: DataFrame, wire: Wire, names: Sequence[str]) -> DataFrame:
        if self.passing:
            return self._with_passed(rows, wire, names)
        tagged = rows.filter(F.col("output") == self.number)
        if self.number == MAIN and wire.main is not None:
            return tagged.select(*wire.main_columns(names))
        arrow = pa.schema([self.arrow.field(name) for name in names])
        return tagged.select("blob").mapInArrow(Decoder(arrow).__call__, T.StructType([self.spark[name] for name in names]))

    def _with_passed(self, rows: DataFrame, wire: Wire, names: Sequence[str]) -> DataFrame:
        tagged = rows.filter(F.col("output").isin(self.number, *self.passing))
        if wire.main is not None:
            passed = F.when(F.col("output") != self.number, F.col("blob")).alias(PASSED)
            return tagged.select(*wire.main_columns(names), passed)
        arrow = pa.schema([self.arrow.field(name) for name in names])
        carried = T.StructType([*(self.spark[name] for name in names), T.StructField(PASSED, T.BinaryType(), True)])
        return tagged.select("output", "blob").mapInArrow(Decoder(arrow, passes=True).__call__, carried)
