"""The fluent API of OVER windows: RisingWave's two operators, with PySpark's words, on any DataFrame.

``over(df, ...)`` -> ``partition_by``, ``order_by`` -> ``select`` -> ``emit_on_update`` or ``emit_on_window_close``. Every step
returns a new value; the emitting step resolves names and types against the DataFrame and refuses what cannot work.
"""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Literal, cast

from windowpane.engines.over.program import Emit, Inconsistent
from windowpane.errors import InvalidSpecError
from windowpane.guidance import Guided, begins
from windowpane.hidden_columns import PREFIX, hidden
from windowpane.planning.over import OverRequest
from windowpane.planning.settings import Configured
from windowpane.result import Selectable
from windowpane.windowing.aggregates.results import ALL, chosen
from windowpane.windowing.calls import lag, row_number, several
from windowpane.windowing.expressions import Expression, Name, OrderLike, calls_in
from windowpane.windowing.times import Duration, to_micros
from windowpane.windowing.watermarks import Watermarks

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from windowpane.spark.building.program import BuiltProgram
    from windowpane.spark.sources.arrow_rows import ArrowRows
    from windowpane.spark.sources.source import Source
    from windowpane.windowing.expressions import Columns


_FIRST = hidden("is_first")


@begins
def over(
    dataframe: DataFrame | ArrowRows,
    event_time: str | None = None,
    watermark: Duration | Watermarks | None = None,
    key: str | tuple[str, ...] | list[str] | None = None,
    heartbeat: str | None = None,
    *,
    rows_default: bool = False,
    name: str = "windowpane",
) -> OverStream:
    """Begin OVER windows on a DataFrame.

    Args:
        dataframe: streaming or static, Spark classic or Connect. With a string column ``_change_type`` it is a changelog:
            ``insert``, ``update_preimage``, ``update_postimage``, ``delete``, the words of Spark's and Delta's change feeds.
        event_time: name of a timestamp column; needed by ``emit_on_window_close``, and for bounded state.
        watermark: how far behind the largest event time seen a row may still arrive, as ``withWatermark`` takes it, or a
            strategy: ``wp.Watermarks``. Leave it out where the DataFrame has a watermark already.
        key: column name(s) that identify a row: changes are matched by it, and it breaks every tie of the order.
        heartbeat: name of a boolean column; rows where it is true move the watermark and are dropped before any window.
        rows_default: take RisingWave's default frame with ORDER BY, ``ROWS UNBOUNDED PRECEDING``, instead of that of SQL and
            Spark, ``RANGE UNBOUNDED PRECEDING``, in which peers share a value.
        name: name of the operator in ``wp.progress(query).operators``.

    Returns:
        A stream to call ``partition_by``, ``order_by`` and ``select`` on.

    Raises:
        InvalidSpecError: there is no key.

    Example:
        >>> wp.over(prices, event_time="event_time", watermark="5 minutes", key="trade_id")
    """
    from windowpane.spark.sources.source import Source

    keys = () if key is None else cast("tuple[str, ...]", several(key))
    if not keys or not all(isinstance(each, str) for each in keys):
        raise InvalidSpecError(
            f"key={key!r}: an OVER window needs the names of the columns that identify a row, such as key='trade_id'. They match "
            "changes with the rows they change, and break ties of the order."
        )
    source = Source.of(dataframe, event_time, watermark, heartbeat, name)
    return OverStream(source, source.require(keys, "key"), rows_default)


