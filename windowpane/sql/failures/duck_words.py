"""DuckDB's errors in the words of SQL: functions of ours raise errors of ours, and DuckDB's own say why with PostgreSQL's types.

An error that no value causes (a query that DuckDB cannot parse or bind, a broken transaction) has no translation: it is a mistake
of ours, and the session says so.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

import duckdb

from windowpane import errors
from windowpane.errors import (
    DivisionByZeroError,
    InvalidTextError,
    InvalidValueError,
    OutOfMemoryError,
    OutOfRangeError,
    SqlRunError,
)
from windowpane.sql.expressions.types import SHOWN_IN_DUCKDB
from windowpane.sql.values.instant_text import NO_ZONE

_TYPES: Final[dict[str, str]] = {
    "TIMESTAMP WITH TIME ZONE": SHOWN_IN_DUCKDB["TIMESTAMPTZ"],
    **dict.fromkeys(("INT8", "UINT8", "INT16", "UINT16", "TINYINT"), "smallint"),
    **dict.fromkeys(("INT32", "UINT32", "INTEGER_LITERAL"), "integer"),
    **dict.fromkeys(("INT64", "UINT64"), "bigint"),
    **dict.fromkeys(("INT128", "UINT128", "HUGEINT", "UHUGEINT", "BIGNUM"), "numeric"),
    "BOOL": "boolean",
    "STRING_LITERAL": SHOWN_IN_DUCKDB["VARCHAR"],
    **SHOWN_IN_DUCKDB,
}
_TYPE = re.compile(rf"\b(?:{'|'.join(_TYPES)})\b")


def _with_our_types(line: str) -> str:
    """Return a sentence of DuckDB's with PostgreSQL's names of types.

    Example:
        >>> _with_our_types("Could not convert string 'a' to INT32[]")
        "Could not convert string 'a' to integer[]"
    """
    return _TYPE.sub(lambda found: _TYPES[found.group()], line)


_WIDER = "Cast an operand to a wider type."


def _no_value(found: re.Match[str]) -> SqlRunError:
    return InvalidTextError.of(_with_our_types(found["type"]), found["value"].replace(NO_ZONE, " "))


def _out_of_range(found: re.Match[str]) -> SqlRunError:
    value = found["value"] or found["cast"].strip('"')
    return OutOfRangeError(f"{_with_our_types(found['type'] or found['other'])} out of range: {value}. {_WIDER}")


_WORDS: Final[tuple[tuple[str, Callable[[re.Match[str]], SqlRunError]], ...]] = (
    (r"Division by zero", lambda found: DivisionByZeroError()),
    (
        r"Could not convert string (?P<quote>['\"])(?P<value>.*)(?P=quote) to (?P<type>[A-Z]\w*(?: [A-Z]+)*(?:\(.*?\))?)",
        _no_value,
    ),
    (r"(?P<type>\w+) field (?:format|value out of range): \"(?P<value>.*?)\", expected", _no_value),
    (
        r"Overflow in \w+ of (?P<type>U?INT\d+) \((?P<value>[^)!]*)|"
        r"(?P<cast>\S+) (?:can't be cast .*? type|to(?: type)?) (?P<other>U?INT\d+|DECIMAL\(\d+, ?\d+\))",
        _out_of_range,
    ),
    (
        r"Error: (?P<text>(?:missing|unexpected|bad|no argument|trailing|invalid (?:escape|repetition|character|perl|named)).*)",
        lambda found: InvalidValueError(f"invalid regular expression: {found['text']}."),
    ),
)
"""What users meet daily: DuckDB's casts and arithmetic name a value in their text alone, and Python sees no other part of it."""

_VALUE_ERRORS = (
    duckdb.ConversionException,
    duckdb.OutOfRangeException,
    duckdb.InvalidInputException,
    duckdb.NotImplementedException,
    duckdb.SyntaxException,
    duckdb.TypeMismatchException,
)
_KINDS = {name.removesuffix("Exception").lower(): kind for name, kind in vars(duckdb).items() if name.endswith("Exception")}
"""The classes of DuckDB's errors, by how their texts begin, in small letters without spaces."""
_OUTSIDE = re.compile(r"out of range|[Oo]verflow|maximum|Lists larger")
_FROM_FUNCTION = re.compile(r"Python exception occurred while executing the UDF: (\w+): (.*)", re.DOTALL)


def raised_while_reading(error: OSError) -> duckdb.Error:
    """Return the error of DuckDB that Arrow reports in its own words while it reads a result."""
    kind, _, _ = str(error).partition(" Error:")
    found: type[duckdb.Error] = _KINDS.get(kind.replace(" ", "").lower(), duckdb.Error)
    return found(str(error))


def types_without_meaning(error: duckdb.Error) -> str | None:
    """Return the message for types that a function or operator does not take, ``None`` for any other error."""
    line = str(error).split("\n")[0]
    return f"{_plain(line)}. Cast an argument." if "No function matches" in line else None


def in_sql_words(error: duckdb.Error) -> SqlRunError | None:
    """Return an error of DuckDB about values as one of ours, ``None`` if it is about anything else."""
    if isinstance(error, duckdb.OutOfMemoryException):
        return OutOfMemoryError("out of memory: the statement needs more than this machine, or its limit, allows.")
    if not isinstance(error, _VALUE_ERRORS):
        return None
    said = in_words(str(error))
    if said is not None:
        return said
    line = _plain(str(error).split("\n")[0])
    is_outside = isinstance(error, duckdb.OutOfRangeException) or _OUTSIDE.search(line)
    message = f"{line}. {_WIDER}" if "verflow" in line else f"{line}."
    return (OutOfRangeError if is_outside else InvalidValueError)(message)


def in_words(said: str) -> SqlRunError | None:
    """Return what a function of ours raised, or what DuckDB says of a value, ``None`` if it is something else."""
    own = _FROM_FUNCTION.search(said)
    if own is not None:
        kind = getattr(errors, own[1], InvalidValueError)
        return (kind if issubclass(kind, SqlRunError) else InvalidValueError)(own[2].strip())
    matches = ((re.search(pattern, said, re.DOTALL), build) for pattern, build in _WORDS)
    return next((build(found) for found, build in matches if found is not None), None)


def _plain(line: str) -> str:
    """Return a message without the name of its kind, and without what only DuckDB's users can do about it."""
    text = re.sub(r"^(?:[A-Z][a-z]*(?: [a-z]+| [A-Z][a-z]+)* Error): ", "", line)
    text = re.sub(r" when casting from source column .*$|\. (?:You might|Use TRY|Candidate).*$", "", text)
    return _with_our_types(text).rstrip(".!; ")
