"""The expressions of DEFINE and MEASURES, over the values that a row pattern asks of a match.

What is of one row alone is SQL, and a column below the pattern: ``price * qty``, or ``PREV(upper(kind))``. A function of the
values of one other row is computed there, too: ``abs(PREV(price))`` is what PREV finds of ``abs(price)``. Above that, conditions
are trees of the operators that a match computes, and measures are any SQL over the values that come out of it.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol

from sqlglot import exp

from windowpane.planning.patterns.binding import Unbound
from windowpane.sql.bind.build_plan import Computed
from windowpane.sql.bind.scope import Column, Ids, Scope
from windowpane.sql.expressions.aggregates import AGGREGATES, COUNTS_ROWS, Parts, Primitive, distinct_arguments
from windowpane.sql.expressions.binder import ScalarBinder, name_of
from windowpane.sql.expressions.expr import Expr, MismatchError, build, convert, if_kept, settled
from windowpane.sql.expressions.operators import comparables
from windowpane.sql.expressions.types import BIGINT, BOOLEAN, INTEGER, REAL, VARCHAR, SqlType, is_float, is_integer
from windowpane.sql.parse.positions import Text, shown
from windowpane.sql.values.intervals import length
from windowpane.windowing.aggregates import Aggregate
from windowpane.windowing.expressions import Constant, Expression, Operation
from windowpane.windowing.intervals import Interval
from windowpane.windowing.patterns.spec import Measure
from windowpane.windowing.patterns.values import Classifier, MatchNumber, MatchTime, Moved, Picked

_ENDS = ("first", "last")
_MOVES = {"prev": -1, "next": 1}
_TIMES = ("match_rowtime", "match_time")
_OF_MATCH = ("classifier", "match_number", *_TIMES)
_COMPARISONS: dict[type[exp.Expr], str] = {exp.EQ: "==", exp.NEQ: "!=", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">="}
_DISTINCT: dict[type[exp.Expr], str] = {exp.NullSafeNEQ: "is distinct from", exp.NullSafeEQ: "is distinct from"}
_LOGIC: dict[type[exp.Expr], str] = {exp.And: "&", exp.Or: "|"}
_ARITHMETIC: dict[type[exp.Expr], str] = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Mod: "%"}
_INSTEAD = (
    "In DEFINE, values of several rows of a match are compared, computed with + - * / %, and joined by AND, OR, NOT, IS NULL, "
    "BETWEEN, IN and COALESCE; functions are of the values of one row."
)


class Constants(Protocol):
    """Evaluates constants: ``QueryBinder``."""

    def evaluate(self, tree: exp.Expr, kind: SqlType | None = None) -> Any:
        """Return the value of a constant expression, as a type if one is given."""

    def evaluate_sql(self, sql: str) -> Any:
        """Return the value of a constant as DuckDB writes it."""


@dataclass(frozen=True)
class Place:
    """Which row of a match a value is of: from one end so many rows of a variable inwards, then so many rows of the partition."""

    end: Literal["first", "last"] = "last"
    variable: str | None = None
    offset: int = 0
    moved: int = 0

    def of(self, column: str) -> Expression:
        picked = Picked(self.end, self.variable, column, self.offset)
        return Moved(picked, self.moved) if self.moved else picked


_CURRENT = Place()


class _RowBinder(ScalarBinder):
    """Binds what is of one row: the names of variables before columns are left out, PREV, FIRST and their like around it, too."""

    names: frozenset[str]

    def intercept(self, tree: exp.Expr) -> Expr | None:
        if _called(tree) in (*_ENDS, *_MOVES):
            return self.bind(tree.expressions[0])
        table = tree.args.get("table") if isinstance(tree, exp.Column) else None
        if table is not None and name_of(table) in self.names:
            return self.column(exp.Column(this=tree.this))
        return None


class MatchValues:
    """The values that one MATCH_RECOGNIZE asks of its matches.

    Args:
        subsets: names that stand for several of them.
        time: the event time, ``None`` where the rows have none.
    """

    def __init__(
        self,
        text: Text,
        scope: Scope,
        ids: Ids,
        constants: Constants,
        now: str,
        variables: frozenset[str],
        subsets: Mapping[str, frozenset[str]],
        time: Column | None,
    ) -> None:
        self.text, self.scope, self.time, self.subsets = text, scope, time, subsets
        self.names = variables | subsets.keys()
        self.computed = Computed(ids)
        self.constants, self._ids, self._now = constants, ids, now
        self._measures: dict[str, tuple[Column, Measure]] = {}

    @property
    def measures(self) -> list[tuple[Column, Measure]]:
        """The values that come out of the pattern, each with its column."""
        return list(self._measures.values())

    def rows(self, clause: str) -> _RowBinder:
        binder = _RowBinder(self.text, self.scope, clause, self._now)
        binder.names = self.names
        return binder

    def measure(self, tree: exp.Expr, *, of_unmatched: bool) -> Expr:
        """Return a measure, over the columns of values that come out of the pattern.

        ``of_unmatched``: whether rows come out that no match has; a measure of these is NULL (SQL:2016).
        """
        measure = settled(_MeasureBinder(self, False).bind(tree))
        if not of_unmatched or measure.column:
            return measure
        rows = self.measured(Unbound(None, (), Aggregate("count")), BIGINT, "count")
        return build(measure.type, "CASE WHEN {0} IS NOT NULL THEN {1} END", rows, measure, name=measure.name)

    def measured(self, value: Expression, kind: SqlType, name: str, *, is_final: bool = False) -> Expr:
        """Return the column of a value that comes out of the pattern."""
        key = f"{value!r} {is_final}"
        if key not in self._measures:
            column = self._ids.column(name, kind)
            self._measures[key] = (column, Measure(column.id, value, is_final))
        return self._measures[key][0].renamed(name).expr

    def condition(self, variable: str, tree: exp.Expr) -> Expression:
        """Return the condition of a variable, as the tree that the pattern evaluates.

        Raises:
            SqlError: it is no condition, or has what a match does not compute.
        """
        of_row = frozenset(name for name in self.names if variable in self.subsets.get(name, {name}))
        _TypeBinder(self, False).condition(tree, "DEFINE")
        return _Condition(self, of_row).value(tree, BOOLEAN)

    def place(self, tree: exp.Expr) -> Place:
        """Return the row that a call of FIRST, LAST, PREV or NEXT is about."""
        name, arguments = _called(tree), tree.expressions
        if not 1 <= len(arguments) <= 2:
            raise self.text.type_error(tree, f"{name} takes a value, and how many rows further, not {len(arguments)} arguments.")
        default = 1 if name in _MOVES else 0
        offset: Any = self.constants.evaluate(arguments[1]) if len(arguments) > 1 else default
        if not isinstance(offset, int) or isinstance(offset, bool) or offset < 0:
            raise self.text.type_error(tree, f"{name} counts rows by a whole number from 0 on, not {offset!r}.")
        inner = arguments[0]
        if name in _MOVES:
            at = self.place(inner) if _called(inner) in _ENDS else Place("last", self._variable(inner))
            return replace(at, moved=_MOVES[name] * offset)
        return Place("first" if name == "first" else "last", self._variable(inner), offset)

    def _variable(self, *trees: exp.Expr) -> str | None:
        found = set()
        for tree in trees:
            for part in tree.walk():
                if _called(part) in (*_ENDS, *_MOVES, *_OF_MATCH) or _is_aggregate(part):
                    raise self.text.unsupported(part, f"{shown(part)!r} here", "PREV and NEXT may be of FIRST and LAST alone.")
                if isinstance(part, exp.Column):
                    found.add(self.variable_of(part))
        if len(found) > 1:
            raise self.text.type_error(trees[0], "columns of different variables stand in one call: it is about the rows of one.")
        return next(iter(found), None)

    def variable_of(self, column: exp.Expr) -> str | None:
        """Return the variable before the name of a column."""
        table = column.args.get("table")
        name = None if table is None else name_of(table)
        return name if name in self.names else None

    def leaf(self, tree: exp.Expr, clause: str) -> tuple[Expression, SqlType] | None:
        """Return a value of the match that is of no column, and its type: CLASSIFIER, MATCH_NUMBER, MATCH_ROWTIME."""
        name = _called(tree)
        if name == "classifier":
            given = [name_of(each.this) for each in tree.expressions if isinstance(each, exp.Column)]
            if len(given) != len(tree.expressions) or len(given) > 1 or not set(given) <= self.names:
                raise self.text.type_error(tree, f"CLASSIFIER takes a variable, or nothing; there are {_listed(self.names)}.")
            return Classifier(given[0] if given else None), VARCHAR
        if name not in _OF_MATCH:
            return None
        if tree.expressions:
            raise self.text.type_error(tree, f"{name.upper()} takes no argument.")
        if clause == "DEFINE":
            raise self.text.unsupported(tree, f"{name.upper()} in DEFINE", "It is a measure: the match is not known yet.")
        if name == "match_number":
            return MatchNumber(), BIGINT
        if self.time is None:
            raise self.text.type_error(
                tree, "MATCH_ROWTIME is the event time, and the first column of ORDER BY is no ascending timestamp. Cast it."
            )
        return MatchTime(), self.time.type

    def aggregate(self, tree: exp.Expr, clause: str) -> tuple[Parts, list[Expression]]:
        """Return an aggregate over rows of the match: how its result is made, and of which values."""
        condition = None
        if isinstance(tree, exp.Filter):
            tree, condition = tree.this, tree.expression.this
        name, is_distinct = str(tree.this).lower(), False
        arguments: list[exp.Expr] = []
        for each in tree.expressions:
            is_distinct |= isinstance(each, exp.Distinct)
            arguments += distinct_arguments(each, self.text, tree) if isinstance(each, exp.Distinct) else [each]
        counts_rows = name == "count" and len(arguments) == 1 and isinstance(_bare(arguments[0]), exp.Star)
        variable = self._variable(*arguments, *([] if condition is None else [condition]))
        binder = self.rows(clause)
        if name == "count" and not arguments:
            raise self.text.type_error(tree, f"count: {COUNTS_ROWS}")
        binder = self.rows(clause)
        values = [] if counts_rows else [settled(binder.bind(each)) for each in arguments]
        if condition is not None:
            kept = binder.condition(condition, "FILTER")
            values = [if_kept(kept, value) for value in (values or [Expr("1", INTEGER)])]
        try:
            parts = AGGREGATES[name].bind(values)
        except MismatchError as error:
            raise self.text.type_error(tree, f"{name}: {error}") from None
        return parts, [self._called(tree, each, variable, parts, is_distinct) for each in parts.primitives]

    def _called(self, tree: exp.Expr, call: Primitive, variable: str | None, parts: Parts, is_distinct: bool) -> Expression:
        name = call.function if call.function in ("min", "max") else call.over  # of floats, too: a zero has no sign then
        if is_distinct:
            name = "count_distinct" if name == "count" else name if name in ("min", "max", "bool_and", "bool_or") else None
        if name is None or parts.only is not None:
            instead = "count, sum, avg, min, max, stddev and variance, bool_and, bool_or, arg_min, arg_max and string_agg are."
            if call.function == "sum" and not is_distinct:
                instead = "Cast the argument to double precision."
            raise self.text.unsupported(tree, f"{shown(tree)!r} over the rows of a match", instead)
        columns = tuple(self.computed.column(settled(value)).id for value in call.arguments)
        return Unbound(variable, columns, Aggregate(name, columns, call.parameters))


class _MeasureBinder(ScalarBinder):
    """Binds a measure: values of the match are columns."""

    def __init__(self, values: MatchValues, is_final: bool, clause: str = "MEASURES") -> None:
        super().__init__(values.text, values.scope, clause, values.rows(clause).now)
        self._values, self._is_final = values, is_final

    def intercept(self, tree: exp.Expr) -> Expr | None:
        values = self._values
        if isinstance(tree, exp.MatchRecognizeMeasure):
            return type(self)(values, tree.args["window_frame"].name == "FINAL", self.clause).bind(tree.this)
        if isinstance(tree, exp.Column):
            return self._of_column(tree, Place("last", values.variable_of(tree)))
        if _called(tree) in (*_ENDS, *_MOVES):
            return self._of_column(tree, values.place(tree))
        if _is_aggregate(tree):
            parts, leaves = values.aggregate(tree, self.clause)
            calls = zip(leaves, parts.primitives, strict=True)
            found = parts.finish([self._measured(leaf, call.type, call.function) for leaf, call in calls])
            return replace(found, name=str(_call_of(tree).this).lower(), rises_with=None)
        leaf = values.leaf(tree, self.clause)
        return None if leaf is None else self._measured(*leaf, _called(tree))

    def _of_column(self, tree: exp.Expr, place: Place) -> Expr:
        value = settled(self._values.rows(self.clause).bind(tree))
        column = self._values.computed.column(value)
        return self._measured(place.of(column.id), column.type, column.name)

    def _measured(self, value: Expression, kind: SqlType, name: str) -> Expr:
        return self._values.measured(value, kind, name, is_final=self._is_final)


class _TypeBinder(_MeasureBinder):
    """Binds a condition for its types alone."""

    def __init__(self, values: MatchValues, is_final: bool, clause: str = "DEFINE") -> None:
        super().__init__(values, is_final, clause)

    def intercept(self, tree: exp.Expr) -> Expr | None:
        if isinstance(tree, exp.MatchRecognizeMeasure):
            word = tree.args["window_frame"].name
            raise self.text.unsupported(tree, f"{word} in DEFINE", "Leave it out: a condition is RUNNING.")
        return super().intercept(tree)

    def _of_column(self, tree: exp.Expr, place: Place) -> Expr:
        value = settled(self._values.rows(self.clause).bind(tree))
        return build(value.type, "{0}", value, name=value.name)

    def _measured(self, value: Expression, kind: SqlType, name: str) -> Expr:
        return build(kind, f"CAST(NULL AS {kind.duckdb})", Expr.of_column(name, kind), name=name)


@dataclass(frozen=True)
class _Condition:
    """The tree of a condition.

    Args:
        of_row: names whose last row is the current one.
    """

    values: MatchValues
    of_row: frozenset[str]
    _types: _TypeBinder = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_types", _TypeBinder(self.values, False))

    def value(self, tree: exp.Expr, kind: SqlType) -> Expression:
        """Return a part of the condition as a value of a type."""
        places = set(self._places(tree))
        if not places:
            return self._constant(tree, kind)
        if len(places) == 1 and (place := next(iter(places))) is not None:
            inside = convert(self.values.rows("DEFINE").bind(tree), kind)
            if place == _CURRENT or self._is_null_of_nothing(tree):
                return place.of(self.values.computed.column(inside).id)
        return self._of_several(tree, kind)

    def _places(self, tree: exp.Expr) -> Iterator[Place | None]:
        """Yield the rows that a part is about, ``None`` for what is of no single row."""
        if _called(tree) in (*_ENDS, *_MOVES):
            place = self.values.place(tree)
            yield replace(place, variable=None) if place.end == "last" and not place.offset and self._is_own(place) else place
        elif isinstance(tree, exp.Column):
            variable = self.values.variable_of(tree)
            yield _CURRENT if variable in self.of_row else Place("last", variable)
        elif _is_aggregate(tree) or _called(tree) in _OF_MATCH:
            yield None
        else:
            for part in tree.iter_expressions():
                yield from self._places(part)

    def _is_own(self, place: Place) -> bool:
        return place.variable in self.of_row

    def _constant(self, tree: exp.Expr, kind: SqlType) -> Expression:
        found: Any = self.values.constants.evaluate(tree, kind)
        if isinstance(found, Interval):
            micros = length(found)
            if micros is None:
                raise self.values.text.type_error(tree, f"an interval of months has no fixed length: {found}. Write days.")
            found = dt.timedelta(microseconds=micros)
        return Constant(found)

    def _is_null_of_nothing(self, tree: exp.Expr) -> bool:
        """Whether a value of a row that is not there is NULL."""
        return self.values.constants.evaluate_sql(_NullBinder(self.values, False).bind(tree).sql) is None

    def _of_several(self, tree: exp.Expr, kind: SqlType) -> Expression:
        """Return a part whose operands are of several rows."""
        kinds = type(tree)
        if isinstance(tree, exp.Paren):
            return self.value(tree.this, kind)
        if kinds in _LOGIC:
            return Operation(_LOGIC[kinds], (self.value(tree.this, BOOLEAN), self.value(tree.expression, BOOLEAN)))
        if isinstance(tree, exp.Not):
            return Operation("~", (self.value(tree.this, BOOLEAN),))
        if kinds in _COMPARISONS or kinds in _DISTINCT:
            compared = self._compared((_COMPARISONS | _DISTINCT)[kinds], tree.this, tree.expression)
            return Operation("~", (compared,)) if isinstance(tree, exp.NullSafeEQ) else compared
        if isinstance(tree, exp.Between) and not tree.args.get("symmetric"):
            low, high = (self._compared(sign, tree.this, tree.args[name]) for sign, name in ((">=", "low"), ("<=", "high")))
            return Operation("&", (low, high))
        if isinstance(tree, exp.In) and tree.expressions:
            return _nested("|", [self._compared("==", tree.this, each) for each in tree.expressions])
        if isinstance(tree, exp.Is):
            return self._is(tree)
        if _called(tree) == "coalesce" and tree.expressions:
            return _nested("coalesce", [self.value(each, kind) for each in tree.expressions])
        if isinstance(tree, exp.Neg):
            return Operation("neg", (self.value(tree.this, kind),))
        if kinds in _ARITHMETIC:
            return self._computed(tree)
        return self._leaf(tree)

    def _is(self, tree: exp.Expr) -> Expression:
        operand = self.value(tree.this, self._type(tree.this))
        if isinstance(tree.expression, exp.Null):
            return Operation("is null", (operand,))
        differs = Operation("is distinct from", (operand, Constant(bool(tree.expression.this))))
        return Operation("~", (differs,))

    def _type(self, tree: exp.Expr) -> SqlType:
        return settled(self._types.bind(tree)).type

    def _compared(self, sign: str, left: exp.Expr, right: exp.Expr) -> Expression:
        one, other = comparables(self._types.bind(left), self._types.bind(right))
        return Operation(sign, (self.value(left, one.type), self.value(right, other.type)))

    def _computed(self, tree: exp.Expr) -> Expression:
        """Return what is computed with numbers of one kind, or with times and intervals."""
        sign, parts = _ARITHMETIC[type(tree)], (tree.this, tree.expression)
        kinds = [self._type(each) for each in parts]
        floats = [is_float(kind) for kind in kinds]
        if (any(floats) and not all(floats)) or (sign == "/" and not all(floats) and not all(map(is_integer, kinds))):
            raise self.values.text.unsupported(
                tree, f"{kinds[0]} {sign} {kinds[1]} of several rows in DEFINE", "Cast both sides to double precision."
            )
        if sign == "/" and not any(floats):
            sign = "div"
        found = Operation(sign, tuple(self.value(each, kind) for each, kind in zip(parts, kinds, strict=True)))
        return Operation("real", (found,)) if sign == "/" and set(kinds) == {REAL} else found

    def _leaf(self, tree: exp.Expr) -> Expression:
        """Return an aggregate over rows of the match so far, or CLASSIFIER."""
        leaf = self.values.leaf(tree, "DEFINE")
        if leaf is not None:
            return leaf[0]
        if not _is_aggregate(tree):
            raise self.values.text.unsupported(tree, f"{shown(tree)!r} in DEFINE", _INSTEAD)
        _, leaves = self.values.aggregate(tree, "DEFINE")
        if len(leaves) == 1:
            return leaves[0]
        if str(_call_of(tree).this).lower() == "avg" and len(leaves) == 2:
            return Operation("mean", tuple(leaves))
        instead = "It may be a measure; count, sum, avg, min and max may stand in DEFINE."
        raise self.values.text.unsupported(tree, f"{shown(tree)!r} in DEFINE", instead)


class _NullBinder(_TypeBinder):
    """Binds an expression of a row that is not there."""

    def _of_column(self, tree: exp.Expr, place: Place) -> Expr:
        kind = super()._of_column(tree, place).type
        return Expr.null(kind)


def _nested(operator: str, parts: list[Expression]) -> Expression:
    found = parts[0]
    for part in parts[1:]:
        found = Operation(operator, (found, part))
    return found


def _called(tree: exp.Expr) -> str:
    """Return the name of the function that an expression calls, else nothing."""
    if isinstance(tree, exp.Coalesce):
        return "coalesce"
    return str(tree.this).lower() if isinstance(tree, exp.Anonymous) else ""


def _is_aggregate(tree: exp.Expr) -> bool:
    return isinstance(_call_of(tree), exp.Anonymous) and str(_call_of(tree).this).lower() in AGGREGATES


def _call_of(tree: exp.Expr) -> exp.Expr:
    return tree.this if isinstance(tree, exp.Filter) else tree


def _bare(tree: exp.Expr) -> exp.Expr:
    return tree.this if isinstance(tree, exp.Column) and isinstance(tree.this, exp.Star) else tree


def _listed(names: frozenset[str]) -> str:
    return ", ".join(sorted(names))
