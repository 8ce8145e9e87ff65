"""avg: the total divided by the number of values.

Accumulator: the list [total, count], total being 0, an exact int, a float, a Decimal, or an int of
microseconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windowpane.aggregates.sums import (
    ColumnarDecimalSum,
    ColumnarDurationSum,
    ColumnarFloatSum,
    ColumnarIntegerSum,
    FramedDecimalSum,
    FramedFloatSum,
    RunningDecimalSum,
    RunningFloatSum,
    RunningIntegerSum,
    columnar_of,
    define_total,
    of_numbers,
)
from windowpane.arrays import Integers, Mask
from windowpane.arrays.values import Value
from windowpane.errors import present
from windowpane.kernels.aggregates.protocol import KernelAggregate, Partial
from windowpane.kernels.over.rows import SortedRows
from windowpane.kernels.over.sums import decimal_means, integer_means
from windowpane.windowing.aggregates.decimals import (
    EXACT,
    MICROSECOND,
    bounded_decimal,
    divide_half_up,
    fitted,
    from_micros,
    is_duration,
    is_spark_decimal,
)
from windowpane.windowing.aggregates.decimals import RESULT_TYPE as DURATION
from windowpane.windowing.aggregates.decimals import mean as decimal_mean
from windowpane.windowing.aggregates.definition import BoundAggregate, Call
from windowpane.windowing.aggregates.spec import Aggregate
from windowpane.windowing.expressions import Argument

Total = list[Value]
"""The sum of values, and how many they are."""


@dataclass(frozen=True, slots=True)
class NumberAverage:
    """Integers, whose total is exact, and floating point, whose total adds up in order of arrival."""

    label: str
    result_type: pa.DataType

    def create_accumulator(self) -> Total:
        return [0, 0]

    def add(self, accumulator: Total, value: Value) -> Total:
        if value is not None:
            accumulator[0] += value
            accumulator[1] += 1
        return accumulator

    def merge(self, left: Total, right: Total) -> Total:
        left[0] += right[0]
        left[1] += right[1]
        return left

    def get_result(self, accumulator: Total) -> Value:
        total, count = accumulator
        return total / count if count else None


@dataclass(frozen=True, slots=True)
class DecimalAverage(NumberAverage):
    def create_accumulator(self) -> Total:
        return [Decimal(0), 0]

    def add(self, accumulator: Total, value: Decimal | None) -> Total:
        if value is not None:
            accumulator[0] = EXACT.add(accumulator[0], value)
            accumulator[1] += 1
        return accumulator

    def merge(self, left: Total, right: Total) -> Total:
        return [EXACT.add(left[0], right[0]), left[1] + right[1]]

    def get_result(self, accumulator: Total) -> Decimal | None:
        total, count = accumulator
        if not count:
            return None
        return fitted(decimal_mean(total, count, self.result_type.scale), self.result_type, self.label)


@dataclass(frozen=True, slots=True)
class DurationAverage(NumberAverage):
    def add(self, accumulator: Total, value: timedelta | None) -> Total:
        if value is not None:
            accumulator[0] += value // MICROSECOND
            accumulator[1] += 1
        return accumulator

    def get_result(self, accumulator: Total) -> timedelta | None:
        total, count = accumulator
        return from_micros(divide_half_up(total, count)) if count else None


def _bound(call: Call) -> BoundAggregate:
    if pa.types.is_integer(call.type) or pa.types.is_floating(call.type):
        return NumberAverage(call.label, pa.float64())
    if is_spark_decimal(call.type):
        return DecimalAverage(call.label, bounded_decimal(call.type.precision + 4, call.type.scale + 4))
    if is_duration(call.type):
        return DurationAverage(call.label, DURATION)
    raise call.refusal("a number or an interval")


# --- partials of columns ---


class _Counted(KernelAggregate):
    """Beside the sum it is mixed with: how many values were added up."""

    @property
    def partials(self) -> tuple[Partial, ...]:
        return (*super().partials, Partial(f"{self.prefix}n", "count", "sum"))

    def prepare(self, rows: pa.Table) -> dict[str, pa.Array]:
        return {**super().prepare(rows), f"{self.prefix}n": rows[self.slots[0]]}


class ColumnarFloatMean(_Counted, ColumnarFloatSum):
    def finish(self, partials: pa.Table) -> pa.Array:
        return pc.divide(super().finish(partials), partials[f"{self.prefix}n"].cast(pa.float64()).combine_chunks())


class ColumnarIntegerMean(_Counted, ColumnarIntegerSum):
    """Integers: the exact sum by the count, rounded once."""

    def finish(self, partials: pa.Table) -> pa.Array:
        high, low, count = (pc.fill_null(partials[f"{self.prefix}{name}"], 0).to_numpy() for name in "hln")
        return integer_means(high, low, count)


class ColumnarDurationMean(_Counted, ColumnarDurationSum):
    def finish(self, partials: pa.Table) -> pa.Array:
        pairs = zip(self.totals(partials), partials[f"{self.prefix}n"].to_pylist(), strict=True)
        means = [None if total is None else from_micros(divide_half_up(total, count)) for total, count in pairs]
        return pa.array(means, DURATION)


class ColumnarDecimalMean(_Counted, ColumnarDecimalSum):
    """Decimals: the exact sum by the count, four more decimal places, HALF_UP."""

    def finish(self, partials: pa.Table) -> pa.Array:
        totals: Sequence[Decimal | None] = partials[f"{self.prefix}s"].to_pylist()
        pairs = zip(totals, partials[f"{self.prefix}n"].to_pylist(), strict=True)
        means = [None if total is None else decimal_mean(total, count, self._type.scale) for total, count in pairs]
        return pa.array([None if mean is None else fitted(mean, self._type, self._label) for mean in means], self._type)


# --- frames of sorted rows ---


class FramedIntegerMean(FramedDecimalSum):
    def over(self, rows: SortedRows, counted: Mask, count: Integers) -> pa.Array:
        return integer_means(*self.halves(rows, counted), count)


class FramedDecimalMean(FramedDecimalSum):
    def over(self, rows: SortedRows, counted: Mask, count: Integers) -> pa.Array:
        kind = present(self.kind, "it has an argument")
        wanted = np.where(rows.wanted, count, 0)
        return decimal_means(*self.halves(rows, counted), wanted, kind.scale, self.result_type, str(self.call))


class FramedFloatMean(FramedFloatSum):
    def over(self, rows: SortedRows, counted: Mask, count: Integers) -> pa.Array:
        return pa.array(self.summed(rows, counted) / np.maximum(count, 1), mask=count == 0)


# --- running frames ---


class RunningIntegerMean(RunningIntegerSum):
    def value(self, rows: SortedRows) -> pa.Array:
        return integer_means(*self.summed(rows), self.totals(rows))


class RunningFloatMean(RunningFloatSum):
    what, start = "total", 0.0

    def value(self, rows: SortedRows) -> pa.Array:
        counts = self.totals(rows)
        return pa.array(self.summed(rows) / np.maximum(counts, 1), mask=counts == 0)


class RunningDecimalMean(RunningDecimalSum):
    def value(self, rows: SortedRows) -> pa.Array:
        kind = present(self.kind, "it has an argument")
        counts = np.where(rows.wanted, self.totals(rows), 0)
        return decimal_means(*self.summed(rows), counts, kind.scale, self.result_type, str(self.call))


define_total(
    "avg",
    _bound,
    columnar_of(ColumnarIntegerMean, ColumnarFloatMean, ColumnarDecimalMean, ColumnarDurationMean),
    of_numbers(FramedIntegerMean, FramedFloatMean, FramedDecimalMean),
    of_numbers(RunningIntegerMean, RunningFloatMean, RunningDecimalMean),
    is_mean=True,
)


def avg(column: Argument) -> Aggregate:
    """Take the arithmetic mean of numbers or intervals.

    Result: double for integers (from their exact total) and floating point; decimal(p + 4, s + 4) for
    decimal(p, s), both at most 38, rounded HALF_UP; interval for intervals, rounded HALF_UP to a microsecond.
    Source: Spark SQL ``avg``. (Below 12 digits Spark's optimizer averages decimals as doubles, which may
    differ in the last place on a tie.)

    Raises:
        AggregateOverflowError: when the result, a decimal, is made and does not fit.

    Example:
        >>> avg("dep_delay")
        avg('dep_delay')
    """
    return Aggregate.of("avg", column)
