"""Joins, ready to run: each step returns another join, which is built when an output of it is first used."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Self

import pyarrow as pa

from windowpane.arrays.values import Value
from windowpane.errors import InvalidSpecError
from windowpane.planning.joins import JoinRequest
from windowpane.stream import Stream, WindowableResults
from windowpane.windowing.aggregates.results import unnamed
from windowpane.windowing.evictors import Evictor
from windowpane.windowing.expressions import Expression, Name, Named, SideName, ways_of_spark
from windowpane.windowing.joins import How, TimeOf, checked_how
from windowpane.windowing.outputs import OutputTag
from windowpane.windowing.spec import Refine
from windowpane.windowing.times import Duration, to_micros
from windowpane.windowing.triggers import Trigger
from windowpane.windowing.windows import Window

if TYPE_CHECKING:
    from windowpane.spark.building.program import BuiltProgram
    from windowpane.windowing.outputs import Schema


@dataclass(frozen=True, eq=False, repr=False)
class Join(WindowableResults):
    """A join, ready to run: its outputs as DataFrames, or one query with a sink for each.

    Columns of the main output, unless ``select`` says otherwise: the keys, ``window_start`` and ``window_end`` of a window join,
    the columns of the left side, those of the right side.
    """

    _left: Stream
    _right: Stream
    _request: JoinRequest

    @cached_property
    def _built(self) -> BuiltProgram:  # type: ignore[override]  # a step is a frozen value, and is built once
        from windowpane.spark.building.joins import build_join

        return build_join(self._left.source, self._right.source, self._request)

    def how(self, how: How) -> Self:
        """Say which rows are emitted beside pairs.

        Args:
            how: ``"inner"``: none. ``"left"``, ``"right"``, ``"full"``: rows of that side, or of both, that have no match, once
                that is final. ``"semi"``: each left row that has a match, once. ``"anti"``: each left row that has none.

        Raises:
            InvalidSpecError: another word.
            UnsupportedJoinError: the kind of join has none of that kind.
        """
        return self._with(how=checked_how(how))

    def where(self, condition: Expression) -> Self:
        """Let a pair match only where a condition is true.

        It is part of the match: a row all of whose pairs fail it has no match, and is emitted padded in an outer join. It is made
        of operators, constants and columns of both sides; what needs a function is computed before the join.

        Args:
            condition: such as ``wp.right("price") > wp.left("limit")``; several are joined with ``&``.

        Raises:
            InvalidSpecError: it is no expression.
            ConditionError: when the join is built, it does not fit the types of its columns.
        """
        if not isinstance(condition, Expression):
            raise InvalidSpecError(
                f"where takes an expression such as wp.right('price') > wp.left('limit'), got {condition!r}."
                + (" A PySpark Column does not say of which side it is." if hasattr(condition, "cast") else "")
            )
        before = self._request.condition
        return self._with(condition=condition if before is None else before & condition)

    def select(self, *columns: object, **expressions: object) -> Self:
        """Choose the columns of the result.

        Args:
            columns: ``"*"`` for all, the names of columns of ``"*"``, ``wp.left("x")`` and ``wp.right("y")``, and expressions
                with ``alias``.
            expressions: by output name, expressions over them: Spark computes them after the join.

        Raises:
            InvalidSpecError: something is no expression.

        Example:
            >>> joined.select("*", gain=wp.right("price") - wp.left("cost"))
        """
        if not columns and not expressions:
            raise InvalidSpecError("select needs at least one column; '*' stands for all.")
        named = [*(_positional(column) for column in columns), *(_named(name, value) for name, value in expressions.items())]
        return self._with(columns=tuple(named))

    def allowed_lateness(self, lateness: Duration) -> Self:
        """Wait that long for rows behind the watermark.

        Interval joins and joins as of an instant hold their results back so long. A window join still emits its results
        at the watermark, and corrects them: its output is then a changelog, with ``_change_type``.
        """
        return self._with_settings(allowed_lateness=to_micros(lateness))

    def side_output_late_data(self, left: OutputTag | str | None = None, right: OutputTag | str | None = None) -> Self:
        """Send late rows of a side to a side output: their columns, and why they were late.

        Args:
            left: the side output for late left rows, or its name.
            right: the same for right rows.

        Raises:
            InvalidSpecError: what was given is neither, or two outputs have one name.

        Example:
            >>> joined.side_output_late_data(left="late_clicks", right="late_buys")
        """
        tags = []
        for given in (left, right):
            if given is not None and not isinstance(given, OutputTag | str):
                raise InvalidSpecError(f"side_output_late_data takes OutputTags or names, such as left='late', got {given!r}.")
            tags.append(OutputTag(given) if isinstance(given, str) else given)
        return self._with(late=(tags[0], tags[1]))

    def engine(self, name: str) -> Self:
        """Run on this engine instead of the planner's choice: ``explain`` names the engines."""
        return self._with_settings(engine=name)

    def _with(self, **parts: Value) -> Self:
        return dataclasses.replace(self, _request=dataclasses.replace(self._request, **parts))

    def _with_settings(self, **settings: Value) -> Self:
        return self._with(settings=dataclasses.replace(self._request.settings, **settings))


