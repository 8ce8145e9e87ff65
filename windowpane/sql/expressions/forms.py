"""Expressions by their syntax: operators, CASE, LIKE, BETWEEN, ANY, TRIM, SUBSTRING, brackets, ``->``, AT TIME ZONE."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Context, Decimal
from functools import partial
from typing import Any

from sqlglot import exp

from windowpane.sql.expressions import operators
from windowpane.sql.expressions.array_functions import array
from windowpane.sql.expressions.expr import Expr, MismatchError, build, convert, each_of
from windowpane.sql.expressions.functions import FUNCTIONS
from windowpane.sql.expressions.types import (
    BIGINT,
    BOOLEAN,
    COLLATIONS,
    DIGITS,
    INTEGER,
    JSONB,
    UNKNOWN,
    VARCHAR,
    SqlType,
    array_of,
    comparison_type,
    is_integer,
    is_text,
)
from windowpane.sql.numerics.conversions import type_of
from windowpane.sql.scalar import fields, patterns, times
from windowpane.sql.values.array_text import read_array
from windowpane.sql.values.text_values import text_literal

Bind = Callable[[exp.Expr], Expr]
Form = Callable[[Bind, Any], Expr]
REPLACING = "INSERT INTO ... SELECT replaces the rows whose PRIMARY KEY it brings."
"""What an UPDATE does not do that is said of other tables."""


def _called(function: str, bind: Bind, parts: Sequence[exp.Expr | None], name: str) -> Expr:
    return replace(FUNCTIONS[function]([bind(part) for part in parts if part is not None]), name=name)


# --- patterns ----------------------------------------------------------------------------------------------


def _like(bind: Bind, tree: exp.Expr, escape: Expr | None = None) -> Expr:
    operator = ("NOT " if tree.args.get("negate") else "") + ("ILIKE" if isinstance(tree, exp.ILike) else "LIKE")
    return patterns.like(bind(tree.this), bind(tree.expression), operator, escape)


def _escaped(bind: Bind, tree: exp.Expr) -> Expr:
    compared, escape = tree.this, bind(tree.expression)
    if isinstance(compared, exp.SimilarTo):
        return patterns.similar(bind(compared.this), bind(compared.expression), escape)
    return _like(bind, compared, escape)


def _matches(bind: Bind, tree: exp.Expr) -> Expr:
    flags = "i" if isinstance(tree, exp.RegexpILike) else ""
    return patterns.matches(bind(tree.this), bind(tree.expression), flags)


# --- comparisons -------------------------------------------------------------------------------------------


def _between(bind: Bind, tree: exp.Expr) -> Expr:
    value, low, high = bind(tree.this), bind(tree.args["low"]), bind(tree.args["high"])
    inside = operators.logical("AND", operators.compare(">=", value, low), operators.compare("<=", value, high))
    if not tree.args.get("symmetric"):
        return inside
    mirrored = operators.logical("AND", operators.compare(">=", value, high), operators.compare("<=", value, low))
    return operators.logical("OR", inside, mirrored)


def row_values(tree: exp.Expr) -> list[exp.Expr] | None:
    """Return the parts of a row such as ``(a, b)`` or ``ROW(a, b)``, ``None`` if it is none."""
    is_row = isinstance(tree, exp.Tuple) or (isinstance(tree, exp.Anonymous) and str(tree.this).upper() == "ROW")
    return list(tree.expressions) if is_row else None


def is_row_of_subquery(tree: exp.Expr) -> bool:
    """Whether an expression compares a row of values with the row of a subquery: ``(a, b) = (SELECT x, y ...)``."""
    compares = isinstance(tree, exp.EQ | exp.NEQ | exp.LT | exp.LTE | exp.GT | exp.GTE)
    return compares and isinstance(tree.expression, exp.Subquery) and row_values(tree.this) is not None


def is_array_of_query(tree: exp.Expr) -> bool:
    """Whether an expression is ``ARRAY(SELECT ...)``."""
    is_call = isinstance(tree, exp.Anonymous) and str(tree.this).lower() == "array"
    return is_call and len(tree.expressions) == 1 and isinstance(tree.expressions[0], exp.Query)


def _row_of(length: int, tree: exp.Expr) -> list[exp.Expr]:
    parts = row_values(tree)
    if parts is None or len(parts) != length:
        given = "what is no row" if parts is None else f"a row of {len(parts)}"
        raise MismatchError(f"a row of {length} values is compared with {given}. Write as many values on both sides.")
    return parts


def rows_equal(bind: Bind, one: Sequence[exp.Expr], other: exp.Expr, operator: str = "=") -> Expr:
    """Return whether two rows are equal, part by part, or by ``IS NOT DISTINCT FROM``."""
    parts = _row_of(len(one), other)
    equal = (operators.compare(operator, bind(left), bind(right)) for left, right in zip(one, parts, strict=True))
    return operators.logical("AND", *equal)


def compares_any(operator: str, value: Expr, elements: Expr, *, every: bool = False) -> Expr:
    """Return ``value operator ANY (array)``, or ALL: NULL where comparisons with NULL could decide."""
    if elements.type.element is None:
        raise MismatchError(f"{'ALL' if every else 'ANY'} takes an array or a subquery, not {elements.type}.")
    kind = comparison_type(value.type, elements.type.element)
    one = operators.same_type(value, Expr("NULL", kind or elements.type.element))[0]
    compared = operators.compare(operator, one, Expr.parameter("candidate", one.type))
    values = convert(elements, array_of(one.type))
    answers = each_of(values, BOOLEAN, lambda candidate: compared, "candidate")
    decides, otherwise = ("FALSE", "TRUE") if every else ("TRUE", "FALSE")
    template = (
        f"(CASE WHEN list_contains({{0}}, {decides}) THEN {decides} "
        f"WHEN {{1}} IS NULL OR len({{0}}) > list_count({{0}}) THEN NULL ELSE {otherwise} END)"
    )
    return build(BOOLEAN, template, answers, values)


def rows_ordered(bind: Bind, operator: str, one: Sequence[exp.Expr], other: exp.Expr) -> Expr:
    """Return ``(a, b) < (c, d)`` and the like: the first parts that differ decide."""
    parts = _row_of(len(one), other)
    pairs = [(bind(left), bind(right)) for left, right in zip(one, parts, strict=True)]
    result = operators.compare(operator, *pairs[-1])
    for left, right in reversed(pairs[:-1]):
        tie = operators.logical("AND", operators.compare("=", left, right), result)
        result = operators.logical("OR", operators.compare(operator[0], left, right), tie)
    return result


# --- text --------------------------------------------------------------------------------------------------


def _trim(bind: Bind, tree: exp.Expr) -> Expr:
    side = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(str(tree.args.get("position") or "").upper(), "trim")
    return _called(side, bind, (tree.this, tree.expression), side)


def _substring(bind: Bind, tree: exp.Expr) -> Expr:
    start = tree.args.get("start") or exp.Literal.number(1)
    if isinstance(start, exp.Literal) and start.is_string:
        raise MismatchError("substring(text FROM pattern) is not supported. Write (regexp_match(text, pattern))[1].")
    return _called("substr", bind, (tree.this, start, tree.args.get("length")), "substring")


def _adjacent(bind: Bind, tree: exp.Expr) -> Expr:
    if not all(isinstance(part, exp.Literal) and part.is_string for part in tree.expressions):
        raise MismatchError("only text literals stand side by side. Write ||.")
    return Expr.of_text("".join(part.this for part in tree.expressions))


def _collated(bind: Bind, tree: exp.Expr) -> Expr:
    """Return a text with the collation that all texts have: by code point."""
    value, name = bind(tree.this), tree.expression
    if not is_text(value.type):
        raise MismatchError(f"collations are not supported by type {value.type}.")
    if name.name not in COLLATIONS:
        raise MismatchError(f"there is no collation {name.name!r}; there are {', '.join(COLLATIONS)}.")
    return value


# --- arrays and JSON ---------------------------------------------------------------------------------------


def _bracket(bind: Bind, tree: exp.Expr) -> Expr:
    value, index = bind(tree.this), tree.expressions[0]
    if value.type.element is None:
        raise MismatchError(f"{value.type} has no elements; only arrays do.")
    if isinstance(index, exp.Slice):
        low, high = (_subscript(bind(part)) if part is not None else None for part in (index.this, index.expression))
        bounds = [low or Expr("1", INTEGER), high or build(INTEGER, "len({0})", value)]
        return build(value.type, "windowpane_slice({0}, {1}, {2})", value, *bounds)
    if isinstance(index, exp.Literal) and str(index.this).isdigit() and int(index.this) < 2**31:
        return build(value.type.element, f"windowpane_item({{0}}, {int(index.this)})", value)
    return build(value.type.element, "windowpane_item({0}, {1})", value, _subscript(bind(index)))


def _subscript(index: Expr) -> Expr:
    """Return the number of an element."""
    if index.type == UNKNOWN:
        return convert(index, INTEGER)
    if not is_integer(index.type):
        raise MismatchError(f"an array subscript is an integer, not {index.type}.")
    return build(INTEGER, "CAST({0} AS INTEGER)", index) if index.type == BIGINT else index


def _json(function: str, kind: SqlType) -> Form:
    def bound(bind: Bind, tree: exp.Expr) -> Expr:
        value = bind(tree.this)
        if value.type != JSONB:
            raise MismatchError(f"operator does not exist: {value.type} -> ... Cast the left side to jsonb.")
        return build(kind, f"{function}({{0}}, {{1}})", value, _path(bind, tree.expression))

    return bound


def _json_at(function: str, kind: SqlType) -> Form:
    """Return ``#>`` or ``#>>``: what is at the end of a path such as ``'{a,0}'``, where ``-1`` is the last of an array."""

    def bound(bind: Bind, tree: exp.Expr) -> Expr:
        value, path = bind(tree.this), tree.expression
        if value.type != JSONB:
            raise MismatchError(f"operator does not exist: {value.type} #> ... Cast the left side to jsonb.")
        if not (isinstance(path, exp.Literal) and path.is_string):
            return FUNCTIONS["jsonb_extract_path_text" if kind == VARCHAR else "jsonb_extract_path"]([value, bind(path)])
        try:
            steps = read_array(path.this, 1)
        except ValueError as error:
            raise MismatchError(f"{error}.") from None
        pointer = ""
        for step in steps:
            if step is None:
                return Expr.null(kind)
            pointer += _pointer(str(step))
            if re.fullmatch(r"-\d{1,9}", str(step)):
                value = build(JSONB, _FROM_THE_END.format(text_literal(_behind(pointer)), text_literal(pointer), step), value)
                pointer = ""
        return build(kind, f"{function}({{0}}, {{1}})", value, Expr(text_literal(pointer or "$"), VARCHAR))

    return bound


