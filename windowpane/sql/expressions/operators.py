"""Operators of SQL expressions: which types they take, what they give, and how DuckDB computes it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import reduce

from windowpane.sql.embedded.macros import NOW
from windowpane.sql.expressions.expr import Expr, MismatchError, as_text, build, convert, each_of, element_type, rising, settled
from windowpane.sql.expressions.types import (
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    INTERVAL,
    JSONB,
    REAL,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    UNKNOWN,
    VARCHAR,
    SqlType,
    array_of,
    common,
    comparison_type,
    dimensions,
    is_float,
    is_instant,
    is_integer,
    is_number,
    is_text,
)
from windowpane.sql.expressions.written import has_spellings, in_one_spelling
from windowpane.sql.numerics.arithmetic import comparable
from windowpane.sql.numerics.arithmetic import computed as arithmetic_of_numerics
from windowpane.sql.numerics.conversions import literal_type
from windowpane.sql.numerics.functions import power as numeric_power
from windowpane.sql.numerics.functions import takes_numerics
from windowpane.sql.values import zone
from windowpane.sql.values.text_values import text_literal
from windowpane.windowing.intervals import Interval

MIRRORED = {">": "<", ">=": "<=", "<": ">", "<=": ">=", "=": "="}
"""Comparisons, and what they are with their sides swapped."""
_BITS = {"smallint": 16, "integer": 32, "bigint": 64}
_NAMED = {"+": "add", "-": "subtract", "*": "multiply"}
"""Arithmetic with a constant by its other name: of ``x + 7 = 9`` DuckDB makes ``x = 2``, and no error."""


def same_type(*operands: Expr) -> tuple[Expr, ...]:
    """Return operands converted to their common type."""
    kind = common_type(operands)
    return tuple(convert(operand, kind) for operand in operands)


def comparables(*operands: Expr) -> tuple[Expr, ...]:
    """Return operands converted to their common type for a comparison, where none of them is too large."""
    kind = common_type(operands, comparison_type)
    return tuple(comparable(operand, kind) if kind.name == "numeric" else convert(operand, kind) for operand in operands)


def common_type(operands: Sequence[Expr], shared_type: Callable[[SqlType, SqlType], SqlType | None] = common) -> SqlType:
    """Return the type that operands have in common; a literal that becomes a numeric keeps all its places (PostgreSQL)."""
    kind = _shared([operand.type for operand in operands], shared_type)
    if kind.name == "numeric":
        return _shared([kind, *(_literal_numeric(each, kind) for each in operands if each.type == UNKNOWN)], shared_type)
    return VARCHAR if kind == UNKNOWN else kind


def _shared(types: Sequence[SqlType], shared_type: Callable[[SqlType, SqlType], SqlType | None]) -> SqlType:
    kind = UNKNOWN
    for each in types:
        shared = shared_type(kind, each)
        if shared is None:
            raise MismatchError(f"{kind} and {each} have no common type. Cast one of them.")
        kind = shared
    return kind


def _literal_numeric(operand: Expr, other: SqlType) -> SqlType:
    """Return the numeric that a literal of open type is beside another one."""
    return (None if operand.literal is None else literal_type(operand.literal)) or other


def compare(operator: str, left: Expr, right: Expr) -> Expr:
    try:
        common_type((left, right), comparison_type)
    except MismatchError:
        raise MismatchError(f"operator does not exist: {left.type} {operator} {right.type}. Cast one side.") from None
    one, other = comparables(left, right)
    if is_of_jsonb(one.type):
        one, other = (comparable_jsonb(operator, side) for side in (one, other))
    return combined(operator, one, other)


def combined(operator: str, *parts: Expr) -> Expr:
    return reduce(lambda one, other: build(BOOLEAN, f"({{0}} {operator} {{1}})", one, other, operator=operator), parts)


def is_of_jsonb(kind: SqlType) -> bool:
    return kind == JSONB or (kind.element is not None and is_of_jsonb(kind.element))


def comparable_jsonb(operator: str, value: Expr) -> Expr:
    """Return what two values of jsonb, or arrays of it, are compared by."""
    function = "jsonb_rank" if operator[0] in "<>" and operator != "<>" else "jsonb_key"
    return _each_jsonb(value, VARCHAR, f"windowpane_{function}(CAST({{0}} AS VARCHAR))")


def _each_jsonb(value: Expr, kind: SqlType, template: str) -> Expr:
    if value.type.element is None:
        return build(kind, template, value, name=value.name)
    name = f"jsonb_{str(value.type).count('[')}"
    element = _each_jsonb(Expr.parameter(name, value.type.element), kind, template)
    return each_of(value, element.type, lambda parameter: element, name)


def by_value(value: Expr) -> Expr:
    """Return an expression that is the same for equal values: 1 and 1.0 of jsonb, 1 day and 24 hours of interval, 0 and -0."""
    if has_spellings(value.type):
        return build(value.type, in_one_spelling("{0}", value.type), value, name=value.name)
    if not is_of_jsonb(value.type):
        return value
    return _each_jsonb(value, JSONB, "CAST(windowpane_jsonb_key(CAST({0} AS VARCHAR)) AS JSON)")


def key_value(value: Expr) -> Expr:
    """Return what rows are matched by where it is not shown, as in a join: of jsonb a text of the value."""
    return comparable_jsonb("=", value) if is_of_jsonb(value.type) else value


def partition_value(value: Expr) -> Expr:
    """Return what rows are put together by where it is not shown.

    It is the same for equal values: a condition on it drops whole partitions.
    """
    return key_value(value) if is_of_jsonb(value.type) else by_value(value)


def interval_length(value: Expr) -> Expr:
    """Return a text that is the same for equal intervals."""
    return build(VARCHAR, "CAST(windowpane_interval_length({0}) AS VARCHAR)", value)


def sortable(value: Expr) -> Expr:
    return comparable_jsonb("<", value) if is_of_jsonb(value.type) else value


def arithmetic(operator: str, left: Expr, right: Expr) -> Expr:
    left, right = _settle_operands(operator, left, right)
    if is_number(left.type) and is_number(right.type):
        return _numbers(operator, left, right)
    found = _times(operator, left, right)
    if found is None:
        raise MismatchError(f"operator does not exist: {left.type} {operator} {right.type}. Cast one side.")
    return found


def _settle_operands(operator: str, left: Expr, right: Expr) -> tuple[Expr, Expr]:
    """A literal of open type takes the type of the other side; beside a time it is an interval."""
    if left.type == UNKNOWN:
        return convert(left, _partner(operator, left, right.type, is_left=True)), right
    if right.type == UNKNOWN:
        return left, convert(right, _partner(operator, right, left.type, is_left=False))
    return left, right


def _partner(operator: str, literal: Expr, other: SqlType, *, is_left: bool) -> SqlType:
    if other.name == "numeric":
        return _literal_numeric(literal, other)
    if is_instant(other) and operator == "+":
        return INTERVAL
    if is_instant(other) and operator == "-":
        return other
    if other == INTERVAL and operator in ("+", "-"):
        return INTERVAL if operator == "+" or not is_left else TIMESTAMP
    if other == INTERVAL:
        return DOUBLE
    return INTEGER if other == UNKNOWN else other


def _numbers(operator: str, left: Expr, right: Expr) -> Expr:
    if is_float(left.type) or is_float(right.type):
        if operator == "%":
            raise MismatchError(f"operator does not exist: {left.type} % {right.type}. Cast both sides to numeric.")
        kind = REAL if left.type == right.type == REAL else DOUBLE
        one, other = convert(left, kind), convert(right, kind)
        return build(kind, f"({{0}} {operator} {{1}})", one, other)
    if is_integer(left.type) and is_integer(right.type):
        one, other = same_type(left, right)
        if operator in _NAMED and bool(one.columns) != bool(other.columns):
            return build(one.type, f"{_NAMED[operator]}({{0}}, {{1}})", one, other)
        return build(one.type, f"({{0}} {'//' if operator == '/' else operator} {{1}})", one, other)
    return arithmetic_of_numerics(operator, left, right)


def _times(operator: str, left: Expr, right: Expr) -> Expr | None:
    one, other = left.type, right.type
    if operator in ("+", "-"):
        return _shifted(operator, left, right) or _difference(operator, left, right)
    if operator == "*" and one == INTERVAL and is_number(other):
        return build(INTERVAL, "windowpane_scale_interval({0}, CAST({1} AS DOUBLE))", left, right)
    if operator == "*" and other == INTERVAL and is_number(one):
        return build(INTERVAL, "windowpane_scale_interval({1}, CAST({0} AS DOUBLE))", left, right)
    if operator == "/" and one == INTERVAL and is_number(other):
        return build(INTERVAL, "windowpane_divide_interval({0}, CAST({1} AS DOUBLE))", left, right)
    return None


def _shifted(operator: str, left: Expr, right: Expr) -> Expr | None:
    """Return a time moved by an interval (a date by days)."""
    one, other = left.type, right.type
    if operator == "+" and one == INTERVAL and (is_instant(other) or other == TIME):
        return _shifted(operator, right, left)
    if operator == "+" and is_integer(one) and other == DATE:
        return _shifted(operator, right, left)
    if other == INTERVAL and one in (DATE, TIMESTAMP, TIMESTAMPTZ, TIME, INTERVAL):
        steady = keeps_order(right) and not right.columns
        if one == TIMESTAMPTZ and not (steady and zone.current() == zone.UTC):  # DuckDB moves back by hours before months
            return _shifted_there(operator, left, right)
        kind = TIMESTAMP if one == DATE else one
        moved = build(kind, f"({{0}} {operator} {{1}})", left, right, operator=operator)
        return rising(moved, left) if steady else moved
    if one == DATE and is_integer(other):
        return build(DATE, f"windowpane_date({{0}} {operator} CAST({{1}} AS INTEGER))", left, right)
    if one == DATE and other == TIME and operator == "+":
        return build(TIMESTAMP, "({0} + {1})", left, right)
    return None


def keeps_order(interval: Expr) -> bool:
    """Whether times moved by a constant interval keep their order: by months they do not (January 30 and 31 meet in February)."""
    return all(not each.months for each in _written(interval)) and any(_written(interval))


def _written(expr: Expr) -> Iterator[Interval]:
    """Yield the intervals that are written out in an expression."""
    if isinstance(expr.value, Interval):
        yield expr.value
    for part in expr.parts:
        yield from _written(part)


def _shifted_there(operator: str, left: Expr, right: Expr) -> Expr:
    """Return an instant moved by an interval: months and days on the calendar of the session's zone, the rest as it passes."""
    shift = f"windowpane_shift({{0}}, {'(-{1})' if operator == '-' else '{1}'}, {text_literal(zone.current())})"
    moved = build(TIMESTAMPTZ, shift, left, right, operator=operator if zone.current() == zone.UTC else "")
    return rising(moved, left) if left.rises_with == NOW and not right.columns and _elapses(right) else moved


