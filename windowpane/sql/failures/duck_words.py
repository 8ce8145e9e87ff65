"""DuckDB's errors in the words of SQL; PostgreSQL's messages are the model.

An error that no value causes (a query that DuckDB cannot parse or bind, a broken transaction) has no translation: it is a mistake
of ours, and the session says so.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import duckdb

from windowpane.errors import (
    DivisionByZeroError,
    InvalidTextError,
    InvalidValueError,
    OutOfMemoryError,
    OutOfRangeError,
    SqlRunError,
    UnsupportedValueError,
)
from windowpane.sql.values.instant_text import NO_ZONE

_TYPES = (
    (r"TIMESTAMP WITH TIME ZONE|TIMESTAMPTZ|TIMESTAMP_TZ", "timestamp with time zone"),
    (r"TIMESTAMP", "timestamp without time zone"),
    (r"DATE", "date"),
    (r"TIME", "time without time zone"),
    (r"U?INT8|U?INT16|TINYINT|SMALLINT", "smallint"),
    (r"U?INT32|INTEGER", "integer"),
    (r"U?INT64|BIGINT", "bigint"),
    (r"U?INT128|U?HUGEINT|BIGNUM|DECIMAL(?:\(\d+(?:, ?\d+)?\))?", "numeric"),
    (r"FLOAT", "real"),
    (r"DOUBLE", "double precision"),
    (r"BOOL(?:EAN)?", "boolean"),
    (r"INTERVAL", "interval"),
    (r"JSON", "jsonb"),
    (r"BLOB", "bytea"),
    (r"VARCHAR", "character varying"),
)


def type_name(duckdb_name: str) -> str:
    """Return PostgreSQL's name of a DuckDB type.

    Example:
        >>> type_name("INT32[]")
        'integer[]'
    """
    base, dims = re.fullmatch(r"(.*?)((?:\[\])*)", duckdb_name.strip().strip('"')).groups()  # type: ignore[union-attr]
    for pattern, name in _TYPES:
        if re.fullmatch(pattern, base):
            return name + dims
    return base.lower() + dims


Build = Callable[[re.Match[str]], SqlRunError]
_WIDER = "Cast an operand to bigint or numeric."
_FEWER_PLACES = "to numeric(38, s) with fewer decimal places, or to double precision."
_OPERATIONS = {"multiplication": "a product", "addition": "a sum", "subtraction": "a difference"}


def _invalid(group: str) -> Build:
    """Return what makes the error of a text refused for a type: the one that a group of the match names, or the one given."""

    def build(found: re.Match[str]) -> SqlRunError:
        kind = type_name(found["type"]) if "type" in found.groupdict() else group
        return InvalidTextError(kind, found["value"].replace(NO_ZONE, " "))

    return build


def _out_of_range(template: str) -> Build:
    def build(found: re.Match[str]) -> SqlRunError:
        groups = {name: type_name(text) if name == "type" else text for name, text in found.groupdict().items()}
        return OutOfRangeError(template.format(**groups))

    return build


def _fixed(error: type[SqlRunError], template: str) -> Build:
    return lambda found: error(template.format(**found.groupdict()))


def _too_many_digits(found: re.Match[str]) -> SqlRunError:
    what = _OPERATIONS.get(found["operation"] or "addition", found["operation"])
    operand = "an operand" if found["operation"] else "its argument"
    digits = "has more than 38 digits, those behind the point among them"
    return OutOfRangeError(f"numeric out of range: {what} {digits}. Cast {operand} {_FEWER_PLACES}")


def _no_room(found: re.Match[str]) -> SqlRunError:
    precision, scale = int(found["precision"]), int(found["scale"])
    type_words = f"numeric({precision}, {scale}), which has {precision - scale} digits before the point"
    return OutOfRangeError(f"numeric out of range: {found['value']} does not fit {type_words}. Cast {_FEWER_PLACES}")


_NUMBERS: tuple[tuple[str, Build], ...] = (
    (r"Overflow in (?:SUM of DECIMAL|HUGEINT addition|(?P<operation>\w+) of DECIMAL\(\d+\))", _too_many_digits),
    (
        r"Overflow (?:on abs\((?P<value>-?\d+)|in negation of (?:integer|numeric) value)",
        lambda found: OutOfRangeError(
            f"integer out of range: the negative of {found['value'] or 'the least value of its type'}. {_WIDER}"
        ),
    ),
    (r"Overflow in \w+ of (?P<type>U?INT\d+) \((?P<value>[^)!]*)", _out_of_range(f"{{type}} out of range: {{value}}. {_WIDER}")),
    (r"Overflow in \w+ of (?P<value>-?\d+ / [^)!]*)", _out_of_range(f"bigint out of range: {{value}}. {_WIDER}")),
    (
        r"(?:Casting value \"|[Cc]ould not cast value |Type \w+ with value )(?P<value>-?[\d.]+(?:e[+-]?\d+)?)\"? "
        r"(?:to|can't be cast .*? type) (?:type )?\(?DECIMAL\((?P<precision>\d+), ?(?P<scale>\d+)\)",
        _no_room,
    ),
    (
        r"(?:Failed to cast decimal value|Type U?(?:INT\d+|DOUBLE|FLOAT|DECIMAL\(\d+, ?\d+\)) with value) (?P<value>\S+) "
        r"(?:to|can't be cast .*?) type (?P<type>U?INT\d+)",
        _out_of_range("{type} out of range: {value}. Cast to a wider type."),
    ),
)

_WORDS: tuple[tuple[str, Build], ...] = (
    # Macros say what is wrong with an argument by a cast that fails; see ``macros``.
    (r"Could not convert string 'windowpane: (?P<text>.*)' to ", _fixed(InvalidValueError, "{text}")),
    (r"Division by zero", lambda found: DivisionByZeroError()),
    (r"Could not convert string (?P<quote>['\"])(?P<value>.*)(?P=quote) to (?P<type>[A-Z]\w*(?:\(.*?\))?)", _invalid("")),
    (r"invalid timestamp field format: \"(?P<value>.*?)\"", _invalid("timestamp")),
    (r"time field value out of range: \"(?P<value>.*?)\", expected", _invalid("time")),
    (
        r"(?:date|time|timestamp) field value out of range: \"(?P<value>.*?)\"",
        _out_of_range('date/time field value out of range: "{value}".'),
    ),
    (
        r"Interval with mix of negative/positive entries not supported",
        _fixed(UnsupportedValueError, "a step of a series goes in one direction: its months, days and time have one sign."),
    ),
    (r"Unknown TimeZone '(?P<value>.*?)'", _fixed(InvalidValueError, 'time zone "{value}" is not known.')),
    (
        r"with value (?P<value>\S+) can't be cast because the value is out of range for the destination type (?P<type>\S+)",
        _out_of_range("{type} out of range: {value}."),
    ),
    (
        r"(?:Could not cast value|Casting(?: value)?) \"?(?P<value>[^\"]*?)\"? to (?:type )?(?P<type>DECIMAL)",
        _out_of_range("{type} field overflow: {value} does not fit."),
    ),
    (r"Malformed JSON", _fixed(InvalidValueError, "invalid input syntax for type json.")),
    (
        r"Overflow in (?:addition|subtraction|multiplication|division) of INTERVAL|[Ii]nterval.*out of range",
        _fixed(OutOfRangeError, "interval out of range."),
    ),
    (r"Overflow .*? of (?P<type>\w+) \((?P<value>.*)\)", _out_of_range("{type} out of range: {value}.")),
    (
        r"Overflow in HUGEINT|SUM is out of range|DECIMAL\(38\)",
        _fixed(OutOfRangeError, "numeric field overflow: the result has more digits than fit."),
    ),
    (r"Overflow", _fixed(OutOfRangeError, "value out of range.")),
    (r"Cannot subtract infinite timestamps", _fixed(OutOfRangeError, "cannot subtract infinite timestamps.")),
    (r"Date out of range: (?P<value>\S+)", _out_of_range("date field value out of range: {value}.")),
    (r"Time out of range: (?P<value>\S+)", _out_of_range("time field value out of range: {value}.")),
    (r"Date out of range", _fixed(OutOfRangeError, "date out of range.")),
    (
        r"not in timestamp range|Epoch seconds out of range|imestamp.*out of range|overflows timestamp|convert.*TIMESTAMP",
        _fixed(OutOfRangeError, "timestamp out of range."),
    ),
    (r"Invalid UTF8 Codepoint (?P<value>-?\d+)", _fixed(OutOfRangeError, "requested character is not valid: {value}.")),
    (
        r"Error: (?P<text>(?:missing|unexpected|bad|no argument|trailing|invalid (?:escape|repetition|character|perl|named)).*)",
        _fixed(InvalidValueError, "invalid regular expression: {text}."),
    ),
    (
        r"maximum supported string size|maximum total string size|Lists larger than",
        _fixed(OutOfRangeError, "requested length too large."),
    ),
)


def types_without_meaning(error: duckdb.Error) -> str | None:
    """Return the message for types that a function or operator does not take, ``None`` for any other error."""
    found = re.search(r"No function matches the given name and argument types '(.*?)\((.*)\)'", str(error))
    if found is None:
        return None
    names = ", ".join(type_name(name.replace("_LITERAL", "")) for name in re.split(r", (?![^()]*\))", found[2]))
    return f"{found[1]}({names}) has no meaning: no function or operator takes these types. Cast an argument."


_VALUE_ERRORS = (
    duckdb.ConversionException,
    duckdb.OutOfRangeException,
    duckdb.InvalidInputException,
    duckdb.NotImplementedException,
    duckdb.SyntaxException,
    duckdb.TypeMismatchException,
)


_KINDS: tuple[tuple[str, type[duckdb.Error]], ...] = (
    ("Conversion Error", duckdb.ConversionException),
    ("Out of Range Error", duckdb.OutOfRangeException),
    ("Invalid Input Error", duckdb.InvalidInputException),
    ("Not implemented Error", duckdb.NotImplementedException),
    ("Mismatch Type Error", duckdb.TypeMismatchException),
    ("Syntax Error", duckdb.SyntaxException),
    ("Out of Memory Error", duckdb.OutOfMemoryException),
    ("INTERRUPT Error", duckdb.InterruptException),
    ("IO Error", duckdb.IOException),
)
"""How the text of an error begins, and its class."""


def raised_while_reading(error: OSError) -> duckdb.Error:
    """Return the error of DuckDB that Arrow reports in its own words while it reads a result."""
    said = str(error)
    return next((kind for start, kind in _KINDS if said.startswith(start)), duckdb.Error)(said)


def in_sql_words(error: duckdb.Error) -> SqlRunError | None:
    """Return an error of DuckDB about values as one of ours, ``None`` if it is about anything else."""
    if isinstance(error, duckdb.OutOfMemoryException):
        return OutOfMemoryError("out of memory: the statement needs more than this machine, or its limit, allows.")
    if not isinstance(error, _VALUE_ERRORS):
        return None
    line = str(error).split("\n")[0]
    return number_in_words(str(error)) or _first(_WORDS, line) or InvalidValueError(f"{_plain(line)}.")


def number_in_words(said: str) -> SqlRunError | None:
    """Return an error of DuckDB about a number, or of a function of ours, ``None`` if it is about something else."""
    own = _FROM_FUNCTION.search(said)
    return _first(_NUMBERS, said) if own is None else _own(own[1].strip())


def _first(words: tuple[tuple[str, Build], ...], said: str) -> SqlRunError | None:
    matches = ((re.search(pattern, said, re.DOTALL), build) for pattern, build in words)
    return next((build(found) for found, build in matches if found is not None), None)


_FROM_FUNCTION = re.compile(r"Python exception occurred while executing the UDF: \w+: (.*)", re.DOTALL)


def _own(message: str) -> SqlRunError:
    """Return what a function of ours says as the error of its kind."""
    if message.startswith("division by zero"):
        return DivisionByZeroError()
    text = re.fullmatch(r"invalid input (?:syntax )?for type ([\w ]+): (['\"])(.*)\2\.?", message, re.DOTALL)
    if text is not None:
        return InvalidTextError(text[1], text[3])
    if any(words in message for words in _NO_TYPE):
        return UnsupportedValueError(message)
    is_outside = "out of range" in message or message.startswith("requested length")
    return OutOfRangeError(message) if is_outside else InvalidValueError(message)


_NO_TYPE = (
    "NaN and infinity are values of double precision only",
    "its hours are more than 2562047",
    "a timestamp holds microseconds",
)
"""Messages about values that other databases can hold and no type here can."""


def _plain(line: str) -> str:
    """Return a message without the name of its kind, and without what only DuckDB's users can do about it."""
    text = re.sub(r"^(?:[A-Z][a-z]*(?: [a-z]+| [A-Z][a-z]+)* Error): ", "", line)
    text = re.sub(r" when casting from source column .*$", "", text)
    return re.sub(r"\. (?:You might|Use TRY|Candidate).*$", "", text).rstrip(".!; ")
