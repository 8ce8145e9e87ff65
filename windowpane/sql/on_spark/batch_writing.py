"""What a batch of a view that is spread over Spark writes: its change log, or a staging table of PostgreSQL.

A batch has two halves. Here is the first: it sends the tasks the progress of the view, runs them, and keeps what they changed,
with the progress behind it. It does not need the session, so on Spark Connect it runs in a process of the server. The second
half, in the process of the session, takes the batches in the log into the store, in the order of their numbers, each with its
number in one transaction. A crash between the halves leaves a batch in the log, which is taken when the store is opened.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from windowpane.malformed import MalformedRow
from windowpane.sql.failures.malformed_rows import NOTHING, Found
from windowpane.sql.on_spark.change_log import ChangeLog, held_in
from windowpane.sql.on_spark.source_rows import Progress, Report
from windowpane.sql.streaming.deltas import WEIGHT
from windowpane.state.pairs import NONE, Pair
from windowpane.stores import PostgresStore
from windowpane.stores.batches import IS_DELETED

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Outcome:
    """The progress of a view before and behind a batch.

    Args:
        before: before the batch.
        after: behind it.
        late: how many rows of each source were late.
        malformed: the rows of each source that could not be read.
    """

    before: Progress
    after: Progress
    late: Mapping[str, int]
    malformed: Mapping[str, Found] = field(default_factory=dict)

    def text(self) -> str:
        malformed = {source: asdict(found) for source, found in self.malformed.items()}
        return json.dumps([self.before.text(), self.after.text(), dict(self.late), malformed])

    @classmethod
    def of(cls, text: str) -> Outcome:
        before, after, late, malformed = json.loads(text)
        found = {
            source: Found(tuple(MalformedRow(**row) for row in each["shown"]), each["count"])
            for source, each in malformed.items()
        }
        return cls(Progress.of(before), Progress.of(after), late, found)


@dataclass(frozen=True)
class LogWriter:
    """Writes the batches of a view to its change log; one that the log has is run again only for the sake of its state.

    Args:
        log: the change log.
        exchange: the ``BatchExchange`` between a batch and its tasks.
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

    def begin(self, number: int, spark: SparkSession) -> None:
        """Send the tasks of a batch the progress before it; a batch that is run again gets the same."""
        self.exchange.publish(self._before(number).text(), spark)

    def run(self, rows: object, number: int) -> None:
        """Run a batch, after ``begin``."""
        from windowpane.spark.queries.batch_query import written_files

        files = written_files(rows)
        if number > self.log.last():
            self.log.keep(number, self.outcome(number).text(), files)

    def outcome(self, number: int) -> Outcome:
        """Return the outcome of a batch, once its tasks have run."""
        before, reports = self._before(number), self.exchange.reports
        late: dict[str, int] = {}
        malformed: dict[str, Found] = {}
        for report in reports:
            if isinstance(report, Report):
                late[report.source] = late.get(report.source, 0) + report.late
                if report.malformed.count:
                    malformed[report.source] = malformed.get(report.source, NOTHING).and_more(report.malformed)
        return Outcome(
            before, before.behind(reports), late, {source: found for source, found in malformed.items() if found.count}
        )

    def _before(self, number: int) -> Progress:
        last = self.log.last()
        if number > last:
            log = f"change log {str(self.log.folder)!r}"
            Pair("the checkpoint beside it", log, "Put copies back that belong together.").has_begun(last, number - 1, number)
        if last == NONE:
            return Progress()
        outcome = Outcome.of(self.log.outcome(last))
        return outcome.after if number > last else outcome.before


@dataclass(frozen=True)
class ServerWriter:
    """Lets tasks write the batches of a view to PostgreSQL, and nowhere else, as long as no view or sink reads it.

    It runs in the process of the session, which merges the rows and the number of the batch in one transaction.

    Args:
        logged: writes the batches while something reads the view.
        is_read: whether a view or sink reads the view now.
        stage: brings a batch to a staging table, and returns its name.
        took: merges the staging table, unless something reads the view by now, and says whether it did.
    """

    logged: LogWriter
    is_read: Callable[[], bool]
    stage: Callable[[Any, int], str]
    took: Callable[[int, Outcome, str], bool]

    @property
    def exchange(self) -> Any:
        """The ``BatchExchange`` between a batch and its tasks."""
        return self.logged.exchange

    def __call__(self, rows: Any, number: int) -> None:
        """Run a batch, a DataFrame."""
        self.begin(number, rows.sparkSession)
        self.run(rows, number)

    def begin(self, number: int, spark: SparkSession) -> None:
        """Send the tasks of a batch the progress before it."""
        self.logged.begin(number, spark)

    def run(self, rows: object, number: int) -> None:
        """Run a batch, after ``begin``."""
        if number > self.logged.log.last() and not self.is_read():
            staging, outcome = self.stage(rows, number), self.logged.outcome(number)
            if self.took(number, outcome, staging):
                self.logged.log.keep(number, outcome.text())
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
        """Copy the files of a partition; without any, it does not connect to the server."""
        paths = (Path(os.fsdecode(path.as_py())) for batch in batches for path in batch.column("file"))
        tables = (self._named(table) for path in paths for table in held_in(path))
        for first in tables:
            store = PostgresStore(self.url)
            try:
                store.stage(self.staging, partition, chain([first], tables))
            finally:
                store.close()

    def _named(self, changes: pa.Table) -> pa.Table:
        columns = {name: changes[identity] for name, identity in self.ids.items()}
        return pa.table({**columns, IS_DELETED: pc.less(changes[WEIGHT], 0)})