_OF_JSONB: dict[type[exp.Expr], str] = {
    exp.JSONBContainsTopKey: "jsonb_exists",
    exp.JSONBContainsAnyTopKeys: "jsonb_exists_any",
    exp.JSONBContainsAllTopKeys: "jsonb_exists_all",
    exp.JSONBDeleteAtPath: "jsonb_delete_path",
    exp.ArrayContainsAll: "jsonb_contains",
    exp.ArrayContainedBy: "jsonb_contained",
    exp.Sub: "jsonb_delete",
    exp.DPipe: "jsonb_concat",
}
"""The functions of operators where one side is of jsonb."""


def _or_of_jsonb(other: Callable[[Expr, Expr], Expr]) -> Form:
    """Return an operator that is another one of jsonb."""

    def bound(bind: Bind, tree: exp.Expr) -> Expr:
        left, right = bind(tree.this), bind(tree.expression)
        is_text = isinstance(tree, exp.DPipe) and VARCHAR in (left.type, right.type)
        if JSONB not in (left.type, right.type) or is_text:
            return other(left, right)
        return replace(FUNCTIONS[_OF_JSONB[type(tree)]]([left, right]), name="?column?")

    return bound


def _only_of_jsonb(left: Expr, right: Expr) -> Expr:
    raise MismatchError(f"it takes jsonb on its left, not {left.type}. Cast that side.")


