"""A query that hands every batch to a function here: letters to views, rows to tables, and changes of views.

The query looks for new rows five times a second; ``finish`` waits until all that are there are taken. The function runs in the
process of the driver, so this needs a classic session: on Spark Connect it would run on the server.
"""

from __future__ import annotations

import json
import threading
import weakref
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.accumulators import AccumulatorParam
from pyspark.errors import StreamingQueryException

from windowpane.errors import SqlRunError
from windowpane.spark.queries.checkpoints import only
from windowpane.spark.queries.reasons import SPARK_ERRORS, reason
from windowpane.spark.queries.starting import STARTS, warn, was_too_slow

Take = Callable[[Any, int], None]

_TOLD = "windowpane.told"
"""The local property by which tasks of a batch are told something."""

_POLLING = {"spark.sql.streaming.pollingDelay": "200"}


def inbox(spark: Any, folder: Path, schema: str, *, is_shared: bool = False) -> Any:
    """Return the Parquet files of a folder as a stream, one file a batch, oldest first; all tasks may share its rows.

    A file is known by its name alone: where the folder has been moved, or goes by another path, those that were read stay read.
    """
    files = spark.readStream.schema(schema).options(maxFilesPerTrigger=1, fileNameOnly=True)
    rows = files.parquet(only(_address(folder)))
    return rows.repartition(spark.sparkContext.defaultParallelism) if is_shared else rows


def _address(folder: Path) -> str:
    """Return a folder of this machine as Hadoop reads it: no character of it is written as a number."""
    return f"file://{folder.absolute()}"


class BatchExchange:
    """What the driver tells the tasks of a batch, and what they report: by what they saw, so that none counts twice."""

    def __init__(self, spark: Any) -> None:
        """Exchange with the tasks of a session."""
        self._context = spark.sparkContext
        self._reports = self._context.accumulator({}, _Last())

    def __getstate__(self) -> dict[str, Any]:
        """Tasks only report."""
        return {"_context": None, "_reports": self._reports}

    def tell(self, said: str | None) -> None:
        """Tell the tasks of the next batch, on the thread that runs it."""
        self._reports.value = {}
        self._context.setLocalProperty(_TOLD, said)

    def told(self) -> str | None:
        """Return, on a task, what the driver said."""
        context = TaskContext.get()
        return None if context is None else context.getLocalProperty(_TOLD)

    @property
    def partition(self) -> int:
        """The number of a task in its batch."""
        context = TaskContext.get()
        return 0 if context is None else int(context.partitionId())

    def report(self, seen: Any, what: Hashable) -> None:
        """Report, on a task, what it saw of something; of several reports of one thing the last one counts."""
        self._reports.add({what: seen})

    @property
    def reports(self) -> list[Any]:
        """What the tasks of the batch reported."""
        return list(self._reports.value.values())


class _Last(AccumulatorParam[dict[Hashable, Any]]):
    """Keeps the last report of each thing: a task that is run again reports again."""

    def zero(self, value: dict[Hashable, Any]) -> dict[Hashable, Any]:
        """Begin with nothing."""
        return {}

    def addInPlace(  # noqa: N802 - Spark's names
        self, value1: dict[Hashable, Any], value2: dict[Hashable, Any]
    ) -> dict[Hashable, Any]:
        """Take reports over."""
        return {**value1, **value2}


