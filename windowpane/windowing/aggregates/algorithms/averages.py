"""avg: the total divided by the number of values.

Accumulator: the list [total, count], total being 0, an exact int, a float, a Decimal, or an int of
microseconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa

from windowpane.windowing.aggregates.decimals import (
    EXACT,
    bounded_decimal,
    divide_half_up,
    fitted,
    is_spark_decimal,
)
from windowpane.windowing.aggregates.decimals import mean as decimal_mean
from windowpane.windowing.aggregates.durations import MICROSECOND, from_micros, is_duration
from windowpane.windowing.aggregates.durations import RESULT_TYPE as DURATION
from windowpane.windowing.aggregates.protocol import BoundAggregate, Call


@dataclass(frozen=True, slots=True)
class NumberAverage:
    """Integers, whose total is exact, and floating point, whose total adds up in order of arrival."""

    label: str
    result_type: pa.DataType

    def create_accumulator(self) -> list[Any]:
        return [0, 0]

    def add(self, accumulator: list[Any], value: Any) -> list[Any]:
        if value is not None:
            accumulator[0] += value
            accumulator[1] += 1
        return accumulator

    def merge(self, left: list[Any], right: list[Any]) -> list[Any]:
        left[0] += right[0]
        left[1] += right[1]
        return left

    def get_result(self, accumulator: list[Any]) -> Any:
        total, count = accumulator
        return total / count if count else None


@dataclass(frozen=True, slots=True)
class DecimalAverage(NumberAverage):
    """Decimals: exact total, four more decimal places, HALF_UP."""

    def create_accumulator(self) -> list[Any]:
        return [Decimal(0), 0]

    def add(self, accumulator: list[Any], value: Decimal | None) -> list[Any]:
        if value is not None:
            accumulator[0] = EXACT.add(accumulator[0], value)
            accumulator[1] += 1
        return accumulator

    def merge(self, left: list[Any], right: list[Any]) -> list[Any]:
        return [EXACT.add(left[0], right[0]), left[1] + right[1]]

    def get_result(self, accumulator: list[Any]) -> Decimal | None:
        total, count = accumulator
        if not count:
            return None
        return fitted(decimal_mean(total, count, self.result_type.scale), self.result_type, self.label)


@dataclass(frozen=True, slots=True)
class DurationAverage(NumberAverage):
    """Intervals: whole microseconds, HALF_UP."""

    def add(self, accumulator: list[Any], value: timedelta | None) -> list[Any]:
        if value is not None:
            accumulator[0] += value // MICROSECOND
            accumulator[1] += 1
        return accumulator

    def get_result(self, accumulator: list[Any]) -> timedelta | None:
        total, count = accumulator
        return from_micros(divide_half_up(total, count)) if count else None


def bind_avg(call: Call) -> BoundAggregate:
    """Bind ``avg(column)``."""
    if pa.types.is_integer(call.type) or pa.types.is_floating(call.type):
        return NumberAverage(call.label, pa.float64())
    if is_spark_decimal(call.type):
        return DecimalAverage(call.label, bounded_decimal(call.type.precision + 4, call.type.scale + 4))
    if is_duration(call.type):
        return DurationAverage(call.label, DURATION)
    raise call.refusal("a number or an interval")
