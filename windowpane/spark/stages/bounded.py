"""Process a static DataFrame: the same engine, state in memory, and the watermark at ``MAX`` once all rows are taken.

Every window fires, as at the end of a bounded stream in Flink. Nothing is late: there was no watermark before the end.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import pyarrow as pa

from windowpane.engines.protocol import Clock, Engine
from windowpane.errors import WindowpaneError
from windowpane.spark.stages.blobs import is_probe, unpack
from windowpane.spark.stages.wire import Wire
from windowpane.state.memory import MemoryBlobStore
from windowpane.windowing.times import MAX, MIN


def bounded_processor(make_engine: Callable[[], Engine], wire: Wire) -> Callable[[pa.Table], pa.Table]:
    """Return the function for ``applyInArrow`` that runs an engine on one whole bucket."""

    def run(bucket: pa.Table) -> pa.Table:
        engine, store = make_engine(), MemoryBlobStore()
        now = time.time_ns() // 1_000
        tables = [table for blob in bucket["blob"].to_pylist() if not is_probe(table := unpack(blob))]
        try:
            taken = engine.run(store, tables, Clock(MIN, now))
            ended = engine.run(store, [], Clock(MAX, MAX))
        except WindowpaneError as error:
            raise error.with_traceback(None) from None  # its message says it all, in the text of Spark's exception
        return pa.concat_tables([wire.rows(taken), wire.rows(ended)])

    return run