def _of_arrays(function: str) -> Callable[[Expr, Expr], Expr]:
    return lambda left, right: replace(FUNCTIONS[function]([left, right]), name="?column?")


_OF_THE_ARRAY = "json_extract(json_extract({{0}}, {0}), '$[#{2}]')"
_FROM_THE_END = f"CASE WHEN json_type({{{{0}}}}, {{0}}) = 'ARRAY' THEN {_OF_THE_ARRAY} ELSE json_extract({{{{0}}}}, {{1}}) END"


def _pointer(key: str) -> str:
    return "/" + key.replace("~", "~0").replace("/", "~1")


def _behind(pointer: str) -> str:
    """Return a pointer without its last step."""
    return pointer.rpartition("/")[0] or "$"


def _path(bind: Bind, tree: exp.Expr) -> Expr:
    """Return the path of ``-> 'key'`` or ``-> 0`` as DuckDB writes it; a key may be an expression."""
    if isinstance(tree, exp.JSONPath):
        steps = tree.expressions[1:]
        if len(steps) != 1 or not isinstance(steps[0], exp.JSONPathKey | exp.JSONPathSubscript):
            raise MismatchError("the key of -> is a text or a number, such as -> 'name' or -> 0.")
        return Expr(text_literal(_step(steps[0])), VARCHAR)
    if isinstance(tree, exp.Literal) and tree.is_string:
        return Expr(text_literal(_of_key(str(tree.this))), VARCHAR)
    key = bind(tree)
    if is_integer(key.type):
        return build(VARCHAR, "CASE WHEN {0} < 0 THEN '$[#' || {0} || ']' ELSE '$[' || {0} || ']' END", key)
    return build(VARCHAR, _OF_ANY_KEY, convert(key, VARCHAR))


