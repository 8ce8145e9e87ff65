"""DuckDB's words for numbers that do not fit, and what users read instead."""

from __future__ import annotations

import re

_FROM_FUNCTION = re.compile(r"Python exception occurred while executing the UDF: \w+: (.*)", re.DOTALL)
_INTEGERS = {"8": "smallint", "16": "smallint", "32": "integer", "64": "bigint", "128": "numeric"}
_OVERFLOW = re.compile(r"Overflow in (\w+) of (?:U?INT(\d+) \(|(?=-?\d+ / ))([^)!]*)")
_DECIMALS = re.compile(r"Overflow in (\w+) of DECIMAL\(\d+\)")
_SUM = re.compile(r"Overflow in (SUM of DECIMAL|HUGEINT addition)")
_ONE = re.compile(r"Overflow (?:on abs\((-?\d+)|in negation of (?:integer|numeric) value)")
_CAST = re.compile(r"Type U?(?:INT\d+|DOUBLE|FLOAT|DECIMAL\(\d+, ?\d+\)) with value (\S+) can't be cast .*? type U?INT(\d+)")
_DECIMAL_CAST = re.compile(
    r"(?:Casting value \"|[Cc]ould not cast value |Type \w+ with value )(-?[\d.]+(?:e[+-]?\d+)?)\"? (?:to|can't be cast .*? type)"
    r" (?:type )?\(?DECIMAL\((\d+), ?(\d+)\)"
)
_INTEGER_CAST = re.compile(r"Failed to cast decimal value (\S+) to type U?INT(\d+)")
_WIDER = "Cast an operand to bigint or numeric."


def numeric_message(said: str) -> str | None:
    """Return what to say of an error of DuckDB about a number, ``None`` if it is about something else."""
    for pattern, words in _WORDS:
        found = pattern.search(said)
        if found is not None:
            return words(found)
    return None


def _own(found: re.Match[str]) -> str:
    return found.group(1).strip()


def _operands(found: re.Match[str]) -> str:
    kind = _INTEGERS.get(found.group(2) or "64", "integer")
    return f"{kind} out of range: {found.group(3).strip()}. {_WIDER}"


def _operand(found: re.Match[str]) -> str:
    return f"integer out of range: the negative of {found.group(1) or 'the least value of its type'}. {_WIDER}"


def _decimals(found: re.Match[str]) -> str:
    return (
        f"numeric out of range: {_article(found.group(1))} has more than 38 digits, those behind the point among them. Cast an "
        f"operand to numeric(38, s) with fewer decimal places, or to double precision."
    )


def _article(operation: str) -> str:
    return {"multiplication": "a product", "addition": "a sum", "subtraction": "a difference"}.get(operation, operation)


def _sum(found: re.Match[str]) -> str:
    return (
        "numeric out of range: a sum has more than 38 digits, those behind the point among them. Cast its argument to "
        "numeric(38, s) with fewer decimal places, or to double precision."
    )


def _cast(found: re.Match[str]) -> str:
    kind = _INTEGERS.get(found.group(2), "integer")
    return f"{kind} out of range: {found.group(1)}. Cast to a wider type."


def _decimal_cast(found: re.Match[str]) -> str:
    precision, scale = int(found.group(2)), int(found.group(3))
    return (
        f"numeric out of range: {found.group(1)} does not fit numeric({precision}, {scale}), which has {precision - scale} "
        f"digits before the point. Cast to numeric(38, s) with fewer decimal places, or to double precision."
    )


_WORDS = (
    (_FROM_FUNCTION, _own),
    (_DECIMALS, _decimals),
    (_SUM, _sum),
    (_ONE, _operand),
    (_OVERFLOW, _operands),
    (_DECIMAL_CAST, _decimal_cast),
    (_INTEGER_CAST, _cast),
    (_CAST, _cast),
)
