"""Staged queries: entries -> stages on buckets -> the changes of a result, in files.

Parts are tables of a relation; those with an empty relation are clocks, one of which at least every bucket of every stage that
runs gets in every batch. An entry makes them from the rows of a DataFrame; from stage to stage they travel as (relation, blob).
Between stages a function handles rows where they are, ``mapInArrow``; a stage is an engine inside ``transformWithState``, or, if
its buckets keep nothing, inside ``mapInArrow`` behind a shuffle.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as F

from windowpane.engines.common.tagged import tag, tagged
from windowpane.engines.program import MAIN
from windowpane.engines.protocol import Clock, Engine
from windowpane.spark.building.program import run_on_buckets
from windowpane.spark.queries.batch_query import FILES
from windowpane.spark.session.settings import choose_settings
from windowpane.spark.sources.arrow_rows import ArrowRows, mapped
from windowpane.spark.stages import encode
from windowpane.spark.stages.blobs import pack, unpack
from windowpane.spark.stages.buckets import bucket_ids, state_partitions
from windowpane.spark.stages.messages import unpacked
from windowpane.spark.stages.process import BucketProcessor
from windowpane.spark.stages.wire import COUNTER_ROW, Wire
from windowpane.state.memory import MemoryBlobStore
from windowpane.windowing.times import MIN

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

CLOCK = ""

Rows = Callable[[str, pa.Table], Iterator[pa.Table]]  # What is made of a part: of its relation, and its table


Parts = Callable[[Iterable[pa.RecordBatch]], Iterator[tuple[str, pa.Table]]]
"""What makes parts from the rows of a partition, as (relation, table)."""

ToFiles = Callable[[Iterable[pa.Table]], Iterable[bytes]]
"""What writes tables to files, none of them empty, and returns their paths."""


def parts_of(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[str, pa.Table]]:
    for batch in batches:
        for relation, blob in zip(batch.column(0), batch.column(1), strict=True):
            yield relation.as_py(), unpack(blob.as_py())


@dataclass(frozen=True)
class Entry:
    rows: Any  # a DataFrame, or ``ArrowRows``
    parts: Parts = parts_of  # what makes parts of it
    relation: str | None = None  # the only relation they are of, beside the clock; ``None``: of any


@dataclass(frozen=True)
class Inlet:
    stage: int | None  # a stage by its number, or, by ``None``, the entries
    rows: Rows  # what is made of the parts
    input: int = 0  # of the stage
    relations: frozenset[str] = frozenset()  # whose parts are taken


@dataclass(frozen=True)
class Stage:
    inlets: Sequence[Inlet]  # their functions return rows with the column ``hash``
    hash: str  # name of the column by which rows are spread
    make_engine: Callable[[], Engine]  # makes the engine
    keeps: bool = True  # whether its buckets have state; else all rows that belong together come in one batch

    @property
    def arriving(self) -> list[list[Inlet]]:
        """Its inlets, those of one stage together: that is read once, for a second reader would be a second operator."""
        found: dict[tuple[str, int], list[Inlet]] = {}
        for number, inlet in enumerate(self.inlets):
            place = ("inlet", number) if inlet.stage is None else ("stage", inlet.stage)
            found.setdefault(place, []).append(inlet)
        return list(found.values())  # in their order, by which a checkpoint knows sources and operators


def staged(
    entries: Sequence[Entry], stages: Sequence[Stage], result: Sequence[Inlet], stage_name: str, to_files: ToFiles
) -> DataFrame:
    """Return a DataFrame of ``FILES`` with the result.

    Each stage reads the entries and stages before it, and sends parts of the relation ``stage_name``. The functions of what flows
    into the result return rows as they are to be.
    """
    first = entries[0].rows
    session = (first.origin if isinstance(first, ArrowRows) else first).sparkSession
    choose_settings(session)
    partitions = int(str(session.conf.get("spark.sql.shuffle.partitions")))
    made: list[Entry] = []
    files: dict[int, DataFrame] = {}
    for number, (stage, wire) in enumerate(zip(stages, wires(stages, result, stage_name, to_files), strict=True)):
        arriving = []
        for inlets in stage.arriving:
            inputs = [(inlet.rows, inlet.input) for inlet in inlets]
            for entry in places(entries, made, inlets[0]):
                arriving.append(_mapped(entry.rows, Spread(inputs, stage.hash, partitions, entry.parts), encode.SCHEMA))
        rows = _union(arriving)
        if stage.keeps:
            blobs = run_on_buckets(rows, BucketProcessor(stage.make_engine, wire, "None"))
        else:
            run = RunWithoutState(stage.make_engine, wire)
            blobs = _mapped(rows.repartition(partitions, encode.BUCKET), run, "output int, blob binary")
        if wire.main_blobs is not None:
            files[number] = blobs.filter(F.col("output") == MAIN).select(F.col("blob").alias("file"))
        relation = F.when(F.col("output") == MAIN, stage_name).otherwise(CLOCK).alias("relation")
        made.append(Entry(blobs.filter(F.col("output") != COUNTER_ROW).select(relation, "blob")))
    leaving = []
    for inlet in result:
        if inlet.stage in files:
            leaving.append(files[inlet.stage])
            continue
        for entry in places(entries, made, inlet):
            leaving.append(_mapped(entry.rows, WriteResult(inlet.rows, to_files, entry.parts), FILES))
    return _union(leaving)


def wires(stages: Sequence[Stage], result: Sequence[Inlet], stage_name: str, to_files: ToFiles) -> Iterator[Wire]:
    """Yield how the outputs of each stage travel.

    The main output of one that nothing but the result reads is the paths of files, which it writes itself: another Python process
    would take its blobs only to write them.
    """
    read = {inlet.stage for stage in stages for inlet in stage.inlets}
    for number in range(len(stages)):
        inlet = next((inlet for inlet in result if inlet.stage == number and number not in read), None)
        yield Wire(main_blobs=None if inlet is None else partial(_write_table, inlet.rows, stage_name, to_files))


def places(entries: Sequence[Entry], made: Sequence[Entry], inlet: Inlet) -> list[Entry]:
    """Return where what flows into an inlet comes from: one of the stages made, or entries."""
    if inlet.stage is not None:
        return [made[inlet.stage]]
    return [entry for entry in entries if entry.relation is None or entry.relation in inlet.relations]


def _mapped(rows: DataFrame, function: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]], schema: str) -> DataFrame:
    return mapped(rows, function, schema).df


def _union(parts: Sequence[DataFrame]) -> DataFrame:
    return reduce(lambda one, other: one.unionByName(other), parts)


@dataclass(frozen=True)
class Spread:
    inputs: Sequence[tuple[Rows, int]]  # what is made of the parts, and for which input of the stage
    hash: str  # name of the column by which rows are spread
    partitions: int  # how many the shuffle has
    parts: Parts = parts_of  # what makes the parts

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        ids = bucket_ids(state_partitions(self.partitions))
        for relation, table in self.parts(batches):
            if relation == CLOCK:
                said = tag(table, "clock") or "next"  # a bucket learns its number by it
                yield _batch(ids, [(number, tagged(table, clock=said, bucket=str(number))) for number in range(len(ids))])
            for rows, number in self.inputs:
                for made in _made(rows, relation, table):
                    buckets = made[self.hash].to_numpy() % np.uint64(len(ids))
                    parts = ((each, made.filter(pa.array(buckets == each))) for each in np.unique(buckets).tolist())
                    yield _batch(ids, [(int(each), tagged(part, input=str(number))) for each, part in parts])


@dataclass(frozen=True)
class RunWithoutState:
    make_engine: Callable[[], Engine]
    wire: Wire

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Run the buckets of one partition; a task that is run again takes their blobs in the same order."""
        buckets: defaultdict[int, list[bytes]] = defaultdict(list)
        for batch in batches:
            for bucket, blob in zip(*batch.columns, strict=True):
                buckets[bucket.as_py()].append(blob.as_py())
        for _, blobs in sorted(buckets.items()):
            output = self.make_engine().run(MemoryBlobStore(), unpacked(blobs), Clock(MIN, 0))
            for number, blob in self.wire.packed(output.tables):
                columns = [pa.array([number], pa.int32()), pa.array([blob], pa.binary())]
                yield pa.RecordBatch.from_arrays(columns, ["output", "blob"])


def _write_table(rows: Rows, relation: str, to_files: ToFiles, table: pa.Table) -> Iterable[bytes]:
    return to_files(_made(rows, relation, table))


@dataclass(frozen=True)
class WriteResult:
    rows: Rows
    to_files: ToFiles
    parts: Parts = parts_of

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        made = chain.from_iterable(_made(self.rows, relation, table) for relation, table in self.parts(batches))
        for path in self.to_files(made):
            yield pa.RecordBatch.from_arrays([pa.array([path], pa.binary())], ["file"])


def _made(rows: Rows, relation: str, table: pa.Table) -> Iterator[pa.Table]:
    return (made for made in rows(relation, table) if made.num_rows)


def _batch(ids: Sequence[int], parts: Sequence[tuple[int, pa.Table]]) -> pa.RecordBatch:
    numbers = pa.array([ids[number] for number, _ in parts], pa.int32())
    return pa.RecordBatch.from_arrays([numbers, pa.array([pack(table) for _, table in parts], pa.binary())], ["bucket", "blob"])
