"""The columns of random rows: one of every type that Spark sends, with the values at the ends of it, and those that equal others.

Keys, arguments of aggregates, order columns and rows that come late are drawn from them, for windows and for OVER.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa

Draw = Callable[[Random], Any]

_NAN, _INFINITE = float("nan"), float("inf")
_UTC = dt.UTC
_INSTANTS = (
    dt.datetime(1970, 1, 1),
    dt.datetime(1969, 12, 31, 23, 59, 59, 999999),
    dt.datetime(2024, 3, 31, 1, 30),
    dt.datetime(2024, 10, 27, 1, 30),
    dt.datetime(1, 1, 1),
    dt.datetime(9999, 12, 31, 23, 59, 59, 999999),
)
_NINES = 10**38 - 1


def _one_of(*values: Any) -> Draw:
    """NULL or one of some values."""
    return lambda draw: draw.choice((None, *values))


def _double(draw: Random) -> float | None:
    plain = round(draw.uniform(-9, 9), 3)
    return draw.choice([None, 0.0, -0.0, plain, draw.choice([1.5, _NAN]), draw.choice([2.5, _INFINITE])])


def _bigint(draw: Random) -> int | None:
    return draw.choice([None, -(2**63), 2**63 - 1, 0, -1, 2**62, -(2**62), draw.randint(-(2**63), 2**63 - 1)])


_PLAIN: dict[str, tuple[pa.DataType, Draw]] = {
    "k": (pa.string(), _one_of("a", "b", "c")),
    "f": (pa.float64(), _one_of(0.0, -0.0, 1.5, _NAN)),
    "i": (pa.int64(), lambda draw: draw.choice([None, 0, 1, -7, draw.randint(-(10**6), 10**6), 2**61])),
    "n": (pa.int32(), lambda draw: draw.choice([None, draw.randint(-3, 3)])),
    "d": (pa.float64(), _double),
    "s": (pa.string(), _one_of("", "x", "y", "é")),
    "b": (pa.bool_(), _one_of(True, False)),
    "m": (pa.decimal128(12, 2), _one_of(Decimal("0.00"), Decimal("12.34"), Decimal("-99.90"))),
    "r": (
        pa.struct([("x", pa.int32()), ("y", pa.float64())]),
        _one_of({"x": None, "y": 0.0}, {"x": 1, "y": -0.0}, {"x": 1, "y": 0.0}, {"x": 1, "y": None}),
    ),
    "l": (pa.list_(pa.string()), _one_of([], ["a"], ["a", None])),
    "u": (pa.int64(), lambda draw: draw.choice([None, draw.randint(0, 400), draw.randint(0, 400), draw.randint(0, 2**62)])),
}
"""``u`` has many values, as keys of large streams do."""

_FURTHER: dict[str, tuple[pa.DataType, Draw]] = {
    "zoned": (pa.timestamp("us", tz="UTC"), _one_of(*(each.replace(tzinfo=_UTC) for each in _INSTANTS))),
    "local": (pa.timestamp("us"), _one_of(*_INSTANTS)),
    "day": (pa.date32(), _one_of(dt.date(1970, 1, 1), dt.date(1969, 12, 31), dt.date(1, 1, 1), dt.date(9999, 12, 31))),
    "bytes": (pa.binary(), _one_of(b"", b"\0", b"\0\0", b"a", b"a\0", b"\xff\xfe", b"x" * 40, b"x" * 40 + b"\0")),
    "real": (
        pa.float32(),
        _one_of(0.0, -0.0, 1.5, _NAN, _INFINITE, -_INFINITE, 3.4028234663852886e38, 1e-45, 0.10000000149011612),
    ),
    "tiny": (pa.int8(), lambda draw: draw.choice([None, -128, 127, 0, 1, draw.randint(-128, 127)])),
    "short": (pa.int16(), lambda draw: draw.choice([None, -32768, 32767, 0, draw.randint(-9, 9)])),
    "big": (pa.int64(), _bigint),
    "wide": (
        pa.decimal128(38, 18),
        _one_of(
            Decimal("0"),
            Decimal("1.000000000000000001"),
            Decimal("-1.000000000000000001"),
            Decimal("99999999999999999999.999999999999999999"),
            Decimal("-99999999999999999999.999999999999999999"),
            Decimal("12345.678"),
        ),
    ),
    "whole": (
        pa.decimal128(38, 0),
        _one_of(Decimal(0), Decimal(1), Decimal(_NINES), Decimal(-_NINES), Decimal(5 * 10**37), Decimal(7)),
    ),
    "span": (
        pa.duration("us"),
        _one_of(dt.timedelta(0), dt.timedelta(microseconds=-1), dt.timedelta(days=3), dt.timedelta(days=-99_999)),
    ),
    "text": (
        pa.string(),
        _one_of("a\0b", "a", "a\0", "x" * 50, "x" * 32 + "y" + "x" * 32, "x" * 32 + "z" + "x" * 32, "e\u0301", "\U0001f600", "Z"),
    ),
    "ints": (pa.list_(pa.int32()), _one_of([], [1], [1, None], [None], [2, 1])),
    "reals": (pa.list_(pa.float64()), _one_of([], [0.0], [-0.0], [_NAN], [None, 1.5])),
    "pair": (
        pa.struct([("a", pa.string()), ("b", pa.decimal128(5, 1))]),
        _one_of({"a": None, "b": None}, {"a": "x", "b": Decimal("1.5")}, {"a": "", "b": Decimal("-0.5")}),
    ),
    "deep": (
        pa.list_(pa.struct([("t", pa.timestamp("us", tz="UTC")), ("z", pa.binary())])),
        _one_of([], [None], [{"t": _INSTANTS[0].replace(tzinfo=_UTC), "z": b"\0"}], [{"t": None, "z": b""}]),
    ),
    "map": (
        pa.map_(pa.string(), pa.float64()),
        _one_of([], [("a", 1.0)], [("b", None), ("a", -0.0)], [("a", 0.0), ("b", None)], [("a", _NAN)]),
    ),
}

_GAPS: dict[str, tuple[pa.DataType, Draw]] = {
    "wait": (pa.duration("us"), lambda draw: dt.timedelta(microseconds=draw.choice([1, draw.randint(1, 15)]))),
    "pause": (pa.string(), lambda draw: f"{draw.choice([1, draw.randint(1, 15)])} microseconds"),
}
_ALL = _PLAIN | _FURTHER

COLUMNS = pa.schema([(name, kind) for name, (kind, _) in _ALL.items()])
"""Every column."""

GAPS = pa.schema([(name, kind) for name, (kind, _) in _GAPS.items()])
"""Those that say the gaps of sessions."""

PLAIN = pa.schema([(name, kind) for name, (kind, _) in _PLAIN.items()])
"""Those with few values, most of them ordinary ones."""


def values(draw: Random, name: str, count: int) -> list[Any]:
    """Return so many random values of a column."""
    _, value = (_ALL | _GAPS)[name]
    return [value(draw) for _ in range(count)]
