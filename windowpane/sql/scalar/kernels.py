"""Functions of single values on Arrow arrays, for what DuckDB's SQL cannot say. NULL in, NULL out."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
from functools import reduce
from importlib import import_module
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windowpane import errors
from windowpane.arrays.columns import flat
from windowpane.errors import InvalidValueError, OutOfRangeError, SqlRunError
from windowpane.kernels.keys.key_codes import text_hash
from windowpane.sql.values import array_text, bytea_values, json_functions, json_values, regexps
from windowpane.sql.values.intervals import interval_text, read_span
from windowpane.sql.values.value_text import real_text
from windowpane.windowing.aggregates import Aggregate
from windowpane.windowing.aggregates.definition import is_defined
from windowpane.windowing.assigners.calendars import Calendar


def _bucket_value(value: float, relative_error: float) -> float:
    """Return the value that stands for all of the bucket of a value, off by ``relative_error`` of it at most.

    A bucket holds the values between two powers of a base that follows from the relative error. Source: RisingWave's
    ``approx_percentile``; Masson et al., "DDSketch" (2019).
    """
    if value == 0 or not math.isfinite(value):
        return value
    base = (1 + relative_error) / (1 - relative_error)
    bucket = math.ceil(math.log(abs(value)) / math.log(base))
    return math.copysign(2 * _power(base, bucket) / (base + 1), value)


def _power(base: float, exponent: int) -> float:
    """Return a power by squaring, which rounds as RisingWave's does."""
    result, square, rest = 1.0, base, abs(exponent)
    while rest:
        if rest & 1:
            result *= square
        rest >>= 1
        if rest:
            square *= square
    return 1 / result if exponent < 0 else result


Kernel = Callable[..., pa.Array]


