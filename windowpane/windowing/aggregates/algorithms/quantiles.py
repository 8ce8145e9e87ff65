"""median and quantile, exact: Spark's ``percentile``.

Accumulator: the list of all values. The result lies at position q * (n - 1) of the sorted values, NaN being
the largest, and is interpolated linearly between its neighbours.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pyarrow as pa

from windowpane.windowing.aggregates.algorithms.collecting import CollectList
from windowpane.windowing.aggregates.decimals import is_spark_decimal
from windowpane.windowing.aggregates.durations import MICROSECOND, from_micros, is_duration
from windowpane.windowing.aggregates.durations import RESULT_TYPE as DURATION
from windowpane.windowing.aggregates.protocol import BoundAggregate, Call


def interpolated(ordered: list[Any], q: float) -> float:
    """Return the quantile of sorted numbers, at least one, reckoned in the order of Spark's ``percentile``."""
    position = (len(ordered) - 1) * q
    lower, higher = math.floor(position), math.ceil(position)
    low, high = ordered[lower], ordered[higher]
    if lower == higher or low == high:
        return float(low) + 0.0  # never -0.0
    return (higher - position) * float(low) + (position - lower) * float(high)


def _nan_last(values: list[Any]) -> list[Any]:
    # NaN has no place in Python's order and would leave the list unsorted.
    numbers = sorted(value for value in values if value == value)
    return numbers + [math.nan] * (len(values) - len(numbers))


@dataclass(frozen=True, slots=True)
class NumberQuantile(CollectList):
    """Numbers of any kind; the result is a double."""

    q: float

    def get_result(self, accumulator: list[Any]) -> Any:
        return interpolated(_nan_last(accumulator), self.q) if accumulator else None


@dataclass(frozen=True, slots=True)
class DurationQuantile(NumberQuantile):
    """Intervals; the result is cut off to a whole microsecond, towards zero."""

    def get_result(self, accumulator: list[timedelta]) -> timedelta | None:
        if not accumulator:
            return None
        return from_micros(int(interpolated(sorted(value // MICROSECOND for value in accumulator), self.q)))


def _quantile(call: Call, q: float) -> BoundAggregate:
    if pa.types.is_integer(call.type) or pa.types.is_floating(call.type) or is_spark_decimal(call.type):
        return NumberQuantile(pa.float64(), q)
    if is_duration(call.type):
        return DurationQuantile(DURATION, q)
    raise call.refusal("a number or an interval")


def bind_median(call: Call) -> BoundAggregate:
    """Bind ``median(column)``."""
    return _quantile(call, 0.5)


def bind_quantile(call: Call) -> BoundAggregate:
    """Bind ``quantile(column, q)``."""
    return _quantile(call, call.parameters["q"])
