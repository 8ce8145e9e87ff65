"""jsonb as a value: one text for each, whatever its spaces and the order of its keys.

Integers have all their digits, as in PostgreSQL; other numbers are doubles, as in RisingWave.

Sources: PostgreSQL, "JSON Types" (the last of equal keys counts; the order of values, an empty array below all else).
"""

from __future__ import annotations

import json
import struct
from decimal import Decimal
from math import inf, isinf, nextafter
from typing import Any

from windowpane.errors import InvalidTextError, OutOfRangeError


def read(text: str) -> Any:
    """Return a JSON text as Python values."""
    try:
        return json.loads(text, parse_constant=_no_constant, parse_float=_double, parse_int=_integer_in_range)
    except OverflowError as error:
        raise OutOfRangeError(f'invalid input syntax for type jsonb: "{text}". {error}') from None
    except (ValueError, RecursionError):
        raise InvalidTextError.of("jsonb", text) from None


def _no_constant(word: str) -> Any:
    raise ValueError(word)


def _double(word: str) -> float:
    if isinf(value := float(word)):
        raise OverflowError(f"The number {word[:40]} is out of range: the largest has 309 digits")
    return value


def _integer_in_range(word: str) -> int:
    _double(word)
    return int(word)


def write(value: object) -> str:
    """Return Python values as the one JSON text of theirs."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def canonical(text: str) -> str:
    """Return the one text of a value: without spaces, keys in order, each once.

    Example:
        >>> canonical('{"b": 1, "a": 2, "b": 3}')
        '{"a":2,"b":3}'
    """
    return write(read(text))


def by_value(text: str) -> str:
    """Return what is the same text for equal values: 1 and 1.0 are equal, and 1e20 and 100000000000000000000."""
    return write(whole(read(text)))


def whole(value: object) -> Any:
    """Return a value in which floats that are whole are integers."""
    if isinstance(value, float) and value.is_integer():
        return _integer(value)
    if isinstance(value, list):
        return [whole(each) for each in value]
    if isinstance(value, dict):
        return {name: whole(each) for name, each in value.items()}
    return value


def text(value: str) -> str:
    """Return a value as PostgreSQL prints it: a space behind each colon and comma."""
    return json.dumps(read(value), ensure_ascii=False)


def _integer(value: float) -> int:
    """Return the integer that a double is written as: 10 ** 23 for 1e23, which is none that a double holds."""
    return int(value) if abs(value) < 2**53 else int(Decimal(repr(value)))


def order_key(text: str) -> str:
    """Return a text that sorts as the value does: Object > Array > Boolean > Number > String > Null, then by size and parts.

    An empty array, where it is the whole value, is the least of all: PostgreSQL says "for historical reasons".
    """
    value = read(text)
    return "/" if value == [] else _order(value)


def _order(value: Any) -> str:
    if value is None:
        return "0"
    if isinstance(value, str):
        return "1" + value.encode("utf-8").hex() + " "
    if isinstance(value, bool):
        return f"3{value:d}"
    if isinstance(value, int | float):
        return "2" + _order_of_number(value)
    if isinstance(value, list):
        return f"4{len(value):08x}" + "".join(map(_order, value))
    pairs = sorted(value.items(), key=lambda pair: (len(pair[0].encode("utf-8")), pair[0].encode("utf-8")))
    return f"5{len(pairs):08x}" + "".join(_order(name) + _order(each) for name, each in pairs)


def _order_of_number(value: float) -> str:
    """Return the double at or below a number, and if the number is above it, what sorts behind all that could follow."""
    number = whole(value)
    if isinstance(number, float):
        return _sortable(number)
    below = float(number)
    if _integer(below) > number:
        below = nextafter(below, -inf)
    above = f"{number - _integer(below):x}"
    return _sortable(below) + (f"6{len(above):04x}{above}" if above != "0" else "")


def _sortable(number: float) -> str:
    """Return sixteen hexadecimal digits that sort as numbers do."""
    bits = int(struct.unpack(">Q", struct.pack(">d", number + 0.0))[0])
    return f"{bits ^ (0xFFFFFFFFFFFFFFFF if bits >> 63 else 1 << 63):016x}"
