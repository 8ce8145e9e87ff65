"""A query whose batches are written in another process, that of Spark Connect's server.

The function that takes a batch is sent there, and holds nothing of the session. What it wrote is taken here, by a thread that
looks for it.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from windowpane.errors import SqlRunError
from windowpane.spark.queries.batch_query import BatchQuery, Take
from windowpane.spark.queries.starting import started
from windowpane.spark.session.reasons import SPARK_ERRORS, reason

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_FOLLOWING = 0.2  # Seconds from one look for batches that were written elsewhere to the next

_LONGEST = 60.0  # Seconds that a batch which Spark has committed may need to be seen here, through a file system that is shared


@dataclass(frozen=True)
class Elsewhere:
    """How a query is followed whose batches are written in another process, that of Spark Connect's server."""

    written: Callable[[], int]  # returns the number of the last batch that is written, -1 before the first
    take: Callable[[], None]  # takes here what is written and not taken yet, on any thread


class FollowedQuery(BatchQuery):
    def __init__(
        self,
        spark: SparkSession,
        name: str,
        checkpoint: Path,
        rows: Callable[[SparkSession], DataFrame],
        take: Take,
        elsewhere: Elsewhere,
    ) -> None:
        super().__init__(spark, name, checkpoint, rows, take)
        self._elsewhere = elsewhere
        self._follower: _Follower | None = None

    def start(self) -> None:
        super().start()
        if self._follower is None or not self._follower.is_alive():
            self._follower = _Follower(self._elsewhere)
            self._follower.start()

    def finish(self, *, is_endless: bool = False) -> None:
        """Wait until every row that had arrived when this was called is in a batch that is written, and seen here."""
        super().finish(is_endless=is_endless)
        self._see_written()

    def _see_written(self) -> None:
        committed = max((each.batchId for each in self._running.recentProgress if "addBatch" in each.durationMs), default=-1)
        deadline = time.monotonic() + _LONGEST
        while self._elsewhere.written() < committed:
            if time.monotonic() > deadline:
                raise SqlRunError(f"{self._name}: Spark has committed batch {committed}, and its change log is not seen here.")
            time.sleep(0.05)

    def _begins(self) -> tuple[int, int]:
        number = self._elsewhere.written() + 1
        return number + 1, number

    def _ends(self) -> int:
        return self._elsewhere.written() + 1

    def stop(self) -> None:
        if self._follower is not None:
            self._follower.stop()
        super().stop()

    def join(self) -> None:
        if self._follower is not None:
            self._follower.join()

    def _started(self) -> StreamingQuery:
        """Return the query, started again where the server's Python worker for batches did not connect back in time."""
        try:
            return started(super()._started, self._spark)
        except SPARK_ERRORS as error:
            raise SqlRunError(f"{self._name} does not start: {reason(error)}") from error

    def _batch_function(self) -> Take:
        return self._take


class _Follower(threading.Thread):
    def __init__(self, elsewhere: Elsewhere) -> None:
        super().__init__(daemon=True)
        self._elsewhere, self._stops = elsewhere, threading.Event()

    def run(self) -> None:
        taken = -1
        try:
            while not self._stops.wait(_FOLLOWING):
                written = self._elsewhere.written()
                if written != taken:
                    self._elsewhere.take()
                    taken = written
        except Exception as error:
            logging.getLogger(__name__).info("what a query wrote waits for the next flush: %s", error)

    def stop(self) -> None:
        self._stops.set()
