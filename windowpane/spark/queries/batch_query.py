"""A query that hands every batch to a function: change sets to views, rows to tables, and changes of views.

The query looks for new rows five times a second; ``finish`` waits until all that have arrived are taken. The function runs in the
process of Spark's driver: of a classic session that is this one. On Spark Connect it is another: see ``followed_query``.
"""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import shutil
import threading
import uuid
import weakref
from collections.abc import Callable, Hashable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa
from pyspark import TaskContext
from pyspark.errors import StreamingQueryException

from windowpane.arrays.values import JsonValue, Value
from windowpane.errors import SqlRunError, present
from windowpane.spark.internals.session import mark_jobs, mark_of_job, parallelism
from windowpane.spark.queries.starting import warn, was_too_slow
from windowpane.spark.session.checkpoints import only
from windowpane.spark.session.reasons import SPARK_ERRORS, raised, reason

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.listener import StreamingQueryProgress
    from pyspark.sql.streaming.query import StreamingQuery

Take: TypeAlias = "Callable[[DataFrame, int], None]"

_FROM_DRIVER, _REPORT = "told", ".report"
"""The files of an exchange: what the driver hands to the tasks of a batch, and how the names of their reports end."""

FILES = "file binary"  # The columns of a batch whose tasks write its rows to files: the path of each, as bytes of the file system

_GIVEN_UP = "the batch was given up: another run of it has begun."
"""The error of a run that another one has replaced: a query that a killed client left on a server may run for a moment more."""
_MOST_REPLACED = 2  # How often that may happen to one wait for a query

_POLLING = {"spark.sql.streaming.pollingDelay": "200"}


def inbox(spark: SparkSession, folder: Path, schema: str, *, is_shared: bool = False) -> DataFrame:
    """Return the Parquet files of a folder as a stream, one file a batch, oldest first; all tasks may share its rows.

    A file is known by its name alone: where the folder has been moved, or has another path, those that were read stay read.
    """
    files = spark.readStream.schema(schema).options(maxFilesPerTrigger=1, fileNameOnly=True)
    rows = files.parquet(only(_address(folder)))
    return rows.repartition(parallelism(spark)) if is_shared else rows


def _address(folder: Path) -> str:
    """Return a folder of this machine as Hadoop reads it: no character of it is written as a number."""
    return f"file://{folder.absolute()}"


