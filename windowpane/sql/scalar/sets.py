"""Functions that return sets of rows, as lists: ``unnest``, ``generate_series`` and their kin. A NULL argument gives no rows."""

from __future__ import annotations

from collections.abc import Sequence

from windowpane.sql.expressions.expr import Expr, MismatchError, build, convert, counted
from windowpane.sql.expressions.operators import same_type
from windowpane.sql.expressions.types import INTEGER, INTERVAL, JSONB, UNKNOWN, VARCHAR, SqlType, array_of, is_instant, is_integer
from windowpane.sql.scalar.patterns import every_match, parts_between
from windowpane.sql.scalar.signatures import Builder


def flattened(value: Expr) -> Expr:
    """Return the elements of an array, those of the arrays in it too, as one array.

    Raises:
        MismatchError: it is no array.
    """
    if value.type.element is None:
        raise MismatchError(f"it takes an array, not {value.type}.")
    while value.type.element is not None and value.type.element.element is not None:
        value = build(value.type.element, "flatten({0})", value)
    return value


def _unnest(arguments: Sequence[Expr]) -> Expr:
    counted(arguments, 1, 1)
    return flattened(arguments[0])


def _series(function: str) -> Builder:
    """Return ``generate_series``, or ``range``, which ends before its last value."""

    def bind(arguments: Sequence[Expr]) -> Expr:
        counted(arguments, 2, 3)
        kind, values = _bounds(arguments)
        zero = "CAST(0 AS BIGINT)" if is_integer(kind) else "to_months(0)"
        listed = f"{function}({', '.join(f'{{{index}}}' for index in range(len(values)))})"
        if len(values) < 3:
            return build(array_of(kind), listed, *values)
        wrong = f"CAST(windowpane_refused('step size cannot equal zero') AS {kind.duckdb}[])"
        return build(array_of(kind), f"CASE WHEN {{2}} = {zero} THEN {wrong} ELSE {listed} END", *values)

    return bind


def _bounds(arguments: Sequence[Expr]) -> tuple[SqlType, list[Expr]]:
    first, last = same_type(*arguments[:2])
    if is_integer(first.type):
        values = list(same_type(*arguments))
        if not is_integer(values[0].type):
            raise MismatchError(f"it takes whole numbers, not {values[0].type}.")
        return values[0].type, values
    if not is_instant(first.type) or len(arguments) < 3:
        raise MismatchError(f"it takes whole numbers, or two times and an interval, not {first.type}.")
    return first.type, [first, last, convert(arguments[2], INTERVAL)]


def _subscripts(arguments: Sequence[Expr]) -> Expr:
    counted(arguments, 2, 2)
    if arguments[0].type.element is None or arguments[1].sql != "CAST(1 AS INTEGER)":
        raise MismatchError("it takes an array and its first dimension, 1.")
    return build(array_of(INTEGER), "CAST(range(1, len({0}) + 1) AS INTEGER[])", arguments[0])


def _of_json(template: str, kind: SqlType, wanted: str) -> Builder:
    def bind(arguments: Sequence[Expr]) -> Expr:
        counted(arguments, 1, 1)
        value = arguments[0]
        if value.type not in (JSONB, UNKNOWN):
            raise MismatchError(f"it takes jsonb, not {value.type}. Cast the argument.")
        wrong = f"windowpane_refused('cannot extract elements from what is no {wanted.lower()}')"
        checked = f"CASE WHEN json_type({{0}}) = '{wanted}' THEN {template} WHEN {{0}} IS NOT NULL THEN "
        return build(array_of(kind), f"{checked}CAST({wrong} AS {kind.duckdb}[]) END", convert(value, JSONB))

    return bind


_TEXTS = "list_transform(range(len(json_extract({0}, '$[*]'))), lambda place: windowpane_jsonb_string({0}, '$[' || place || ']'))"

SETS: dict[str, Builder] = {
    "unnest": _unnest,
    "generate_series": _series("generate_series"),
    "range": _series("range"),
    "generate_subscripts": _subscripts,
    "regexp_matches": every_match,
    "regexp_split_to_table": parts_between,
    "jsonb_array_elements": _of_json("CAST(json_extract({0}, '$[*]') AS JSON[])", JSONB, "ARRAY"),
    "jsonb_array_elements_text": _of_json(_TEXTS, VARCHAR, "ARRAY"),
    "jsonb_object_keys": _of_json("json_keys({0})", VARCHAR, "OBJECT"),
}
"""Each as the list of what it returns, by name."""
