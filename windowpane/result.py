"""Results: a program of either fluent API, ready to run; and the progress of the query that runs it."""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal, Self

from windowpane.arrays.values import JsonValue, Row, Value
from windowpane.engines.changes import Accepts, Incomplete, Verdict
from windowpane.errors import InvalidSpecError, SparkGoneError
from windowpane.guidance import Guided
from windowpane.malformed import MalformedRow
from windowpane.metrics.costs import costs_text
from windowpane.metrics.samples import samples_of
from windowpane.planning.sinks import BatchTrigger, Sink
from windowpane.windowing.aggregates.results import Select, Step, select_step, where_step
from windowpane.windowing.expressions import Argument, Name
from windowpane.windowing.outputs import CHANGE_TYPE, OutputTag

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from windowpane.planning.changing import Report
    from windowpane.spark.building.program import BuiltProgram
from threading import Thread

_BATCHES = 10  # so many of the last batches ``explain(cost=True)`` adds up


class Runnable(Guided):
    """A program ready to run: its outputs as DataFrames, or one query with a sink for each."""

    _built: BuiltProgram
    """Set by the classes of results; a step of the fluent API that is a result already builds it when an output is first used."""

    def __repr__(self) -> str:
        return self.explain()

    @cached_property
    def df(self) -> DataFrame:
        """The main output, for any sink. Starting it and a side output as two queries runs the program twice: see ``start``.

        A program that waits for the clock ends ``availableNow`` runs by itself here too, but not on Spark Connect, whose client
        cannot see the trigger of a query: use ``start`` there.
        """
        main: DataFrame = self._built.output("main")
        return main

    def get_side_output(self, tag: OutputTag | str) -> DataFrame:
        """Return a side output as a DataFrame; of windows over results also one of an earlier operator.

        Raises:
            UndeclaredSideOutputError: it is not declared.
        """
        side: DataFrame = self._built.output(tag if isinstance(tag, str) else tag.name)
        return side

    def start(
        self,
        *unnamed: object,
        checkpoint: str | None = None,
        trigger: BatchTrigger | None = None,
        query_name: str | None = None,
        flush_at_end: bool = False,
        changes: Accepts = "safe",
        cut: str | dt.datetime | dt.date | None = None,
        history: DataFrame | tuple[DataFrame, DataFrame] | None = None,
        history_results: Literal["emit", "skip"] = "skip",
        incomplete: Incomplete = "null",
        **sinks: Sink,
    ) -> StreamingQuery:
        """Start one query that writes several outputs, with the state kept once; it can begin with the rows of a history.

        Rows of a history before ``cut`` are in the state before the first batch, computed by a batch job. Rows of the stream
        before it are passed over, in this run and in all later ones, and counted as ``before_cut``. After the cut all results are
        those of one stream over both.

        Args:
            unnamed: refused: a sink is given by the name of its output.
            checkpoint: checkpoint location; a temporary one if left out, with a warning: no restart can continue from it.
            trigger: as ``DataStreamWriter.trigger`` takes it, for example ``{"availableNow": True}``; such a run ends by
                itself, also for programs that wait for the clock.
            query_name: name of the query.
            flush_at_end: with ``availableNow``: when all rows are taken, close the windows that are still open, and end the
                stream. ``start`` then returns when that is done, and refuses to start from this checkpoint again.
            changes: which changes of the program a restart takes: ``"safe"`` those after which every result is one of the new
                program or, of windows that are open, of the old one; ``"accept"`` also those after which some are NULL or
                partial; ``"none"`` no change. ``wp.changes`` says beforehand what they are.
            cut: where a change parts old windows from new ones, an instant such as ``"2026-01-01 12:00:00"``; left out, the first
                start of a new window above every event time so far. With ``history``: where that ends; left out, the microsecond
                after its newest row.
            history: a static DataFrame with the columns of the stream, for the first start of a checkpoint; of a join two of
                them, ``(left, right)``. Of operators behind operators one for each source of the query, in that order.
            history_results: ``"skip"``: what the history gives before the cut is not emitted. ``"emit"``: it is, with the first
                batch. Where results change earlier ones (OVER on update, say) it has to be.
            incomplete: what an aggregate that is added gives for windows that are open: ``"null"``, or ``"partial"``, its value
                over the rows that come from now on. ``explain()`` of the started result says until when.
            sinks: by output name (``main``, or the name of a side output): a path, a sink spec, or a callable
                ``(DataFrame, batch_id)``. A batch repeated after a crash reaches a sink again with the same batch id. Of windows
                over results, the side outputs of each operator can be written; where two have one name, by ``operator.name``.

        Returns:
            The ``StreamingQuery``.

        Raises:
            UnknownOutputError: a sink for an output that there is not.
            InvalidSpecError: a sink without a name; the DataFrame is static: write ``df`` instead; a trigger that is none of
                Spark's.
            RunningCheckpointError: a query with this checkpoint runs already.
            SparkGoneError: the JVM of the session was killed, or has ended.
            EndedStreamError: ``flush_at_end`` has ended the stream of this checkpoint.
            ChangedPlanError: another program wrote the checkpoint, and ``changes`` does not take what differs.
            HistoryAfterStartError: a history for a checkpoint that has begun.
            MissingHistoryError: no history for a checkpoint that was to begin with one, and has not.

        Example:
            >>> result.start(main="out/hourly", late="out/late", checkpoint="ckpt", trigger={"availableNow": True})
        """
        from windowpane.spark.queries.running import start

        if unnamed:
            raise InvalidSpecError(
                f"start({unnamed[0]!r}): a sink is given by the name of its output, start(main={unnamed[0]!r})."
            )
        with SparkGoneError.instead():
            query, running = start(
                self._built,
                sinks,
                checkpoint,
                trigger,
                query_name,
                flush_at_end,
                changes,
                cut,
                history,
                history_results,
                incomplete,
            )
        vars(self).update(_query=query, _running=running)
        started: StreamingQuery = query
        return started

    def explain(self, cost: bool = False) -> str:
        """Return the plan as text: which engine runs it, and why.

        Args:
            cost: whether to add what the query that ``start`` returned last has cost in its last batches: rows and bytes of state
                by operator, and seconds of stages.

        Raises:
            InvalidSpecError: ``cost`` of a result that was not started.
        """
        plan: str = vars(self).get("_running", self._built).explain()
        if not cost:
            return plan
        query = vars(self).get("_query")
        if query is None:
            raise InvalidSpecError("explain(cost=True) says what a query has cost: start it with result.start(...) before.")
        from windowpane.spark.internals.counted import counted

        return f"{plan}\n{costs_text([(batch, counted(batch)) for batch in query.recentProgress[-_BATCHES:]])}"


