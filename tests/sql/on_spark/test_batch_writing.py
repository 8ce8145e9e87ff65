"""The first half of a batch: what it begins with, what it leaves in the change log, and what another run of it meets."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from types import SimpleNamespace as Object
from typing import Any, cast

import pyarrow as pa
import pytest

from windowpane.errors import MisplacedStateError, SqlRunError
from windowpane.spark.queries import batch_query
from windowpane.spark.queries.batch_query import BatchExchange
from windowpane.sql.on_spark.batch_writing import LogWriter, Outcome
from windowpane.sql.on_spark.change_log import ChangeLog, ToFiles
from windowpane.sql.on_spark.source_rows import Progress, Report

CHANGES = pa.table({"a": [1, 2]})


class Spark:
    """Stands for a classic session; jobs have the mark that its thread gave them."""

    def __init__(self) -> None:
        self._jsparkSession = None
        self.sparkContext = Object(setLocalProperty=lambda name, value: None)


@pytest.fixture(autouse=True)
def ran(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Let batches run here, whose rows are what their tasks call; what ran."""
    done: list[str] = []

    def written(task: Callable[[], Iterable[bytes]]) -> list[Path]:
        done.append("run")
        return [Path(os.fsdecode(path)) for path in task()]

    monkeypatch.setattr(batch_query, "written_files", written)
    return done


def published(exchange: BatchExchange) -> Progress:
    """Return what the tasks of the batch read."""
    (file,) = exchange._folder.glob("[!.]*/told")
    return Progress.of(file.read_text())


def run(writer: LogWriter, number: int, *reports: Any) -> Progress:
    """Run a batch whose tasks report something; return what its tasks read."""
    writer.begin(number, cast("Any", Spark()))
    begun = published(writer.exchange)
    task = pickle.loads(pickle.dumps(writer.exchange))
    for place, report in enumerate(reports):
        task.report("of an attempt that failed", place)
        task.report(report, place)
    writer.run(partial(ToFiles(task), [CHANGES]), number)
    return begun


def writer_in(folder: Path) -> LogWriter:
    return LogWriter(ChangeLog(folder / "changes"), BatchExchange(folder / "exchange"))


def test_a_batch_begins_where_the_one_before_ended_and_again_where_it_began(tmp_path: Path, ran: list[str]) -> None:
    assert (
        run(writer_in(tmp_path), 0, Report("s", {None: 7}, 1, 3), Report("s", {None: 5}, 2, 9), {"t": "TIMESTAMP 'x'"})
        == Progress()
    )
    after = Progress({"s": 7}, {"t": "TIMESTAMP 'x'"}, 9 * 65_536)
    log = ChangeLog(tmp_path / "changes")
    assert Outcome.of(log.outcome(0)) == Outcome(Progress(), after, {"s": 3})
    assert run(writer_in(tmp_path), 0, Report("s", {None: 100}, 0, 1)) == Progress()
    assert run(writer_in(tmp_path), 1, Report("s", {None: 6}, 0, 0)) == after
    log.trim(1)
    assert run(writer_in(tmp_path), 1) == after
    assert run(writer_in(tmp_path), 2) == after
    assert log.numbers() == [1, 2]
    assert ran == ["run"] * 5
    assert [list(log.changes(number)) for number in (1, 2)] == [[], [CHANGES]]  # trimmed, and as its tasks wrote it


def test_a_batch_that_does_not_follow_the_log_is_refused(tmp_path: Path) -> None:
    run(writer_in(tmp_path), 0)
    with pytest.raises(MisplacedStateError, match=r"batch 0 as the last one .*knows batch 1 to be taken and gives batch 2"):
        run(writer_in(tmp_path), 2)


def test_a_run_that_was_given_up_writes_nothing_once_another_has_begun(tmp_path: Path) -> None:
    old = writer_in(tmp_path)
    old.begin(0, cast("Any", Spark()))
    old.exchange.report(Report("s", {None: 7}, 0, 1), "s")
    assert run(writer_in(tmp_path), 0, Report("s", {None: 7}, 0, 1)) == Progress()
    with pytest.raises(SqlRunError, match="another run of it has begun"):
        old.exchange.reports  # noqa: B018 - it is read for its error
    with pytest.raises(OSError, match="No such file"):
        old.exchange.report(Report("s", {None: 9}, 0, 1), "s")


def test_two_runs_of_a_batch_leave_the_first_and_no_draft(tmp_path: Path) -> None:
    log = ChangeLog(tmp_path)
    for outcome in ("1", "2"):
        (path := tmp_path / f"{outcome}.parquet").write_text(outcome)
        log.keep(0, outcome, [path])
    assert (log.outcome(0), [path.name for path in tmp_path.iterdir()]) == ("1", [f"{0:012}"])
    assert (tmp_path / f"{0:012}" / "part-00000.parquet").read_text() == "1"


def test_the_watermark_of_partitions_is_the_least_of_them_over_batches() -> None:
    first = Progress().behind([Report("s", {"t/0": 900, "t/1": 300}, 0, 2), Report("s", {"t/2": 500}, 0, 1)])
    assert first.reached == {"s": 300}
    again = Progress.of(first.text()).behind([Report("s", {"t/1": 1_000}, 0, 1)])
    assert again.reached == {"s": 500}
    back = again.behind([Report("s", {"t/3": 100}, 0, 1)])
    assert back.reached == {"s": 500}  # a partition that is new does not move it back
