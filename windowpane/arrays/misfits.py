"""Values that are none of an Arrow type though Arrow makes them one: a fraction for integers, a time of day for dates."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import partial

import numpy as np
import pyarrow as pa

from windowpane.arrays.values import Value

Misfit = Callable[[Value], str | None]


def reason_of(misfit: Misfit, value: Value) -> str | None:
    """Return why a value is none of the type, ``None`` if it is one, or of another shape, which Arrow refuses."""
    try:
        return misfit(value)
    except (TypeError, ValueError):
        return None


def misfit_of(kind: pa.DataType) -> Misfit | None:
    """Return what says why a value is not one of a type though Arrow makes it one, ``None`` where there is no such value."""
    if pa.types.is_date(kind):
        return _not_a_day
    if pa.types.is_integer(kind) or pa.types.is_temporal(kind):
        return _cut_off
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return partial(_misfit_in_list, misfit_of(kind.value_type) or _fits)
    if pa.types.is_struct(kind):
        return partial(_misfit_in_struct, {field.name: misfit_of(field.type) or _fits for field in kind})
    if pa.types.is_map(kind):
        return partial(_misfit_in_map, *(misfit_of(each) or _fits for each in (kind.key_type, kind.item_type)))
    return None


def _fits(value: Value) -> None:
    """Find nothing."""


def _cut_off(value: Value) -> str | None:
    if isinstance(value, float | Decimal | np.floating) and value % 1 != 0:
        return f"holds whole numbers, and {value!r} has a fraction"
    return None


def _not_a_day(value: Value) -> str | None:
    if isinstance(value, dt.datetime) and value.time() != dt.time():
        return f"holds dates, and {value!r} has a time of day"
    return _cut_off(value)


def _misfit_in_list(element: Misfit, values: Value) -> str | None:
    if isinstance(values, str | bytes):
        return f"holds lists, and {values!r} is none"
    return None if values is None or element is _fits else next(filter(None, map(element, values)), None)


def _misfit_in_struct(fields: Mapping[str, Misfit], row: Value) -> str | None:
    for name, value in dict(row or {}).items():
        if name not in fields:
            return f"has no field {name!r}"
        if reason := fields[name](value):
            return reason
    return None


def _misfit_in_map(key: Misfit, item: Misfit, entries: Value) -> str | None:
    pairs = entries.items() if isinstance(entries, Mapping) else entries or ()
    return next(filter(None, (key(k) or item(v) for k, v in pairs)), None)


def why_not(value: Value, kind: pa.DataType) -> str | None:
    """Return why a constant is no value of a type, ``None`` if it is one.

    Example:
        >>> why_not(1.5, pa.int64()), why_not(2.0, pa.int64())
        ('holds whole numbers, and 1.5 has a fraction', None)
    """
    misfit = misfit_of(kind)
    if misfit is not None and (reason := reason_of(misfit, value)):
        return reason
    try:
        pa.scalar(value, kind)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        return f"has no such value ({error})"
    return None
