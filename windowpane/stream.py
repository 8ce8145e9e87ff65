"""The fluent API of windowed streams: Flink's words in Flink's order, on any DataFrame.

``stream(df, ...)`` -> ``key_by`` or ``window_all`` -> ``window`` -> ``trigger`` ... -> a terminal function -> ``Result``. Every
step returns a new value; the terminal function resolves names and types against the DataFrame and refuses what cannot work.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Literal, Self, cast, overload

import pyarrow as pa

from windowpane.arrays.values import Value, copied
from windowpane.engines.deduplication.program import Keep
from windowpane.errors import InvalidSpecError
from windowpane.guidance import Guided, begins
from windowpane.hidden_columns import hidden
from windowpane.matching import Matching
from windowpane.planning.deduplication import DeduplicationPlan
from windowpane.planning.filling.plan import Fill, FillingPlan, limit_of
from windowpane.planning.patterns.plan import PatternRequest
from windowpane.planning.settings import Configured
from windowpane.planning.windows import FunctionPlan, WindowPlan
from windowpane.result import Runnable, Selectable
from windowpane.windowing.aggregates import Aggregate
from windowpane.windowing.aggregates.results import split
from windowpane.windowing.arrow_functions import ArrowAggregateFunction, ArrowWindowFunction, InPandas
from windowpane.windowing.assigners import WindowAssigner
from windowpane.windowing.calls import WindowCall, several
from windowpane.windowing.evictors import Evictor
from windowpane.windowing.expressions import Argument, Expression, Name, Named, OrderLike, calls_in, ways_of_spark
from windowpane.windowing.functions import (
    AggregateFunction,
    AnyAggregateFunction,
    ProcessContext,
    ProcessWindowFunction,
    WindowFunctionSpec,
)
from windowpane.windowing.outputs import OutputTag
from windowpane.windowing.over.spec import OrderColumn
from windowpane.windowing.panes import AccumulationMode, PaneBehavior
from windowpane.windowing.spec import DEFAULT_PANES, PaneSettings, Refine, count_window
from windowpane.windowing.times import Duration, to_micros
from windowpane.windowing.triggers import Trigger
from windowpane.windowing.triggers.base import Reduce
from windowpane.windowing.triggers.composable import ComposableTrigger, EarlyAndFinal
from windowpane.windowing.watermarks import Watermarks
from windowpane.windowing.windows import Window

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import Column, DataFrame

    from windowpane.spark.building.program import BuiltProgram
    from windowpane.spark.sources.arrow_rows import ArrowRows
    from windowpane.spark.sources.source import Source
    from windowpane.windowing.expressions import ColumnLike, Columns
    from windowpane.windowing.outputs import Schema

_KEPT = hidden("kept")  # The column of a result that says whether ``having`` keeps it

WindowFunction = Callable[[Value, Window, Sequence[Value]], Value]
ProcessFunction = Callable[[Value, ProcessContext, Sequence[Value]], Value]


@begins
def stream(
    dataframe: DataFrame | ArrowRows,
    event_time: str | None = None,
    watermark: Duration | Watermarks | None = None,
    heartbeat: str | None = None,
    name: str = "windowpane",
) -> Stream:
    """Begin a windowed program on a DataFrame.

    Args:
        dataframe: streaming or static, Spark classic or Connect. Static means bounded: at the end every window fires.
        event_time: name of a timestamp column; needed by event-time windows.
        watermark: how far behind the largest event time seen a row may still arrive, as ``withWatermark`` takes it, or a
            strategy: ``wp.Watermarks``. Leave it out where the DataFrame has a watermark already. A row behind it counts as long
            as a window that it belongs to is open; it is late for windows that were cleaned up. Joins and ``deduplicate`` have
            their own rule: every row behind the watermark, less ``allowed_lateness``, is late.
        heartbeat: name of a boolean column; rows where it is true move the watermark and are dropped before any window.
        name: name of the operator in ``wp.progress(query).operators``, which has its counters (``late_elements``,
            ``late_dropped``, ``firings``, ``merges``, ``open_windows``, ``state_bytes``). Operators of one query without a name
            are numbered: ``windowpane``, ``windowpane_2``.

    Returns:
        A stream to call ``key_by`` or ``window_all`` on.

    Raises:
        UnknownColumnError: there is no such event time or heartbeat.
        InvalidDurationError: the watermark is neither a duration nor a strategy.
        InvalidSpecError: the event time is no timestamp, or is not given by name.

    Example:
        >>> flights = wp.stream(df, event_time="scheduled", watermark="2 hours")
    """
    from windowpane.spark.sources.source import Source

    return Stream(Source.of(dataframe, event_time, watermark, heartbeat, name))


@dataclass(frozen=True)
class Stream(Guided):
    """A stream of rows with an event time, not yet keyed."""

    source: Source

    def key_by(self, *keys: ColumnLike | Name, order_by: Columns = ()) -> KeyedStream:
        """Give each combination of key values windows of its own.

        Args:
            keys: column names, also as ``wp.col(name)``, or PySpark Columns; NULL is an ordinary key.
            order_by: name(s) or Column(s), also ``.desc()`` and the like, that order the rows of a micro-batch, before their
                order of arrival; by default as Spark SQL does, ascending and NULLs first.

        Raises:
            UnknownColumnError: there is no such column.
        """
        if not keys:
            raise InvalidSpecError("key_by needs at least one key; use window_all for windows without keys.")
        named = tuple(key.name if isinstance(key, Name) else key for key in keys)
        for key in named:
            if isinstance(key, Expression | Named):
                raise InvalidSpecError(
                    f"key_by takes names of columns and Columns of PySpark, such as (F.col('n') % 2).alias('odd'), not {key!r}."
                )
        self.source.require(named, "key_by")
        return KeyedStream(self.source, named, several(order_by))

    def window_all(self, assigner: WindowAssigner, order_by: Columns = ()) -> WindowedStream:
        """Put all rows into one window space, handled by one task (Flink's non-keyed windows)."""
        return WindowedStream(self.source, (), several(order_by), _assigner("window_all", assigner))

    def match_all(self, pattern: str, **define: Argument) -> Matching:
        """Search all rows for a row pattern, handled by one task, see ``KeyedStream.match``."""
        return Matching(self.source, (), PatternRequest(pattern, define))

    def count_window_all(self, size: int, slide: int | None = None, order_by: Columns = ()) -> WindowedStream:
        """Count windows over all rows, see ``KeyedStream.count_window``."""
        return _count_windowed(self.source, (), several(order_by), size, slide)


@dataclass(frozen=True)
class KeyedStream(Guided):
    """A stream with windows for each key."""

    source: Source
    keys: tuple[ColumnLike, ...]
    order_by: tuple[OrderLike, ...]

    def window(self, assigner: WindowAssigner) -> WindowedStream:
        """Assign each row to windows.

        Args:
            assigner: which windows; without a ``trigger``, its default fires them.

        Raises:
            InvalidSpecError: something else was given.

        Example:
            >>> keyed.window(wp.TumblingEventTimeWindows.of("1 hour")).aggregate(n=wp.count())
        """
        return WindowedStream(self.source, self.keys, self.order_by, _assigner("window", assigner))

    def count_window(self, size: int, slide: int | None = None) -> WindowedStream:
        """Fire at every ``size`` rows of a key and start anew; with ``slide``, every ``slide`` rows over the last ``size``."""
        return _count_windowed(self.source, self.keys, self.order_by, size, slide)

    def match(self, pattern: str, **define: Argument) -> Matching:
        """Search the rows of each key, in the order of event time, for a row pattern: SQL's ``MATCH_RECOGNIZE`` in Python.

        A pattern is variables in a row, each of which takes one row: ``a b``; ``a*``, ``a+``, ``a?``, ``a{2,5}``, and as few as
        possible with a ``?`` behind; ``a | b``, ``(a b)+``, ``PERMUTE(a, b)``; ``^`` and ``$`` for the first and last row of the
        key; ``{- a -}`` for rows that ``all_rows`` leaves out. And followed by, ``a -> b``: rows between that are no b are passed
        over; ``a -> !x -> b``: and none of them is an x; ``a -> !x`` at the end: no x comes within the bound.

        A row is final when the watermark has passed it, and a match comes out when no row to come can change it. Nothing is taken
        back. Rows behind the watermark, less ``allowed_lateness``, are late.

        Args:
            pattern: its text.
            define: by variable its condition, an expression: ``wp.col("price")`` is of the row itself, ``wp.lag("price")`` of
                the row before, ``wp.first("a.price")`` and ``wp.last("a.price")`` of the rows that ``a`` took so far, as are
                aggregates.
                A variable without a condition takes every row. A condition that is NULL is not true.

        Returns:
            The pattern, to bound by ``within`` and end with ``select`` or ``all_rows``.

        Source: SQL:2016, row pattern recognition; Flink CEP's followedBy and notFollowedBy.

        Example:
            >>> placed, paid = wp.col("kind") == "order", wp.col("kind") == "payment"
            >>> unpaid = orders.match("placed -> !paid", placed=placed, paid=paid).within("30 minutes")
            >>> unpaid.select(placed_at=wp.first("placed.at"))
        """
        return Matching(self.source, self.keys, PatternRequest(pattern, define, order_by=self.order_by))

    def deduplicate(
        self, within: Duration, keep: Literal["first", "last"] = "first", by: Literal["event_time", "clock"] = "event_time"
    ) -> Deduplicated:
        """Keep one of the rows of a key that are near: whose times differ by less than ``within``. NULL is a key, too.

        ``keep="first"``: a row is emitted at once if no row of its key that was emitted before it is near; there are inserts
        only. Rows are taken in order of arrival, in a batch by ``order_by`` of ``key_by`` first. How rows are cut into batches
        makes no difference, except to which of them are late.

        ``keep="last"``: rows of a key that are near each other belong together, as in a session window, and the newest of them
        stays; of two at one time the one that arrived last. The output is a changelog with ``_change_type``, one change for a row
        and batch. ``apply_changes`` keeps a table of it, by the key, and by key and event time where a key arrives again later.
        The table depends on the rows, not on their order and batches.

        By event time, rows behind the watermark (less ``allowed_lateness``) are late: they are not emitted, are counted as
        ``late_dropped``, and go to ``side_output_late_data`` if it is declared. A row is forgotten when no row that is not late
        can be near to it, so state holds the last ``within`` before the watermark. By the clock, a row's time is that of its
        batch, and no row is late. Duplicates of first rows are counted as ``duplicates``.

        Args:
            within: how far apart rows of a key are no duplicates any more.
            keep: which row stays.
            by: the time that ``within`` counts in.

        Returns:
            The result, on which ``allowed_lateness``, ``side_output_late_data`` and ``engine`` can still be set.

        Raises:
            InvalidSpecError: a length that is none, another word, or a stream without event time or watermark.
            MissingEventTimeError: when the query runs, and a row has no event time.

        Source: Spark's ``dropDuplicatesWithinWatermark``, which also keeps the row that arrives first, but looks at the watermark
        instead of the distance, so that it may drop more; Flink's and RisingWave's ``ROW_NUMBER() OVER (PARTITION BY key ORDER BY
        time) = 1``: ``DESC`` is ``keep="last"``, with the same rule for equal times, and a state TTL in place of ``within``.

        Example:
            >>> wp.stream(df, event_time="at", watermark="10 minutes").key_by("id").deduplicate(within="1 hour").df
        """
        if keep not in ("first", "last"):
            raise InvalidSpecError(f"keep={keep!r}: it is 'first' or 'last'.")
        if by not in ("event_time", "clock"):
            raise InvalidSpecError(f"by={by!r}: it is 'event_time' or 'clock'.")
        plan = DeduplicationPlan(to_micros(within), Keep(keep), by == "event_time")
        return Deduplicated.of(self, plan)


def _count_windowed(
    source: Source, keys: tuple[ColumnLike, ...], order_by: tuple[OrderLike, ...], size: int, slide: int | None
) -> WindowedStream:
    assigner, trigger, evictor = count_window(size, slide)
    return WindowedStream(source, keys, order_by, assigner, trigger, evictor)


@dataclass(frozen=True)
class WindowedStream(Configured, Guided):
    """A stream in windows: set trigger, evictor, lateness and side outputs, then end with a function.

    User functions take rows as dicts, and return rows as dicts with every column of the declared ``schema`` (a DDL string or
    StructType), ``None`` where there is no value. Keys and window bounds are columns of the output anyway: a row may leave them
    out, and a key that it has must be its own.

    The key they see is the value itself for one key column, a tuple for several, ``None`` for ``window_all``.
    """

    source: Source
    keys: tuple[ColumnLike, ...]
    order_by: tuple[OrderLike, ...]
    assigner: WindowAssigner
    _trigger: Trigger | ComposableTrigger | None = None
    _evictor: Evictor | None = None
    _refine: Refine = "last"
    _panes: PaneSettings = DEFAULT_PANES

    def trigger(self, trigger: Trigger | ComposableTrigger, allow_unsafe_triggers: bool = False) -> WindowedStream:
        """Fire by ``trigger`` instead of the assigner's default.

        Args:
            trigger: one of Flink's triggers or of your own, or a composable one, which needs ``.accumulation(...)``.
            allow_unsafe_triggers: take a composable trigger that may be finished while rows of the window still arrive. These are
                dropped, counted as ``dropped_by_finished_trigger``, and go to the late output, if any, by ``reason`` "finished".

        Raises:
            InvalidSpecError: at once, what was given is no trigger; when the function is given, the trigger would lose rows, or
                does not fit the other settings.
            NonMergingTriggerError: when the function is given: it cannot merge, and sessions do.

        Example:
            >>> windowed.trigger(wp.AfterWatermark(early=wp.AfterProcessingTime("1 minute"), late=wp.AfterCount(1)))
        """
        if not isinstance(trigger, Trigger | ComposableTrigger):
            raise InvalidSpecError(
                "trigger takes a trigger, such as wp.ContinuousEventTimeTrigger.of('15 minutes') or wp.CountTrigger.of(100), "
                f"got {trigger!r}. How often the query runs is said to start(trigger=...)."
            )
        panes = dataclasses.replace(self._panes, allows_unsafe_triggers=allow_unsafe_triggers)
        if isinstance(trigger, EarlyAndFinal):
            panes = dataclasses.replace(panes, accumulation=panes.accumulation or "accumulating", shows_info=True)
        return dataclasses.replace(self, _trigger=trigger, _panes=panes)

    def accumulation(self, mode: AccumulationMode) -> WindowedStream:
        """Say which rows a pane shows when a window fires several times.

        Args:
            mode: ``"accumulating"``: each pane shows all rows so far. ``"discarding"``: the rows since the last pane.
                ``"retracting"``: as accumulating, and each pane takes the rows of the last one back: the result is a changelog
                with ``_change_type``, from which ``apply_changes`` keeps a table.

        Raises:
            InvalidSpecError: another word.

        Source: Apache Beam's accumulation modes.

        Example:
            >>> windowed.trigger(wp.Repeatedly(wp.AfterCount(100))).accumulation("discarding")
        """
        return self._with_panes(accumulation=mode)

    def on_time_behavior(self, behavior: PaneBehavior) -> WindowedStream:
        """Say whether the pane of the window's end is emitted even where no row is new.

        Args:
            behavior: ``"fire_always"`` (default) or ``"fire_if_non_empty"``.

        Source: Apache Beam's ``Window.OnTimeBehavior``.

        Example:
            >>> windowed.on_time_behavior("fire_if_non_empty")
        """
        return self._with_panes(on_time_behavior=behavior)

    def closing_behavior(self, behavior: PaneBehavior) -> WindowedStream:
        """Say whether a last pane is emitted when a window is cleaned up even where no row is new.

        Args:
            behavior: ``"fire_if_non_empty"`` (default) or ``"fire_always"``.

        Source: Apache Beam's ``Window.ClosingBehavior``.

        Example:
            >>> windowed.closing_behavior("fire_always")
        """
        return self._with_panes(closing_behavior=behavior)

    def pane_info(self) -> WindowedStream:
        """Add columns about the pane of each result.

        ``pane_index`` (bigint, from 0), ``pane_nonspeculative_index`` (bigint, -1 for early panes), ``pane_timing`` (``EARLY``,
        ``ON_TIME``, ``LATE``), ``pane_is_first`` and ``pane_is_last`` (booleans; with Flink's triggers no pane is known to be the
        last). Built-in aggregates run on columnar engines with it, too.

        Source: Apache Beam's ``PaneInfo``.

        Example:
            >>> windowed.pane_info().aggregate(n=wp.count())
        """
        return self._with_panes(shows_info=True)

    def _with_panes(self, **settings: Value) -> WindowedStream:
        return dataclasses.replace(self, _panes=dataclasses.replace(self._panes, **settings))

    def evictor(self, evictor: Evictor) -> WindowedStream:
        """Remove elements before or after the function by ``evictor``; every element is kept then."""
        if not isinstance(evictor, Evictor):
            raise InvalidSpecError(f"evictor takes an evictor, such as wp.CountEvictor.of(100), got {evictor!r}.")
        return dataclasses.replace(self, _evictor=evictor)

    def side_output(self, *tags: OutputTag) -> WindowedStream:
        """Declare side outputs that the process function writes to with ``context.output(tag, row)``."""
        return self._with(side_tags=(*self._settings.side_tags, *tags))

    def refine(self, refine: Refine) -> WindowedStream:
        """Fire ``"last"``: once a batch for each window late rows touched (default), or ``"each"``: for every late row."""
        return dataclasses.replace(self, _refine=refine)

    # Terminal functions.

    def reduce(self, function: Reduce, process: ProcessWindowFunction | None = None, schema: Schema | None = None) -> Result:
        """Combine rows two by two; only the combined row is kept.

        Args:
            function: takes two rows and returns one of the same columns.
            process: sees the combined row when the window fires, and needs ``schema``.
            schema: columns of the result; without ``process``, those of the input.
        """
        return self._result(FunctionPlan("reduce", WindowFunctionSpec.reduce(function, process), schema=schema))

    @overload
    def aggregate(
        self,
        function: AnyAggregateFunction | ArrowAggregateFunction,
        process: ProcessWindowFunction | None = None,
        schema: Schema | None = None,
    ) -> Result: ...

    @overload
    def aggregate(
        self,
        *,
        process: ProcessWindowFunction | Aggregate | None = None,
        schema: Schema | Aggregate | None = None,
        **aggregates: Expression | Column,
    ) -> Result: ...

    def aggregate(  # type: ignore[misc] # parameters by name are among the aggregates, which may have such names
        self,
        function: AnyAggregateFunction | ArrowAggregateFunction | None = None,
        process: ProcessWindowFunction | None = None,
        schema: Schema | None = None,
        /,
        **aggregates: Value,
    ) -> Result:
        """Aggregate incrementally: by built-in aggregates, or by a function of your own, on rows or on Arrow tables.

        Args:
            function: your own function, on rows one by one or on Arrow tables of many keys; needs ``schema``.
            process: sees the result as a row when the window fires; needs ``schema``.
            schema: columns of the result, where a function of yours makes it.
            aggregates: built-in aggregates by output name, and expressions over aggregates, over results that stand before
                them, keys and window bounds, which Spark computes once for each result, by its own types and settings (ANSI
                mode decides what a division by zero is). (``process=`` and ``schema=`` may be given by name, too.)

        Example:
            >>> windowed.aggregate(flights=wp.count(), delay=wp.avg("dep_delay"))
            >>> windowed.aggregate(rate=wp.sum("clicks") / wp.sum("views"), spread=wp.max("x") - wp.min("x"))
            >>> windowed.aggregate(Median(), schema="median double")
        """
        if isinstance(function, Aggregate):
            raise InvalidSpecError(f"aggregate was given {function!r} without a name: write aggregate(total=wp.{function!r}).")
        if function is not None and not isinstance(function, AggregateFunction | ArrowAggregateFunction):
            raise InvalidSpecError(
                f"aggregate was given {function!r}: expected built-in aggregates by name, such as aggregate(n=wp.count(), "
                f"total=wp.sum('price')), or an AggregateFunction.{ways_of_spark(function)}"
            )
        if isinstance(aggregates.get("function"), AggregateFunction | ArrowAggregateFunction):
            function = aggregates.pop("function")
        if not isinstance(aggregates.get("process"), Aggregate):
            process = aggregates.pop("process", process)
        if not isinstance(aggregates.get("schema"), Aggregate):
            schema = aggregates.pop("schema", schema)
        if (function is None) == (not aggregates):
            raise InvalidSpecError("aggregate takes either an AggregateFunction or built-in aggregates by name.")
        if isinstance(function, ArrowAggregateFunction):
            if process is not None:
                raise InvalidSpecError(
                    "process= sees one key at a time: use it with an AggregateFunction or built-in aggregates."
                )
            return self._result(FunctionPlan("aggregate", arrow=function, schema=schema))
        if function is not None:
            return self._result(FunctionPlan("aggregate", WindowFunctionSpec.aggregate(function, process), schema=schema))
        if process is not None and schema is None:
            raise InvalidSpecError("aggregate with process= needs schema=, the columns that the process function returns.")
        calls, results = split(aggregates, _aggregate, lambda call: call)
        if results and process is not None:
            raise InvalidSpecError(
                "process= sees the aggregates, and expressions over them are computed by Spark, behind it: compute them in the "
                "process function."
            )
        named = tuple(calls.items())
        found = self._result(FunctionPlan("aggregate", aggregates=named, process=process, schema=schema, results=results))
        return found if process is not None else dataclasses.replace(found, _aggregated=(self, aggregates))

    def fold(
        self,
        initial: Value,
        function: Reduce,
        schema: Schema,
        merge: Reduce | None = None,
        process: ProcessWindowFunction | None = None,
    ) -> Result:
        """Fold rows into a value, starting from ``initial`` (a value, or a function that makes one).

        Args:
            initial: the value of no rows; an immutable value, or a function that returns a new one.
            function: takes the folded value and a row, returns the folded value.
            schema: columns of the result.
            merge: merges two folded values; needed by sessions.
            process: sees the folded value when the window fires.
        """
        make = initial if callable(initial) else _Constant(initial)
        return self._result(FunctionPlan("fold", WindowFunctionSpec.fold(make, function, merge, process), schema=schema))

    def apply(self, function: WindowFunction, schema: Schema) -> Result:
        """Call ``function(key, window, rows)`` for each firing; it returns any number of rows. All rows are kept."""
        return self._result(FunctionPlan("apply", WindowFunctionSpec.apply(function), schema=schema))

    def process(self, function: ProcessWindowFunction | ProcessFunction, schema: Schema) -> Result:
        """Run a process function: like ``apply``, with clocks, state and side outputs. All rows are kept.

        Args:
            function: a ``ProcessWindowFunction``, or a function ``(key, context, rows)``; it yields or returns rows as dicts.
            schema: columns of these rows, a DDL string or StructType, without those of keys and window.

        Raises:
            InvalidSpecError: what was given is neither, or the settings do not fit together.
            UserFunctionError: when the query runs and the function raises.
            OutputSchemaError: when the query runs and a row does not fit the schema.

        Example:
            >>> def busiest(key, context, rows):
            ...     yield {"rows": len(rows), "until": context.window.end}
            >>> windowed.process(busiest, schema="rows long, until long")
        """
        if not isinstance(function, ProcessWindowFunction):
            if not callable(function) or isinstance(function, type):
                raise InvalidSpecError(
                    f"process takes a ProcessWindowFunction or a function (key, context, rows), got {function!r}."
                )
            function = _Process(function)
        return self._result(FunctionPlan("process", WindowFunctionSpec.full(function), schema=schema))

    def apply_in_arrow(self, function: Callable[[pa.Table], pa.Table], schema: Schema) -> Result:
        """Call a function on whole windows of many keys at once, as Arrow tables. All rows are kept.

        Args:
            function: takes a ``pyarrow.Table`` of the keys, ``window_start``, ``window_end`` and the columns of the input, rows
                of a key and window together and in order of arrival; returns one of the keys, ``window_start``, ``window_end``
                and the columns of ``schema``, any number of rows. Which keys and windows meet in one table is up to the engine.
            schema: the columns that the function adds, a DDL string or StructType.

        Raises:
            ArrowResultError: when the query runs and a table does not have these columns.

        Example:
            >>> def longest(rows):
            ...     groups = rows.group_by(["origin", "window_start", "window_end"])
            ...     return groups.aggregate([("delay", "max")]).rename_columns({"delay_max": "longest"})
            >>> windowed.apply_in_arrow(longest, "longest double")
        """
        return self._result(FunctionPlan("apply_in_arrow", arrow=ArrowWindowFunction(function, "apply_in_arrow"), schema=schema))

    def apply_in_pandas(self, function: Callable[[pd.DataFrame], pd.DataFrame], schema: Schema) -> Result:
        """Call a function on whole windows of many keys at once, as pandas DataFrames; else as ``apply_in_arrow``.

        Example:
            >>> def shares(rows):
            ...     total = rows.groupby(["origin", "window_start", "window_end"]).delay.transform("sum")
            ...     return rows[["origin", "window_start", "window_end"]].assign(share=rows.delay / total)
            >>> windowed.apply_in_pandas(shares, "share double")
        """
        arrow = ArrowWindowFunction(InPandas(function), "apply_in_pandas")
        return self._result(FunctionPlan("apply_in_pandas", arrow=arrow, schema=schema))

    def _result(self, function: FunctionPlan) -> Result:
        from windowpane.spark.building.windows import build_windows

        plan = WindowPlan(
            keys=tuple(key if isinstance(key, str) else "<column>" for key in self.keys),
            assigner=self.assigner,
            function=function,
            trigger=self._trigger,
            evictor=self._evictor,
            refine=self._refine,
            panes=self._panes,
            settings=self._settings,
        )
        return Result(build_windows(self.source, plan, self.keys, self.order_by))


@dataclass(frozen=True)
class _Process(ProcessWindowFunction):
    function: ProcessFunction

    def process(self, key: Value, context: ProcessContext, elements: Sequence[Value]) -> Value:
        return self.function(key, context, elements)

    def __repr__(self) -> str:
        return f"process({getattr(self.function, '__name__', self.function)})"


_OVER_CALL = (
    " That is an OVER call. Here a condition goes into the argument, wp.count(F.when(condition, 1)) or wp.sum(F.when(condition, "
    "F.col('price'))); distinct values are wp.count_distinct('user') and wp.collect_set('user')."
)


def _aggregate(name: str, given: object) -> Aggregate:
    if not isinstance(given, Aggregate):
        raise InvalidSpecError(
            f"aggregate {name}: expected an aggregate such as wp.count() or wp.sum('price'), got {given!r}."
            + (" Two aggregates beside == compare as Python objects: write wp.sum('a') - wp.sum('b') == 0." * (given is False))
            + (_OVER_CALL if isinstance(given, WindowCall) else "")
            + ways_of_spark(given)
        )
    return given


def _assigner(step: str, given: object) -> WindowAssigner:
    if not isinstance(given, WindowAssigner):
        raise InvalidSpecError(
            f"{step} takes a window assigner, such as wp.TumblingEventTimeWindows.of('1 hour'), got {given!r}."
        )
    return given


@dataclass(frozen=True)
class _Constant:
    value: Value

    def __call__(self) -> Value:
        return copied(self.value)  # a fold may change it in place


class WindowableResults(Runnable):
    """A program ready to run, whose results can be the input of windows."""

    def key_by(self, *keys: ColumnLike | Name, order_by: Columns = ()) -> KeyedStream:
        """Continue with windows over the results of this program, in the same query.

        Event time is that of the results (of a window its last microsecond), and rows are late as in Flink: results that a
        watermark fires are taken before that watermark.
        """
        return self._downstream().key_by(*keys, order_by=order_by)

    def window_all(self, assigner: WindowAssigner, order_by: Columns = ()) -> WindowedStream:
        """Continue with a window over all results, see ``key_by``."""
        return self._downstream().window_all(assigner, order_by)

    def _downstream(self) -> Stream:
        earlier = self._built
        return Stream(earlier.followed_by(f"{earlier.name}_next"))


@dataclass(frozen=True, repr=False)
class Result(WindowableResults, Selectable):
    """A windowed program, ready to run: its outputs as DataFrames, or one query with a sink for each.

    Columns of the main output: the keys, ``window_start`` and ``window_end`` (NULL for global windows), the function's
    columns, then those of ``pane_info``, and ``_change_type`` where panes retract.
    """

    _built: BuiltProgram
    _aggregated: tuple[WindowedStream, Mapping[str, object]] | None = None
    """The windows and their aggregates, where ``having`` may add one."""

    def having(self, condition: Argument) -> Self:
        """Keep the results for which a condition is true: as ``where``, and with aggregates that are no results, too.

        Args:
            condition: over the columns of the results, and aggregates: ``wp.sum("amount") > 100``.

        Raises:
            UnknownColumnError: there is no such column.
            InvalidSpecError: it is no condition; or it has an aggregate behind a step, or of a function.

        Source: SQL's ``HAVING``.

        Example:
            >>> windowed.aggregate(n=wp.count()).having(wp.sum("amount") > 100)
        """
        if not (isinstance(condition, Expression) and any(calls_in(condition))):
            return super().having(condition)
        if self._aggregated is None or self._built.outputs["main"].steps:
            raise InvalidSpecError(
                "having: an aggregate that is no result stands right behind aggregate(...) of built-in aggregates, with all "
                "conditions joined by &: .aggregate(n=wp.count()).having(wp.sum('amount') > 100)."
            )
        windowed, aggregates = self._aggregated
        more: dict[str, Value] = {**aggregates, _KEPT: condition}
        found = cast("Self", windowed.aggregate(**more))
        return found.where(Name(_KEPT)).select(*self._built.outputs["main"].column_names)

    def top(self, count: int, by: str, *, per: str | Sequence[str] = (), ascending: bool = False) -> Result:
        """Keep the first rows of each window by a column of the results: a Top-N of windows, in the same query.

        A window's top is emitted when the watermark passes its end. Where late rows refine a result, the whole top is emitted
        again; of early results the newest counts. NULL is the smallest value, NaN the largest number, and rows that tie are
        ordered by the keys. One task gets all results of a window; with ``per``, one task for each of its values.

        Args:
            count: how many rows of each window.
            by: the column of the results that orders them, largest first.
            per: column(s) of the results; each combination of their values has a top of its own.
            ascending: whether the smallest are first.

        Returns:
            A result: the columns of this one, those of ``per`` first, and ``rank``, from 1.

        Raises:
            UnknownColumnError: results have no such column.
            InvalidSpecError: results of sessions, of the clock or of global windows; later results that have only the rows since
                the one before; or ``per`` columns that are no keys, where windows fire again.

        Source: Flink's Window Top-N, ``ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY total DESC) <= 3``.

        Example:
            >>> windowed.aggregate(total=wp.sum("amount")).top(3, by="total")
            >>> windowed.aggregate(total=wp.sum("amount")).top(1, by="total", per="region")
        """
        from windowpane.spark.building.results.top import build_top

        if not isinstance(count, int) or isinstance(count, bool) or count < 1:
            raise InvalidSpecError(f"top({count!r}): it takes the number of rows, at least 1.")
        if not isinstance(by, str):
            raise InvalidSpecError(f"top by={by!r}: it takes the name of a column of the results, such as by='total'.")
        order = OrderColumn(by, descending=not ascending, nulls_first=ascending)
        return Result(build_top(self._downstream().source, self._built, count, order, cast("tuple[str, ...]", several(per))))

    def fill_gaps(
        self,
        values: Fill | Mapping[str, Value],
        *,
        until: str | Duration,
        others: Fill = "null",
        engine: str | None = None,
    ) -> Filled:
        """Give a key that was seen a result for every window behind the last one with rows, in the same query.

        A window without rows has its result when the watermark passes its end, as one with rows has. A late row of a window
        that was filled refines it: a later result of the same key and window, as every refinement. If values are those of the
        result before, the windows behind it that were filled are refined with it. A static DataFrame has the same results as a
        stream that has ended with ``flush_at_end``.

        Args:
            values: what filled results show: ``"null"``; ``"previous"``, the values of the key's last result before; ``"zero"``,
                what aggregates make of no rows: 0 for counts, NULL for others; or a constant by column.
            until: how far behind the last window with rows: so many windows, ``"5 windows"``; a duration, for windows that end at
                most so much later; or ``"forever"``, as long as the stream goes on, with state for each key ever seen.
            others: what columns show that ``values`` has no constant for.
            engine: ``"filling reference"`` for the slow engine that this one is compared with.

        Returns:
            A result with the same columns.

        Raises:
            InvalidSpecError: windows other than tumbling and sliding ones by event time, of built-in aggregates, that fire by
                their default trigger; another word, a length that is none, a constant that is no value of its column, or no end
                for rows that have one: "forever" over a static DataFrame. Results of ``select``, ``where`` or ``having``, which
                come behind.
            UnknownColumnError: there is no such column.
            GapTooLongError: when the query runs, and one key would have more than ten million windows filled at once.

        Source: Beam's looping timers; Kapacitor's ``fill`` and TimescaleDB's ``locf``, which know the last row, too.

        Example:
            >>> windowed.aggregate(n=wp.count(), delay=wp.avg("delay")).fill_gaps("zero", until="24 windows")
            >>> windowed.aggregate(level=wp.last("level")).fill_gaps("previous", until="1 hour")
        """
        from windowpane.spark.building.results.filling import build_filling

        plan = FillingPlan(values if isinstance(values, str) else dict(values), limit_of(until), others, engine=engine)
        return Filled(build_filling(self._built, plan))


@dataclass(frozen=True, repr=False)
class Filled(WindowableResults, Selectable):
    """Windows with filled gaps, ready to run: the columns are those of the windows."""

    _built: BuiltProgram


@dataclass(frozen=True, repr=False, eq=False)
class Deduplicated(Selectable, Configured):
    """A deduplicated stream, ready to run: its rows, and late ones where they are an output.

    Columns of the main output: those of the input, after ``keep="last"`` also ``_change_type``.
    """

    _built: BuiltProgram
    _stream: KeyedStream
    _plan: DeduplicationPlan

    @classmethod
    def of(cls, stream: KeyedStream, plan: DeduplicationPlan) -> Self:
        """Return the deduplication of a stream, checked."""
        from windowpane.spark.building.deduplication import build_deduplication

        return cls(build_deduplication(stream.source, plan, stream.keys, stream.order_by), stream, plan)

    def _with(self, **settings: Value) -> Self:
        plan = dataclasses.replace(self._plan, settings=dataclasses.replace(self._plan.settings, **settings))
        return reduce(Selectable._with_step, self._built.outputs["main"].steps, self.of(self._stream, plan))
