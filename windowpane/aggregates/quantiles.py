"""median and quantile, exact: Spark's ``percentile``.

Accumulator, and columnar partial: the list of all values. The result lies at position q * (n - 1) of the sorted values, NaN being
the largest, and is interpolated linearly between its neighbours.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windowpane.aggregates.collections import CollectList
from windowpane.arrays import Doubles, Integers, NumpyArray
from windowpane.arrays.values import Value
from windowpane.errors import InvalidSpecError
from windowpane.kernels.aggregates.lists import Lists, gathered_lists
from windowpane.kernels.aggregates.protocol import SegmentAggregate
from windowpane.kernels.keys.codes import order_codes
from windowpane.kernels.segments import Segments
from windowpane.windowing.aggregates.decimals import MICROSECOND, from_micros, is_duration, is_spark_decimal
from windowpane.windowing.aggregates.decimals import RESULT_TYPE as DURATION
from windowpane.windowing.aggregates.definition import BoundAggregate, Call, Definition, Returns, define
from windowpane.windowing.aggregates.spec import Aggregate
from windowpane.windowing.expressions import Argument


def interpolated(ordered: list[Value], q: float) -> float:
    """Return the quantile of sorted numbers, at least one, reckoned in the order of Spark's ``percentile``."""
    position = (len(ordered) - 1) * q
    lower, higher = math.floor(position), math.ceil(position)
    low, high = ordered[lower], ordered[higher]
    if lower == higher or low == high:
        return float(low) + 0.0  # never -0.0
    return (higher - position) * float(low) + (position - lower) * float(high)


@dataclass(frozen=True, slots=True)
class NumberQuantile(CollectList):
    q: float

    def get_result(self, accumulator: list[Value]) -> Value:
        # NaN has no place in Python's order and would leave the list unsorted.
        numbers = sorted(value for value in accumulator if value == value)
        return interpolated(numbers + [math.nan] * (len(accumulator) - len(numbers)), self.q) if accumulator else None


@dataclass(frozen=True, slots=True)
class DurationQuantile(NumberQuantile):
    """Intervals; the result is cut off to a whole microsecond, towards zero."""

    def get_result(self, accumulator: list[timedelta]) -> timedelta | None:
        if not accumulator:
            return None
        return from_micros(int(interpolated(sorted(value // MICROSECOND for value in accumulator), self.q)))


class ColumnarQuantile(SegmentAggregate):
    """Numbers of any kind; the result is a double. Intervals; the result is one, cut off to a microsecond."""

    def __init__(self, prefix: str, slots: tuple[str, ...], q: float, is_duration: bool) -> None:
        super().__init__(prefix, slots)
        self._q = q
        self._is_duration = is_duration

    def lift(self, rows: pa.Table) -> Mapping[str, pa.Array]:
        values = rows[self.slots[0]]
        numbers = values.cast(DURATION).cast(pa.int64()) if self._is_duration else values
        return {f"{self.prefix}v": Lists.of_one(numbers).to_arrow()}

    def merge(self, partials: pa.Table, segments: Segments) -> Mapping[str, pa.Array]:
        return {f"{self.prefix}v": gathered_lists(partials[f"{self.prefix}v"], segments).to_arrow()}

    def finish(self, partials: pa.Table) -> pa.Array:
        lists = Lists.of(partials[f"{self.prefix}v"])
        results, is_empty = self._interpolated(lists), lists.lengths == 0
        if not self._is_duration:
            return pa.array(results, mask=is_empty)
        micros = [None if empty else int(result) for result, empty in zip(results.tolist(), is_empty.tolist(), strict=True)]
        return pa.array([None if each is None else timedelta(microseconds=each) for each in micros], DURATION)

    def _interpolated(self, lists: Lists) -> Doubles:
        """Reckon in the order of Spark's ``percentile``."""
        if not len(lists.values):
            return np.zeros(len(lists.lengths))
        codes = _comparable(lists.values)
        order = np.lexsort((codes, lists.numbers))
        position = (lists.lengths - 1) * self._q
        lower, higher = np.floor(position), np.ceil(position)
        low_at, high_at = (_places(order, lists.offsets, bound) for bound in (lower, higher))
        low, high = _doubles(lists.values, low_at), _doubles(lists.values, high_at)
        is_one = (lower == higher) | (codes[low_at] == codes[high_at])
        with np.errstate(all="ignore"):
            return np.where(is_one, low, (higher - position) * low + (position - lower) * high) + 0.0  # never -0.0


def _places(order: Integers, offsets: Integers, bound: Doubles) -> Integers:
    """Return the place of the value at a position of each sorted list; any place for an empty list."""
    return order[np.minimum(offsets[:-1] + np.maximum(bound, 0).astype(np.int64), len(order) - 1)]


def _comparable(values: pa.Array) -> NumpyArray:
    """Return what sorts as the values do: numpy's own order, with NaN last, is that of numbers."""
    return order_codes(values) if pa.types.is_decimal(values.type) else values.to_numpy(zero_copy_only=False)


def _doubles(values: pa.Array, at: Integers) -> Doubles:
    if pa.types.is_decimal(values.type):  # Arrow's cast of wide decimals is not rounded to the nearest double
        return np.array([float(value) for value in values.take(pa.array(at)).to_pylist()], np.float64)
    doubles: Doubles = pc.cast(values.take(pa.array(at)), pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return doubles


def _define(name: str, q_of: Callable[[Call], float]) -> None:
    def bind(call: Call) -> BoundAggregate:
        if pa.types.is_integer(call.type) or pa.types.is_floating(call.type) or is_spark_decimal(call.type):
            return NumberQuantile(pa.float64(), q_of(call))
        if is_duration(call.type):
            return DurationQuantile(DURATION, q_of(call))
        raise call.refusal("a number or an interval")

    define(
        Definition(
            name=name,
            bind=bind,
            holistic=True,
            ordered=False,
            exact=True,
            idempotent=False,
            invertible=False,
            returns=Returns.OWN,
            compared_from=0,
            columnar=lambda call: ColumnarQuantile(call.prefix, call.slots, q_of(call), pa.types.is_duration(call.type)),
        )
    )


_define("median", lambda call: 0.5)
_define("quantile", lambda call: call.parameters["q"])


def checked_share(name: str, q: float) -> float:
    if isinstance(q, bool) or not isinstance(q, int | float) or not 0 <= q <= 1:
        raise InvalidSpecError(f"{name} was given q={q!r}, but q is a number from 0 to 1: write 0.9 for the 90th percentile.")
    return float(q)


def median(column: Argument) -> Aggregate:
    """Take the exact median of numbers or intervals: ``quantile`` at 0.5.

    Result: double, or interval. Keeps every value: see ``approx_quantile``. Source: Spark SQL ``median``.

    Example:
        >>> median("dep_delay")
        median('dep_delay')
    """
    return Aggregate.of("median", column)


def quantile(column: Argument, q: float) -> Aggregate:
    """Take the exact quantile of numbers or intervals, interpolated linearly between neighbours.

    It lies at position q * (n - 1) of the sorted values; NaN is the largest. Keeps every value: see
    ``approx_quantile``.

    Args:
        column: Numbers or intervals.
        q: From 0 (the smallest value) to 1 (the largest).

    Result: double, or interval cut off to a microsecond. Source: Spark SQL ``percentile``.

    Raises:
        InvalidSpecError: q is not within 0 and 1.

    Example:
        >>> quantile("dep_delay", 0.9)
        quantile('dep_delay', q=0.9)
    """
    return Aggregate.of("quantile", column, q=checked_share("quantile", q))
