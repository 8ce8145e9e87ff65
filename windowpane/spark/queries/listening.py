"""Listening to the queries of a session: the progress of each batch, as it ends."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from pyspark.sql.streaming.listener import StreamingQueryListener

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.listener import (
        QueryIdleEvent,
        QueryProgressEvent,
        QueryStartedEvent,
        QueryTerminatedEvent,
        StreamingQueryProgress,
    )


class _Listener(StreamingQueryListener):
    def __init__(self, take: Callable[[StreamingQueryProgress], None]) -> None:
        self._take = take

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802 (the names are Spark's)
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
    spark.streams.addListener(listener)
    return lambda: spark.streams.removeListener(listener)
