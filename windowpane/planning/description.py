"""Descriptions: a program as text that is the same in every process, part by part, which a restart compares."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from windowpane.arrays.columns import column_text

_NO_REPR: Any = object.__repr__


def description(engine: str, **parts: str) -> tuple[tuple[str, str], ...]:
    """Return the parts a restart compares, by name; a name is written with spaces."""
    named = ((name.replace("_", " "), text) for name, text in parts.items())
    return (("engine", engine), *named)


def columns_text(columns: pa.Schema) -> str:
    """Return columns with their types as text."""
    return ", ".join(map(column_text, columns))


def describe(part: Any) -> str:
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


def _callable_name(function: Callable[..., Any]) -> str:
    return f"{getattr(function, '__module__', '')}.{function.__qualname__}"
