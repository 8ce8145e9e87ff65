"""Functions of arrays and of jsonb."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from windowpane.sql.expr import Expr, MismatchError, as_text, build, convert, settled
from windowpane.sql.operators import same_type
from windowpane.sql.types import INTEGER, JSONB, VARCHAR, SqlType, array_of

Builder = Callable[[Sequence[Expr]], Expr]


def array(elements: Sequence[Expr]) -> Expr:
    """Return ``ARRAY[...]``."""
    values = same_type(*elements) if elements else ()
    kind = array_of(values[0].type if values else VARCHAR)
    listed = ", ".join(f"{{{index}}}" for index in range(len(values)))
    return build(kind, f"CAST([{listed}] AS {kind.duckdb})", *values, name="array")


def _element_of(value: Expr) -> SqlType:
    if value.type.element is None:
        raise MismatchError(f"it takes an array, not {value.type}.")
    return value.type.element


def _counted(arguments: Sequence[Expr], least: int, most: int) -> None:
    if not least <= len(arguments) <= most:
        wanted = str(least) if least == most else f"{least} to {most}"
        raise MismatchError(f"it takes {wanted} arguments, not {len(arguments)}.")


def _length(template: str, most: int) -> Builder:
    """Return the length of an array; a dimension behind it is 1."""

    def bind(arguments: Sequence[Expr]) -> Expr:
        _counted(arguments, 1, most)
        _element_of(arguments[0])
        if len(arguments) > 1 and arguments[1].sql != "CAST(1 AS INTEGER)":
            raise MismatchError("it takes the first dimension, 1.")
        return build(INTEGER, template, arguments[0])

    return bind


def _of_array(template: str, result: SqlType | None = None) -> Builder:
    """Return a function of one array; without a type, the result is one of its elements."""

    def bind(arguments: Sequence[Expr]) -> Expr:
        _counted(arguments, 1, 1)
        return build(result or _element_of(arguments[0]), template, arguments[0])

    return bind


def _same_array(template: str) -> Builder:
    def bind(arguments: Sequence[Expr]) -> Expr:
        _counted(arguments, 1, 1)
        _element_of(arguments[0])
        return build(arguments[0].type, template, arguments[0])

    return bind


def _with_element(template: str, result: SqlType | None = None, *, array_first: bool = True) -> Builder:
    """Return a function of an array and an element; without a type, the result is such an array."""

    def bind(arguments: Sequence[Expr]) -> Expr:
        _counted(arguments, 2, 2)
        value, element = arguments if array_first else reversed(arguments)
        return build(result or value.type, template, value, convert(element, _element_of(value)))

    return bind


def _joined(arguments: Sequence[Expr]) -> Expr:
    _counted(arguments, 2, 2)
    one, other = same_type(*arguments)
    _element_of(one)
    return build(one.type, "list_concat({0}, {1})", one, other)


def _to_string(arguments: Sequence[Expr]) -> Expr:
    _counted(arguments, 2, 2)
    text = as_text(Expr("element", _element_of(arguments[0]))).sql.replace("{", "{{").replace("}", "}}")
    return build(
        VARCHAR,
        f"array_to_string([{text} FOR element IN {{0}} IF element IS NOT NULL], {{1}})",
        arguments[0],
        convert(settled(arguments[1]), VARCHAR),
    )


def _of_json(template: str, result: SqlType) -> Builder:
    def bind(arguments: Sequence[Expr]) -> Expr:
        _counted(arguments, 1, 1)
        if arguments[0].type != JSONB:
            raise MismatchError(f"it takes jsonb, not {arguments[0].type}. Cast the argument.")
        return build(result, template, arguments[0])

    return bind


_JSON_TYPES = (
    "CASE WHEN json_type({0}) IN ('UBIGINT', 'BIGINT', 'DOUBLE', 'HUGEINT') THEN 'number' "
    "WHEN json_type({0}) = 'VARCHAR' THEN 'string' ELSE lower(json_type({0})) END"
)

ARRAY_FUNCTIONS: dict[str, Builder] = {
    "array_length": _length("CAST(nullif(len({0}), 0) AS INTEGER)", 2),
    "cardinality": _length("CAST(len({0}) AS INTEGER)", 1),
    "array_append": _with_element("list_append({0}, {1})"),
    "array_prepend": _with_element("list_prepend({1}, {0})", array_first=False),
    "array_cat": _joined,
    "array_position": _with_element("CAST(list_position({0}, {1}) AS INTEGER)", INTEGER),
    "array_remove": _with_element("list_filter({0}, lambda element: element IS DISTINCT FROM {1})"),
    "array_distinct": _same_array("list_distinct({0})"),
    "array_sort": _same_array("list_sort({0}, 'ASC', 'NULLS LAST')"),
    "array_min": _of_array("list_min({0})"),
    "array_max": _of_array("list_max({0})"),
    "array_to_string": _to_string,
    "jsonb_typeof": _of_json(_JSON_TYPES, VARCHAR),
    "jsonb_array_length": _of_json("CAST(json_array_length({0}) AS INTEGER)", INTEGER),
}
