"""What a batch of a view that is spread over Spark writes: its change log.

A batch has two halves. Here is the first: it sends the tasks the progress of the view, runs them, and keeps what they changed,
with the progress behind it. It does not need the session, so on Spark Connect it runs in a process of the server. The second
half, in the process of the session, takes the batches in the log into the store, in the order of their numbers, each with its
number in one transaction. A crash between the halves leaves a batch in the log, which is taken when the store is opened.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, cast

from windowpane.malformed import MalformedRow
from windowpane.sql.failures.malformed_rows import NOTHING, Found
from windowpane.sql.on_spark.change_log import ChangeLog
from windowpane.sql.on_spark.source_rows import Progress, Report
from windowpane.state.pairs import NONE, Pair

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class Outcome:
    """The progress of a view before and behind a batch."""

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
    """Writes the batches of a view to its change log; one that the log has is run again only for the sake of its state."""

    log: ChangeLog
    exchange: Any

    def __call__(self, rows: Any, number: int) -> None:
        """Run a batch, a DataFrame."""
        self.begin(number, rows.sparkSession)
        self.run(rows, number)

    def begin(self, number: int, spark: SparkSession) -> None:
        """Send the tasks of a batch the progress before it; a batch that is run again gets the same."""
        self.exchange.publish(self._before(number).text(), spark)

    def run(self, rows: object, number: int) -> None:
        from windowpane.spark.queries.batch_query import written_files

        files = written_files(cast("DataFrame", rows))
        if number > self.log.last():
            self.log.keep(number, self.outcome(number).text(), files)

    def outcome(self, number: int) -> Outcome:
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
