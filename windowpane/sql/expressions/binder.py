"""Binds scalar expressions; what aggregates and window functions mean is left to subclasses."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from sqlglot import ErrorLevel, exp

from windowpane.sql.bind.scope import Column, Scope
from windowpane.sql.embedded.macros import NOW
from windowpane.sql.expressions import operators
from windowpane.sql.expressions.aggregates import AGGREGATES
from windowpane.sql.expressions.expr import Expr, MismatchError, build, cast, convert, if_kept, quoted, settled
from windowpane.sql.expressions.forms import FORMS, REPLACING, row_values, rows_equal
from windowpane.sql.expressions.functions import FUNCTIONS
from windowpane.sql.expressions.types import BOOLEAN, DATE, TIMESTAMP, TIMESTAMPTZ, UNKNOWN, VARCHAR, SqlType, is_float, named
from windowpane.sql.parse.dialect import UNKNOWN_TRUTH
from windowpane.sql.parse.positions import Text, shown
from windowpane.sql.scalar.sets import SETS
from windowpane.sql.scalar.signatures import accepted
from windowpane.sql.scalar.times import WITH_UNIT, with_unit
from windowpane.sql.values.intervals import read_span
from windowpane.sql.windows import time_functions

_Kinds = dict[type[exp.Expr], str]

_INSTEAD: _Kinds = {
    exp.All: "NOT EXISTS with the opposite comparison is the same where no side is NULL; a NULL makes ALL unknown.",
    exp.Any: "= ANY (array) is, and = ANY (subquery) in WHERE.",
}
_INSTEAD_OF_A_SUBQUERY = {
    "SET": REPLACING,
    "VALUES": "INSERT INTO ... SELECT may have one.",
    "DEFAULT": "Write a value, or compute the column where rows are inserted.",
    "a generated column": "A view over the table may have one.",
    "a constant": "Write its value.",
}
_LISTED = "See docs/sql.md for those there are."
_IN_FROM = "It stands in FROM, as in SELECT * FROM {}."
_NEAREST = {
    "tumble": _IN_FROM.format("TUMBLE(t, at, INTERVAL '10 minutes')"),
    "hop": _IN_FROM.format("HOP(t, at, INTERVAL '5 minutes', INTERVAL '10 minutes')"),
    "mz_now": "Compare with now(), as in WHERE at > now() - INTERVAL '1 hour'.",
    "list_agg": "array_agg is.",
    "collect_list": "array_agg is.",
    "earliest_by_offset": "arg_min(value, at) is the value of the earliest row.",
    "latest_by_offset": "arg_max(value, at) is the value of the latest row.",
    "current_watermark": "A table drops the rows behind its watermark; SHOW WATERMARKS has its value, and how many were dropped.",
    "regexp_extract": "(regexp_match(text, pattern))[1] is the first group, or the whole match of a pattern without groups.",
    "convert_tz": "Write at AT TIME ZONE 'Europe/Rome' AT TIME ZONE 'UTC'.",
    "str_to_map": "There are no maps; split_part(text, ':', 2) is a part of a text, and jsonb has fields by name.",
}
_CALLED = frozenset((*FUNCTIONS, *time_functions.TIME_FUNCTIONS, *WITH_UNIT, "now", "proctime"))
"""The names of all functions of values."""
RESOLVED = "windowpane_column"
"""Where an expression keeps the column it is known to be."""


def resolved(value: Column | Expr) -> exp.Column:
    """Return a column, or what stands for one, as an expression that is bound already."""
    tree = exp.Column(this=exp.to_identifier(value.name, quoted=True))
    tree.meta[RESOLVED] = value
    return tree


class ScalarBinder:
    """Turns a parsed expression into a bound one, over the columns of a scope."""

    def __init__(self, text: Text, scope: Scope, clause: str, now: str = NOW) -> None:
        self.text = text
        self.scope = scope
        self.clause = clause
        self.now = now

    def bind(self, tree: exp.Expr) -> Expr:
        """Return the bound expression.

        Raises:
            SqlError: a name, function or type that does not exist or does not fit, with its place.
        """
        special = self.intercept(tree)
        if special is not None:
            return special
        try:
            bound = self._dispatch(tree)
            return bound if self.now or not bound.parts or bound.written else replace(bound, written=_written(tree))
        except MismatchError as error:
            raise self.text.type_error(tree, str(error)) from None

    def intercept(self, tree: exp.Expr) -> Expr | None:
        """Return what a subclass makes of an expression, ``None`` to bind it as usual."""
        return None

    def boolean(self, tree: exp.Expr) -> Expr:
        return self.condition(tree, self.clause)

    def filtered(self, argument: Expr, condition: exp.Expr | None) -> Expr:
        """Return an argument that is computed of the rows alone that a FILTER keeps: of others it may fail."""
        if condition is None or argument.is_column or not argument.columns:
            return argument
        return if_kept(self.condition(condition, "FILTER"), argument)

    def condition(self, tree: exp.Expr, clause: str) -> Expr:
        bound = self.bind(tree)
        if bound.type not in (BOOLEAN, UNKNOWN):
            raise self.text.type_error(tree, f"{clause} needs a boolean, not {bound.type}. Compare it with something.")
        return convert(bound, BOOLEAN)

    def _dispatch(self, tree: exp.Expr) -> Expr:
        kind = type(tree)
        if kind in FORMS:
            return FORMS[kind](self.bind, tree)
        handler = _HANDLERS.get(kind)
        if handler is None:
            instead = _INSTEAD.get(kind, "See docs/sql.md for the expressions there are.")
            raise self.text.unsupported(tree, f"{shown(tree)!r} in {self.clause}", instead)
        return handler(self, tree)

    def column(self, tree: exp.Expr) -> Expr:
        known = tree.meta.get(RESOLVED)
        if isinstance(known, Expr):
            return known
        if isinstance(known, Column):
            return known.expr
        table = name_of(tree.args["table"]) if tree.args.get("table") else None
        name = name_of(tree.this)
        found = self.scope.find(name, table)
        if len(found) == 1:
            return found[0].expr
        shown = name if table is None else f"{table}.{name}"
        if found and (table is not None or len(self.scope.tables()) == 1):
            raise self.text.name_error(tree, f"column {shown!r} is ambiguous: its table has it twice. Give each a name with AS.")
        if found:
            raise self.text.name_error(tree, f"column {shown!r} is ambiguous: several tables have it. Write it as table.{name}.")
        raise self.text.name_error(tree, f"there is no column {shown!r} here{self._nearest(name, table)}")

    def _nearest(self, name: str, table: str | None) -> str:
        tables = self.scope.tables()
        if table is not None and tables and table not in tables:
            return f": there is no table {table!r} in FROM; there are {', '.join(tables)}."
        known = dict.fromkeys(column.name for column in self.scope.of_table(table))
        alike = next((each for each in known if each.lower() == name.lower()), None)
        if alike is not None:
            return f"; there is {alike!r}, whose capitals need quotes: {quoted(alike)}."
        names = ", ".join(known)
        return f"; there are {names}." if names else f": {self.clause} can name no column."

    def _cast(self, tree: exp.Expr) -> Expr:
        kind = data_type(tree.args["to"])
        if kind is None:
            raise self.text.unsupported(tree, f"the type {tree.args['to'].sql()!r}", "See docs/sql.md for the types there are.")
        if kind.element is not None and isinstance(tree.this, exp.Array) and not tree.this.expressions:
            return Expr(f"CAST([] AS {kind.duckdb})", kind, name="array")
        value = self._float_literal(tree.this, kind) or self.bind(tree.this)
        bound = cast(value, kind)
        own = value.name if value.name != "?column?" else _CAST_NAMES.get(kind.name, kind.name)
        written = "" if self.now else f"CAST({_written(tree.this)} AS {str(kind).upper()})"
        return replace(bound, literal=None, name=own, written=written)

    def _float_literal(self, tree: exp.Expr, kind: SqlType) -> Expr | None:
        """Return a number that is cast to a float as text: it may have more digits than a numeric holds."""
        sign = ""
        while isinstance(tree, exp.Neg | exp.Paren):
            if isinstance(tree, exp.Neg):
                sign = "" if sign else "-"
            tree = tree.this
        if not is_float(kind) or not isinstance(tree, exp.Literal) or tree.is_string:
            return None
        digits = sign + str(tree.this)
        if math.isinf(float(digits)):
            raise self.text.type_error(tree, f"{digits} is out of range for type {kind}.")
        return Expr.of_text(digits)

    def _interval(self, tree: exp.Expr) -> Expr:
        unit = tree.args.get("unit")
        if unit is not None and not isinstance(unit, exp.Var):
            raise self.text.unsupported(tree, "an interval of this form", "Write INTERVAL '1 day 2 hours'.")
        value = tree.this
        if value is None or not value.is_string:
            raise self.text.unsupported(tree, "an interval that is no literal", "Write the number times INTERVAL '1 hour'.")
        try:
            return Expr.of_interval(read_span(value.this, unit.name if unit else ""))
        except (ValueError, OverflowError) as error:
            raise self.text.type_error(tree, f"{error}. Write INTERVAL '1 day 2 hours'.") from None

    def _is(self, tree: exp.Expr) -> Expr:
        operand, what = self.bind(tree.this), tree.expression
        is_unknown = UNKNOWN_TRUTH in what.meta
        if (is_unknown or isinstance(what, exp.Boolean)) and operand.type not in (BOOLEAN, UNKNOWN):
            word = "UNKNOWN" if is_unknown else str(what.this).upper()
            raise MismatchError(f"IS {word} takes boolean, not {operand.type}. Compare it with something.")
        if isinstance(what, exp.JSON):
            kind = what.this or "VALUE"
            return build(BOOLEAN, f"windowpane_jsonb_is_json({{0}}, '{kind}')", accepted(operand, VARCHAR), operator="IS")
        if isinstance(what, exp.Null):
            value = convert(operand, BOOLEAN) if is_unknown else settled(operand)
            return build(BOOLEAN, "({0} IS NULL)", value, operator="IS NULL")
        if isinstance(what, exp.Boolean):
            is_so = f"({{0}} IS NOT DISTINCT FROM {str(what.this).upper()})"
            return build(BOOLEAN, is_so, convert(operand, BOOLEAN), operator="IS")
        raise self.text.unsupported(tree, "IS with this operand", "IS [NOT] NULL, TRUE, FALSE, JSON and DISTINCT FROM are.")

    def _in(self, tree: exp.Expr) -> Expr:
        if tree.args.get("query") is not None:
            raise self.text.unsupported(tree, f"IN (subquery) in {self.clause}", "It may stand in WHERE, joined by AND.")
        if not tree.expressions:
            raise self.text.syntax_error(tree, "IN has no values. Write FALSE for it.")
        parts = row_values(tree.this)
        if parts is not None:
            return operators.logical("OR", *(rows_equal(self.bind, parts, item) for item in tree.expressions))
        values = operators.comparables(self.bind(tree.this), *(self.bind(item) for item in tree.expressions))
        listed = ", ".join(f"{{{index}}}" for index in range(1, len(values)))
        return build(BOOLEAN, f"({{0}} IN ({listed}))", *map(operators.key_value, values), operator="IN")

    def _call(self, tree: exp.Expr) -> Expr:
        name = str(tree.this).lower()
        if name in AGGREGATES:
            raise self._misplaced(tree, f"the aggregate {name}")
        if name in WITH_UNIT and tree.expressions:
            return replace(
                with_unit(name, tree.expressions[0].name, [self.bind(each) for each in tree.expressions[1:]]), name=name
            )
        if name not in _CALLED:
            if name in SETS:
                raise self.text.unsupported(
                    tree, f"{name} returns rows, which in {self.clause}", "Put it into a subquery in FROM."
                )
            raise self.text.name_error(tree, f"there is no function {name!r}. {_NEAREST.get(name, _LISTED)}")
        arguments = [self.bind(argument) for argument in tree.expressions]
        if name in time_functions.TIME_FUNCTIONS:
            return replace(time_functions.TIME_FUNCTIONS[name](arguments), name=name)
        if name in ("now", "proctime") and arguments:
            raise MismatchError(f"{name} takes no arguments.")
        if name in ("now", "proctime"):
            return self._now(tree)
        try:
            return replace(FUNCTIONS[name](arguments), name=name)
        except MismatchError as error:
            raise MismatchError(f"{name}: {error}") from None

    def _misplaced(self, tree: exp.Expr, what: str) -> Exception:
        return self.text.unsupported(tree, f"{what} in {self.clause}", "Put it into a subquery, and name its column here.")

    def _window(self, tree: exp.Expr) -> Expr:
        raise self._misplaced(tree, "a window function")

    def _subquery(self, tree: exp.Expr) -> Expr:
        instead = _INSTEAD_OF_A_SUBQUERY.get(self.clause, "Put it into FROM and join it.")
        raise self.text.unsupported(tree, f"a subquery in {self.clause}", instead)

    def _now(self, tree: exp.Expr) -> Expr:
        if not self.now:
            instead = (
                "In its WHERE or HAVING it may stand in a comparison, as in at > now() - INTERVAL '1 hour'; PROCTIME() in its "
                "SELECT is the time at which a row was taken in."
            )
            raise self.text.unsupported(tree, "now() in this place of a materialized view", instead)
        return Expr(self.now, TIMESTAMPTZ, name="now", rises_with=NOW)


def name_of(identifier: Any) -> str:
    """Return the name of a parsed identifier: in lower case unless quoted."""
    text = str(identifier.name)
    return text if getattr(identifier, "quoted", False) or identifier.args.get("quoted") else text.lower()


def data_type(tree: exp.Expr) -> SqlType | None:
    text = tree.sql(dialect="risingwave").lower()
    name, _, rest = text.partition("(")
    arguments, _, tail = rest.partition(")")
    numbers = tuple(int(part) for part in arguments.split(",") if part.strip().isdigit())
    return named((name.strip() + tail).strip(), numbers)


_CAST_NAMES = {"integer": "int4", "bigint": "int8", "smallint": "int2", "double": "float8", "real": "float4", "boolean": "bool"}


def _written(tree: exp.Expr) -> str:
    """Return what a user wrote, in one spelling."""
    return tree.sql(dialect="risingwave", normalize_functions="lower", unsupported_level=ErrorLevel.IGNORE)


_HANDLERS: dict[type[exp.Expr], Callable[[ScalarBinder, Any], Expr]] = {
    exp.Column: ScalarBinder.column,
    exp.Cast: lambda binder, tree: binder._cast(tree),
    exp.Interval: ScalarBinder._interval,
    exp.Is: ScalarBinder._is,
    exp.In: ScalarBinder._in,
    exp.Anonymous: ScalarBinder._call,
    exp.Window: ScalarBinder._window,
    exp.Subquery: ScalarBinder._subquery,
    exp.Exists: ScalarBinder._subquery,
    exp.CurrentTimestamp: ScalarBinder._now,
    exp.CurrentDate: lambda binder, tree: replace(cast(binder._now(tree), DATE), name="current_date"),
    exp.Localtimestamp: lambda binder, tree: replace(cast(binder._now(tree), TIMESTAMP), name="localtimestamp"),
}