def _elapses(interval: Expr) -> bool:
    """Whether a constant interval has neither months nor days, so that instants moved by it keep their order in every zone."""
    return all(not (each.months or each.days) for each in _written(interval)) and any(_written(interval))


def _difference(operator: str, left: Expr, right: Expr) -> Expr | None:
    one, other = left.type, right.type
    if operator == "-" and one == other == DATE:
        return build(INTEGER, "windowpane_days_between({0}, {1})", left, right)
    if operator == "-" and is_instant(one) and is_instant(other):
        first, second = same_type(left, right)
        return build(INTERVAL, "({0} - {1})", first, second)
    if operator == "-" and one == other == TIME:
        return build(INTERVAL, "to_microseconds(epoch_us({0}) - epoch_us({1}))", left, right)
    return None


def power(left: Expr, right: Expr) -> Expr:
    """Return ``left ^ right``: a numeric of numerics, else a double."""
    for operand in (left, right):
        if not (is_number(operand.type) or operand.type == UNKNOWN):
            raise MismatchError(f"operator does not exist: {left.type} ^ {right.type}. It takes numbers.")
    if takes_numerics((left, right)):
        return numeric_power(left, right)
    return build(DOUBLE, "windowpane_pow({0}, {1})", convert(left, DOUBLE), convert(right, DOUBLE))


