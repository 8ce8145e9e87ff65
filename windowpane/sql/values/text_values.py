"""Text literals as values of a type, as SQL: what a text means is decided when it is bound, if possible. Instants as text."""

from __future__ import annotations

import math
import re

from windowpane.errors import InvalidTextError, OutOfRangeError
from windowpane.sql.expressions.types import BOOLEAN, JSONB, REAL, TIME, SqlType, is_float, is_integer
from windowpane.sql.values import json_values, zone

TRUE = ("t", "tr", "tru", "true", "y", "ye", "yes", "on", "1")
FALSE = ("f", "fa", "fal", "fals", "false", "n", "no", "of", "off", "0")
"""What texts mean as booleans, in small letters."""
WHOLE = r"[+-]?[0-9]+"
FLOAT = r"[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?|(inf(inity)?|nan))"
"""Texts that mean whole numbers and floats, as regular expressions of Python and of DuckDB; capitals are the same."""
_BITS = {"smallint": 15, "integer": 31, "bigint": 63}
_LARGEST_REAL = 3.4028235677973366e38
_ZONED = r":\d\d(\.\d+)?\s*([+-]\d|[A-Za-z])"


def literal_sql(text: str, kind: SqlType) -> str:
    """Return a text literal as a value of a type.

    Example:
        >>> from windowpane.sql.expressions.types import INTEGER
        >>> literal_sql(" 12 ", INTEGER)
        "CAST('12' AS INTEGER)"
    """
    body = text.strip()
    if is_integer(kind):
        _check_whole(text, body, kind)
    elif is_float(kind):
        _check_float(text, body, kind)
    elif kind == BOOLEAN:
        return _boolean(text, body.lower())
    elif kind == TIME and ":" not in body:  # DuckDB takes a date for midnight
        raise _invalid(text, kind)
    elif kind == JSONB:
        body = json_values.canonical(text)
    return f"CAST({text_literal(body)} AS {kind.duckdb})"


def text_literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _invalid(text: str, kind: SqlType) -> InvalidTextError:
    return InvalidTextError.of(str(kind), text)


def _check_whole(text: str, body: str, kind: SqlType) -> None:
    if not re.fullmatch(WHOLE, body):
        raise _invalid(text, kind)
    if not -(2 ** _BITS[kind.name]) <= int(body) < 2 ** _BITS[kind.name]:
        raise OutOfRangeError(f'value "{text}" is out of range for type {kind}')


def _check_float(text: str, body: str, kind: SqlType) -> None:
    found = re.fullmatch(FLOAT, body, re.IGNORECASE)
    if found is None:
        raise _invalid(text, kind)
    number = float(body)
    too_large = math.isinf(number) or (kind == REAL and abs(number) >= _LARGEST_REAL)
    if too_large and found.group(4) is None:
        raise OutOfRangeError(f'"{text}" is out of range for type {kind}')


def _boolean(text: str, body: str) -> str:
    if body not in (*TRUE, *FALSE):
        raise _invalid(text, BOOLEAN)
    return "TRUE" if body in TRUE else "FALSE"


_ESCAPE = re.compile(rb"\\(?:x([0-9a-fA-F]{1,2})|([0-7]{1,3})|(u0{4}|U0{8})|.)", re.DOTALL)


def escapes_are_text(literal: str) -> bool:
    r"""Whether the bytes that ``\x..`` and octal escapes of a literal ``E'...'`` stand for make UTF-8, without zeros.

    Example:
        >>> escapes_are_text(r"E'\xc3\xa9'"), escapes_are_text(r"E'\x80'")
        (True, False)
    """

    def byte(escape: re.Match[bytes]) -> bytes:
        digits, base = (escape[1], 16) if escape[1] else (escape[2], 8)
        return bytes([int(digits, base) & 0xFF]) if digits else b"\0" if escape[3] else escape[0][1:]

    try:
        return "\0" not in _ESCAPE.sub(byte, literal.encode()).decode()
    except UnicodeDecodeError:
        return False


def has_zone(text: str) -> bool:
    """Whether a text literal names an offset or a zone behind its time."""
    return re.search(_ZONED, text) is not None


def instant_of_text(sql: str) -> str:
    """Return a text as an instant: without an offset, in the time zone of the session."""
    local = f"timezone({text_literal(zone.current())}, CAST({sql} AS TIMESTAMP))"
    return f"CASE WHEN regexp_matches({sql}, '{_ZONED}') THEN CAST({sql} AS TIMESTAMPTZ) ELSE {local} END"


def instant_text(local: str, instant: str) -> str:
    """Return an instant as text: the local time and its offset, as RisingWave writes it, and the era behind them."""
    finite = era_last(f"CAST({local} AS VARCHAR) || {offset_sql(local, instant)}")
    return f"CASE WHEN isfinite({instant}) THEN {finite} ELSE CAST({instant} AS VARCHAR) END"


def offset_sql(local: str, instant: str) -> str:
    """Return how far a local time is ahead of UTC, as text."""
    return f"windowpane_offset(date_diff('second', timezone('UTC', {instant}), {local}))"


def era_last(sql: str) -> str:
    """Return a text of DuckDB's, "0044-03-15 (BC) 10:00:00", as PostgreSQL writes it."""
    return f"regexp_replace({sql}, '^(.*) \\(BC\\)(.*)$', '\\1\\2 BC')"
