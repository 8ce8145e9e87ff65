"""Specs as text for people, the same in every process."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

_NO_REPR: object = object.__repr__


def describe(part: object) -> str:
    """Return a spec as text that is the same in every process: functions by their qualified name, not their address."""
    if isinstance(part, type):
        return part.__qualname__
    if dataclasses.is_dataclass(part):
        values = [f"{column.name}={describe(getattr(part, column.name))}" for column in dataclasses.fields(part)]
        return f"{type(part).__qualname__}({', '.join(values)})"
    if callable(part) and hasattr(part, "__qualname__"):
        return _callable_name(part)
    if isinstance(part, str | int | float | bool | type(None)) or type(part).__module__ == "enum":
        return repr(part)
    return repr(part) if type(part).__repr__ is not _NO_REPR else type(part).__qualname__


def _callable_name(function: Callable[..., object]) -> str:
    return f"{getattr(function, '__module__', '')}.{function.__qualname__}"
