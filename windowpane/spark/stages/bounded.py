"""Process a static DataFrame: the same engine, state in memory, and the watermark at ``MAX`` once all rows are taken.

Every window fires, as at the end of a bounded stream in Flink. Nothing is late: there was no watermark before the end.

Static rows can also be the initial state of a stream: then nothing is emitted, and the blobs that the engine writes are the
result, a row each.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator

import pyarrow as pa

from windowpane.engines.beginning import Past, begun
from windowpane.engines.protocol import Clock, Engine, coded_columns
from windowpane.spark.internals.worker import without_trace
from windowpane.spark.stages.buckets import bucket_ids, state_partitions
from windowpane.spark.stages.messages import HEARTBEAT, keep_results, received
from windowpane.spark.stages.wire import Wire
from windowpane.state.memory import MemoryBlobStore
from windowpane.windowing.times import MAX, MIN


def bounded_processor(make_engine: Callable[[], Engine], wire: Wire) -> Callable[[pa.Table], pa.Table]:
    """Return the function for ``applyInArrow`` that runs an engine on one whole bucket."""

    def run(bucket: pa.Table) -> pa.Table:
        engine, store = make_engine(), MemoryBlobStore()
        found = received(bucket["blob"].to_pylist())
        with without_trace():
            emitted = engine.run(store, found.rows, Clock(MIN, time.time_ns() // 1_000))
            ended = engine.run(store, [], Clock(MAX, MAX))
        return pa.concat_tables([wire.rows(emitted, found.passed), wire.rows(ended)])

    return run


def ended_processor(make_engine: Callable[[], Engine], wire: Wire) -> Callable[[pa.Table], pa.Table]:
    """Return the function for ``applyInArrow`` that ends time for the state of one whole bucket."""

    def run(bucket: pa.Table) -> pa.Table:
        with without_trace():
            return wire.rows(make_engine().run(store_of(bucket), [], Clock(MAX, MAX)))

    return run


def store_of(blobs: pa.Table) -> MemoryBlobStore:
    """Return the state of a bucket, given names and blobs."""
    store = MemoryBlobStore()
    for name, blob in zip(blobs["name"].to_pylist(), blobs["blob"].to_pylist(), strict=True):
        store.put(name, blob)
    return store


STATE = "bucket int, name string, blob binary"  # Rows of a state to begin with: a bucket and a blob of it
_STATE = pa.schema([("bucket", pa.int32()), ("name", pa.string()), ("blob", pa.binary())])
_ENCODED = pa.schema([("bucket", pa.int32()), ("blob", pa.binary())])


def call_to_buckets(partitions: int) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return the function for ``mapInArrow`` that calls every bucket: those without rows begin with a state, too."""

    def calls(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            ids = bucket_ids(state_partitions(partitions))
            columns = [pa.array(ids, pa.int32()), pa.array([HEARTBEAT] * len(ids), pa.binary())]
            yield pa.RecordBatch.from_arrays(columns, schema=_ENCODED)

    return calls


def history_processor(
    make_engine: Callable[[], Engine], past: Past, wire: Wire | None = None, *, keeps: bool = False
) -> Callable[[pa.Table], pa.Table]:
    """Return the function for ``applyInArrow`` that folds the history of one whole bucket.

    By a wire it gives the results for the operator behind, by ``None`` the state that the bucket begins with, which results stay
    in where it ``keeps`` them, to be emitted.
    """

    def run(bucket: pa.Table) -> pa.Table:
        engine, store = make_engine(), MemoryBlobStore()
        with without_trace():
            output = begun(engine, store, received(bucket["blob"].to_pylist(), coded_columns(engine)).rows, past)
        if wire is not None:
            return wire.rows(output)
        if keeps:
            keep_results(store, output.tables)
        names = store.keys()
        number = bucket["bucket"][0].as_py()
        columns = [[number] * len(names), names, [store.get(name) for name in names]]
        return pa.table([pa.array(each, field.type) for each, field in zip(columns, _STATE, strict=True)], schema=_STATE)

    return run
