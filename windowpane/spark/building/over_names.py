"""Names: every part of an OVER request gets a column, computed by Spark before the first operator.

A column by its name is read as it is. What has to be computed (a Column, an expression without calls) gets a column under a
reserved name, one for all its uses. Each call gets a name for its result; calls that say the same share one.
"""

from __future__ import annotations

from collections.abc import Hashable

import pyarrow as pa
from pyspark.sql import types as T

from windowpane.errors import InvalidSpecError
from windowpane.hidden_columns import PREFIX
from windowpane.planning.over import OverRequest, WindowedCall, resolved_frame
from windowpane.spark.building.expressions import column_of, sort_of
from windowpane.spark.internals.column_trees import column_name
from windowpane.spark.session.column_names import column_named
from windowpane.spark.sources.source import Source
from windowpane.spark.stages.project import Projection, refuse_compared_collations
from windowpane.spark.stages.types import arrow_schema
from windowpane.windowing.calls import VALUE_FUNCTIONS, WindowCall
from windowpane.windowing.expressions import Constant, Expression, Name, OrderLike, is_column, replaced, signature
from windowpane.windowing.outputs import CHANGE_TYPE
from windowpane.windowing.over.spec import OrderColumn, OverCall


class Names:
    """What a request comes to over one DataFrame."""

    def __init__(self, source: Source, request: OverRequest) -> None:
        self._request = request
        self._dataframe = source.rows
        self.projection = Projection(self._dataframe)  # what Spark computes before the first operator
        self._computed: dict[Hashable, str] = {}
        self._calls: dict[Hashable, WindowedCall] = {}
        self.input = [name for name in source.columns if name != CHANGE_TYPE]  # The columns of the input that users see.
        self.is_changelog = CHANGE_TYPE in self._dataframe.columns
        if self._request.settings.late_tag is not None:
            self._add_all()
        for name in self._request.key:
            self.projection.add(name, "key", "")
        # The columns of the main output, as (name, expression over names).
        self.selected = [each for name, expression in self._request.columns for each in self._selected(name, expression)]
        self.calls = tuple(self._calls.values())
        if source.event_time is not None:
            self.projection.add(source.event_time, "event_time", "")
        self._check_output()
        self.columns = tuple(self.projection.columns)  # those that travel through the operators
        self.projection.add_system()
        own = source.own_watermark
        for system in (source.heartbeat, CHANGE_TYPE if self.is_changelog else None, None if own is None else own.source):
            if system is not None:
                self.projection.add(system, "input", "")
        self.projected = self.projection.select()
        self.schema: T.StructType = T.StructType([self.projected.schema[name] for name in self.columns])
        self.arrow: pa.Schema = arrow_schema(self.schema, "OVER window")
        self._refuse_collations()

    def _refuse_collations(self) -> None:
        refuse_compared_collations(self.types_of(self._request.key), "key")
        for each in self.calls:
            refuse_compared_collations(self.types_of(tuple(column.name for column in each.order_by)), "order_by")
            if each.call.function != "count" or each.call.distinct:
                refuse_compared_collations(self.types_of(each.call.arguments), each.call.function)

    def types_of(self, names: tuple[str, ...]) -> T.StructType:
        return T.StructType([self.schema[name] for name in names])

    def _check_output(self) -> None:
        names = [name for name, _ in self.selected]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise InvalidSpecError(
                f"select has column {', '.join(twice)} twice: once from the input, perhaps by '*'. Give the new one another name."
            )
        if CHANGE_TYPE in names:
            raise InvalidSpecError(f"select: the name {CHANGE_TYPE} is that of the column that says how a row changed.")

    def _add_all(self) -> None:
        for name in self.input:
            self.projection.add(name, "select", "")

    def _selected(self, name: str, expression: Expression | None) -> list[tuple[str, Expression]]:
        if expression is None:
            self._add_all()
            return [(each, Name(each)) for each in self.input]
        return [(name, replaced(expression, self._leaf))]

    def _leaf(self, expression: Expression) -> Expression | None:
        """Return the name of the column for a call, a column or a PySpark Column; ``None`` for what Spark computes afterwards."""
        if expression.is_call:
            return Name(self._call(expression.as_call()))  # type: ignore[attr-defined]
        if isinstance(expression, Name) or (isinstance(expression, Constant) and is_column(expression.value)):
            return Name(self._name(expression, "select"))
        return None

    def _name(self, value: object, role: str) -> str:
        """Return the name of the column that holds a value, which Spark computes before the first operator."""
        given = value.value if isinstance(value, Constant) and is_column(value.value) else value
        if is_column(given):
            name = column_name(given)
            given = given if name is None or column_named(self._dataframe, name) is None else Name(name)
        if isinstance(given, Name | str):
            return self.projection.add(given.name if isinstance(given, Name) else given, role, "")
        which = signature(given)
        if which not in self._computed:
            self._computed[which] = self.projection.add(column_of(given), role, f"given_{len(self._computed)}")
        return self._computed[which]

    def _call(self, call: WindowCall) -> str:
        if call.identity not in self._calls:
            self._calls[call.identity] = self._windowed(call, f"{PREFIX}call_{len(self._calls)}")
        return self._calls[call.identity].name

    def _windowed(self, call: WindowCall, name: str) -> WindowedCall:
        partition = self._request.partition_by if call.partition is None else call.partition
        order = self._request.order_by if call.order is None else call.order
        columns = tuple(self._order_column(each) for each in order)
        return WindowedCall(
            name=name,
            partition_by=tuple(dict.fromkeys(self._name(each, "partition_by") for each in partition)),
            order_by=columns,
            call=self._bound(call, ordered=bool(columns)),
        )

    def _order_column(self, item: OrderLike) -> OrderColumn:
        sort = sort_of(item)
        return OrderColumn(self._name(sort.expression, "order_by"), sort.descending, nulls_first=sort.nulls_first)

    def _bound(self, call: WindowCall, ordered: bool) -> OverCall:
        is_framed = call.is_aggregate or call.function in VALUE_FUNCTIONS
        return OverCall(
            function=call.function,
            arguments=tuple(self._name(each, call.function) for each in call.arguments),
            frame=resolved_frame(is_framed, call.frame, call.exclusion, ordered, self._request.rows_default),
            offset=call.offset,
            default=call.default,
            ignore_nulls=call.skips_nulls,
            filter=None if call.condition is None else self._name(call.condition, "filter"),
            distinct=call.is_distinct,
            parameters=call.parameters,
        )