class BatchExchange:
    """What the driver hands to the tasks of a batch, and what they report: in a folder that all of them see.

    Each run of a batch has a subfolder of its own, whose name marks its jobs: a task of an earlier run reads
    nothing of this one, and reports nothing to it. A report has a name by what was seen, so that none counts twice.
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self._mark = folder, ""

    def publish(self, text: str, spark: SparkSession) -> None:
        """Hand a text to the tasks of the next batch, on the thread that runs it in a session."""
        for run in self._folder.glob("[!.]*"):
            with suppress(FileNotFoundError):  # another run has moved it away
                run.rename(run.with_name(f".{run.name}"))  # the run that still uses it fails at once
        for run in self._folder.glob(".*"):
            shutil.rmtree(run, ignore_errors=True)
        self._mark = uuid.uuid4().hex
        self._run.mkdir(parents=True)
        (self._run / _FROM_DRIVER).write_text(text, encoding="utf-8")
        mark_jobs(spark, self._mark)

    @property
    def _run(self) -> Path:
        return self._folder / (mark_of_job() or self._mark)

    def published(self) -> str | None:
        """Return, on a task, the text for its batch; ``None`` on the driver."""
        if TaskContext.get() is None:
            return None
        try:
            return (self._run / _FROM_DRIVER).read_text(encoding="utf-8")
        except OSError:
            raise SqlRunError(
                f"a task of Spark does not see {str(self._folder)!r}. The folder beside the store must be one that the session, "
                "the driver of Spark and all executors share."
            ) from None

    @property
    def partition(self) -> int:
        context = TaskContext.get()
        return 0 if context is None else int(context.partitionId())

    def new_file(self) -> Path:
        """Return, on a task, a path in the folder of the run that no other task has; the next run removes the file."""
        return self._run / f"{self.partition:05}-{uuid.uuid4().hex}.parquet"

    def report(self, seen: object, what: Hashable) -> None:
        """Report, on a task, what it saw of something; of several reports of one thing the last one counts."""
        name = hashlib.sha256(repr(what).encode()).hexdigest()
        draft = self._run / f".{name}.{uuid.uuid4().hex}"
        draft.write_bytes(pickle.dumps(seen))
        draft.rename(self._run / f"{name}{_REPORT}")

    @property
    def reports(self) -> list[Value]:
        try:
            found = [pickle.loads(file.read_bytes()) for file in sorted(self._run.glob(f"[!.]*{_REPORT}"))]
            (self._run / _FROM_DRIVER).stat()
        except OSError:
            raise SqlRunError(_GIVEN_UP) from None
        return found


class BatchQuery:
    """One streaming query, which can be started again after it failed."""

    def __init__(
        self,
        spark: SparkSession,
        name: str,
        checkpoint: Path,
        rows: Callable[[SparkSession], DataFrame],
        take: Take,
        behind: Callable[[], None] | None = None,
    ) -> None:
        """Hand each batch, a DataFrame, and its number to ``take``; ``rows`` makes the streaming DataFrame of a session.

        ``take`` must run the batch, whatever its number is: its tasks write state. ``behind`` is called after each batch while
        the next one runs, which waits for it; if it raises, it is called again, and then the next one fails. The caller of
        ``finish`` has to do the same for the last batch.
        """
        self._spark, self._name, self._checkpoint, self._rows, self._take = spark, name, checkpoint, rows, take
        self._query: StreamingQuery | None = None
        self._failure: BaseException | None = None
        self._idle: _Idle | None = None
        self._begun = self._ended = 0
        self._number = -1
        self._behind = behind
        self._pool = ThreadPoolExecutor(1, "windowpane behind a batch")
        self._call: Future[None] | None = None

    def start(self) -> None:
        if self._query is None or not self._query.isActive:
            self._failure = None
            self._query = self._started()

    def finish(self, *, is_endless: bool = False) -> None:
        """Wait until every row that had arrived when this was called is taken.

        Where it ``is_endless``, rows may come as fast as they are taken, so waiting for a moment without any may never end.
        """
        replaced = 0
        while True:
            try:
                if is_endless:
                    self._catch_up()
                else:
                    self._running.processAllAvailable()
                return
            except StreamingQueryException as error:
                self._query = self._idle = None
                failure, self._failure = self._failure, None
                is_given_up = _GIVEN_UP in str(error)
                replaced += is_given_up
                if failure is not None or replaced > _MOST_REPLACED or not (is_given_up or was_too_slow(error)):
                    raise failure or raised(error) or SqlRunError(f"{self._name} stopped: {reason(error)}") from error
                if not is_given_up:
                    warn()
                self.start()

    def _catch_up(self) -> None:
        """Wait for a moment without new rows, or until batches that began from now on have all rows of now.

        The second such batch has them. Where a source reports its end, as Kafka does, which may have a limit of rows a batch, it
        is the batch that has passed the end that the second one reported.
        """
        begun, number, targets = *self._begins(), None
        while True:
            waited_before = self._idle is not None  # for a moment that may have been before rows of now
            if self._idle is None:
                self._idle = _Idle(self._running)
                self._idle.start()
            while self._idle.is_alive():
                if self._ends() >= begun + 2:
                    later = [each for each in self._running.recentProgress if each.batchId > number]
                    if targets is None and len(later) > 1:  # the first may have been planned before this call
                        targets = [source.latestOffset for source in later[1].sources]
                    ends = [[source.endOffset for source in each.sources] for each in later[1:]]
                    if targets is not None and any(all(map(has_passed, each, targets)) for each in ends):
                        return
                self._idle.join(0.05)
            failure, self._idle = self._idle.failure, None
            if failure is not None:
                raise failure
            if not waited_before:
                return

    def _begins(self) -> tuple[int, int]:
        return self._begun, self._number

    def _ends(self) -> int:
        return self._ended

    @property
    def _running(self) -> StreamingQuery:
        return present(self._query, "it was started")

    @property
    def last_batch(self) -> StreamingQueryProgress | None:
        """The progress of the last batch with rows, as Spark gives it; ``None`` before the first."""
        ran = [] if self._query is None else [each for each in self._query.recentProgress if "addBatch" in each["durationMs"]]
        return ran[-1] if ran else None

    def stop(self) -> None:
        if self._query is not None:
            self._query.stop()
            self._query = self._idle = None

    def join(self) -> None:
        """Wait until nothing of a query that was stopped is taken any more; the store must not be locked here."""
        self._pool.shutdown()

    def _started(self) -> StreamingQuery:
        writer = self._rows(self._spark).writeStream.foreachBatch(self._batch_function())
        writer = writer.option("checkpointLocation", _address(self._checkpoint)).queryName(self._name)
        with settings(self._spark, _POLLING):
            return writer.start()

    def _batch_function(self) -> Take:
        return _weakly_held(self)

    def batch(self, rows: DataFrame, number: int) -> str | None:
        """Take a batch; what is raised is kept for ``finish``, and its message returned."""
        self._begun += 1
        self._number = number
        try:
            self._take(rows, number)
            if self._behind is not None:
                call, self._call = self._call, None
                if call is not None and call.exception() is not None:  # this waits for it; what it raised ends the query
                    self._behind()
                else:
                    self._call = self._pool.submit(self._behind)
        except Exception as error:
            self._failure = error
            return str(error)
        self._ended = self._begun
        return None


def has_passed(end: str | None, target: str | None) -> bool:
    """Whether an offset, as Spark reports it, is not behind another in any of its numbers. One without numbers says nothing.

    Example:
        >>> has_passed('{"topic": {"0": 7, "1": 3}}', '{"topic": {"0": 5, "1": 4}}')
        False
    """
    try:
        return _is_at(json.loads(end or "null"), json.loads(target or "null"))
    except ValueError:  # such as 'None'
        return True


def _is_at(end: JsonValue, target: JsonValue) -> bool:
    if isinstance(target, dict):
        return isinstance(end, dict) and all(key in end and _is_at(end[key], value) for key, value in target.items())
    return not isinstance(target, int | float) or (isinstance(end, int | float) and end >= target)


class _Idle(threading.Thread):
    def __init__(self, query: StreamingQuery) -> None:
        super().__init__(daemon=True)
        self._query = query
        self.failure: Exception | None = None

    def run(self) -> None:
        try:
            self._query.processAllAvailable()
        except Exception as error:
            self.failure = error


def collected(rows: DataFrame) -> pa.Table:
    with _as_sql_errors():
        return rows.toArrow()


def written_files(rows: DataFrame) -> list[Path]:
    """Run a batch of ``FILES``, and return the files, those of one task behind those of another.

    Of a task that is run twice they are those of the run that Spark counts.
    """
    with _as_sql_errors():
        return [Path(os.fsdecode(bytes(path))) for (path,) in rows.collect()]


def sees(spark: SparkSession, file: Path) -> bool:
    try:
        return [row[0] for row in spark.read.text(only(_address(file))).collect()] == file.read_text().splitlines()
    except SPARK_ERRORS:
        return False


@contextmanager
def _as_sql_errors() -> Iterator[None]:
    try:
        yield
    except SPARK_ERRORS as error:
        raise SqlRunError(reason(error)) from None


def _weakly_held(query: BatchQuery) -> Callable[[DataFrame, int], None]:
    """Return what hands batches to a query: Spark's gateway holds it and what it raises for ever, and must not hold the query."""
    reference = weakref.ref(query)

    def batch(rows: DataFrame, number: int) -> None:
        held = reference()
        failure = "the session is closed" if held is None else held.batch(rows, number)
        del held
        if failure is not None:
            raise SqlRunError(failure)

    return batch


@contextmanager
def settings(spark: SparkSession, values: Mapping[str, str]) -> Iterator[None]:
    """Set what the user did not set while a query starts: it takes a copy of the session's settings."""
    missing = {name: value for name, value in values.items() if spark.conf.get(name, None) is None}
    for name, value in missing.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name in missing:
            spark.conf.unset(name)