def _step(step: exp.JSONPathKey | exp.JSONPathSubscript) -> str:
    """Return a step of a path: a number is an index, of arrays only; any other is a key, of objects only."""
    number = str(step.this)
    if not isinstance(step, exp.JSONPathSubscript):
        return _of_key(number)
    if len(number) > 10:
        raise MismatchError(f"integer out of range: {number}.")
    return f"$[#{number}]" if number.startswith("-") else f"$[{number}]"


def _of_key(key: str) -> str:
    """Return the path to the value of a key; DuckDB takes the empty one in pointers alone."""
    return '$."' + key.replace("\\", "\\\\").replace('"', '\\"') + '"' if key else "/"


_OF_ANY_KEY = """CASE WHEN {0} = '' THEN '/' ELSE '$."' || replace(replace({0}, '\\', '\\\\'), '"', '\\"') || '"' END"""


# --- literals, operators, conditions -------------------------------------------------------------------------


def number_of(digits: str) -> Expr:
    """Return a number: an integer if it is written as one and fits, else the numeric with its digits.

    Raises:
        MismatchError: it has more than 38.
    """
    value = Decimal(digits)
    kind = type_of(value)
    if digits.removeprefix("-").isdigit():
        kind = INTEGER if -(2**31) <= int(digits) < 2**31 else BIGINT if -(2**63) <= int(digits) < 2**63 else kind
    if kind is None:
        raise MismatchError(
            f"numeric out of range: {digits} has more than {DIGITS} digits. Write {digits}::double precision if 15 will do."
        )
    places = Decimal(1).scaleb(-kind.scale)
    text = digits if kind in (INTEGER, BIGINT) else f"{value.quantize(places, context=Context(prec=2 * DIGITS)):f}"
    return Expr(f"CAST({text} AS {kind.duckdb})", kind, value=value)


