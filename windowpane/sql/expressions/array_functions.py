"""Functions of arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from windowpane.sql.expressions.expr import Expr, MismatchError, build, convert, counted, output_text, places, settled
from windowpane.sql.expressions.operators import (
    concatenated,
    is_element,
    is_of_jsonb,
    of_one_element_type,
    same_type,
    with_element,
)
from windowpane.sql.expressions.types import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    INTEGER,
    SMALLINT,
    UNKNOWN,
    VARCHAR,
    SqlType,
    array_of,
    dimensions,
    is_number,
    numeric,
)
from windowpane.sql.numerics.functions import constant
from windowpane.sql.scalar.sets import flattened
from windowpane.sql.scalar.signatures import Builder, builder, taking


def array(elements: Sequence[Expr]) -> Expr:
    if not elements:
        raise MismatchError("the type of an empty array is open. Write ARRAY[]::integer[].")
    values = same_type(*elements)
    kind = array_of(values[0].type)
    return build(kind, f"CAST([{places(len(values))}] AS {kind.duckdb})", *values, name="array")


def _element_of(value: Expr) -> SqlType:
    if value.type.element is None:
        raise MismatchError(f"it takes an array, not {value.type}.")
    return value.type.element


def _compared_element_of(value: Expr) -> SqlType:
    """Return the type of an array's elements, which a function compares as DuckDB does."""
    element = _element_of(value)
    if is_of_jsonb(element):
        raise MismatchError(f"it compares no {element}. Compare elements of unnest(...), or cast them.")
    return element


def _compared(value: Expr, *elements: Expr) -> tuple[Expr, ...]:
    """Return an array and elements that a function compares with its own, all of one element type."""
    _compared_element_of(value)
    return of_one_element_type(value, *elements)


@builder
def _length(arguments: Sequence[Expr], template: str, least: int, most: int) -> Expr:
    """Return the length of an array, or a bound of it; a dimension behind it is 1."""
    counted(arguments, least, most)
    _element_of(arguments[0])
    if len(arguments) > 1 and constant(arguments[1]) != 1:
        raise MismatchError("it takes the first dimension, 1.")
    return build(INTEGER, template, arguments[0])


@builder
def _of_array(arguments: Sequence[Expr], template: str) -> Expr:
    """Return a function of one array, whose result is one of its elements."""
    counted(arguments, 1, 1)
    return build(_compared_element_of(arguments[0]), template, arguments[0])


@builder
def _same_array(arguments: Sequence[Expr], template: str, element_of: Callable[[Expr], SqlType] = _compared_element_of) -> Expr:
    counted(arguments, 1, 1)
    element_of(arguments[0])
    return build(arguments[0].type, template, arguments[0])


@builder
def _with_element(arguments: Sequence[Expr], template: str, result: SqlType | None = None) -> Expr:
    """Return a function of an array and an element; without a type, the result is such an array."""
    counted(arguments, 2, 2)
    value, element = _compared(*arguments)
    return build(result or value.type, template, value, element)


@builder
def _extended(arguments: Sequence[Expr], *, prepends: bool) -> Expr:
    counted(arguments, 2, 2)
    element, value = arguments if prepends else reversed(arguments)
    if value.type == UNKNOWN and element.type != UNKNOWN:
        value = convert(value, array_of(element.type))
    _element_of(value)
    return with_element(value, element, prepends=prepends)


@taking
def _joined(one: Expr, other: Expr) -> Expr:
    if one.type.element is not None and other.type.element is not None:
        for value, element, prepends in ((one, other, False), (other, one, True)):
            if is_element(element.type, value.type):
                return with_element(value, element, prepends=prepends)
    one, other = same_type(one, other)
    _element_of(one)
    return concatenated(one, other)


@taking
def _to_string(value: Expr, between: Expr, null: Expr | None = None) -> Expr:
    value = flattened(value)
    text = output_text(Expr.parameter("element", _element_of(value)))
    signs = [convert(settled(sign), VARCHAR) for sign in (between, null) if sign is not None]
    known = _text_between("[{0} FOR element IN {1} IF element IS NOT NULL]", signs[0])
    template = f"CASE WHEN {{2}} IS NOT NULL THEN {known} END"
    if len(signs) > 1:
        shown = _text_between("[coalesce({0}, {3}) FOR element IN {1}]", signs[0])
        template = f"CASE WHEN {{2}} IS NULL THEN NULL WHEN {{3}} IS NULL THEN {known} ELSE {shown} END"
    return replace(build(VARCHAR, template, text, value, *signs), binds=("element",))


def _text_between(texts: str, sign: Expr) -> str:
    """Return a template that joins texts with ``{2}``, which DuckDB's own function knows as a constant only."""
    if sign.literal is not None:
        return f"array_to_string({texts}, {{2}})"
    return f"CASE WHEN len({texts}) = 0 THEN '' ELSE list_reduce({texts}, lambda one, other: one || {{2}} || other) END"