def negate(operand: Expr) -> Expr:
    if not (is_number(operand.type) or operand.type == INTERVAL):
        raise MismatchError(f"operator does not exist: - {operand.type}.")
    if is_integer(operand.type):  # DuckDB gives constants the next wider type
        return build(operand.type, f"CAST((-{{0}}) AS {operand.type.duckdb})", operand)
    return build(operand.type, "(-{0})", operand)


def inverted_bits(operand: Expr) -> Expr:
    if not is_integer(operand.type):
        raise MismatchError(f"operator does not exist: ~ {operand.type}. It takes an integer.")
    return build(operand.type, f"CAST((~{{0}}) AS {operand.type.duckdb})", operand)


def bitwise(operator: str, left: Expr, right: Expr) -> Expr:
    if not (is_integer(left.type) and is_integer(right.type)):
        raise MismatchError(f"operator does not exist: {left.type} {operator} {right.type}. It takes integers.")
    kind = left.type if operator in ("<<", ">>") else same_type(left, right)[0].type
    if operator == "#":
        return build(kind, f"CAST(xor({{0}}, {{1}}) AS {kind.duckdb})", left, right)
    if operator in ("<<", ">>"):
        function = "shift_left" if operator == "<<" else "shift_right"
        return build(kind, f"CAST(windowpane_{function}({{0}}, {{1}}, {_BITS[kind.name]}) AS {kind.duckdb})", left, right)
    return build(kind, f"CAST(({{0}} {operator} {{1}}) AS {kind.duckdb})", left, right)