def _negated(bind: Bind, tree: exp.Expr) -> Expr:
    if isinstance(tree.this, exp.Literal) and not tree.this.is_string:
        return number_of(f"-{tree.this.this}")
    return operators.negate(bind(tree.this))


def _of_two(make: Callable[[str, Expr, Expr], Expr], operator: str) -> Form:
    return lambda bind, tree: make(operator, bind(tree.this), bind(tree.expression))


_COMPARISONS: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "IS NOT DISTINCT FROM",
    exp.NullSafeNEQ: "IS DISTINCT FROM",
}


def _compared(bind: Bind, tree: exp.Expr) -> Expr:
    operator, other = _COMPARISONS[type(tree)], tree.expression
    called = str(other.this).upper() if isinstance(other, exp.Anonymous) else ""
    if called in ("SOME", "ALL") and len(other.expressions) == 1:
        other = (exp.All if called == "ALL" else exp.Any)(this=other.expressions[0])
    if isinstance(other, exp.Any | exp.All) and not isinstance(other.this, exp.Query):
        elements = other.this.this if isinstance(other.this, exp.Paren) else other.this
        return compares_any(operator, bind(tree.this), bind(elements), every=isinstance(other, exp.All))
    parts = row_values(tree.this)
    if parts is None:
        return operators.compare(operator, bind(tree.this), bind(tree.expression))
    if operator[0] in "<>" and operator != "<>":
        return rows_ordered(bind, operator, parts, other)
    is_safe = isinstance(tree, exp.NullSafeEQ | exp.NullSafeNEQ)
    equal = rows_equal(bind, parts, other, "IS NOT DISTINCT FROM" if is_safe else "=")
    return equal if isinstance(tree, exp.EQ | exp.NullSafeEQ) else operators.logical("NOT", equal)


def _case(bind: Bind, tree: exp.Expr) -> Expr:
    branches, default = tree.args["ifs"], tree.args.get("default")
    conditions = [_condition(bind, tree, branch) for branch in branches]
    results = [bind(branch.args["true"]) for branch in branches]
    results.append(bind(default) if default is not None else Expr.null())
    values = operators.same_type(*results)
    parts = [f"WHEN {{{2 * index}}} THEN {{{2 * index + 1}}}" for index in range(len(conditions))]
    template = f"CASE {' '.join(parts)} ELSE {{{2 * len(conditions)}}} END"
    paired = [each for pair in zip(conditions, values, strict=False) for each in pair]
    return build(values[0].type, f"({template})", *paired, values[-1], name="case", operator="CASE")


def _condition(bind: Bind, tree: exp.Expr, branch: exp.Expr) -> Expr:
    if tree.this is not None:
        return operators.compare("=", bind(tree.this), bind(branch.this))
    condition = bind(branch.this)
    if condition.type not in (BOOLEAN, UNKNOWN):
        raise MismatchError(f"CASE WHEN needs a boolean, not {condition.type}. Compare it with something.")
    return convert(condition, BOOLEAN)


def _if(bind: Bind, tree: exp.If) -> Expr:
    """Bind Flink's ``IF(condition, value, other)``."""
    if tree.args.get("false") is None:
        raise MismatchError("if takes a condition and two values, as in IF(a > 0, 'more', 'less').")
    return replace(_case(bind, exp.Case(ifs=[tree], default=tree.args["false"])), name="if")


_ARITHMETIC: dict[type[exp.Expr], str] = {exp.Add: "+", exp.Mul: "*", exp.Div: "/", exp.Mod: "%"}
_BITWISE: dict[type[exp.Expr], str] = {
    exp.BitwiseAnd: "&",
    exp.BitwiseOr: "|",
    exp.BitwiseXor: "#",
    exp.BitwiseLeftShift: "<<",
    exp.BitwiseRightShift: ">>",
}