class Selectable(Runnable):
    """Results that can be chosen from before a sink; Spark does so, in the same query."""

    def select(self, *columns: object, **expressions: object) -> Self:
        """Choose the columns of the main output.

        Args:
            columns: ``"*"`` for all, names, and expressions with ``alias``.
            expressions: by name, over the columns of the results: ``wp.col("total") / wp.col("n")``, or Columns of PySpark.

        Returns:
            The same results with these columns. Changelogs keep ``_change_type`` as their last column.

        Raises:
            UnknownColumnError: there is no such column.
            DuplicateColumnError: two columns of one name.
            InvalidSpecError: something is no expression.

        Example:
            >>> hourly.select("origin", "window_end", mean=wp.col("total") / wp.col("n"))
        """
        there = self._built.outputs["main"].column_names
        step = select_step(columns, expressions, there)
        if CHANGE_TYPE in there and CHANGE_TYPE not in dict(step.columns):
            step = Select((*step.columns, (CHANGE_TYPE, Name(CHANGE_TYPE))))
        return self._with_step(step)

    def where(self, condition: Argument) -> Self:
        """Keep the results for which a condition is true; NULL is not.

        Where a window fires again, each firing is compared by itself: a later result that is left out does not take back the one
        before. A changelog does: the row before an update and the row behind it are each compared by itself, and both are a
        ``delete`` and an ``insert`` from here on.

        Args:
            condition: over the columns of the results: ``wp.col("n") > 100``, or a Column of PySpark.

        Raises:
            UnknownColumnError: there is no such column.
            InvalidSpecError: it is no condition.

        Example:
            >>> hourly.where(wp.col("n") > 100)
        """
        return self._with_step(where_step(condition, self._built.outputs["main"].column_names))

    def having(self, condition: Argument) -> Self:
        """Keep the results for which a condition is true: SQL's word for ``where`` behind aggregates."""
        return self.where(condition)

    def _with_step(self, step: Step) -> Self:
        return dataclasses.replace(self, _built=self._built.with_step(step))  # type: ignore[type-var]  # its classes are values


@dataclass(frozen=True)
class Progress(Mapping[str, Value]):
    """The counters of a query: a mapping by the name of the counter, of all its operators together.

    Attributes:
        operators: the same by the name of each operator, as ``wp.stream(..., name=...)`` gives it.
        malformed: some of the rows of its sources that could not be read, each with source, position, column, value and reason;
            the counter ``malformed`` says how many there are.
    """

    operators: Mapping[str, Row]
    malformed: Sequence[MalformedRow] = ()

    @property
    def metrics(self) -> dict[str, float]:
        """The same by the names of metrics, with their labels, as Prometheus shows them."""
        return {each.text: each.value for each in samples_of({}, self.operators)}

    def __getitem__(self, counter: str) -> Value:
        found = [counters[counter] for counters in self.operators.values() if counter in counters]
        if not found:
            raise KeyError(counter)
        return sum(found) if all(isinstance(each, int) for each in found) else found[0]

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys(counter for counters in self.operators.values() for counter in counters))

    def __len__(self) -> int:
        return len(list(iter(self)))

    def __repr__(self) -> str:
        return f"Progress({dict(self)})"