@taking
def _split(text: Expr, sign: Expr, null: Expr | None = None) -> Expr:
    """Return ``string_to_array(text, sign[, text of NULL])``: without a sign each character is an element."""
    operands = (convert(settled(argument), VARCHAR) for argument in (text, sign, null or Expr.null()))
    template = (
        "list_transform(CASE WHEN {0} IS NULL THEN NULL WHEN {0} = '' THEN [] "
        "WHEN {1} IS NULL THEN regexp_extract_all({0}, '.', 0, 's') WHEN {1} = '' THEN [{0}] "
        "ELSE string_split({0}, {1}) END, lambda part: nullif(part, {2}))"
    )
    return build(array_of(VARCHAR), template, *operands)


@builder
def _of_elements(arguments: Sequence[Expr], template: str) -> Expr:
    """Return an aggregate of the numbers in an array, of the elements' type in SQL's sense: a sum of ints is a bigint."""
    counted(arguments, 1, 1)
    kind = _element_of(arguments[0])
    if not is_number(kind):
        raise MismatchError(f"it takes an array of numbers, not {arguments[0].type}.")
    result = BIGINT if kind in (SMALLINT, INTEGER) else numeric(0) if kind == BIGINT else kind
    return build(result, f"CAST({template} AS {result.duckdb})", arguments[0])


@taking
def _dimensions(value: Expr) -> Expr:
    """Return how deep the type of an array is, whatever it holds: RisingWave's rule; PostgreSQL says NULL of no elements."""
    _element_of(value)
    return build(INTEGER, f"CAST({dimensions(value.type)} AS INTEGER)", value)


@taking
def _replaced(value: Expr, old: Expr, new: Expr) -> Expr:
    value, old, new = _compared(value, old, new)
    template = "list_transform({0}, lambda element: CASE WHEN element IS NOT DISTINCT FROM {1} THEN {2} ELSE element END)"
    return build(value.type, template, value, old, new)


@taking
def _positions(value: Expr, element: Expr) -> Expr:
    value, element = _compared(value, element)
    template = "[CAST(place AS INTEGER) FOR place IN range(1, len({0}) + 1) IF {0}[place] IS NOT DISTINCT FROM {1}]"
    return build(array_of(INTEGER), template, value, element)


@builder
def _of_two(arguments: Sequence[Expr], condition: str) -> Expr:
    """Return a condition on the elements of two arrays, of which those that are NULL equal none."""
    counted(arguments, 2, 2)
    one, other = same_type(*arguments)
    _compared_element_of(one)
    return build(BOOLEAN, condition, one, other)


@builder
def _of_counter(arguments: Sequence[Expr], template: str) -> Expr:
    """Return a function of Timescale's that takes what ``counter_agg`` gives."""
    counted(arguments, 1, 1)
    if arguments[0].type != array_of(DOUBLE):
        raise MismatchError(f"it takes what counter_agg(time, value) gives, not {arguments[0].type}.")
    return build(DOUBLE, template, arguments[0])


ARRAY_FUNCTIONS: dict[str, Builder] = {
    "delta": _of_counter("{0}[1]"),
    "time_delta": _of_counter("{0}[2]"),
    "rate": _of_counter("({0}[1] / {0}[2])"),
    "array_length": _length("CAST(nullif(len({0}), 0) AS INTEGER)", 1, 2),
    "cardinality": lambda arguments: _length("CAST(len({0}) AS INTEGER)", 1, 1)([flattened(argument) for argument in arguments]),
    "array_append": _extended(prepends=False),
    "array_prepend": _extended(prepends=True),
    "array_cat": _joined,
    "array_position": _with_element("CAST(list_position({0}, {1}) AS INTEGER)", INTEGER),
    "array_remove": _with_element("list_filter({0}, lambda element: element IS DISTINCT FROM {1})"),
    "array_distinct": _same_array("list_distinct({0})"),
    "array_sort": _same_array("list_sort({0}, 'ASC', 'NULLS LAST')"),
    "array_min": _of_array("list_min({0})"),
    "array_max": _of_array("list_max({0})"),
    "array_to_string": _to_string,
    "array_join": _to_string,
    "string_to_array": _split,
    "array_reverse": _same_array("list_reverse({0})", _element_of),
    "array_sum": _of_elements("list_sum({0})"),
    "array_ndims": _dimensions,
    "array_lower": _length("CAST(CASE WHEN len({0}) > 0 THEN 1 END AS INTEGER)", 2, 2),
    "array_upper": _length("CAST(nullif(len({0}), 0) AS INTEGER)", 2, 2),
    "array_replace": _replaced,
    "array_positions": _positions,
    "array_contains": _of_two("(list_has_all({0}, {1}) AND len({1}) = list_count({1}))"),
    "array_contained": _of_two("(list_has_all({1}, {0}) AND len({0}) = list_count({0}))"),
    "array_overlaps": _of_two("list_has_any({0}, {1})"),
}