@dataclass(frozen=True, eq=False, repr=False)
class WindowJoin(Join):
    """A window join, ready to run: rows of one key and window, when the window ends.

    With allowed lateness it is a changelog: a last column ``_change_type`` says ``insert`` or ``delete``.
    """

    def trigger(self, trigger: Trigger) -> Self:
        """Fire by ``trigger`` instead of the assigner's default; for ``co_group`` only.

        Raises:
            InvalidSpecError: what was given is no trigger.
        """
        if not isinstance(trigger, Trigger):
            raise InvalidSpecError(f"trigger takes a trigger, such as wp.CountTrigger.of(100), got {trigger!r}.")
        return self._with(trigger=trigger)

    def evictor(self, evictor: Evictor) -> Self:
        """Remove rows of both sides before or after the function by ``evictor``; for ``co_group`` only.

        Raises:
            InvalidSpecError: what was given is no evictor.
        """
        if not isinstance(evictor, Evictor):
            raise InvalidSpecError(f"evictor takes an evictor, such as wp.CountEvictor.of(100), got {evictor!r}.")
        return self._with(evictor=evictor)

    def refine(self, refine: Refine) -> Self:
        """Fire ``"last"``: once a batch for each window late rows touched, or ``"each"``; for ``co_group`` only."""
        return self._with(refine=refine)

    def co_group(self, function: Callable[[Value, Window, list[Value], list[Value]], Value], schema: Schema) -> CoGrouped:
        """Call ``function(key, window, left_rows, right_rows)`` for each firing, with all rows of the key and window.

        Either side may be empty, and NULL is a key as any other. Late rows within the allowed lateness fire again.

        Args:
            function: takes rows as dicts and returns any number of rows as dicts.
            schema: columns of these rows, a DDL string or StructType, without those of keys and window.

        Raises:
            UnsupportedJoinError: when it is built, and ``how``, ``where`` or ``select`` was set.

        Source: Flink's ``coGroup``.

        Example:
            >>> def share(key, window, clicks, buys):
            ...     yield {"clicks": len(clicks), "buys": len(buys)}
            >>> wp.join(clicks, buys).on("user").window(hour).co_group(share, "clicks long, buys long")
        """
        return self._grouped(function, schema, in_arrow=False)

    def co_group_in_arrow(self, function: Callable[[pa.Table, pa.Table], pa.Table], schema: Schema) -> CoGrouped:
        """Call a function on whole windows of many keys at once, as two Arrow tables; else as ``co_group``.

        Args:
            function: takes a ``pyarrow.Table`` of each side: its keys, ``window_start``, ``window_end`` and its other columns;
                returns one of the left keys, ``window_start``, ``window_end`` and the columns of ``schema``. Which keys and
                windows meet in one call is up to the engine.
            schema: the columns that the function adds, a DDL string or StructType.

        Raises:
            ArrowResultError: when the query runs and a table does not have these columns.

        Example:
            >>> def counted(clicks, buys):
            ...     both = pa.concat_tables([clicks, buys], promote_options="default")
            ...     counts = both.group_by(["user", "window_start", "window_end"]).aggregate([([], "count_all")])
            ...     return counts.rename_columns({"count_all": "rows"})
            >>> wp.join(clicks, buys).on("user").window(hour).co_group_in_arrow(counted, "rows long")
        """
        return self._grouped(function, schema, in_arrow=True)

    def _grouped(self, function: Callable[..., Value], schema: Schema, *, in_arrow: bool) -> CoGrouped:
        request = dataclasses.replace(self._request, co_group=(function, schema, in_arrow))
        return CoGrouped(self._left, self._right, request)


