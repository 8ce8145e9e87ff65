"""Functions that return sets of rows, as lists: ``unnest``, ``generate_series`` and their kin. A NULL argument gives no rows."""

from __future__ import annotations

from collections.abc import Sequence

from windowpane.sql.expressions.expr import Expr, MismatchError, build, convert, counted
from windowpane.sql.expressions.operators import same_type
from windowpane.sql.expressions.types import (
    DATE,
    INTERVAL,
    JSONB,
    TIMESTAMPTZ,
    UNKNOWN,
    VARCHAR,
    SqlType,
    array_of,
    is_instant,
    is_integer,
)
from windowpane.sql.scalar.macros import in_room, refused
from windowpane.sql.scalar.patterns import every_match, parts_between
from windowpane.sql.scalar.signatures import Builder, builder
from windowpane.sql.values import zone
from windowpane.sql.values.text_values import text_literal

_BYTES = 64
"""Bytes of a value of a series: DuckDB makes the list, one as long of the places, and counts it; measured, twice as many."""
_MOST = 2**50
"""Any number of bytes that is far too many; those of all rows that are computed together fit into a bigint."""
_STEP = "(windowpane_interval_length({2}) * 28 // 30)"
"""Microseconds of a step, or less: a month may have 28 days."""
_NO_MONTHS = "windowpane_interval_months({2}) = 0"
_NO_STEP = refused("'step size cannot equal zero'")
_ENDLESS = refused("'a series of more than 4611686018427387904 values is not computed'")


def flattened(value: Expr) -> Expr:
    """Return the elements of an array, those of the arrays in it too, as one array."""
    if value.type.element is None:
        raise MismatchError(f"it takes an array, not {value.type}.")
    while value.type.element is not None and value.type.element.element is not None:
        value = build(value.type.element, "flatten({0})", value)
    return value


def _unnest(arguments: Sequence[Expr]) -> Expr:
    counted(arguments, 1, 1)
    return flattened(arguments[0])


@builder
def _series(arguments: Sequence[Expr], function: str) -> Expr:
    """Return ``generate_series``, or ``range``, which ends before its last value."""
    counted(arguments, 2, 3)
    kind, values = _bounds(arguments)
    zero = "CAST(0 AS BIGINT)" if is_integer(kind) else "to_months(0)"
    last = f"CASE WHEN {in_room(_size(kind, len(values)))} THEN {{1}} END"
    listed = f"{function}({', '.join(['{0}', last, '{2}'][: len(values)])})"
    if kind == TIMESTAMPTZ:
        elapses = _NO_MONTHS if zone.current() == zone.UTC else f"{_NO_MONTHS} AND datepart('day', {{2}}) = 0"
        stepped = _by_the_calendar(last, "=" if function == "generate_series" else "")
        listed = f"CASE WHEN {elapses} THEN {listed} ELSE {stepped} END"
    if len(values) < 3:
        return build(array_of(kind), listed, *values)
    wrong = f"CAST({_NO_STEP} AS {kind.duckdb}[])"
    return build(array_of(kind), f"CASE WHEN {{2}} = {zero} THEN {wrong} ELSE {listed} END", *values)


def _by_the_calendar(last: str, equal: str) -> str:
    """Return a series whose steps have months or days of the session's zone: each value is the one before, moved (PostgreSQL)."""
    places = f"range(CAST((epoch_us({last}) - epoch_us({{0}})) // nullif({_STEP}, 0) AS BIGINT) + 2)"
    shifted = f"windowpane_shift(made[-1], {{2}}, {text_literal(zone.current())})"
    made = f"list_reduce(list_transform({places}, lambda place: [{{0}}]), lambda made, place: list_append(made, {shifted}))"
    is_in = f"CASE WHEN {_STEP} > 0 THEN moment <{equal} {{1}} ELSE moment >{equal} {{1}} END"
    return f"list_filter({made}, lambda moment: {is_in})"


def _size(kind: SqlType, count: int) -> str:
    """Return the bytes of a series as a template: none, or less, of one in the wrong direction, which has no values."""
    if is_integer(kind):
        return _limited(f"{_BYTES} * ((CAST({{1}} AS HUGEINT) - {{0}}) // {'nullif({2}, 0)' if count > 2 else '1'})")
    size = _limited(f"{_BYTES} * ((CAST(epoch_us({{1}}) AS HUGEINT) - epoch_us({{0}})) // nullif({_STEP}, 0))")
    return f"CASE WHEN NOT isfinite({{0}}) OR NOT isfinite({{1}}) THEN {_MOST} ELSE {size} END"


def _limited(size: str) -> str:
    return f"CASE WHEN {size} > {_MOST} THEN {_MOST} ELSE {size} END"


def constant_series(name: str, arguments: Sequence[Expr]) -> str | None:
    """Return ``generate_series`` of whole numbers that no row has a part in as a relation, which has no list in memory.

    ``None`` for anything else; a step may be zero, which the list says better.
    """
    if name not in ("generate_series", "range") or len(arguments) != 2 or any(each.columns for each in arguments):
        return None
    kind, values = _bounds(arguments)
    if not is_integer(kind):
        return None
    first, last = (f"CAST({value.sql} AS BIGINT)" for value in values)
    # DuckDB counts its rows in a bigint, and gives none where there are more.
    is_endless = f"CAST({last} AS HUGEINT) - {first} > {2**62}"
    return f"{name}({first}, CASE WHEN {is_endless} THEN CAST({_ENDLESS} AS BIGINT) ELSE {last} END)"


def _bounds(arguments: Sequence[Expr]) -> tuple[SqlType, list[Expr]]:
    first, last = same_type(*arguments[:2])
    if first.type == DATE:
        first, last = (convert(each, TIMESTAMPTZ) for each in (first, last))
    if is_integer(first.type):
        values = list(same_type(*arguments))
        if not is_integer(values[0].type):
            raise MismatchError(f"it takes whole numbers, not {values[0].type}.")
        return values[0].type, values
    if not is_instant(first.type) or len(arguments) < 3:
        raise MismatchError(f"it takes whole numbers, or two times and an interval, not {first.type}.")
    return first.type, [first, last, convert(arguments[2], INTERVAL)]


@builder
def _of_json(arguments: Sequence[Expr], template: str, kind: SqlType, wanted: str) -> Expr:
    counted(arguments, 1, 1)
    value = arguments[0]
    if value.type not in (JSONB, UNKNOWN):
        raise MismatchError(f"it takes jsonb, not {value.type}. Cast the argument.")
    wrong = refused(f"'cannot extract elements from what is no {wanted.lower()}'")
    checked = f"CASE WHEN json_type({{0}}) = '{wanted}' THEN {template} WHEN {{0}} IS NOT NULL THEN "
    return build(array_of(kind), f"{checked}CAST({wrong} AS {kind.duckdb}[]) END", convert(value, JSONB))


_TEXTS = "list_transform(range(len(json_extract({0}, '$[*]'))), lambda place: windowpane_jsonb_string({0}, '$[' || place || ']'))"

SETS: dict[str, Builder] = {
    "unnest": _unnest,
    "generate_series": _series("generate_series"),
    "range": _series("range"),
    "regexp_matches": every_match,
    "regexp_split_to_table": parts_between,
    "jsonb_array_elements": _of_json("CAST(json_extract({0}, '$[*]') AS JSON[])", JSONB, "ARRAY"),
    "jsonb_array_elements_text": _of_json(_TEXTS, VARCHAR, "ARRAY"),
    "jsonb_object_keys": _of_json("json_keys({0})", VARCHAR, "OBJECT"),
}
"""Each as the list of what it returns, by name."""
