"""Values as text, the way PostgreSQL and RisingWave print them.

Doubles and reals have the shortest digits that read back, plain up to a size of RisingWave's own (``to_text``, Rust's ryu);
PostgreSQL begins to write an exponent at other sizes: 0.00005 is ``5e-05`` there.
"""

from __future__ import annotations

import datetime as dt
import json
import math
from contextlib import suppress
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from windowpane.sql.expressions.types import REAL, SqlType
from windowpane.sql.numerics.placing import numeric_text
from windowpane.sql.values.intervals import interval_text
from windowpane.sql.values.zone import UTC
from windowpane.windowing.times import zone_of

_DOUBLE, _REAL = (16, -5), (13, -6)
"""How many digits a plain number may have before the point, and below how many zeros behind it."""


def double_text(value: float) -> str:
    """Return a double as text.

    Example:
        >>> double_text(0.00005), double_text(0.000005), double_text(-1e16)
        ('0.00005', '5e-06', '-1e+16')
    """
    return _text(value, repr(value), *_DOUBLE)


def real_text(value: float) -> str:
    """Return a real as text.

    Example:
        >>> real_text(123456792.0), real_text(1e13)
        ('123456790', '1e+13')
    """
    return _text(value, np.format_float_scientific(np.float32(value), unique=True), *_REAL)


def _text(value: float, shortest: str, most: int, least: int) -> str:
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    sign, digits, exponent = _parts(shortest)
    point = len(digits) + exponent
    if 0 < point <= most:
        return sign + (digits + "0" * exponent if exponent >= 0 else f"{digits[:point]}.{digits[point:]}")
    if least < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}" if digits else f"{sign}0"
    fraction = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{sign}{digits[0]}{fraction}e{'-' if point < 1 else '+'}{abs(point - 1):02}"


def _parts(shortest: str) -> tuple[str, str, int]:
    """Return sign, digits without zeros around them, and the power of ten that they are multiplied with."""
    sign, unsigned = ("-", shortest[1:]) if shortest.startswith("-") else ("", shortest)
    mantissa, _, exponent = unsigned.partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).rstrip("0")
    shift = int(exponent or 0) - len(fraction) + len(whole + fraction) - len(digits)
    return sign, digits.lstrip("0"), shift if digits else 0


def cell_text(value: Any, kind: SqlType, zone: str = UTC) -> str | None:
    """Return a value of a type as text, ``None`` for NULL; instants as clocks of ``zone`` show them, with their offset.

    Example:
        >>> from windowpane.sql.expressions.types import BOOLEAN
        >>> cell_text(True, BOOLEAN)
        't'
    """
    if value is None:
        return None
    if kind.element is not None:
        return _array(value, kind.element, zone)
    if isinstance(value, bool):
        return "t" if value else "f"
    if isinstance(value, Decimal):
        return numeric_text(value)
    if isinstance(value, float):
        return real_text(value) if kind == REAL else double_text(value)
    if isinstance(value, dt.datetime):
        return _timestamp(value, zone)
    if isinstance(value, dt.time):
        text = value.isoformat()
        return text.rstrip("0") if "." in text else text
    if isinstance(value, pa.MonthDayNano):
        return _interval(value)
    if isinstance(value, bytes):
        return "\\x" + value.hex()
    if kind.name == "jsonb":
        return json.dumps(json.loads(value), ensure_ascii=False)
    return str(value)


def _timestamp(value: dt.datetime, zone: str) -> str:
    if value.tzinfo is not None and zone != UTC:
        with suppress(OverflowError):  # On the last day of 9999, or the first of 1, as those beyond: in UTC.
            value = value.astimezone(zone_of(zone))
    text = value.replace(tzinfo=None).isoformat(sep=" ")
    text = text.rstrip("0") if "." in text else text
    return text if value.tzinfo is None else text + _offset(value)


def _offset(value: dt.datetime) -> str:
    text = value.isoformat()
    return text[max(text.rfind("+"), text.rfind("-")) :]


def _interval(value: pa.MonthDayNano) -> str:
    micros = value.nanoseconds // 1000 if value.nanoseconds >= 0 else -(-value.nanoseconds // 1000)
    return interval_text(value.months, value.days, micros)


def _array(values: list[Any], kind: SqlType, zone: str) -> str:
    cells = [cell_text(value, kind, zone) for value in values]
    quoted = (cell if kind.element is not None else _quoted_item(cell) for cell in cells if cell is not None)
    return "{" + ",".join("NULL" if cell is None else next(quoted) for cell in cells) + "}"


def _quoted_item(cell: str) -> str:
    needs = not cell or cell.upper() == "NULL" or any(sign in '{},"\\' or sign.isspace() for sign in cell)
    if not needs:
        return cell
    escaped = cell.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