@dataclass(frozen=True, eq=False, repr=False)
class CoGrouped(Join):
    """The results of a function over the rows of both sides of a key and window, ready to run.

    Columns of the main output: the keys by the names of the left side, ``window_start``, ``window_end``, those of the function.
    """


@dataclass(frozen=True, eq=False, repr=False)
class IntervalJoin(Join):
    """An interval join, ready to run."""

    def event_time(self, of: TimeOf) -> Self:
        """Say which event time a pair has, for a window over the results.

        Args:
            of: ``"max"``, the later of both (default); ``"left"`` or ``"right"``. A row without a match has its own.

        Raises:
            InvalidSpecError: another word.
        """
        if of not in ("max", "left", "right"):
            raise InvalidSpecError(f"event_time({of!r}): it is one of 'max', 'left', 'right'.")
        return self._with(time_of=of)


@dataclass(frozen=True, eq=False, repr=False)
class AsOfJoin(Join):
    """A join as of an instant, ready to run: each left row once, with the right row that was valid at its time.

    After ``emit_on_update`` it is a changelog, with a last column ``_change_type``.
    """

    def emit_on_update(self, key: str | Sequence[str]) -> Self:
        """Emit a left row at once, with the right row that is known, and correct it until it is final.

        The output is a changelog: ``insert`` when a left row arrives, the pair ``update_preimage``, ``update_postimage`` when
        another right row is the one, and ``delete`` where an inner join has none any more. A batch emits only the net
        changes. Applied, the changelog of a row ends with what it would have given once.

        Args:
            key: column(s) of the result that identify a left row, for the sink: ``sinks.apply_changes(..., key=...)``.

        Raises:
            InvalidSpecError: no name, or a name that is none.
            UnsupportedJoinError: after ``by_arrival``, whose rows are final at once.
            UnknownColumnError: when the join is built, and its result has no such column of the left side.

        Source: windowpane's own; a materialized view of RisingWave is corrected like that.

        Example:
            >>> wp.as_of(trades, quotes).on("sym").match().emit_on_update(key="trade_id")
        """
        names = (key,) if isinstance(key, str) else tuple(key) if isinstance(key, Sequence) else ()
        if not names or not all(isinstance(name, str) and name for name in names):
            raise InvalidSpecError(f"emit_on_update(key={key!r}): it takes the names of columns that identify left rows.")
        return self._with(updates=names)


def _positional(column: object) -> tuple[str, Expression | None]:
    if isinstance(column, str):
        return ("*", None) if column == "*" else (column, Name(column))
    if isinstance(column, Named):
        return column.name, column.expression
    if isinstance(column, Name | SideName):
        return column.name, column
    raise unnamed(column)


def _named(name: str, value: object) -> tuple[str, Expression]:
    if isinstance(value, Named):
        return name, value.expression
    if not isinstance(value, Expression):
        raise InvalidSpecError(
            f"select {name}={value!r}: expected an expression such as wp.right('price') - wp.left('cost'). A column by its name "
            f"is wp.col('price').{ways_of_spark(value)}"
        )
    return name, value
