"""LIKE, SIMILAR TO and regular expressions.

A pattern that is a literal is matched by DuckDB (RE2) where it can: not one with look-around, back references or edges of words.
Python matches all others.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from windowpane.errors import InvalidValueError
from windowpane.sql.expressions.expr import Expr, MismatchError, build, convert, counted
from windowpane.sql.expressions.types import BOOLEAN, INTEGER, VARCHAR, SqlType, array_of, is_text
from windowpane.sql.scalar.signatures import Builder, accepted, builder, taking
from windowpane.sql.values.regexps import as_re2, certain_groups, similar_in_re2
from windowpane.sql.values.text_values import text_literal

_FLAGS = frozenset("gicsmnx")


def like(value: Expr, pattern: Expr, operator: str, escape: Expr | None = None) -> Expr:
    """Return ``value LIKE pattern``; backslash is the escape character unless another one, or none, is named."""
    operands = texts(operator, value, pattern)
    if escape is not None and escape.literal == "":
        return build(BOOLEAN, f"({{0}} {operator} {{1}})", *operands)
    if escape is None and pattern.literal is not None and "\\" not in pattern.literal:
        return build(BOOLEAN, f"({{0}} {operator} {{1}})", *operands)
    sign = Expr("'\\'", VARCHAR) if escape is None else convert(escape, VARCHAR)
    return build(BOOLEAN, f"({{0}} {operator} {{1}} ESCAPE {{2}})", *operands, sign)


def texts(operator: str, value: Expr, pattern: Expr) -> tuple[Expr, Expr]:
    """Return two operands as text."""
    if not (is_text(value.type) and is_text(pattern.type)):
        raise MismatchError(f"operator does not exist: {value.type} {operator} {pattern.type}. It takes text.")
    return convert(value, VARCHAR), convert(pattern, VARCHAR)


def matches(value: Expr, pattern: Expr, flags: str = "") -> Expr:
    one, other = texts("~", value, pattern)
    found = _of_re2(pattern, flags)
    if found is not None:
        return build(BOOLEAN, "regexp_matches({0}, {1}, {2})", one, *found)
    template = f"(CASE WHEN {{0}} || {{1}} IS NOT NULL THEN windowpane_pattern_match({{0}}, {{1}}, '{flags}') IS NOT NULL END)"
    return build(BOOLEAN, template, one, other)


def similar(value: Expr, pattern: Expr, escape: Expr | None = None) -> Expr:
    """Return ``value SIMILAR TO pattern``; backslash is the escape character unless another one, or none, is named."""
    one, other = texts("SIMILAR TO", value, pattern)
    sign = Expr("'\\'", VARCHAR, literal="\\") if escape is None else convert(escape, VARCHAR)
    if other.literal is not None and sign.literal is not None:
        try:
            expression = Expr(text_literal(similar_in_re2(other.literal, sign.literal)), VARCHAR)
        except InvalidValueError as error:
            raise MismatchError(f"{error}.") from None
    else:
        expression = build(VARCHAR, "windowpane_pattern_similar({0}, {1})", other, sign)
    return build(BOOLEAN, "regexp_full_match({0}, {1}, 's')", one, expression)


def _of_re2(pattern: Expr, flags: str) -> tuple[Expr, Expr] | None:
    """Return a pattern and its options as DuckDB's functions take them, ``None`` where Python is to match it."""
    found = None if pattern.literal is None else as_re2(pattern.literal, flags)
    return None if found is None else (Expr(text_literal(found[0]), VARCHAR), Expr(text_literal(found[1]), VARCHAR))


def _flags(argument: Expr | None) -> str:
    if argument is None:
        return ""
    if argument.literal is None or not set(argument.literal) <= _FLAGS:
        raise MismatchError(f"flags of a pattern are a literal of the letters {', '.join(sorted(_FLAGS))}.")
    return argument.literal


def _replace(arguments: Sequence[Expr]) -> Expr:
    counted(arguments, 3, 4)
    value, pattern, new = (accepted(argument, VARCHAR) for argument in arguments[:3])
    flags = _flags(arguments[3] if len(arguments) > 3 else None)
    found = _of_re2(arguments[1], flags)
    if found is None or _names_more_groups(arguments[1], arguments[2]):
        return build(VARCHAR, f"windowpane_pattern_replace({{0}}, {{1}}, {{2}}, '{flags}')", value, pattern, new)
    every = "g" if "g" in flags else ""
    template = f"regexp_replace({{0}}, {{1}}, replace({{3}}, '\\&', '\\0'), {{2}} || '{every}')"
    return build(VARCHAR, template, value, *found, new)


def _names_more_groups(pattern: Expr, new: Expr) -> bool:
    """Whether a replacement may name groups that the pattern does not have: RE2 refuses these, which stand for nothing."""
    named = [int(number) for number in re.findall(r"\\([1-9])", new.literal or "")]
    if not named or pattern.literal is None:
        return bool(named)
    try:
        return max(named) > re.compile(pattern.literal).groups
    except re.error:
        return True


@builder
def _by_pattern(arguments: Sequence[Expr], function: str, kind: SqlType) -> Expr:
    """Return the call of a function that takes a text, a pattern, and perhaps flags."""
    counted(arguments, 2, 3)
    value, pattern = (accepted(argument, VARCHAR) for argument in arguments[:2])
    flags = _flags(arguments[2] if len(arguments) > 2 else None)
    return build(kind, f"windowpane_pattern_{function}({{0}}, {{1}}, '{flags}')", value, pattern)


def _match(arguments: Sequence[Expr]) -> Expr:
    """Return ``regexp_match``: where each group takes part in every match, DuckDB extracts them."""
    call = _by_pattern("match", array_of(VARCHAR))(arguments)
    found = _of_re2(arguments[1], _flags(arguments[2] if len(arguments) > 2 else None))
    groups = certain_groups(arguments[1].literal or "")
    if found is None or groups is None:
        return call
    numbers = range(1, groups + 1) if groups else (0,)
    parts = ", ".join(f"regexp_extract({{0}}, {{1}}, {number}, {{2}})" for number in numbers)
    template = f"(CASE WHEN regexp_matches({{0}}, {{1}}, {{2}}) THEN [{parts}] END)"
    return build(call.type, template, accepted(arguments[0], VARCHAR), *found)


every_match = _by_pattern("matches", array_of(array_of(VARCHAR)))
"""``regexp_matches`` as the list of what it returns: the first match, or all with the flag ``g``."""
parts_between = _by_pattern("split", array_of(VARCHAR))
"""The parts of a text between matches, as an array."""


@taking
def _count(value: Expr, pattern: Expr, start: Expr | None = None, flags: Expr | None = None) -> Expr:
    operands = accepted(value, VARCHAR), accepted(pattern, VARCHAR), accepted(start or Expr("1", INTEGER), INTEGER)
    return build(INTEGER, f"windowpane_pattern_count({{0}}, {{1}}, CAST({{2}} AS INTEGER), '{_flags(flags)}')", *operands)


PATTERN_FUNCTIONS: dict[str, Builder] = {
    "regexp_replace": _replace,
    "regexp_match": _match,
    "regexp_split_to_array": parts_between,
    "regexp_count": _count,
}
