"""Listening to the queries of a session: the progress of each batch, as it ends."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.listener import (
    JStreamingQueryListener,
    QueryProgressEvent,
    StreamingQueryListener,
    StreamingQueryProgress,
)

from windowpane.spark.internals.session import is_classic

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.listener import QueryIdleEvent, QueryStartedEvent, QueryTerminatedEvent


class _AsText(JStreamingQueryListener):
    """Takes the progress of a batch as one text. PySpark asks for each figure by itself: 0.1 s of processor."""

    def onQueryProgress(self, jevent: Any) -> None:  # noqa: N802 (the names are Spark's)
        progress = StreamingQueryProgress.fromJson(json.loads(jevent.progress().json()))
        self.pylistener.onQueryProgress(QueryProgressEvent(progress))


class _Listener(StreamingQueryListener):
    def __init__(self, take: Callable[[StreamingQueryProgress], None]) -> None:
        self._take = take

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802
        """Nothing has run yet."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        """Hand on the progress; an error of who takes it is said, and does not reach the query."""
        try:
            self._take(event.progress)
        except Exception:
            logging.getLogger(__name__).exception("the progress of a batch could not be taken")

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802
        """Nothing has run."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        """What was counted stays."""


def listen(spark: SparkSession, take: Callable[[StreamingQueryProgress], None]) -> Callable[[], None]:
    """Have a function called with the progress of each batch of a session; return what ends that."""
    listener = _Listener(take)
    if is_classic(spark) and spark._jvm is not None:
        java = spark._jvm.org.apache.spark.sql.streaming
        listener._jlistenerobj = java.PythonStreamingQueryListenerWrapper(_AsText(listener))
    spark.streams.addListener(listener)
    return lambda: spark.streams.removeListener(listener)
