"""Staged queries: letters -> stages on buckets -> the changes of a result, as blobs.

Parts travel as (relation, blob); the part with an empty relation is the clock, which every bucket of every stage gets in every
batch. Between stages a function handles rows where they are, ``mapInArrow``; a stage is an engine inside ``transformWithState``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as F

from windowpane.engines.common.tagged import tag, tagged
from windowpane.engines.program import MAIN
from windowpane.engines.protocol import Engine
from windowpane.spark.building.program import operate
from windowpane.spark.queries.settings import choose_settings
from windowpane.spark.stages import encode
from windowpane.spark.stages.blobs import pack, unpack
from windowpane.spark.stages.buckets import bucket_ids, state_partitions
from windowpane.spark.stages.wire import COUNTER_ROW, Wire

CLOCK = ""
RESULT = "blob binary"
"""The columns of the result."""

Rows = Callable[[str, pa.Table], Iterator[pa.Table]]
"""What is made of a part: of its relation, and its table."""


@dataclass(frozen=True)
class Inlet:
    """What flows into one input of a stage from one place: a stage by its number, or, by ``None``, the letter."""

    stage: int | None
    rows: Rows
    input: int = 0


@dataclass(frozen=True)
class Stage:
    """An engine on buckets, and what flows into it.

    Args:
        inlets: their functions return rows with the column ``hash``.
        hash: name of the column by which rows are spread.
        make_engine: makes the engine.
    """

    inlets: Sequence[Inlet]
    hash: str
    make_engine: Callable[[], Engine]


def staged(letters: Any, stages: Sequence[Stage], result: Sequence[Inlet], stage_name: str) -> Any:
    """Return a DataFrame with the result as blobs.

    Args:
        letters: a DataFrame of parts.
        stages: each reads the letter and stages before it.
        result: what flows into the result; their functions return rows as they are to be.
        stage_name: the relation of what comes from a stage.
    """
    choose_settings(letters.sparkSession)
    partitions = int(letters.sparkSession.conf.get("spark.sql.shuffle.partitions"))
    made: list[Any] = []
    for stage in stages:
        arriving = [
            _source(letters, made, inlet).mapInArrow(
                Spread(inlet.rows, inlet.input, stage.hash, partitions).__call__, encode.SCHEMA
            )
            for inlet in stage.inlets
        ]
        spread = reduce(lambda one, other: one.unionByName(other), arriving)
        blobs = operate(spread, stage.make_engine, Wire(), time_mode="None")
        relation = F.when(F.col("output") == MAIN, stage_name).otherwise(CLOCK).alias("relation")
        made.append(blobs.filter(F.col("output") != COUNTER_ROW).select(relation, "blob"))
    leaving = [_source(letters, made, inlet).mapInArrow(Leave(inlet.rows).__call__, RESULT) for inlet in result]
    return reduce(lambda one, other: one.unionByName(other), leaving)


def _source(letters: Any, made: Sequence[Any], inlet: Inlet) -> Any:
    return letters if inlet.stage is None else made[inlet.stage]


@dataclass(frozen=True)
class Spread:
    """Packs what is made of parts into blobs, one a bucket."""

    rows: Rows
    input: int
    hash: str
    partitions: int

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Spread the parts of one input partition."""
        ids = bucket_ids(state_partitions(self.partitions))
        for relation, table in _parts(batches):
            if relation == CLOCK:
                yield _batch(ids, [(number, _told(table, number)) for number in range(len(ids))])
            for made in self.rows(relation, table):
                if made.num_rows:
                    yield _batch(ids, list(self._by_bucket(made, len(ids))))

    def _by_bucket(self, rows: pa.Table, buckets: int) -> Iterator[tuple[int, pa.Table]]:
        numbers = rows[self.hash].to_numpy() % np.uint64(buckets)
        for number in np.unique(numbers).tolist():
            yield int(number), tagged(rows.filter(pa.array(numbers == number)), input=str(self.input))


@dataclass(frozen=True)
class Leave:
    """Packs what is made of parts as it is."""

    rows: Rows

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Pack the parts of one partition."""
        for relation, table in _parts(batches):
            for made in self.rows(relation, table):
                if made.num_rows:
                    yield pa.RecordBatch.from_arrays([pa.array([pack(made)], pa.binary())], ["blob"])


def _parts(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[str, pa.Table]]:
    for batch in batches:
        for relation, blob in zip(batch.column(0), batch.column(1), strict=True):
            yield relation.as_py(), unpack(blob.as_py())


def _told(clock: pa.Table, bucket: int) -> pa.Table:
    """Return the clock for one bucket, which learns its number by it."""
    return tagged(clock, clock=tag(clock, "clock") or "next", bucket=str(bucket))


def _batch(ids: Sequence[int], parts: Sequence[tuple[int, pa.Table]]) -> pa.RecordBatch:
    numbers = pa.array([ids[number] for number, _ in parts], pa.int32())
    return pa.RecordBatch.from_arrays([numbers, pa.array([pack(table) for _, table in parts], pa.binary())], ["bucket", "blob"])
