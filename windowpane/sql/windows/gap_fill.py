"""``GAP_FILL(relation, time, interval, ...)``: the rows of a relation, and rows between those further apart than an interval.

``lag`` finds the row before each row, in its partition. Rows are filled in at the moments ``before + interval``,
``before + 2 * interval`` and so on, as far as they lie before the row; the row itself follows. So a row that is inserted late,
updated or deleted changes the rows up to its neighbours, and on window close a row and those filled in before it are emitted when
the watermark has passed it. Source of the rules: RisingWave's GAP_FILL.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from windowpane.sql.bind import build_plan as plan
from windowpane.sql.bind.scope import Column, Ids, Scope
from windowpane.sql.expressions.binder import ScalarBinder
from windowpane.sql.expressions.expr import Expr, build
from windowpane.sql.expressions.operators import arithmetic, same_type
from windowpane.sql.expressions.types import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    INTEGER,
    INTERVAL,
    REAL,
    TIMESTAMP,
    TIMESTAMPTZ,
    array_of,
    is_float,
    is_integer,
    is_number,
)
from windowpane.sql.nodes import Node, Order
from windowpane.sql.parse.positions import Text
from windowpane.sql.scalar.macros import refused
from windowpane.sql.values.intervals import interval_sql
from windowpane.sql.windows.over_calls import OverNodeCall
from windowpane.sql.windows.table_functions import Evaluate
from windowpane.windowing.intervals import MICROS_PER_DAY, Interval

LOCF, INTERPOLATE, KEEPNULL = "locf", "interpolate", "keepnull"
_PARTITION_BY = "partition_by"
_FORM = "GAP_FILL(table, time, INTERVAL '1 minute', LOCF(a), INTERPOLATE(b), KEEPNULL(c), PARTITION_BY(d))"
MOST_ROWS = 10_000_000
"""How many rows are filled in between two. A gap that needs more is as good as always a mistake, such as a time of 1970."""
_SHORTEST_MONTH = 28


@dataclass(frozen=True)
class GapFill:
    """A call as it was bound: the interval, what is filled into which column, and the columns that tell series apart."""

    time: Expr
    interval: Interval
    fills: dict[str, str]
    partition: tuple[str, ...]


def gap_fill(tree: exp.Expr, node: Node, scope: Scope, evaluate: Evaluate, text: Text, ids: Ids) -> tuple[Node, Scope]:
    """Return a relation with the rows that are filled in, and what names mean in it."""
    call = _Reader(tree, scope, evaluate, text).read()
    return _Filling(call, node, ids).filled(scope)


class _Reader:
    def __init__(self, tree: exp.Expr, scope: Scope, evaluate: Evaluate, text: Text) -> None:
        self._tree, self._evaluate, self._text = tree, evaluate, text
        self._binder = ScalarBinder(text, scope, "GAP_FILL", "")

    def read(self) -> GapFill:
        arguments = self._tree.expressions
        if len(arguments) < 3:
            raise self._text.syntax_error(self._tree, f"gap_fill takes a table, a time and an interval, and more: {_FORM}.")
        time = self._column(arguments[1])
        if time.type not in (TIMESTAMP, TIMESTAMPTZ):
            raise self._text.type_error(arguments[1], f"gap_fill goes by a timestamp, not by {time.type}.")
        fills: dict[str, str] = {}
        partition: list[str] = []
        for argument in arguments[3:]:
            said = str(argument.this).lower() if isinstance(argument, exp.Anonymous) else ""
            if said == _PARTITION_BY and argument.expressions:
                partition += [self._column(each).column for each in argument.expressions]
            elif said in (LOCF, INTERPOLATE, KEEPNULL) and len(argument.expressions) == 1:
                fills[self._filled(argument, said)] = said
            else:
                raise self._text.syntax_error(argument, f"gap_fill does not take {argument.sql()!r}. Its form is {_FORM}.")
        wrong = time.column in partition or any(name == time.column or name in partition for name in fills)
        if wrong:
            raise self._text.type_error(self._tree, "gap_fill fills columns beside the time and those of PARTITION_BY.")
        return GapFill(time, self._interval(arguments[2]), fills, tuple(dict.fromkeys(partition)))

    def _column(self, tree: exp.Expr) -> Expr:
        found = self._binder.bind(tree)
        if not found.is_column:
            raise self._text.type_error(tree, f"gap_fill takes columns, not {tree.sql()!r}. Compute it in a subquery or a view.")
        return found

    def _filled(self, argument: exp.Expr, said: str) -> str:
        column = self._column(argument.expressions[0])
        if said == INTERPOLATE and not is_number(column.type):
            raise self._text.type_error(argument, f"interpolate takes numbers, not {column.type}. LOCF takes any column.")
        return column.column

    def _interval(self, tree: exp.Expr) -> Interval:
        found = self._evaluate(tree, INTERVAL)
        if not isinstance(found, Interval) or found.is_zero or found.is_negative:
            shown = f"an interval greater than zero, not {found}"
            raise self._text.type_error(tree, f"the step of gap_fill is {shown}. Write INTERVAL '1 minute'.")
        return found


class _Filling:
    def __init__(self, call: GapFill, node: Node, ids: Ids) -> None:
        self._call, self._node, self._ids = call, node, ids

    def filled(self, scope: Scope) -> tuple[Node, Scope]:
        seen, before = self._beside_the_last()
        listed = plan.Computed(self._ids)
        moments = listed.column(self._moments(before[self._time].expr), "moments")
        length = build(BIGINT, "len({0})", moments.expr)
        ramps = {
            name: listed.column(self._ramp(before[name].expr, self._node.column(name).expr, length), "ramp")
            for name, said in self._call.fills.items()
            if said == INTERPOLATE and is_float(self._node.column(name).type)
        }
        moment, number = self._ids.column("moment", self._call.time.type), self._ids.column("place", BIGINT)
        rows = plan.unnest(listed.apply(seen), moments.expr, moment, number)
        place = number.expr
        names: dict[str, Column] = {}
        items = []
        for column in self._node.columns:
            own = column.expr
            if column.id == self._time:
                value: Expr = moment.expr
            elif column.id in self._call.partition:
                value = own
            else:
                said = self._call.fills.get(column.id, KEEPNULL)
                value = self._value(said, own, before.get(column.id), ramps.get(column.id), place, length)
            kept = value.is_column and value.column == column.id
            names[column.id] = column if kept else self._ids.column(column.name, value.type)
            items.append((names[column.id], value))
        return plan.project(rows, items), scope.with_columns(names)

    @property
    def _time(self) -> str:
        return self._call.time.column

    def _beside_the_last(self) -> tuple[Node, dict[str, Column]]:
        """Return rows with what the one before them has, and the columns that hold it by the column that it is of."""
        computed = plan.Computed(self._ids)
        partition = self._call.partition or (computed.column(Expr("CAST(1 AS INTEGER)", INTEGER), "all").id,)
        wanted = [self._time, *(name for name, said in self._call.fills.items() if said != KEEPNULL)]
        before = {name: self._ids.column("before", self._node.column(name).type) for name in wanted}
        calls = [(before[name], OverNodeCall("lag", (name,), before[name].type, None, "lag", ("1",))) for name in wanted]
        order = [Order(self._time, descending=False, nulls_first=False)]
        return plan.over(computed.apply(self._node), partition, order, calls), before

    def _moments(self, before: Expr) -> Expr:
        """Return the moments at which rows are filled in between a row and the one before, and behind them the row's own."""
        interval, kind = self._call.interval, array_of(self._call.time.type)
        step = f"({interval_sql(interval)})"
        days = interval.months * _SHORTEST_MONTH + interval.days
        shortest = days * MICROS_PER_DAY + interval.micros
        message = f"'a gap before ' || {{0}} || ' needs more than {MOST_ROWS} rows of gap_fill. Take a longer interval'"
        time, distance = self._call.time, "(CAST(epoch_us({0}) AS HUGEINT) - epoch_us({1}))"
        found = build(
            kind,
            "CASE WHEN {0} THEN {1} WHEN {2} THEN {3} ELSE {4} END",
            build(BOOLEAN, "({0} IS NULL OR {1} IS NULL OR NOT isfinite({0}) OR NOT isfinite({1}))", time, before),
            build(kind, "[{0}]", time),
            build(BOOLEAN, f"({distance} // {max(shortest, 1)} > {MOST_ROWS})", time, before),
            build(kind, f"CAST({refused(message)} AS {kind.duckdb})", time),
            build(kind, f"list_append(range({{1}} + {step}, {{0}}, {step}), {{0}})", time, before),
            operator="CASE",
        )
        return build(kind, "coalesce({0}, [{1}])", found, self._call.time)

    def _value(self, said: str, own: Expr, before: Column | None, ramp: Column | None, place: Expr, length: Expr) -> Expr:
        """Return what a column holds: its own value in the last of the moments, which is the row's, else what is filled in."""
        if said == KEEPNULL or before is None:
            return build(own.type, "CASE WHEN {1} = {2} THEN {0} END", own, place, length)
        if said == LOCF:
            filled = before.expr
        elif ramp is not None:
            filled = build(own.type, "{0}[{1}]", ramp.expr, place)
        else:
            filled = _interpolated(before.expr, own, place, length)
        shown, filled = same_type(own, filled)
        return build(shown.type, "CASE WHEN {1} = {2} THEN {0} ELSE {3} END", shown, place, length, filled)

    def _ramp(self, before: Expr, own: Expr, length: Expr) -> Expr:
        """Return the floating numbers between two, each the one before it and a step more, as RisingWave adds them up."""
        name, kind = ("ramp_of_reals", REAL) if own.type == REAL else ("ramp", DOUBLE)
        return build(array_of(kind), f"windowpane_{name}({{0}}, {{1}}, {{2}})", before, own, length)


def _interpolated(before: Expr, own: Expr, place: Expr, length: Expr) -> Expr:
    """Return an exact number between two: of integers the step is rounded down."""
    if is_integer(own.type):
        rise = "(CAST({1} AS HUGEINT) - {0})"
        step = f"({rise} - ({rise} % {{3}} + {{3}}) % {{3}}) // {{3}}"
        return build(own.type, f"CAST({{0}} + {{2}} * ({step}) AS {own.type.duckdb})", before, own, place, length)
    rises = arithmetic("/", arithmetic("-", own, before), length)
    return arithmetic("+", before, arithmetic("*", rises, place))
