"""Values as text, the way PostgreSQL and RisingWave print them."""

from __future__ import annotations

import datetime as dt
import json
import math
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from windowpane.sql.numerics.text import numeric_text
from windowpane.sql.types import REAL, SqlType


def cell_text(value: Any, kind: SqlType) -> str | None:
    """Return a value of a type as text, ``None`` for NULL.

    Example:
        >>> from windowpane.sql.types import BOOLEAN
        >>> cell_text(True, BOOLEAN)
        't'
    """
    if value is None:
        return None
    if kind.element is not None:
        return _array(value, kind.element)
    if isinstance(value, bool):
        return "t" if value else "f"
    if isinstance(value, Decimal):
        return numeric_text(value)
    if isinstance(value, float):
        return _float(value, kind)
    if isinstance(value, dt.datetime):
        return _timestamp(value)
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


def _float(value: float, kind: SqlType) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    text = str(np.float32(value)) if kind == REAL else repr(value)
    return text.removesuffix(".0")


def _timestamp(value: dt.datetime) -> str:
    text = value.replace(tzinfo=None).isoformat(sep=" ")
    text = text.rstrip("0") if "." in text else text
    return text if value.tzinfo is None else text + "+00:00"


def _interval(value: pa.MonthDayNano) -> str:
    years, months = int(value.months / 12), int(math.fmod(value.months, 12))
    parts = [f"{years} year{'' if abs(years) == 1 else 's'}"] if years else []
    parts += [f"{months} mon{'' if abs(months) == 1 else 's'}"] if months else []
    parts += [f"{value.days} day{'' if abs(value.days) == 1 else 's'}"] if value.days else []
    micros = value.nanoseconds // 1000 if value.nanoseconds >= 0 else -(-value.nanoseconds // 1000)
    if micros or not parts:
        parts.append(_clock(micros))
    return " ".join(parts)


def _clock(micros: int) -> str:
    sign, rest = "-" if micros < 0 else "", abs(micros)
    seconds, fraction = divmod(rest, 1_000_000)
    text = f"{sign}{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return text if not fraction else f"{text}.{fraction:06}".rstrip("0")


def _array(values: list[Any], kind: SqlType) -> str:
    cells = [cell_text(value, kind) for value in values]
    return "{" + ",".join("NULL" if cell is None else _quoted_item(cell) for cell in cells) + "}"


def _quoted_item(cell: str) -> str:
    needs = not cell or cell.upper() == "NULL" or any(sign in cell for sign in '{}," \\')
    if not needs or cell.startswith("{"):
        return cell
    escaped = cell.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