@dataclass(frozen=True)
class OverStream(Guided):
    """Rows with a key, and the default window of calls."""

    source: Source
    key: tuple[str, ...]
    rows_default: bool = False
    partition: tuple[OrderLike, ...] = ()
    order: tuple[OrderLike, ...] = ()

    def partition_by(self, *columns: Columns) -> OverStream:
        """Partition rows by column names, PySpark Columns or expressions; NULL is an ordinary value.

        Without it all rows are one partition, in one bucket: one task does all the work.
        """
        self.source.require(_flat(columns), "partition_by")
        return dataclasses.replace(self, partition=_flat(columns))

    def order_by(self, *columns: Columns) -> OverStream:
        """Order rows by column names, or by Columns with a direction (``F.col("x").desc()``, ``wp.col("x").asc_nulls_last()``).

        NULLs are ordered as in Spark SQL: first when ascending, last when descending. Ties are ordered by the key.
        """
        self.source.require(_flat(columns), "order_by")
        return dataclasses.replace(self, order=_flat(columns))

    def select(self, *columns: object, **expressions: object) -> OverSelection:
        """Choose the columns of the output, OVER calls among them.

        Args:
            columns: ``"*"`` for all columns of the input, column names, and expressions with ``alias``.
            expressions: by output name: an OVER call (``wp.lag("price")``), an aggregate (``wp.sum("qty").rows(-10, -1)``), or an
                expression over them and columns (``wp.col("price") - wp.lag("price")``), which Spark computes after the operator.
                PySpark Columns are computed before it.

        Raises:
            InvalidSpecError: something is no expression, two columns have one name, or there is no OVER call.

        Example:
            >>> stream.select("*", diff=wp.col("price") - wp.lag("price"), avg10=wp.avg("price").rows(-10, -1))
        """
        found = chosen(columns, expressions)
        if not any(expression is not None and any(calls_in(expression)) for _, expression in found):
            raise InvalidSpecError("select has no OVER call: add one, such as n=wp.row_number().")
        self._check_orders(expression for _, expression in found if expression is not None)
        return OverSelection(self, found)

    def changes_only(self, *columns: str) -> OverSelection:
        """Keep the rows whose values differ from those of the row before them in their partition, and the first of each.

        NULL equals NULL. The rows are whole, and the order is that of ``order_by``: with ``emit_on_window_close`` the event time.

        Args:
            columns: the names of the columns that are compared, at least one.

        Returns:
            What ``emit_on_window_close`` or ``emit_on_update`` emits; ``allowed_lateness`` and ``side_output_late_data`` can be
            set before.

        Raises:
            InvalidSpecError: no column, or no order.
            UnknownColumnError: there is no such column.

        Source: pandas' ``s.ne(s.shift())``; Flink's ``ROW_NUMBER`` has no form of it, ``LAG`` beside a filter has.

        Example:
            >>> stream.partition_by("sensor").order_by("at").changes_only("state").emit_on_window_close()
        """
        names = self.source.require(columns, "changes_only")
        if not names:
            raise InvalidSpecError("changes_only compares columns of a row with those of the row before: changes_only('state').")
        before = {hidden(f"before_{number}"): lag(name) for number, name in enumerate(names)}
        selection = self.select(ALL, **{_FIRST: row_number() == 1}, **before)
        differs = [Name(name).is_distinct_from(Name(of)) for name, of in zip(names, before, strict=True)]
        return dataclasses.replace(selection, only=reduce(operator.or_, differs, Name(_FIRST)))

    def _check_orders(self, expressions: Iterable[Expression]) -> None:
        """Refuse calls that look at neighbours where nothing says who they are: they would be those of the key."""
        for call in (call.as_call() for expression in expressions for call in calls_in(expression)):  # type: ignore[attr-defined]
            if call.function in ("lag", "lead") and not (self.order if call.order is None else call.order):
                raise InvalidSpecError(
                    f"{call!r} looks at the row before or after, and no order is given: add .order_by('event_time') before "
                    "select, or .over(order_by=...) to the call."
                )


def _flat(columns: tuple[Columns, ...]) -> tuple[OrderLike, ...]:
    return several(columns[0]) if len(columns) == 1 else cast("tuple[OrderLike, ...]", columns)


@dataclass(frozen=True, eq=False)
class OverSelection(Configured, Guided):
    """The calls of OVER windows: say when results are emitted, with ``emit_on_update`` or ``emit_on_window_close``."""

    stream: OverStream
    columns: tuple[tuple[str, Expression | None], ...]
    only: Expression | None = None

    def emit_on_update(self, retain: Duration | None = None, on_inconsistent: Literal["error", "warn"] = "error") -> OverResult:
        """Emit a changelog: with every batch, how the rows and their results changed.

        The output has a last column ``_change_type``: ``insert``, ``delete``, or the pair ``update_preimage``,
        ``update_postimage``.
        A row whose result stays the same is not emitted again.

        Args:
            retain: how long in event time rows are kept behind the watermark. Left out, rows are kept for ever, or, with a
                watermark on append-only input, as long as a row above the watermark can reach them.
            on_inconsistent: what to do with an impossible change (a double insert, a delete of an absent row):
                ``"error"``, or ``"warn"`` to count it and continue.

        Raises:
            InvalidSpecError: settings, names or types that do not fit.
        """
        known = [each.value for each in Inconsistent]
        if on_inconsistent not in known:
            raise InvalidSpecError(f"on_inconsistent={on_inconsistent!r}: it is one of {', '.join(map(repr, known))}.")
        return self._chosen(
            self._result(Emit.UPDATE, None if retain is None else to_micros(retain), Inconsistent(on_inconsistent))
        )

    def emit_on_window_close(self) -> OverResult:
        """Emit each row once, in order, when its place in the order and its frame are final. The output is append-only.

        The ORDER BY column is the event time, ascending; the watermark says what is final. Rows behind it are late.

        Raises:
            NeverClosesError: the window would never close, for example with UNBOUNDED FOLLOWING.
            InvalidSpecError: settings, names or types that do not fit.
        """
        return self._chosen(self._result(Emit.CLOSE, None, Inconsistent.ERROR))

    def _chosen(self, result: OverResult) -> OverResult:
        if self.only is None:
            return result
        visible = [name for name in result._built.outputs["main"].column_names if not name.startswith(PREFIX)]
        return result.where(self.only).select(*visible)

    def _result(self, mode: Emit, retain: int | None, on_inconsistent: Inconsistent) -> OverResult:
        from windowpane.spark.building.over import build_over

        stream = self.stream
        request = OverRequest(
            key=stream.key,
            partition_by=stream.partition,
            order_by=stream.order,
            columns=self.columns,
            mode=mode,
            rows_default=stream.rows_default,
            retain=retain,
            on_inconsistent=on_inconsistent,
            settings=self._settings,
        )
        return OverResult(build_over(stream.source, request))


@dataclass(frozen=True, repr=False)
class OverResult(Selectable):
    """OVER windows, ready to run: the main output, and late rows of window close, as DataFrames or through ``start``.

    Columns of the main output: those of ``select``; after ``emit_on_update`` also ``_change_type``.
    """

    _built: BuiltProgram
