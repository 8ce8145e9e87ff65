"""Running: one query with several sinks.

Every batch is computed once, kept while several sinks read it, and handed to each with its batch id; the sinks are idempotent
by query and batch, so a batch repeated after a crash leaves the same rows.
"""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias, cast

from pyspark.sql import functions as F

from windowpane.arrays.values import Value
from windowpane.connectors.object_stores import is_remote
from windowpane.engines.changes import Accepts, Incomplete
from windowpane.engines.program import MAIN
from windowpane.errors import HistoryAfterStartError, InvalidSpecError, MissingHistoryError
from windowpane.planning.sinks import (
    BatchTrigger,
    DeltaTable,
    Files,
    KeyedSink,
    QuerySink,
    Shaped,
    Sink,
    SinkFunction,
    SparkOptions,
    folder_columns,
)
from windowpane.spark.building.history import Cut, Histories, HistoryResults, going_on_from_history, with_history
from windowpane.spark.building.operator_input import detour
from windowpane.spark.building.outputs import Output
from windowpane.spark.building.program import BuiltProgram
from windowpane.spark.internals.available_now import stop_when_consumed
from windowpane.spark.internals.counted import note_operators
from windowpane.spark.internals.session import tell_tasks
from windowpane.spark.queries.continuing import continuing
from windowpane.spark.queries.ending import check_flush, end_stream, refuse_an_ended_stream
from windowpane.spark.queries.failures import ShortFailures
from windowpane.spark.queries.starting import started, warn_of_leaking_sockets
from windowpane.spark.session.checkpoints import (
    check_folder,
    check_reached,
    compare_earlier_outputs,
    has_begun,
    mark_of,
    refuse_a_second_query,
    set_mark,
)
from windowpane.spark.session.column_names import column_in, columns_needed
from windowpane.spark.sinks.paired import DeltaWriter, FilesWriter, FolderWriter, PairedSink, QueryId
from windowpane.spark.sinks.parts import Parts, PartsWriter
from windowpane.spark.sinks.remote_files import RemoteFilesWriter
from windowpane.spark.stages.messages import MALFORMED
from windowpane.spark.stages.project import quoted
from windowpane.spark.stages.wire import Wire
from windowpane.windowing.times import format_micros, to_micros

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_OF_SELECT = "select of a sink"
_HISTORY = "history"  # The mark of a checkpoint that begins with one
_TRIGGERS = {"processingTime", "availableNow", "once"}  # Of ``DataStreamWriter.trigger``, those that run in batches


