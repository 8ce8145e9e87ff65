"""Binds calls over windows: functions, arguments, named windows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sqlglot import exp

from windowpane.sql.bind.build_plan import Computed, over
from windowpane.sql.bind.scope import Column, Ids
from windowpane.sql.expressions.aggregates import AGGREGATES, COUNTS_ROWS, Primitive, distinct_arguments
from windowpane.sql.expressions.binder import ScalarBinder, name_of
from windowpane.sql.expressions.expr import Expr, MismatchError, build, counted, settled
from windowpane.sql.expressions.operators import by_value, combined, partition_value, same_type, sortable
from windowpane.sql.expressions.types import BIGINT, BOOLEAN, DOUBLE, INTEGER, SqlType, is_integer
from windowpane.sql.nodes import Node, Order
from windowpane.sql.parse.dialect import SESSION_GAP
from windowpane.sql.parse.frame_reader import Evaluate, read_frame
from windowpane.sql.parse.positions import Text
from windowpane.sql.windows.default_frames import default_frame
from windowpane.sql.windows.over_calls import OverNodeCall
from windowpane.windowing.frames import CURRENT_ROW, WHOLE_PARTITION, Exclude, Frame, Units

NUMBERING = {
    "row_number": BIGINT,
    "rank": BIGINT,
    "dense_rank": BIGINT,
    "ntile": INTEGER,
    "percent_rank": DOUBLE,
    "cume_dist": DOUBLE,
}
_OFFSETS = ("lag", "lead")
_VALUES = ("first_value", "last_value", "nth_value")
_PLACED = (*_OFFSETS, *_VALUES)


@dataclass
class WindowCalls:
    """The calls over windows of one SELECT: collected while expressions are bound, then put below its projection.

    Args:
        by_default: the columns of calls in an order whose window names no frame, with the parameter.
        apart: what every window is partitioned by, too: the ties of a subquery to the query around it.
    """

    text: Text
    ids: Ids
    evaluate: Evaluate
    default_frame: str
    by_default: dict[str, str] = field(default_factory=dict)
    apart: Sequence[Expr] = ()
    named: dict[str, exp.Window] = field(default_factory=dict)
    computed: Computed = field(init=False)
    places: dict[str, exp.Expr] = field(default_factory=dict)
    _groups: dict[tuple[tuple[str, ...], tuple[Order, ...]], dict[OverNodeCall, Column]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.computed = Computed(self.ids)

    def declare(self, windows: Sequence[exp.Window]) -> None:
        for window in windows:
            name = name_of(window.this)
            if name in self.named:
                raise self.text.name_error(window, f"window {name!r} is defined twice.")
            copied = window.args.get("alias")
            if copied is not None and name_of(copied) not in self.named:
                known = ", ".join(self.named) or "none"
                raise self.text.name_error(window, f"there is no window {name_of(copied)!r} before {name!r}; there are {known}.")
            self.named[name] = window

    def bind(self, tree: exp.Window, binder: ScalarBinder) -> Expr:
        """Return the column of a call, whose arguments ``binder`` understands."""
        window = self._resolved(tree)
        bound = [*self.apart, *(binder.bind(item) for item in window.args.get("partition_by") or ())]
        keys = [partition_value(settled(key)) for key in bound]
        partition = tuple(dict.fromkeys(self.computed.column(key, key.name).id for key in keys))
        order = self._order(window, binder)
        call = _Call(tree, self.text)
        types = [binder.bind(item.this).type for item in self._items(window)]
        frame = read_frame(window, types, self.text, self.evaluate)
        try:
            return self._bind_call(call, partition, order, frame, binder)
        except MismatchError as error:
            raise self.text.type_error(tree, f"{call.name}: {error}") from None

    def check_unused(self, binder: ScalarBinder) -> None:
        """Refuse windows of the WINDOW clause that no call uses, and that name what is not there."""
        for window in self.named.values():
            for item in window.args.get("partition_by") or ():
                binder.bind(item)
            types = [binder.bind(item.this).type for item in self._items(window)]
            read_frame(window, types, self.text, self.evaluate)

    def _resolved(self, tree: exp.Window) -> exp.Window:
        """Return a window with what it takes from a named one."""
        alias = tree.args.get("alias")
        if alias is None:
            return tree
        name = name_of(alias)
        if name not in self.named:
            known = ", ".join(self.named) or "none"
            raise self.text.name_error(alias, f"there is no window {name!r}; the WINDOW clause defines {known}.")
        base = self._resolved(self.named[name])
        if "partition_by" in tree.args and self._has_frame(base):
            message = f"window {name!r} has a frame, so it cannot be copied. Write OVER {name}, or the window out."
            raise self.text.syntax_error(tree, message)
        if tree.args.get("partition_by"):
            raise self.text.syntax_error(tree, f"PARTITION BY is that of window {name!r}. Write the window out.")
        merged = exp.Window(this=tree.this)
        for part in ("partition_by", "order", "spec"):
            own, inherited = tree.args.get(part), base.args.get(part)
            if own and inherited and part != "spec":
                raise self.text.unsupported(
                    tree, f"changing the {part.replace('_', ' ').upper()} of window {name!r}", "Write it out."
                )
            merged.args[part] = own or inherited
        return merged

    @staticmethod
    def _has_frame(window: exp.Window) -> bool:
        order = window.args.get("order")
        return bool(window.args.get("spec")) or (order is not None and SESSION_GAP in order.meta)

    @staticmethod
    def _items(window: exp.Window) -> list[exp.Ordered]:
        order = window.args.get("order")
        return list(order.expressions) if order is not None else []

    def _order(self, window: exp.Window, binder: ScalarBinder) -> tuple[Order, ...]:
        items: dict[str, Order] = {}
        for item in self._items(window):
            column = self.computed.column(sortable(settled(binder.bind(item.this))))
            descending = bool(item.args.get("desc"))
            items.setdefault(column.id, Order(column.id, descending, bool(item.args.get("nulls_first"))))
        return tuple(items.values())

    def _bind_call(
        self, call: _Call, partition: tuple[str, ...], order: tuple[Order, ...], frame: Frame | None, binder: ScalarBinder
    ) -> Expr:
        call.check()
        if frame is not None and not order and frame != WHOLE_PARTITION:
            frame = _of_peers(frame)
        settled_frame = frame or default_frame(self.default_frame, ordered=bool(order))

        def register(node_call: OverNodeCall, name: str) -> Expr:
            group = self._groups.setdefault((partition, order), {})
            if node_call not in group:
                group[node_call] = self.ids.column(name, node_call.type)
                self.places[group[node_call].id] = call.tree
            if frame is None and order and node_call.frame is not None:
                self.by_default[group[node_call].id] = self.default_frame
            return group[node_call].renamed(name).expr

        return call.bind(self, binder, settled_frame, register)

    def argument(self, value: Expr) -> str:
        return self.computed.column(settled(value)).id

    def apply(self, node: Node) -> Node:
        node = self.computed.apply(node)
        for (partition, order), calls in self._groups.items():
            node = over(node, partition, order, [(column, call) for call, column in calls.items()])
        return node


Register = Callable[[OverNodeCall, str], Expr]

_TRUE = Expr("TRUE", BOOLEAN)
"""What every row has: a call that moves it along says whether there is a row."""


def _of_peers(frame: Frame) -> Frame:
    """Return a frame of a window without ORDER BY, where all rows are peers, in rows.

    Raises:
        MismatchError: it counts what there is only in an order. Source: PostgreSQL, "Window Function Calls".
    """
    if frame.units not in (Units.RANGE, Units.GROUPS):
        return frame
    if frame.units is Units.GROUPS or frame.has_distance:
        raise MismatchError(f"a {frame.units.value} frame needs an ORDER BY.")
    if frame.exclude is Exclude.TIES:
        return Frame.rows(CURRENT_ROW, CURRENT_ROW)
    if frame.exclude is Exclude.GROUP:
        return Frame(Units.ROWS, CURRENT_ROW, CURRENT_ROW, Exclude.CURRENT_ROW)
    return replace(WHOLE_PARTITION, exclude=frame.exclude)


class _Call:
    """The function part of a call over a window."""

    def __init__(self, tree: exp.Window, text: Text) -> None:
        """Take off IGNORE NULLS, FILTER and DISTINCT."""
        self.tree, self.text = tree, text
        function, self.ignore_nulls, self.treats_nulls, self.filter = tree.this, False, False, None
        while isinstance(function, exp.IgnoreNulls | exp.RespectNulls | exp.Filter):
            if isinstance(function, exp.Filter):
                self.filter = function.expression.this
            self._take_nulls(function)
            function = function.this
        if not isinstance(function, exp.Anonymous):
            raise text.unsupported(tree, "this expression before OVER", "Write a function call.")
        self.name = str(function.this).lower()
        self.arguments, self.distinct = self._arguments(function)

    def _take_nulls(self, part: exp.Expr) -> None:
        self.ignore_nulls |= isinstance(part, exp.IgnoreNulls)
        self.treats_nulls |= isinstance(part, exp.IgnoreNulls | exp.RespectNulls)

    def _arguments(self, function: exp.Anonymous) -> tuple[list[exp.Expr], bool]:
        arguments, distinct = [], False
        for argument in function.expressions:
            if isinstance(argument, exp.IgnoreNulls | exp.RespectNulls):
                self._take_nulls(argument)
                argument = argument.this
            if isinstance(argument, exp.Order):
                raise self.text.unsupported(self.tree, "ORDER BY among the arguments before OVER", "Put it into the window.")
            if isinstance(argument, exp.Distinct):
                distinct = True
                arguments += distinct_arguments(argument, self.text, self.tree)
            else:
                arguments.append(argument)
        return arguments, distinct

    def check(self) -> None:
        if self.name not in NUMBERING and self.name not in _PLACED and self.name not in AGGREGATES:
            raise self.text.name_error(
                self.tree, f"there is no window function {self.name!r}. See docs/sql.md for those there are."
            )
        if self.name in AGGREGATES and AGGREGATES[self.name].is_within_group:
            raise MismatchError("it needs WITHIN GROUP (ORDER BY ...), and takes no OVER. Put it into a subquery with GROUP BY.")
        if self.name in AGGREGATES and AGGREGATES[self.name].sorts_by is not None:
            raise MismatchError("it takes no OVER. Put it into a subquery with GROUP BY, or take lag of the counter.")
        if self.treats_nulls and self.name not in _PLACED:
            raise MismatchError(f"{'IGNORE' if self.ignore_nulls else 'RESPECT'} NULLS goes with {', '.join(_PLACED)}.")
        if (self.filter is not None or self.distinct) and (self.name in NUMBERING or self.name in _PLACED):
            raise MismatchError("FILTER and DISTINCT go with aggregates.")

    def bind(self, calls: WindowCalls, binder: ScalarBinder, frame: Frame, register: Register) -> Expr:
        """Return the expression over the columns of the calls that the function is made of."""
        if self.name in NUMBERING:
            return self._numbering(calls, binder, register)
        if self.name in _OFFSETS:
            return self._offset(calls, binder, register)
        if self.name in _VALUES:
            return self._value(calls, binder, frame, register)
        return self._aggregate(calls, binder, frame, register)

    def _constant(self, calls: WindowCalls, binder: ScalarBinder, index: int) -> int | None:
        """Return an argument that is a whole number, 1 where there is none; ``None``: it is NULL."""
        if len(self.arguments) <= index:
            return 1
        if binder.bind(self.arguments[index]).columns:
            raise MismatchError(f"its argument {index + 1} is a constant here, not a column.")
        found: Any = calls.evaluate(self.arguments[index], None)
        if found is not None and (not isinstance(found, int) or isinstance(found, bool)):
            raise MismatchError(f"its argument {index + 1} is a whole number, not {found!r}.")
        return found

    def _numbering(self, calls: WindowCalls, binder: ScalarBinder, register: Register) -> Expr:
        tiles = self.name == "ntile"
        counted(self.arguments, int(tiles), int(tiles))
        kind: SqlType = NUMBERING[self.name]
        offset = self._constant(calls, binder, 0) if tiles else 1
        if offset is None:
            return self._null(kind)
        if offset < 1:
            raise MismatchError(f"it makes at least 1 bucket, not {offset}.")
        constants = (str(offset),) if tiles else ()
        return register(OverNodeCall(self.name, (), kind, None, self.name, constants, offset=offset), self.name)

    def _null(self, kind: SqlType) -> Expr:
        """Return the result of a call whose offset is NULL."""
        return build(kind, f"CAST(NULL AS {kind.duckdb})", name=self.name)

    def _offset(self, calls: WindowCalls, binder: ScalarBinder, register: Register) -> Expr:
        counted(self.arguments, 1, 3)
        value = settled(binder.bind(self.arguments[0]))
        default = binder.bind(self.arguments[2]) if len(self.arguments) > 2 else None
        if default is not None:
            value, default = same_type(value, default)
        if len(self.arguments) > 1 and binder.bind(self.arguments[1]).columns:
            return self._at(calls, binder, value, default, register)
        offset = self._constant(calls, binder, 1)
        if offset is None:
            return self._null(value.type)
        name = self.name if offset >= 0 else _OFFSETS[1 - _OFFSETS.index(self.name)]
        constants, distance = (str(abs(offset)),), abs(offset)

        def shifted(of: Expr) -> Expr:
            arguments, ignores = (calls.argument(of),), self.ignore_nulls
            call = OverNodeCall(name, arguments, of.type, None, name, constants, offset=distance, ignore_nulls=ignores)
            return register(call, self.name)

        if default is None:
            return shifted(value)
        is_there = shifted(value if self.ignore_nulls else _TRUE)
        template = "CASE WHEN {0} IS NULL THEN {1} ELSE {2} END"
        return build(value.type, template, is_there, default, shifted(value), name=self.name)

    def _at(self, calls: WindowCalls, binder: ScalarBinder, value: Expr, default: Expr | None, register: Register) -> Expr:
        """Return the value of the row as many rows away as a column says: of the list of the partition's values."""
        if self.ignore_nulls:
            raise MismatchError("IGNORE NULLS goes with an offset that is a constant.")
        offset = binder.bind(self.arguments[1])
        if not is_integer(offset.type):
            raise MismatchError(f"its offset is a whole number, not {offset.type}. Cast it.")
        number = register(OverNodeCall("row_number", (), BIGINT, None, "row_number"), self.name)
        listed = AGGREGATES["array_agg"].bind([value]).primitives[0]
        arguments = tuple(calls.argument(each) for each in listed.arguments)
        values = register(OverNodeCall(listed.function, arguments, listed.type, WHOLE_PARTITION, listed.over), self.name)
        sign = "-" if self.name == "lag" else "+"
        place = f"({{0}} {sign} CAST({{1}} AS BIGINT))"
        rest = f"CAST(NULL AS {value.type.duckdb})" if default is None else "{3}"
        template = f"CASE WHEN {{1}} IS NULL THEN NULL WHEN {place} BETWEEN 1 AND len({{2}}) THEN {{2}}[{place}] ELSE {rest} END"
        return build(value.type, template, number, offset, values, *([] if default is None else [default]), name=self.name)

    def _value(self, calls: WindowCalls, binder: ScalarBinder, frame: Frame, register: Register) -> Expr:
        nth = self.name == "nth_value"
        counted(self.arguments, 1 + nth, 1 + nth)
        value = settled(binder.bind(self.arguments[0]))
        offset = self._constant(calls, binder, 1)
        if offset is None:
            return self._null(value.type)
        if offset < 1:
            raise MismatchError(f"it counts from 1, not from {offset}.")
        constants = (str(offset),) if nth else ()
        arguments = (calls.argument(value),)
        call = OverNodeCall(
            self.name, arguments, value.type, frame, self.name, constants, offset=offset, ignore_nulls=self.ignore_nulls
        )
        return register(call, self.name)

    def _aggregate(self, calls: WindowCalls, binder: ScalarBinder, frame: Frame, register: Register) -> Expr:
        arguments = [] if self._counts_rows() else [binder.filtered(binder.bind(each), self.filter) for each in self.arguments]
        if self.name == "count" and not self.arguments:
            raise MismatchError(COUNTS_ROWS)
        if self.distinct:
            arguments = [by_value(argument) for argument in arguments]
        parts = AGGREGATES[self.name].bind(arguments)
        if self.distinct and parts.of_distinct is not None:
            raise MismatchError(f"it has no DISTINCT for this type. {parts.of_distinct}")
        condition = self._condition(calls, binder, parts.only)

        def column(primitive: Primitive) -> Expr:
            call = OverNodeCall(
                primitive.function,
                tuple(calls.argument(value) for value in primitive.arguments),
                primitive.type,
                frame,
                primitive.over,
                primitive.constants,
                primitive.parameters,
                distinct=self.distinct,
                filter=condition,
            )
            return register(call, self.name)

        result = parts.finish([column(primitive) for primitive in parts.primitives])
        return replace(result, name=self.name, rises_with=None)

    def _condition(self, calls: WindowCalls, binder: ScalarBinder, only: Expr | None) -> str | None:
        """Return the column of FILTER, and of what the aggregate itself asks of a row."""
        conditions = [] if self.filter is None else [binder.condition(self.filter, "FILTER")]
        if only is not None:
            conditions.append(only)
        return calls.argument(combined("AND", *conditions)) if conditions else None

    def _counts_rows(self) -> bool:
        return self.name == "count" and len(self.arguments) == 1 and isinstance(self.arguments[0], exp.Star)