def _calendar_bound(instants: Any, periods: Any, size: Any, timezone: Any, months: Any, days: Any, origin: Any) -> pa.Array:
    """Return a bound of windows of months, or of days of a zone, as microseconds.

    It is where the period begins that lies so many periods behind the start of the group of ``size`` that holds an instant.

    Args:
        instants: microseconds from the epoch; NULL gives NULL.
        periods: how many periods further.
        size: how many periods a group has; its groups are counted from period 0.
        timezone: the zone, as all that follow of one value.
        months: months of a period; 0 where it is made of days.
        days: days of a period; 0 where it is made of months.
        origin: the local date at which period 0 begins, as ISO text.

    Raises:
        CalendarRangeError: an instant lies outside of the years 1 to 9999.
    """
    if not len(instants):
        return pa.nulls(0, pa.int64())
    given = [column[0].as_py() for column in (timezone, months, days, origin)]
    calendar = Calendar(given[0], given[1], given[2], dt.date.fromisoformat(given[3]))
    length = size[0].as_py()
    is_null = pc.is_null(instants).to_numpy(zero_copy_only=False)
    valid = instants.drop_null().to_numpy()
    further = periods.to_numpy()[~is_null]
    result = np.zeros(len(is_null), np.int64)
    result[~is_null] = calendar.begins(calendar.indexes(valid) // length * length + further)
    return pa.array(result, mask=is_null)


def _each(function: Callable[..., Any], kind: pa.DataType) -> Kernel:
    """Return a function of single values as one of arrays."""

    def kernel(*columns: pa.ChunkedArray | pa.Array) -> pa.Array:
        rows = zip(*(column.to_pylist() for column in columns), strict=True)
        try:
            return pa.array([None if None in row else function(*row) for row in rows], kind)
        except RecursionError:
            raise OutOfRangeError("a value is nested too deep to be computed with. Take the part of it that is needed") from None

    return kernel


def _aggregate(
    modules: pa.ChunkedArray | pa.Array, names: pa.ChunkedArray | pa.Array, lists: pa.ChunkedArray | pa.Array
) -> pa.Array:
    """Return the text of an aggregate, that a module of a user's defines, of the values of each list; no list has no rows."""
    results = []
    for module, name, values in zip(modules.to_pylist(), names.to_pylist(), lists.to_pylist(), strict=True):
        if not is_defined(name):  # on a worker of Spark
            try:
                import_module(module)
            except ImportError:
                raise InvalidValueError(
                    f"the aggregate {name} is defined in the module {module}, which this process cannot import: on Spark, put it "
                    "into a file that workers have, as with spark.sparkContext.addPyFile"
                ) from None
        bound = Aggregate(name, ("value",)).bind([lists.type.value_type])
        result = bound.get_result(reduce(bound.add, values or [], bound.create_accumulator()))
        results.append(pa.scalar(result, bound.result_type).cast(pa.string()).as_py())
    return pa.array(results, pa.string())


def _refused(kind: str, message: str) -> str:
    error: type[SqlRunError] = getattr(errors, kind)
    raise error(message)


MOST_BYTES = 2**30
"""The bytes that one function may make at once. DuckDB computes 2,048 rows together, and does not count what they need."""


def _room(sizes: pa.ChunkedArray | pa.Array) -> pa.Array:
    """Return the sizes of results that are about to be made, refused where they are too much together."""
    total = pc.sum(sizes).as_py() or 0
    if total > MOST_BYTES:
        raise OutOfRangeError(
            f"requested length too large: {total} bytes for the {len(sizes)} rows that are computed together, where "
            f"{MOST_BYTES} are the most. Make shorter values, or fewer rows at once; a series of whole numbers whose bounds are "
            "constants, without a step, needs no room"
        )
    return flat(sizes)


def _interval_parts(text: str) -> list[int]:
    found = read_span(text)
    return [found.months, found.days, found.micros]


def _ramp(kind: type[np.floating[Any]]) -> Callable[..., list[float]]:
    """Return what makes the numbers between two, each the sum of the one before it and a step."""

    def ramp(first: float, last: float, steps: int) -> list[float]:
        summands = np.full(steps, (kind(last) - kind(first)) / kind(steps), kind)
        summands[0] += kind(first)
        found: list[float] = np.add.accumulate(summands, dtype=kind)[:-1].tolist()
        return found

    return ramp


KERNELS: dict[str, tuple[Kernel, str]] = {
    "aggregate": (_aggregate, "VARCHAR"),
    "refused": (_each(_refused, pa.string()), "VARCHAR"),
    "room": (_room, "BIGINT"),
    "jsonb": (_each(json_values.canonical, pa.string()), "VARCHAR"),
    "jsonb_key": (_each(json_values.by_value, pa.string()), "VARCHAR"),
    "jsonb_rank": (_each(json_values.order_key, pa.string()), "VARCHAR"),
    "jsonb_text": (_each(json_values.text, pa.string()), "VARCHAR"),
    **{f"jsonb_{each.__name__}": (_each(each, pa.bool_()), "BOOLEAN") for each in json_functions.CONDITIONS},
    **{f"jsonb_{each.__name__}": (_each(each, pa.string()), "VARCHAR") for each in json_functions.TEXTS},
    "pattern_match": (_each(regexps.match, pa.list_(pa.string())), "VARCHAR[]"),
    "pattern_matches": (
        _each(regexps.all_matches, pa.list_(pa.list_(pa.string()))),
        "VARCHAR[][]",
    ),
    "pattern_replace": (_each(regexps.replaced, pa.string()), "VARCHAR"),
    "pattern_split": (_each(regexps.split, pa.list_(pa.string())), "VARCHAR[]"),
    "pattern_count": (_each(regexps.count, pa.int32()), "INTEGER"),
    "pattern_similar": (_each(regexps.similar_in_re2, pa.string()), "VARCHAR"),
    "interval_parts": (_each(_interval_parts, pa.list_(pa.int64())), "BIGINT[]"),
    "interval_shown": (_each(interval_text, pa.string()), "VARCHAR"),
    "bytea_read": (_each(bytea_values.read, pa.binary()), "BLOB"),
    "bytea_encode": (_each(bytea_values.encode, pa.string()), "VARCHAR"),
    "bytea_decode": (_each(bytea_values.decode, pa.binary()), "BLOB"),
    "bytea_text": (_each(bytea_values.text_of, pa.string()), "VARCHAR"),
    "bytea_of_text": (_each(bytea_values.bytes_of, pa.binary()), "BLOB"),
    "real_text": (_each(real_text, pa.string()), "VARCHAR"),
    "bucket_value": (_each(_bucket_value, pa.float64()), "DOUBLE"),
    "calendar_bound": (_calendar_bound, "BIGINT"),
    "ramp": (_each(_ramp(np.float64), pa.list_(pa.float64())), "DOUBLE[]"),
    "ramp_of_reals": (_each(_ramp(np.float32), pa.list_(pa.float32())), "FLOAT[]"),
    "text_hash": (text_hash, "UBIGINT"),
    "array_json": (_each(array_text.as_json, pa.string()), "VARCHAR"),
}
"""Name, kernel, and type of the result as DuckDB names it."""