def start(
    built: BuiltProgram,
    sinks: Mapping[str, Sink],
    checkpoint: str | None,
    trigger: BatchTrigger | None,
    query_name: str | None,
    flush_at_end: bool = False,
    changes: Accepts = "safe",
    cut: Cut | None = None,
    history: Histories | None = None,
    history_results: HistoryResults = "skip",
    incomplete: Incomplete = "null",
) -> tuple[StreamingQuery, BuiltProgram]:
    """Start a query that writes each output named in ``sinks``; return it, with ``flush_at_end`` when ended, and what it runs."""
    if not built.is_streaming:
        raise InvalidSpecError("start runs a stream, and this DataFrame is static: write result.df instead.")
    if not sinks:
        raise InvalidSpecError("start needs a sink for at least one output, for example start(main='out/main').")
    outputs = {name: built.written(name) for name in sinks}
    writes_malformed = any(output.number == MALFORMED for output in outputs.values())
    if writes_malformed:
        _check_malformed(built)
    check_trigger(trigger)
    _check_idleness(built, trigger or {})
    _warn_of_unseen_programs(built)
    if flush_at_end:
        check_flush(built, checkpoint, trigger or {})
    if checkpoint is None:
        logging.getLogger(__name__).warning(
            "no checkpoint was given, so this query cannot be restarted: its state is deleted when it ends. Say "
            "start(checkpoint='...') to keep it."
        )
    warn_of_leaking_sockets(built.source.dataframe.sparkSession)
    spark = built.source.dataframe.sparkSession
    location = checkpoint or tempfile.mkdtemp(prefix="windowpane-checkpoint-")
    check_reached(spark, location)
    batches = BatchWriter(tuple(_written(output, sinks[name], spark, location) for name, output in outputs.items()))
    built = _begun(built, checkpoint, cut, history, history_results)
    told: dict[str, str] = {}
    if checkpoint is not None:
        refuse_a_second_query(spark, checkpoint)
        built, told = continuing(built, checkpoint, changes, None if history is not None else cut, incomplete)
        refuse_an_ended_stream(spark, checkpoint, built, ShortFailures(batches).__call__, batches.wire)
        if built.beside:
            compare_earlier_outputs(spark, checkpoint, built.names_beside(outputs.values()))
    with _malformed_rows_taken(built, writes_malformed, batches.wire) as blobs:
        rows = built.with_outputs_beside(blobs, outputs.values())
        tell_tasks(spark, told)
        try:
            query = start_writing(rows, batches, location, trigger, query_name)
        finally:
            tell_tasks(spark, dict.fromkeys(told))
    note_operators(query, built.counted)
    if built.waits_for_the_clock and (trigger or {}).get("availableNow"):
        stop_when_consumed(query)
    if flush_at_end:
        query.awaitTermination()
        end_stream(spark, location, built, ShortFailures(batches).__call__, batches.wire)
    return query, built


def _begun(
    built: BuiltProgram, checkpoint: str | None, cut: Cut | None, history: Histories | None, results: HistoryResults
) -> BuiltProgram:
    """Return a program that begins with a history, or goes on from one.

    Raises:
        HistoryAfterStartError: the checkpoint has begun already.
        InvalidSpecError: a cut of nothing.
        MissingHistoryError: it was to begin with a history, and no batch was committed.
    """
    spark = built.source.dataframe.sparkSession
    if history is not None:
        if checkpoint is not None and has_begun(spark, checkpoint):
            raise HistoryAfterStartError(checkpoint)
        built = with_history(built, history, cut, results)
        if checkpoint is not None:
            set_mark(spark, checkpoint, _HISTORY, results)
        return built
    if cut is not None and (checkpoint is None or not has_begun(spark, checkpoint)):
        raise InvalidSpecError(
            f"cut={cut!r} says where a history ends, or where a change parts old windows from new ones, and this query begins "
            "without either: give history= too, or leave cut out."
        )
    mark = None if checkpoint is None else mark_of(spark, checkpoint, _HISTORY)
    if checkpoint is None or mark is None:
        return built
    if not has_begun(spark, checkpoint):
        raise MissingHistoryError(checkpoint)
    return going_on_from_history(built, emits=mark == "emit")


def _warn_of_unseen_programs(built: BuiltProgram) -> None:
    """Warn where rows are results of a program that cannot be told from the plan of their DataFrame."""
    for source in (source for each in built.programs for source in each.sources):
        if source.is_passed_on and not source.results:
            logging.getLogger(__name__).warning(
                "the rows of %s are results of another window, which the plan of their DataFrame does not name: its late rows "
                "and side outputs are none of the outputs of this query, and explain() does not show it. Make the DataFrame of "
                "result.df by methods, not by the text of spark.sql on Spark Connect, or say result.key_by(...).",
                source.name,
            )


def _check_malformed(built: BuiltProgram) -> None:
    if reason := detour(built.operators[0].reads):
        raise InvalidSpecError(
            f"start(malformed=...): the rows go to Spark and back ({reason}), and malformed ones cannot go along. Compute that "
            "in read_in_arrow(...).map_in_arrow(...), or leave this output out and say read_in_arrow(..., malformed='drop')."
        )