@dataclass(frozen=True, repr=False)
class Changes:
    """What a restart would change: prints part by part what was, what is, and what happens to state and results.

    Attributes:
        operators: the report of each operator of the query, by its name.
    """

    operators: Sequence[tuple[str, Report]] = ()

    @property
    def verdict(self) -> str:
        """``"same"``, ``"safe"``, ``"accept"`` or ``"refused"``: that of the part that changes most."""
        return max((report.verdict for _, report in self.operators), default=Verdict.SAME).name.lower()

    @property
    def parts(self) -> list[dict[str, JsonValue]]:
        """The parts that differ, as JSON: operator, part, was, is, verdict, effect, and the cut in microseconds, if any."""
        return [{"operator": name, **part} for name, report in self.operators for part in report.as_json()]

    def __repr__(self) -> str:
        lines = [line for name, report in self.operators if report.parts for line in (name, *report.lines())]
        return "\n".join([f"changes: {self.verdict}", *lines])


def changes(
    result: Runnable, checkpoint: str, cut: str | dt.datetime | dt.date | None = None, incomplete: Incomplete = "null"
) -> Changes:
    """Return what starting a program from a checkpoint would change; nothing is written, and no query has to run.

    Args:
        result: the program, as ``start`` would be called on it.
        checkpoint: the checkpoint location.
        cut: as ``start`` takes it.
        incomplete: the same.

    Returns:
        The changes, see ``Changes``; none where the checkpoint has not begun.

    Raises:
        ChangedPlanError: the checkpoint has other operators.
        InvalidSpecError: the cut is no instant.

    Example:
        >>> if wp.changes(result, "ckpt").verdict in ("same", "safe"):
        ...     result.start(main="out/hourly", checkpoint="ckpt")
    """
    from windowpane.spark.queries.continuing import reports_of

    with SparkGoneError.instead():
        return Changes(reports_of(result._built, checkpoint, cut, incomplete))


def progress(query: StreamingQuery | Row) -> Progress:
    """Return what the operators of a streaming query have counted so far, each with every counter.

    What counts rows and firings is added up over the batches of this run. Spark remembers the last 100 of them
    (``spark.sql.streaming.numRecentProgressUpdates``), and a query remembers what an earlier call has seen. What has a size
    (``open_windows``, ``state_bytes``) is that of the last batch. Before the first batch, and while no rows come, all counters
    are there as well.

    Args:
        query: a ``StreamingQuery`` of ``result.start(...)`` or of ``result.df.writeStream``, running or ended, classic or
            Connect; or the progress of one batch, as of ``query.recentProgress`` or a ``StreamingQueryListener``.

    Returns:
        The counters, see ``Progress``. A query without an operator of windowpane's has none.

    Example:
        >>> late = wp.progress(query)["late_dropped"]
        >>> firings = wp.progress(query).operators["windowpane"]["firings"]
        >>> reasons = [row.reason for row in wp.progress(query).malformed]
    """
    from windowpane.spark.internals.counted import counted

    found = counted(query)
    malformed = [row for counters in found.values() for row in counters.pop("malformed_rows", ())]
    return Progress(found, malformed)


def warm_up(spark: SparkSession) -> Thread:
    """Start the Python workers of a session in the background.

    A session that is made for one query starts its Python workers when the first batch waits for them, and they import pandas,
    pyarrow and windowpane for seconds. Called right after the session is made, this lets a small job of its own, in the job group
    ``windowpane.warm_up``, do so while the query is put together and planned. On a cluster it reaches the executors that are
    running, one task a core. In a local session it saves little: its workers are forked from a process that imports while the
    query is put together, anyway. Nor does it where sessions live long.

    Args:
        spark: the session, Spark classic or Connect.

    Returns:
        The thread that waits for the job, which a caller may join. If the job fails, the thread ends all the same: the query
        will raise what is wrong with the workers.

    Example:
        >>> spark = SparkSession.builder.getOrCreate()
        >>> wp.warm_up(spark)
        >>> wp.stream(bids, event_time="at", watermark="5 seconds")
    """
    from windowpane.spark.internals.worker import warm_workers
    from windowpane.spark.session.worker_python import fork_workers

    fork_workers(spark)
    thread = Thread(target=warm_workers, args=(spark,), name="windowpane-warm-up", daemon=True)
    thread.start()
    return thread