def concatenate(left: Expr, right: Expr) -> Expr:
    if left.type.element is not None or right.type.element is not None:
        return _joined_arrays(left, right)
    if not (is_text(left.type) or is_text(right.type)):
        raise MismatchError(f"operator does not exist: {left.type} || {right.type}. One side must be text.")
    return build(VARCHAR, "({0} || {1})", as_text(settled(left)), as_text(settled(right)))


def _joined_arrays(left: Expr, right: Expr) -> Expr:
    for one, other, prepends in ((left, right, False), (right, left, True)):
        if one.type.element is not None and (other.type.element is None or is_element(other.type, one.type)):
            if other.type == UNKNOWN and (other.literal is None or other.literal.strip().startswith("{")):
                break
            return with_element(one, other, prepends=prepends)
    return concatenated(*same_type(left, right))


def concatenated(one: Expr, other: Expr) -> Expr:
    """Return an array with the elements of another behind its own: one that is NULL has none, and both are NULL together."""
    return build(one.type, "CASE WHEN {0} IS NOT NULL OR {1} IS NOT NULL THEN list_concat({0}, {1}) END", one, other)


def is_element(kind: SqlType, arrays: SqlType) -> bool:
    """Whether values of a type, an array itself, can be elements of arrays that have one more dimension."""
    return dimensions(arrays) == dimensions(kind) + 1


def of_one_element_type(value: Expr, *elements: Expr) -> tuple[Expr, ...]:
    """Return an array and elements for it as the type that all of them convert to: beside 1.5 an array of integers is numeric."""
    kind = element_type(value)
    for element in elements:
        try:
            kind = common_type((Expr.parameter("element", kind), element))
        except MismatchError:
            raise MismatchError(f"{value.type} takes no element of type {element.type}. Cast one of them.") from None
    return convert(value, array_of(kind)), *(convert(element, kind) for element in elements)


def with_element(value: Expr, element: Expr, *, prepends: bool) -> Expr:
    """Return an array with an element behind it, or before it; the element type is what both convert to."""
    array, item = of_one_element_type(value, element)
    added = "list_prepend({1}, {0})" if prepends else "list_append({0}, {1})"
    return build(array.type, added, array, item)


def logical(operator: str, *operands: Expr) -> Expr:
    for operand in operands:
        if operand.type not in (BOOLEAN, UNKNOWN):
            raise MismatchError(f"{operator} takes boolean, not {operand.type}. Compare it with something.")
    values = [convert(operand, BOOLEAN) for operand in operands]
    if operator == "NOT":
        return build(BOOLEAN, "(NOT {0})", *values, operator="NOT")
    return combined(operator, *values)
