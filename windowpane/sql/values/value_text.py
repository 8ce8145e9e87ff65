"""Values as text, the way PostgreSQL and RisingWave print them."""

from __future__ import annotations

import datetime as dt
import json
from contextlib import suppress
from decimal import Decimal
from typing import Any

import pyarrow as pa

from windowpane.sql.expressions.types import REAL, SqlType
from windowpane.sql.numerics.placing import numeric_text
from windowpane.sql.values.float_text import double_text, real_text
from windowpane.sql.values.intervals import interval_text
from windowpane.sql.values.zone import UTC
from windowpane.windowing.times import zone_of


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
