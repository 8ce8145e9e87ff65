"""sum: exact for integers, decimals and intervals; in order of arrival for doubles.

Accumulators: None while there was no value, then the total (int, float, Decimal, or int of microseconds). An
exact total may leave the range of the result type on the way; only the result has to fit. Spark raises on the
way, and so depends on order.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa

from windowpane.errors import AggregateOverflowError
from windowpane.windowing.aggregates.decimals import EXACT, bounded_decimal, fitted, is_spark_decimal
from windowpane.windowing.aggregates.durations import MICROSECOND, from_micros, is_duration
from windowpane.windowing.aggregates.durations import RESULT_TYPE as DURATION
from windowpane.windowing.aggregates.protocol import BoundAggregate, Call
from windowpane.windowing.times import MAX, MIN


@dataclass(frozen=True, slots=True)
class FloatSum:
    """Floating point: doubles added in order of arrival, onto 0.0 as in Spark: a sum is never -0.0."""

    label: str
    result_type: pa.DataType

    def create_accumulator(self) -> Any:
        return None

    def add(self, accumulator: Any, value: Any) -> Any:
        if value is None:
            return accumulator
        return value if accumulator is None else accumulator + value

    def merge(self, left: Any, right: Any) -> Any:
        if right is None:
            return left
        return right if left is None else left + right

    def get_result(self, accumulator: Any) -> Any:
        return None if accumulator is None else accumulator + 0.0


@dataclass(frozen=True, slots=True)
class IntegerSum(FloatSum):
    """Integers: unbounded on the way, bigint at the end."""

    def get_result(self, accumulator: int | None) -> Any:
        if accumulator is not None and not MIN <= accumulator <= MAX:
            raise AggregateOverflowError(self.label, accumulator, self.result_type)
        return accumulator


@dataclass(frozen=True, slots=True)
class DecimalSum(FloatSum):
    """Decimals: exact, ten more digits at the end."""

    def add(self, accumulator: Decimal | None, value: Decimal | None) -> Decimal | None:
        if value is None:
            return accumulator
        return value if accumulator is None else EXACT.add(accumulator, value)

    def merge(self, left: Decimal | None, right: Decimal | None) -> Decimal | None:
        return self.add(left, right)

    def get_result(self, accumulator: Decimal | None) -> Decimal | None:
        return None if accumulator is None else fitted(accumulator, self.result_type, self.label)


@dataclass(frozen=True, slots=True)
class DurationSum(FloatSum):
    """Intervals: a total of microseconds."""

    def add(self, accumulator: int | None, value: timedelta | None) -> int | None:
        if value is None:
            return accumulator
        return value // MICROSECOND if accumulator is None else accumulator + value // MICROSECOND

    def get_result(self, accumulator: int | None) -> timedelta | None:
        if accumulator is None:
            return None
        if not MIN <= accumulator <= MAX:
            raise AggregateOverflowError(self.label, f"{accumulator} µs", self.result_type)
        return from_micros(accumulator)


def bind_sum(call: Call) -> BoundAggregate:
    """Bind ``sum(column)``."""
    if pa.types.is_integer(call.type):
        return IntegerSum(call.label, pa.int64())
    if pa.types.is_floating(call.type):
        return FloatSum(call.label, pa.float64())
    if is_spark_decimal(call.type):
        return DecimalSum(call.label, bounded_decimal(call.type.precision + 10, call.type.scale))
    if is_duration(call.type):
        return DurationSum(call.label, DURATION)
    raise call.refusal("a number or an interval")
