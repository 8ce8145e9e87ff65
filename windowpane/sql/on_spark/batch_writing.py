"""What a batch of a view that is spread over Spark writes: its change log, or a staging table of PostgreSQL.

A batch has two halves. Here is the first: tell the tasks how far the view was, run them, and keep what they changed with how far
the view is then. It asks nothing of the session, so on Spark Connect it runs in a process of the server. The second half, in the
process of the session, takes the batches that are in the log into the store, in the order of their numbers, each with its number
in one transaction. A crash between the halves leaves a batch in the log, which is taken when the store is opened.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from windowpane.errors import SqlRunError
from windowpane.sql.on_spark.change_log import ChangeLog
from windowpane.sql.on_spark.source_rows import Progress, Report
from windowpane.sql.streaming.deltas import WEIGHT
from windowpane.state.compact import from_stream
from windowpane.stores import PostgresStore
from windowpane.stores.batches import GONE


@dataclass(frozen=True)
class Outcome:
    """How far a batch has brought its view.

    Args:
        before: how far it was before the batch.
        after: how far it is behind it.
        late: how many rows of each source were late.
    """

    before: Progress
    after: Progress
    late: Mapping[str, int]

    def text(self) -> str:
        """Return it as text."""
        return json.dumps([self.before.text(), self.after.text(), dict(self.late)])

    @classmethod
    def of(cls, text: str) -> Outcome:
        """Return it from text."""
        before, after, late = json.loads(text)
        return cls(Progress.of(before), Progress.of(after), late)


@dataclass(frozen=True)
class LogWriter:
    """Writes the batches of a view to its change log; one that is there is run for the sake of its state.

    Args:
        log: the change log.
        exchange: the ``BatchExchange`` by which a batch and its tasks tell each other.
    """

    log: ChangeLog
    exchange: Any

    def __call__(self, rows: Any, number: int) -> None:
        """Run a batch, a DataFrame.

        Raises:
            SqlRunError: a task failed.
        """
        self.begin(number, rows.sparkSession)
        self.run(rows, number)

    def begin(self, number: int, spark: Any) -> None:
        """Tell the tasks of a batch how far its sources were before it; a batch that is run again is told what it was."""
        self.exchange.tell(self._before(number).text(), spark)

    def run(self, rows: Any, number: int) -> None:
        """Run a batch whose tasks know what to begin with."""
        from windowpane.spark.queries.batch_query import run_only

        if number <= self.log.last():
            run_only(rows)
        else:
            self.log.write(rows, number, lambda: self.outcome(number).text())

    def outcome(self, number: int) -> Outcome:
        """Return how far a batch has brought the view, once its tasks have run."""
        before, reports = self._before(number), self.exchange.reports
        late: dict[str, int] = {}
        for report in reports:
            if isinstance(report, Report):
                late[report.source] = late.get(report.source, 0) + report.late
        return Outcome(before, before.behind(reports), late)

    def _before(self, number: int) -> Progress:
        last = self.log.last()
        if number > last + 1:
            raise SqlRunError(
                f"batch {number} does not follow batch {last}, the last one in the change log: the checkpoint and the log do not "
                "belong together."
            )
        if last < 0:
            return Progress()
        outcome = Outcome.of(self.log.outcome(last))
        return outcome.after if number > last else outcome.before


@dataclass(frozen=True)
class ServerWriter:
    """Lets tasks write the batches of a view to PostgreSQL, and nothing else, as long as nobody reads the view.

    This needs the process of the session, for the rows go from there with the number of the batch in one transaction.

    Args:
        logged: writes those that somebody reads.
        is_read: whether somebody reads the view now.
        stage: brings a batch to a staging table, and returns its name.
        took: merges that, unless somebody reads the view by now, and says whether it did.
    """

    logged: LogWriter
    is_read: Callable[[], bool]
    stage: Callable[[Any, int], str]
    took: Callable[[int, Outcome, str], bool]

    @property
    def exchange(self) -> Any:
        """The ``BatchExchange`` by which a batch and its tasks tell each other."""
        return self.logged.exchange

    def __call__(self, rows: Any, number: int) -> None:
        """Run a batch, a DataFrame."""
        self.begin(number, rows.sparkSession)
        self.run(rows, number)

    def begin(self, number: int, spark: Any) -> None:
        """Tell the tasks of a batch how far its sources were before it."""
        self.logged.begin(number, spark)

    def run(self, rows: Any, number: int) -> None:
        """Run a batch whose tasks know what to begin with."""
        if number > self.logged.log.last() and not self.is_read():
            staging, outcome = self.stage(rows, number), self.logged.outcome(number)
            if self.took(number, outcome, staging):
                self.logged.log.note(number, outcome.text())
                return
        self.logged.run(rows, number)


@dataclass(frozen=True)
class ToStaging:
    """Brings changes to a staging table; runs on Spark's tasks, each of which copies those of its partition.

    Args:
        url: of the server.
        staging: the table.
        ids: how the columns of the view are named in its plan.
    """

    url: str
    staging: str
    ids: Mapping[str, str]

    def __call__(self, partition: int, batches: Iterator[pa.RecordBatch]) -> None:
        """Take the blobs of a partition; where there are none, the server is not asked."""
        tables = (self._named(from_stream(blob.as_py())) for batch in batches for blob in batch.column("blob"))
        for first in tables:
            store = PostgresStore(self.url)
            try:
                store.stage(self.staging, partition, chain([first], tables))
            finally:
                store.close()

    def _named(self, changes: pa.Table) -> pa.Table:
        columns = {name: changes[identity] for name, identity in self.ids.items()}
        return pa.table({**columns, GONE: pc.less(changes[WEIGHT], 0)})
