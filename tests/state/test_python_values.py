"""Python values of columns are those of Arrow's ``to_pylist``."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowpane.arrays.python_values import python_values

_FIRST, _LAST = dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59, 999999)
_ZONES = [None, "UTC", "Etc/UTC", "Europe/Berlin", "America/New_York", "Asia/Kathmandu", "+02:00", "-11:30"]
_TYPES = [
    *(pa.timestamp("us", zone) for zone in _ZONES),
    pa.date32(),
    pa.decimal128(38, 9),
    pa.decimal128(38, 38),
    pa.decimal128(5, 0),
    pa.decimal128(5, -2),
]


def _details(value: Any) -> Any:
    # A zone by its text: where the cache of zones was cleared, one zone has two objects, which are not equal.
    return repr(value), getattr(value, "fold", None), value.as_tuple() if isinstance(value, Decimal) else None


def _micros(instant: dt.datetime) -> int:
    return (instant - dt.datetime(1970, 1, 1)) // dt.timedelta(microseconds=1)


@st.composite
def _columns(draw: st.DrawFn) -> pa.ChunkedArray:
    kind = draw(st.sampled_from(_TYPES))
    values: st.SearchStrategy[Any]
    if pa.types.is_timestamp(kind):
        values = st.datetimes(_FIRST + dt.timedelta(days=2), _LAST - dt.timedelta(days=2)).map(_micros)
    elif pa.types.is_date32(kind):
        values = st.dates().map(lambda day: day.toordinal() - dt.date(1970, 1, 1).toordinal())
    else:
        limit = 10 ** min(kind.precision, 20) - 1
        values = st.integers(-limit, limit).map(lambda digits: Decimal(digits).scaleb(-kind.scale))
    chunk = st.lists(values | st.none(), max_size=6)
    chunks = draw(st.lists(chunk, max_size=3))
    stored = pa.int32() if pa.types.is_date32(kind) else pa.int64() if pa.types.is_timestamp(kind) else kind
    column = pa.chunked_array([pa.array(chunk, stored) for chunk in chunks], stored).cast(kind)
    return column.slice(draw(st.integers(0, 2)))


@given(_columns())
def test_values_are_those_of_arrow(column: pa.ChunkedArray) -> None:
    found, expected = python_values(column), column.to_pylist()
    assert found == expected
    assert list(map(_details, found)) == list(map(_details, expected))


def test_an_hour_that_the_clocks_repeat_is_told_apart_by_its_offset() -> None:
    hours = pa.array([_micros(dt.datetime(2023, 10, 29, hour, 30)) for hour in (0, 1)]).cast(pa.timestamp("us", "Europe/Berlin"))
    offsets = [dt.timedelta(hours=2), dt.timedelta(hours=1)]
    assert [(value.hour, value.utcoffset()) for value in python_values(hours)] == [(2, offset) for offset in offsets]


@pytest.mark.parametrize("instant", [_FIRST, _LAST])
@pytest.mark.parametrize("zone", [None, "UTC"])
def test_the_ends_of_the_calendar_are_values(instant: dt.datetime, zone: str | None) -> None:
    column = pa.array([_micros(instant), 0]).cast(pa.timestamp("us", zone))
    assert python_values(column) == column.to_pylist()
    assert python_values(column)[0].replace(tzinfo=None) == instant


@pytest.mark.parametrize("kind", [pa.timestamp("us"), pa.timestamp("us", "UTC"), pa.timestamp("us", "Asia/Tokyo")])
@pytest.mark.parametrize("micros", [_micros(_LAST) + 1, _micros(_FIRST) - 1, 2**63 - 1, -(2**63)])
def test_a_timestamp_beyond_the_calendar_is_an_error(kind: pa.DataType, micros: int) -> None:
    with pytest.raises((OverflowError, ValueError)):
        python_values(pa.array([micros]).cast(kind))


@pytest.mark.parametrize("days", [2**31 - 1, -(2**31), 2_932_897, -719_163])
def test_a_date_beyond_the_calendar_is_an_error(days: int) -> None:
    with pytest.raises((OverflowError, ValueError)):
        python_values(pa.array([days], pa.int32()).cast(pa.date32()))
