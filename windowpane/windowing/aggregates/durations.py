"""Intervals of time inside an aggregate: whole microseconds, as in Spark's day-time intervals."""

from __future__ import annotations

from datetime import timedelta

import pyarrow as pa

MICROSECOND = timedelta(microseconds=1)
RESULT_TYPE = pa.duration("us")


def is_duration(value_type: pa.DataType) -> bool:
    """Whether an Arrow type is an interval in whole microseconds or coarser, the finest that Spark knows."""
    return bool(pa.types.is_duration(value_type)) and value_type.unit != "ns"


def from_micros(micros: int) -> timedelta:
    """Return the interval of so many microseconds."""
    return timedelta(microseconds=micros)