@contextmanager
def _malformed_rows_taken(built: BuiltProgram, are_written: bool, wire: Wire) -> Iterator[DataFrame]:
    """Yield the rows of a program to start; where malformed rows are written, none of them is an error."""
    failing = [reading for reading in built.readings if reading.policy == "fail"]
    if not (are_written and failing):
        yield built.rows(wire)
        return
    for reading in failing:
        reading.policy = "null"
    try:
        yield built.rows(wire)
    finally:
        for reading in failing:
            reading.policy = "fail"


def start_writing(
    rows: DataFrame,
    write: Callable[[DataFrame, int], None],
    checkpoint: str | None,
    trigger: BatchTrigger | None,
    query_name: str | None = None,
    options: SparkOptions = MappingProxyType({}),
) -> StreamingQuery:
    """Start a query that hands each batch of a streaming DataFrame to a function, and return it."""
    check_trigger(trigger)
    writer = rows.writeStream.outputMode("append").options(**options).foreachBatch(ShortFailures(write).__call__)
    if checkpoint is not None:
        check_reached(rows.sparkSession, checkpoint)
        refuse_a_second_query(rows.sparkSession, checkpoint)
        if isinstance(write, BatchWriter | PairedSink):
            write.compare(rows)
        writer = writer.option("checkpointLocation", checkpoint)
    if query_name is not None:
        writer = writer.queryName(query_name)
    if trigger:
        writer = writer.trigger(**cast("dict[str, Value]", trigger))
    return started(writer.start, rows.sparkSession)


def check_trigger(trigger: object) -> None:
    if trigger is None or (isinstance(trigger, Mapping) and trigger.keys() <= _TRIGGERS):
        return
    raise InvalidSpecError(
        f"trigger={trigger!r}: say {{'processingTime': '10 seconds'}} for a batch that often, {{'availableNow': True}} for a run "
        "that takes the rows that have arrived, and ends. Spark's continuous and real-time modes have no batches, so no results "
        "that are written once. When windows fire is said to .trigger(...) before the function."
    )


def _check_idleness(built: BuiltProgram, trigger: BatchTrigger) -> None:
    """Refuse an idle time in which no batch runs: every source would be idle between two rows of it."""
    first = built.source
    while first.upstream is not None:
        first = first.upstream.source
    strategy, interval = first.own_watermark, trigger.get("processingTime")
    if strategy is None or strategy.idleness is None or interval is None:
        return
    if strategy.idleness < to_micros(interval):
        raise InvalidSpecError(
            f"with_idleness({format_micros(strategy.idleness)!r}) is shorter than a batch of this query, processingTime="
            f"{interval!r}: a source would be idle between two batches. Wait for at least two of them."
        )


@dataclass(frozen=True)
class ShapedOutput:
    """An output of which a sink takes some columns, or others that Spark computes of them."""

    output: Output
    columns: tuple[tuple[str, str | None], ...]

    @property
    def number(self) -> int:
        return self.output.number

    def of(self, rows: DataFrame, wire: Wire) -> DataFrame:
        found = self.output.of(rows, wire)
        names = [column_in(found, name, _OF_SELECT) if made is None else None for name, made in self.columns]
        made = zip(names, self.columns, strict=True)
        return found.select(*(F.expr(str(of[1])).alias(of[0]) if name is None else F.col(quoted(name)) for name, of in made))


Written: TypeAlias = "Output | ShapedOutput | Parts"


def _written(output: Output, sink: Sink, spark: SparkSession, checkpoint: str) -> tuple[Written, SinkFunction]:
    if isinstance(sink, str):
        sink = Files(sink)
    _check(sink, output.column_names, spark)
    if not isinstance(sink, Shaped):
        return _parts(output, sink, spark, checkpoint) or (output, _function(sink, checkpoint, output.column_names))
    return ShapedOutput(output, sink.columns), _function(sink.sink, checkpoint, [name for name, _ in sink.columns])