FORMS: dict[type[exp.Expr], Form] = {
    exp.Literal: lambda bind, tree: Expr.of_text(tree.this) if tree.is_string else number_of(str(tree.this)),
    exp.Null: lambda bind, tree: Expr.null(),
    exp.Boolean: lambda bind, tree: Expr(str(tree.this).upper(), BOOLEAN, name="bool"),
    exp.Array: lambda bind, tree: array([bind(item) for item in tree.expressions]),
    exp.Paren: lambda bind, tree: bind(tree.this),
    exp.Neg: _negated,
    exp.Not: lambda bind, tree: operators.logical("NOT", bind(tree.this)),
    exp.And: _of_two(operators.logical, "AND"),
    exp.Or: _of_two(operators.logical, "OR"),
    exp.BitwiseNot: lambda bind, tree: operators.inverted_bits(bind(tree.this)),
    exp.DPipe: _or_of_jsonb(operators.concatenate),
    exp.Pow: lambda bind, tree: operators.power(bind(tree.this), bind(tree.expression)),
    **{kind: _of_two(operators.arithmetic, operator) for kind, operator in _ARITHMETIC.items()},
    exp.Sub: _or_of_jsonb(partial(operators.arithmetic, "-")),
    **{kind: _of_two(operators.bitwise, operator) for kind, operator in _BITWISE.items()},
    **dict.fromkeys(_COMPARISONS, _compared),
    exp.Case: _case,
    exp.If: _if,
    exp.Like: _like,
    exp.ILike: _like,
    exp.SimilarTo: lambda bind, tree: patterns.similar(bind(tree.this), bind(tree.expression)),
    exp.Escape: _escaped,
    exp.RegexpLike: _matches,
    exp.RegexpILike: _matches,
    exp.Between: _between,
    exp.Trim: _trim,
    exp.Substring: _substring,
    exp.StrPosition: lambda bind, tree: _called("strpos", bind, (tree.this, tree.args["substr"]), "position"),
    exp.Overlay: lambda bind, tree: _called(
        "overlay", bind, (tree.this, tree.expression, tree.args["from_"], tree.args.get("for_")), "overlay"
    ),
    exp.ByteString: lambda bind, tree: Expr.of_text(tree.this),
    exp.Concat: _adjacent,
    exp.Collate: _collated,
    exp.Bracket: _bracket,
    exp.ArrayContainsAll: _or_of_jsonb(_of_arrays("array_contains")),
    exp.ArrayContainedBy: _or_of_jsonb(_of_arrays("array_contained")),
    exp.ArrayOverlaps: lambda bind, tree: _called("array_overlaps", bind, (tree.this, tree.expression), "?column?"),
    exp.StartsWith: lambda bind, tree: _called("starts_with", bind, (tree.this, tree.expression), "?column?"),
    **dict.fromkeys(
        (exp.JSONBContainsTopKey, exp.JSONBContainsAnyTopKeys, exp.JSONBContainsAllTopKeys, exp.JSONBDeleteAtPath),
        _or_of_jsonb(_only_of_jsonb),
    ),
    exp.JSONExtract: _json("json_extract", JSONB),
    exp.JSONExtractScalar: _json("windowpane_jsonb_string", VARCHAR),
    exp.JSONBExtract: _json_at("json_extract", JSONB),
    exp.JSONBExtractScalar: _json_at("windowpane_jsonb_string", VARCHAR),
    exp.Extract: lambda bind, tree: replace(fields.extract(tree.this.name, bind(tree.expression)), name="extract"),
    exp.AtTimeZone: lambda bind, tree: replace(times.at_zone(bind(tree.args["zone"]), bind(tree.this)), name="timezone"),
    exp.Sqrt: lambda bind, tree: _called("sqrt", bind, (tree.this,), "sqrt"),
    exp.Cbrt: lambda bind, tree: _called("cbrt", bind, (tree.this,), "cbrt"),
}
