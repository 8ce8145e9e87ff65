"""Functions of single values on Arrow arrays, for what DuckDB's SQL cannot say. NULL in, NULL out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from windowpane.sql.intervals import interval_text, read_span
from windowpane.sql.scalar import array_text, json_values, regexps, similar

Kernel = Callable[..., pa.Array]


class ScalarValueError(ValueError):
    """A value that a function has no result for; DuckDB passes its text on."""


def _each(function: Callable[..., Any], kind: pa.DataType) -> Kernel:
    """Return a function of single values as one of arrays."""

    def kernel(*columns: pa.ChunkedArray | pa.Array) -> pa.Array:
        rows = zip(*(column.to_pylist() for column in columns), strict=True)
        return pa.array([None if None in row else function(*row) for row in rows], kind)

    return kernel


def _refused(message: str) -> str:
    raise ScalarValueError(message)


def _interval_parts(text: str) -> list[int]:
    found = read_span(text)
    return [found.months, found.days, found.micros]


KERNELS: dict[str, tuple[Kernel, str]] = {
    "refused": (_each(_refused, pa.string()), "VARCHAR"),
    "jsonb": (_each(json_values.canonical, pa.string()), "VARCHAR"),
    "jsonb_value": (_each(json_values.by_value, pa.string()), "VARCHAR"),
    "jsonb_order": (_each(json_values.order_key, pa.string()), "VARCHAR"),
    "jsonb_text": (_each(json_values.text, pa.string()), "VARCHAR"),
    "pattern_match": (_each(regexps.match, pa.list_(pa.string())), "VARCHAR[]"),
    "pattern_matches": (
        _each(regexps.all_matches, pa.list_(pa.list_(pa.string()))),
        "VARCHAR[][]",
    ),
    "pattern_replace": (_each(regexps.replaced, pa.string()), "VARCHAR"),
    "pattern_split": (_each(regexps.split, pa.list_(pa.string())), "VARCHAR[]"),
    "pattern_count": (_each(regexps.count, pa.int32()), "INTEGER"),
    "pattern_similar": (_each(similar.regular, pa.string()), "VARCHAR"),
    "interval_parts": (_each(_interval_parts, pa.list_(pa.int64())), "BIGINT[]"),
    "interval_shown": (_each(interval_text, pa.string()), "VARCHAR"),
    "array_json": (_each(array_text.as_json, pa.string()), "VARCHAR"),
}
"""Name, kernel, and type of the result as DuckDB names it."""
