"""var_pop, var_samp, stddev_pop, stddev_samp: one pass over central moments.

Accumulator: the list [count, mean, m2] of floats, m2 being the sum of squared distances from the mean. The
update is Welford's, the merge that of Chan, Golub and LeVeque (1979), in the order of operations of Spark's
``CentralMomentAgg``, so that doubles agree to the last bit when the rows are in the same order.

Beyond the range of doubles the result depends on the values alone: NaN if one of them is NaN or infinite, else infinity.
Spark's is one of the two, by the order in which partial results meet; it has NaN, too, for a lone value whose square is no
double. Invariant: the mean is finite as long as all values are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from typing import ClassVar

import pyarrow as pa

from windowpane.windowing.aggregates.decimals import is_spark_decimal
from windowpane.windowing.aggregates.protocol import BoundAggregate, Call


@dataclass(frozen=True, slots=True)
class Variance:
    """The variance; ``missing`` degrees of freedom are 0 for the population, 1 for a sample."""

    missing: int
    result_type: ClassVar[pa.DataType] = pa.float64()

    def create_accumulator(self) -> list[float]:
        return [0.0, 0.0, 0.0]

    def add(self, accumulator: list[float], value: float | Decimal | None) -> list[float]:
        if value is not None:
            count, mean, m2 = accumulator
            count += 1.0
            delta = float(value) - mean
            step = delta / count
            m2 += delta * (delta - step)
            if m2 != m2:
                accumulator[:] = count, *beyond_doubles(mean, float(value))
            else:
                accumulator[:] = count, mean + step, m2
        return accumulator

    def merge(self, left: list[float], right: list[float]) -> list[float]:
        left_count, left_mean, left_m2 = left
        right_count, right_mean, right_m2 = right
        count = left_count + right_count
        delta = right_mean - left_mean
        step = delta / count if count else 0.0
        m2 = left_m2 + right_m2 + delta * step * left_count * right_count
        if m2 != m2:
            return _merged_beyond_doubles(left, right)
        return [count, left_mean + step * right_count, m2]

    def get_result(self, accumulator: list[float]) -> float | None:
        count, _, m2 = accumulator
        return m2 / (count - self.missing) if count > self.missing else None


def beyond_doubles(mean: float, value: float) -> tuple[float, float]:
    """Return mean and m2 where m2 is no number: of a mean so far and a value, or of two means.

    Example:
        >>> beyond_doubles(1e300, -1e300), beyond_doubles(1.0, math.inf)
        ((1e+300, inf), (nan, nan))
    """
    return (mean, math.inf) if math.isfinite(mean) and math.isfinite(value) else (math.nan, math.nan)


def _merged_beyond_doubles(left: list[float], right: list[float]) -> list[float]:
    """Return the merge of two accumulators where m2 is no number: of a part without values, it is the other part."""
    if not left[0] or not right[0]:
        return right if right[0] else left
    return [left[0] + right[0], *beyond_doubles(left[1], right[1])]


@dataclass(frozen=True, slots=True)
class StandardDeviation(Variance):
    """The square root of the variance."""

    def get_result(self, accumulator: list[float]) -> float | None:
        count, _, m2 = accumulator
        return math.sqrt(m2 / (count - self.missing)) if count > self.missing else None


def _checked(call: Call) -> None:
    numeric = pa.types.is_integer(call.type) or pa.types.is_floating(call.type) or is_spark_decimal(call.type)
    if not numeric:
        raise call.refusal("a number")


def bind_var_pop(call: Call) -> BoundAggregate:
    """Bind ``var_pop(column)``."""
    _checked(call)
    return Variance(0)


def bind_var_samp(call: Call) -> BoundAggregate:
    """Bind ``var_samp(column)``."""
    _checked(call)
    return Variance(1)


def bind_stddev_pop(call: Call) -> BoundAggregate:
    """Bind ``stddev_pop(column)``."""
    _checked(call)
    return StandardDeviation(0)


def bind_stddev_samp(call: Call) -> BoundAggregate:
    """Bind ``stddev_samp(column)``."""
    _checked(call)
    return StandardDeviation(1)