class BatchQuery:
    """One streaming query, which can be started again after it failed."""

    def __init__(
        self,
        spark: Any,
        name: str,
        checkpoint: Path,
        rows: Callable[[Any], Any],
        take: Take,
        begin: Callable[[int], None] | None = None,
    ) -> None:
        """Hand each batch, a DataFrame, and its number to ``take``; ``rows`` makes the streaming DataFrame of a session.

        ``take`` must run the batch, whatever its number is: its tasks write state. ``begin`` is called with the number before
        that, on the same thread.
        """
        self._begin = begin
        self._spark, self._name, self._checkpoint, self._rows, self._take = spark, name, checkpoint, rows, take
        self._query: Any = None
        self._failure: BaseException | None = None
        self._idle: _Idle | None = None
        self._begun = self._ended = 0
        self._number = -1

    def start(self) -> None:
        """Start the query, unless it runs."""
        if self._query is None or not self._query.isActive:
            self._failure = None
            self._query = self._started()

    def finish(self, *, is_endless: bool = False) -> None:
        """Wait until every row is taken that was there when this was called.

        Args:
            is_endless: whether rows may come as fast as they are taken, so that waiting for a moment without any may never end.

        Raises:
            SqlRunError: a task of the query failed; what ``take`` raises comes as it is.
        """
        for further in reversed(range(STARTS)):
            try:
                if is_endless:
                    self._catch_up()
                else:
                    self._query.processAllAvailable()
            except StreamingQueryException as error:
                self._query = self._idle = None
                failure, self._failure = self._failure, None
                if failure is not None or not further or not was_too_slow(error):
                    raise failure or SqlRunError(f"{self._name} stopped: {reason(error)}") from error
                warn()
                self.start()
            else:
                return

    def _catch_up(self) -> None:
        """Wait for a moment without new rows, or until batches that began from now on have all that is there now.

        So it is with the second one. Where a source reports what there is, as Kafka does, which may be told to give a batch only
        so many rows, it is with the one that has passed what the first one reported.
        """
        begun, number, targets = self._begun, self._number, None
        if self._idle is None:
            self._idle = _Idle(self._query)
            self._idle.start()
        while self._idle.is_alive():
            if self._ended >= begun + 2:
                later = [each for each in self._query.recentProgress if each.batchId > number]
                if targets is None and later:
                    targets = [source.latestOffset for source in later[0].sources]
                if targets is not None and any(_have_passed(each.sources, targets) for each in later):
                    break
            self._idle.join(0.05)
        if not self._idle.is_alive():
            failure, self._idle = self._idle.failure, None
            if failure is not None:
                raise failure

    def stop(self) -> None:
        """Stop the query; a batch under way is given up."""
        if self._query is not None:
            self._query.stop()
            self._query = self._idle = None

    def _started(self) -> Any:
        writer = self._rows(self._spark).writeStream.foreachBatch(_loosely(self))
        writer = writer.option("checkpointLocation", _address(self._checkpoint)).queryName(self._name)
        with settings(self._spark, _POLLING):
            return writer.start()

    def batch(self, rows: Any, number: int) -> str | None:
        """Take a batch; what is raised is kept for ``finish``, and its message returned."""
        self._begun += 1
        self._number = number
        try:
            if self._begin is not None:
                self._begin(number)
            self._take(rows, number)
        except Exception as error:
            self._failure = error
            return str(error)
        self._ended = self._begun
        return None


def _have_passed(sources: Sequence[Any], targets: Sequence[str | None]) -> bool:
    return all(has_passed(source.endOffset, target) for source, target in zip(sources, targets, strict=True))


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


def _is_at(end: Any, target: Any) -> bool:
    if isinstance(target, dict):
        return isinstance(end, dict) and all(key in end and _is_at(end[key], value) for key, value in target.items())
    return not isinstance(target, int | float) or (isinstance(end, int | float) and end >= target)


class _Idle(threading.Thread):
    """Waits for a moment in which a query has nothing to do."""

    def __init__(self, query: Any) -> None:
        """Wait once it is started."""
        super().__init__(daemon=True)
        self._query = query
        self.failure: Exception | None = None

    def run(self) -> None:
        """Wait; what is raised is kept."""
        try:
            self._query.processAllAvailable()
        except Exception as error:
            self.failure = error


def collected(rows: Any) -> pa.Table:
    """Run a batch and return its rows.

    Raises:
        SqlRunError: a task failed.
    """
    with _our_words():
        return rows.toArrow()


def write_parquet(rows: Any, folder: Path) -> None:
    """Run a batch whose tasks write its rows to a folder, in place of what is there.

    Raises:
        SqlRunError: a task failed.
    """
    with _our_words():
        rows.write.mode("overwrite").parquet(_address(folder))


def read_parquet(rows: Any, folder: Path) -> Any:
    """Return what ``write_parquet`` wrote of a batch."""
    return rows.sparkSession.read.schema(rows.schema).parquet(_address(folder))


def write_by_tasks(rows: Any, write: Callable[[int, Iterator[pa.RecordBatch]], None]) -> None:
    """Run a batch; each task hands the number of its partition and the Arrow batches in it to a function.

    Raises:
        SqlRunError: a task failed.
    """

    def written(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        write(0 if context is None else context.partitionId(), batches)
        return iter(())

    run_only(rows.mapInArrow(written, "written boolean"))


def run_only(rows: Any) -> None:
    """Run a batch for the sake of its state.

    Raises:
        SqlRunError: a task failed.
    """
    with _our_words():
        rows.write.format("noop").mode("overwrite").save()


@contextmanager
def _our_words() -> Iterator[None]:
    try:
        yield
    except SPARK_ERRORS as error:
        raise SqlRunError(reason(error)) from None


def _loosely(query: BatchQuery) -> Callable[[Any, int], None]:
    """Return what hands batches to a query: Spark's gateway holds it and what it raises for ever, and must not hold the query."""
    reference = weakref.ref(query)

    def batch(rows: Any, number: int) -> None:
        held = reference()
        failure = "the session is closed" if held is None else held.batch(rows, number)
        del held
        if failure is not None:
            raise SqlRunError(failure)

    return batch


@contextmanager
def settings(spark: Any, values: Mapping[str, str]) -> Iterator[None]:
    """Set what the user did not set while a query starts: it takes a copy of the session's settings."""
    missing = {name: value for name, value in values.items() if spark.conf.get(name, None) is None}
    for name, value in missing.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name in missing:
            spark.conf.unset(name)