def _check(sink: Sink, columns: Sequence[str], spark: SparkSession) -> None:
    """Refuse a sink that a batch would fail of.

    Raises:
        NotAFolderError: its folder is a file.
        UnknownColumnError: it needs a column that its rows will not have.
    """
    if isinstance(sink, Shaped):
        columns_needed(columns, {_OF_SELECT: [name for name, made in sink.columns if made is None]}, spark)
        columns, sink = [name for name, _ in sink.columns], sink.sink
    if isinstance(sink, KeyedSink):
        columns_needed(columns, sink.needs, spark)
    if isinstance(sink, Files | DeltaTable) and "://" not in sink.path:
        check_folder(spark, sink.path, "sink")


def _parts(output: Output, sink: Sink, spark: SparkSession, checkpoint: str) -> tuple[Parts, SinkFunction] | None:
    """Return the main output and its sink where the tasks of the operator write the files, else ``None``."""
    if output.number != MAIN or not isinstance(sink, Files) or is_remote(sink.path):
        return None
    parts = Parts.of_sink(output, sink, spark, checkpoint)
    if parts is None:
        return None
    writer = PartsWriter(sink, QueryId(checkpoint), folder_columns(output.column_names), parts)
    return parts, PairedSink(writer, checkpoint)


@dataclass(frozen=True)
class BatchWriter:
    """Writes each output of a batch to its sink.

    Files and tables are spared outputs without rows, but in the first batch of a checkpoint: readers find them from then on.
    The first batch of a run may have failed in another one, whose program emitted rows where this one emits none: what is left
    of them is written over.
    """

    outputs: tuple[tuple[Written, SinkFunction], ...]
    begun: set[int] = field(default_factory=set, compare=False)  # The first batch of the run

    @property
    def wire(self) -> Wire:
        """How the rows of the outputs travel."""
        return next((output.wire for output, _ in self.outputs if isinstance(output, Parts)), Wire())

    def __call__(self, blobs: DataFrame, batch_id: int) -> None:
        (first, write), *others = self.outputs
        if isinstance(first, Parts) and not others:  # all that is read of the batch, once
            write(first.of(blobs, Wire()), batch_id)
            self.begun.add(batch_id)
            return
        blobs = blobs.persist()
        try:
            present = {row.output for row in blobs.select("output").collect()}
            for output, write in self.outputs:
                if batch_id > 0 and output.number not in present and self._spares(write, blobs, batch_id):
                    continue
                write(output.of(blobs, Wire()), batch_id)
            self.begun.add(batch_id)
        finally:
            blobs.unpersist()

    def _spares(self, write: SinkFunction, blobs: DataFrame, batch_id: int) -> bool:
        """Whether a batch without rows is not written; the sink keeps its number."""
        if not isinstance(write, PairedSink) or not isinstance(write.sink, FolderWriter):
            return False
        if not self.begun and write.sink.takes_empty(blobs, batch_id):
            return False
        write.sink.skip(blobs, batch_id, write.pair, write.settled(blobs, batch_id))
        return True

    def compare(self, rows: DataFrame) -> None:
        for _, write in self.outputs:
            if isinstance(write, PairedSink):
                write.compare(rows)


def _function(sink: Sink, checkpoint: str, columns: Iterable[str]) -> SinkFunction:
    query = QueryId(checkpoint)
    if isinstance(sink, Files) and is_remote(sink.path):
        return PairedSink(RemoteFilesWriter(sink, query, folder_columns(columns)).checked(), checkpoint)
    if isinstance(sink, Files):
        return PairedSink(FilesWriter(sink, query, folder_columns(columns)), checkpoint)
    if isinstance(sink, DeltaTable):
        return PairedSink(DeltaWriter(sink, query), checkpoint)
    if isinstance(sink, QuerySink):
        return PairedSink(sink.for_query(query.read), checkpoint)
    if callable(sink):
        return sink
    raise InvalidSpecError(f"a sink is a path, Files, DeltaTable or a callable (DataFrame, batch_id), but this is {sink!r}.")
