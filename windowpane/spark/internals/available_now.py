"""An end for ``availableNow`` runs that wait for the clock.

With processing-time timers Spark plans empty batches for ever, since a timer could be due at any time; so ``availableNow`` never
ends. The input is consumed when a batch read nothing from any source, and the run is stopped then: Flink, too, ends a bounded
job without waiting for the clock. What an interrupted empty batch would have done, the next run does: its first batch is that one
again, whatever there is to read by then. So the first batch of a run ends nothing.

Two ways to notice: ``Result.start`` knows the trigger and watches its query (``stop_when_consumed``). A query that the user
starts from ``Result.df`` is found by a listener (``end_available_now_runs``), which reads the trigger of the query. Spark Connect
does not show the trigger; use ``start`` there.
"""

from __future__ import annotations

import threading
import weakref
from contextlib import suppress
from typing import TYPE_CHECKING

from pyspark.errors import StreamingQueryException

from windowpane.arrays.values import Value
from windowpane.engines.protocol import COUNTERS
from windowpane.spark.internals.listening import listen
from windowpane.spark.internals.session import is_classic

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.listener import StreamingQueryProgress
    from pyspark.sql.streaming.query import StreamingQuery

_AVAILABLE_NOW = "AvailableNowTrigger"
_PROCESSING_TIME = ", ProcessingTime, "
_POLL_SECONDS: Value = 0.2  # PySpark takes fractions, and says that it does not

_listening: weakref.WeakSet[SparkSession] = weakref.WeakSet()


def stop_when_consumed(query: StreamingQuery) -> threading.Thread:
    """Stop ``query`` once its sources are consumed, from a thread of its own."""

    def watch() -> None:
        first: int | None = None
        while query.isActive:
            batches = query.recentProgress
            first = batches[0].batchId if batches and first is None else first
            if batches and batches[-1].batchId != first and _read_nothing(batches[-1]):
                query.stop()
                return
            with suppress(StreamingQueryException):  # whoever waits for the query gets it
                query.awaitTermination(_POLL_SECONDS)

    thread = threading.Thread(target=watch, name="windowpane-stop-when-consumed", daemon=True)
    thread.start()
    return thread


def end_available_now_runs(spark: SparkSession) -> None:
    """End such runs of a session, whoever starts them; does nothing on Spark Connect, or if the session is listened to."""
    if is_classic(spark) and spark not in _listening:
        _listening.add(spark)
        listen(spark, _StopWhenConsumed(spark).take)


class _StopWhenConsumed:
    """Stops those queries of a session that are ours, wait for the clock, and run with ``availableNow``."""

    def __init__(self, spark: SparkSession) -> None:
        self._session = weakref.ref(spark)
        self._first: dict[str, tuple[str, int]] = {}

    def take(self, progress: StreamingQueryProgress) -> None:
        """Take the progress of a batch."""
        spark, run = self._session(), str(progress.runId)
        if self._first.get(str(progress.id), ("", 0))[0] != run:
            self._first[str(progress.id)] = run, progress.batchId
        is_first = self._first[str(progress.id)][1] == progress.batchId
        is_ours = any(set(COUNTERS) <= set(metrics.asDict()) for metrics in progress.observedMetrics.values())
        if spark is None or is_first or not is_ours or not _read_nothing(progress):
            return
        query = spark.streams.get(str(progress.id))
        if query is None:
            return
        execution = query._jsq.streamingQuery()
        if execution is None or not execution.trigger().toString().startswith(_AVAILABLE_NOW):
            return
        if _PROCESSING_TIME in execution.logicalPlan().toString():
            query.stop()


def _read_nothing(progress: StreamingQueryProgress) -> bool:
    sources = progress.sources
    return bool(sources) and all(source.startOffset == source.endOffset for source in sources)
