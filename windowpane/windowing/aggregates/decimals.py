"""Exact decimals under Spark SQL's rules for precision and rounding, and intervals in microseconds.

Sums are kept exactly, whatever their size; only a result has to fit. Rounding is HALF_UP, away from zero on a tie.
"""

from __future__ import annotations

from datetime import timedelta
from decimal import Context, Decimal

import pyarrow as pa

from windowpane.errors import AggregateOverflowError

MAX_PRECISION = 38
"""The digits of Spark's and Arrow's 128-bit decimals."""

EXACT = Context(prec=100)
"""Adds up to 10**60 decimals of 38 digits without rounding; Python's default context rounds at 28 digits."""

_DIVISION_SCALE = MAX_PRECISION + 1


def bounded_decimal(precision: int, scale: int) -> pa.DataType:
    return pa.decimal128(min(precision, MAX_PRECISION), min(scale, MAX_PRECISION))


def is_spark_decimal(value_type: pa.DataType) -> bool:
    """Whether an Arrow type is a decimal that Spark can hold."""
    return bool(pa.types.is_decimal(value_type)) and value_type.precision <= MAX_PRECISION


def divide_half_up(dividend: int, divisor: int) -> int:
    """Return the quotient rounded HALF_UP; the divisor is positive."""
    magnitude = (2 * abs(dividend) + divisor) // (2 * divisor)
    return magnitude if dividend >= 0 else -magnitude


def mean(total: Decimal, count: int, scale: int) -> Decimal:
    """Return total / count, rounded as Spark rounds: at 39 decimal places, then at the given scale."""
    unscaled = int(total.scaleb(_DIVISION_SCALE, EXACT))
    quotient = divide_half_up(unscaled, count)
    rounded = divide_half_up(quotient, 10 ** (_DIVISION_SCALE - scale))
    return Decimal(rounded).scaleb(-scale, EXACT)


def fitted(value: Decimal, result_type: pa.DataType, label: str) -> Decimal:
    """Return the value if it fits the type."""
    # copy_abs, since abs() rounds to 28 digits.
    if value.copy_abs() >= Decimal(1).scaleb(result_type.precision - result_type.scale):
        raise AggregateOverflowError(label, value, result_type)
    return value


MICROSECOND = timedelta(microseconds=1)
RESULT_TYPE = pa.duration("us")


def is_duration(value_type: pa.DataType) -> bool:
    """Whether an Arrow type is an interval in whole microseconds or coarser, the finest that Spark knows."""
    return bool(pa.types.is_duration(value_type)) and value_type.unit != "ns"


def from_micros(micros: int) -> timedelta:
    return timedelta(microseconds=micros)
