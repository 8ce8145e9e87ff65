"""Spark's part of a chain of operators, without Spark: tasks encode, blobs are shuffled, rows and timers call buckets.

The stages are the real ones: ``Encoder`` and ``BucketProcessor``. Blobs of different tasks arrive in any order, as those of a
shuffle do. A batch can be run again, as after a crash: state and timers are those of the last commit.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from pyspark import TaskContext

from windowpane.engines.program import MAIN, Program
from windowpane.engines.protocol import COUNTERS
from windowpane.hidden_columns import PASSED, PREFIX
from windowpane.planning.engines import engine_of
from windowpane.spark.stages import encode, process
from windowpane.spark.stages.blobs import unpack
from windowpane.spark.stages.wire import COUNTER_ROW, WATERMARK_ROW, Wire
from windowpane.state.memory import MemoryBlobStore
from windowpane.windowing.watermarks import Watermarks

Emitted = Sequence[Sequence[tuple[int, bytes]]]
"""What the buckets of an operator emit in a batch: (output, blob)."""


class Task:
    """What a task reads of its context."""

    current: Task | None = None

    def __init__(self, partition: int, batch: int, run: str, buckets: int) -> None:
        self._partition = partition
        self._properties = {
            "streaming.sql.batchId": str(batch),
            "spark.jobGroup.id": run,
            "spark.sql.streaming.internal.stateStore.partitions": str(buckets),
        }

    def partitionId(self) -> int:  # noqa: N802 (Spark's name)
        return self._partition

    def getLocalProperty(self, name: str) -> str | None:  # noqa: N802 (Spark's name)
        return self._properties.get(name)


def without_spark(patch: pytest.MonkeyPatch) -> None:
    """Let stages read the context of the current ``Task``."""
    patch.setattr(TaskContext, "get", staticmethod(lambda: Task.current))
    for module in (encode, process):
        patch.setattr(module, "prepare_worker", lambda: None)


class _Store(MemoryBlobStore):
    def settle(self) -> None:
        """Nothing waits."""


@dataclass(frozen=True)
class Moment:
    """What Spark fixes of a batch: its number, its watermark and its clock in milliseconds, and the run that computes it."""

    batch: int
    watermark: int
    now: int
    run: str

    def getCurrentWatermarkInMs(self) -> int:  # noqa: N802 (Spark's name)
        return self.watermark

    def getCurrentProcessingTimeInMs(self) -> int:  # noqa: N802 (Spark's name)
        return self.now


@dataclass
class Stage:
    """One operator on its buckets.

    Args:
        program: what its engines run.
        encoder: spreads its rows.
        time_mode: Spark's time mode.
        own: how it makes its watermark itself.
        follows: whether its watermark is that of the operator before.
        buckets: how many there are.
        chunk: rows of an Arrow batch, as Spark hands them to tasks.
    """

    program: Program
    encoder: encode.Encoder
    time_mode: str
    own: Watermarks | None = None
    follows: bool = False
    buckets: int = 1
    chunk: int = 1_000
    stores: dict[int, _Store] = field(default_factory=dict)
    timers: dict[int, set[int]] = field(default_factory=lambda: defaultdict(set))

    def snapshot(self) -> Any:
        """Return state and timers."""
        stores = {bucket: store.snapshot() for bucket, store in self.stores.items()}
        return stores, {bucket: set(timers) for bucket, timers in self.timers.items()}

    def restore(self, held: Any) -> None:
        """Go back to a snapshot."""
        stores, timers = held
        self.stores = {}
        for bucket, blob in stores.items():
            self.stores[bucket] = _Store()
            self.stores[bucket].restore(blob)
        self.timers = defaultdict(set, {bucket: set(each) for bucket, each in timers.items()})

    def run(self, parts: Sequence[pa.Table], moment: Moment, draw: Random) -> list[list[tuple[int, bytes]]]:
        """Run a batch; the parts are those of the tasks. Return what each bucket emitted, as (output, blob)."""
        sent: list[list[tuple[int, bytes]]] = []
        for number, part in enumerate(parts):
            Task.current = Task(number, moment.batch, moment.run, self.buckets)
            batches = part.combine_chunks().to_batches(max_chunksize=self.chunk) if part.num_rows else []
            encoded = [batch.to_pydict() for batch in self.encoder(batches)]
            sent.append([pair for batch in encoded for pair in zip(batch["bucket"], batch["blob"], strict=True)])
        draw.shuffle(sent)
        blobs: dict[int, list[bytes]] = defaultdict(list)
        for task in sent:
            for bucket, blob in task:
                blobs[bucket].append(blob)
        return [self._call(bucket, blobs.get(bucket, []), moment) for bucket in sorted({*blobs, *self._due(moment)})]

    def _due(self, moment: Moment) -> list[int]:
        reached = {"EventTime": moment.watermark, "ProcessingTime": moment.now, "None": -1}[self.time_mode]
        return [bucket for bucket, timers in self.timers.items() if any(time <= reached for time in timers)]

    def _call(self, bucket: int, blobs: list[bytes], moment: Moment) -> list[tuple[int, bytes]]:
        Task.current = Task(bucket, moment.batch, moment.run, self.buckets)
        make_engine = partial(engine_of(self.program), self.program)
        processor: Any = process.BucketProcessor(make_engine, Wire(), self.time_mode, 0, self.own, self.follows)
        processor._handle, processor._engine, processor._called = self._Handle(self, bucket), make_engine(), set()
        processor._store = self.stores.setdefault(bucket, _Store())
        due = bucket in self._due(moment)
        frames = []
        if blobs:
            frames += list(processor.handleInputRows((bucket,), iter([pd.DataFrame({"blob": blobs})]), moment))
        if due:
            reached = moment.watermark if self.time_mode == "EventTime" else moment.now
            passed = {time for time in self.timers[bucket] if time <= reached}
            frames += list(processor.handleExpiredTimer((bucket,), moment, None))
            self.timers[bucket] -= passed
        return [pair for frame in frames for pair in zip(frame["output"].tolist(), frame["blob"].tolist(), strict=True)]

    @dataclass
    class _Handle:
        stage: Stage
        bucket: int

        def registerTimer(self, time: int) -> None:  # noqa: N802 (Spark's name)
            self.stage.timers[self.bucket].add(time)


def tables(emitted: Emitted, output: int) -> list[pa.Table]:
    """Return the tables of an output, one a bucket that has some."""
    found = [[unpack(blob) for number, blob in bucket if number == output] for bucket in emitted]
    return [pa.concat_tables(each) for each in found if each]


def counted(emitted: Emitted, name: str) -> int:
    """Return a counter, added up over buckets."""
    rows = [blob.decode().split(",") for bucket in emitted for number, blob in bucket if number == COUNTER_ROW]
    return sum(int(row[COUNTERS.index(name)]) for row in rows)


def rows_between(emitted: Emitted, program: Program, *, system: bool, reports: bool) -> list[pa.Table]:
    """Return the main rows of an operator as the next one reads them, one table a bucket.

    Args:
        emitted: what its buckets emitted.
        program: its program.
        system: whether rows keep their time, and the watermark that they were fired under.
        reports: whether rows that report the watermark come along.
    """
    schema = pa.schema([column for column in program.main_schema if system or not column.name.startswith(PREFIX)])
    parts = []
    for bucket in emitted:
        found = [unpack(blob).select(schema.names).cast(schema) for number, blob in bucket if number == MAIN]
        rows = pa.concat_tables(found) if found else schema.empty_table()
        if reports:
            report = [blob for number, blob in bucket if number == WATERMARK_ROW]
            rows = rows.append_column(PASSED, pa.nulls(rows.num_rows, pa.binary()))
            nulls = [pa.nulls(len(report), column.type) for column in schema]
            columns = [*nulls, pa.array(report, pa.binary())]
            rows = pa.concat_tables([rows, pa.table(columns, schema=rows.schema)])
        parts.append(rows)
    return parts or [schema.empty_table()]
