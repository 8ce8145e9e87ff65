"""OVER windows as RisingWave's vectors write them: types, ORDER BY, frames and calls."""

from __future__ import annotations

import datetime as dt
import re
from decimal import Decimal
from typing import Any

import pyarrow as pa

from verify.conformance.reading.fields import Json, NotUnderstoodError, require_known
from verify.conformance.reading.sql_values import Schema, read_instant
from windowpane import aggregates
from windowpane.errors import InvalidDurationError
from windowpane.windowing.aggregates import Aggregate
from windowpane.windowing.aggregates.definition import is_defined
from windowpane.windowing.calls import NUMBERING, OFFSET_FUNCTIONS
from windowpane.windowing.frames import (
    CURRENT_ROW,
    UNBOUNDED_FOLLOWING,
    UNBOUNDED_PRECEDING,
    Bound,
    Exclude,
    Frame,
    Offset,
    Units,
    following,
    preceding,
)
from windowpane.windowing.intervals import Interval
from windowpane.windowing.over.spec import OrderColumn, OverCall, OverSpec

_TYPES = {
    "smallint": pa.int16(),
    "int": pa.int32(),
    "integer": pa.int32(),
    "int32": pa.int32(),
    "bigint": pa.int64(),
    "int64": pa.int64(),
    "real": pa.float32(),
    "double": pa.float64(),
    "double precision": pa.float64(),
    "decimal": pa.decimal128(38, 10),
    "numeric": pa.decimal128(38, 10),
    "boolean": pa.bool_(),
    "varchar": pa.string(),
    "text": pa.string(),
    "timestamp": pa.timestamp("us"),
    "timestamptz": pa.timestamp("us", "UTC"),
    "date": pa.date32(),
}
_BOUNDS = {
    "current_row": CURRENT_ROW,
    "unbounded_preceding": UNBOUNDED_PRECEDING,
    "unbounded_following": UNBOUNDED_FOLLOWING,
}
_EXCLUDES = {each.name.lower(): each for each in Exclude} | {"none": Exclude.NO_OTHERS}
_ORDER = re.compile(r"(asc|desc)?\s*(?:nulls\s+(first|last))?", re.IGNORECASE)
_EPOCH = dt.datetime(1970, 1, 1)
_CALL = {"func", "args", "offset", "frame", "return", "rw_executor_call", "ignore_nulls"}


def arrow_type(name: str) -> pa.DataType:
    """Return the Arrow type of a type as the vectors name it."""
    kind = _TYPES.get(name.strip().lower().split("(")[0].strip())
    if kind is None:
        raise NotUnderstoodError(f"type {name!r} is not understood")
    return kind


class OverSchema(Schema):
    """Reads cells as the values an OVER window works on: times as datetimes, which intervals can be added to."""

    def __init__(self, columns: list[list[str]]) -> None:
        """Take ``[[name, type], ...]``."""
        super().__init__(columns)
        self.arrow = pa.schema([(name, arrow_type(kind)) for name, kind in columns])

    def cell(self, column: str, value: Any) -> Any:
        """Return a cell; columns of calls are not in the schema and stay as they are."""
        return read_value(self.arrow.field(column).type, value) if column in self.arrow.names else value


def read_value(kind: pa.DataType, value: Any) -> Any:
    """Return a value of a type: times are text there, decimals numbers."""
    if pa.types.is_decimal(kind) and value is not None:
        return Decimal(str(value))
    if not isinstance(value, str) or pa.types.is_string(kind):
        return value
    if not pa.types.is_timestamp(kind):
        return dt.date.fromisoformat(value) if pa.types.is_date(kind) else value
    naive = _EPOCH + dt.timedelta(microseconds=read_instant(value))
    return naive if kind.tz is None else naive.replace(tzinfo=dt.UTC)


def read_order(column: str, words: str) -> OrderColumn:
    """Return an ORDER BY column; NULL is the largest value unless the words say otherwise."""
    match = _ORDER.fullmatch(words.strip())
    if match is None:
        raise NotUnderstoodError(f"order {words!r} is not understood")
    descending = (match.group(1) or "asc").lower() == "desc"
    nulls_first = descending if match.group(2) is None else match.group(2).lower() == "first"
    return OrderColumn(column, descending, nulls_first=nulls_first)


def read_bound(bound: list[Any]) -> Bound:
    """Return a bound: ``["preceding", n]``, ``["current_row"]``, ..."""
    name = bound[0] if bound else None
    if name in _BOUNDS and len(bound) == 1:
        return _BOUNDS[name]
    if name in ("preceding", "following") and len(bound) == 2:
        return (preceding if name == "preceding" else following)(read_offset(bound[1]))
    raise NotUnderstoodError(f"bound {bound!r} is not understood")


def read_offset(offset: Any) -> Offset:
    """Return an offset: a number, or an interval as text."""
    if not isinstance(offset, str):
        return offset  # type: ignore[no-any-return]
    try:
        return Interval.of(offset)
    except InvalidDurationError as reason:
        raise NotUnderstoodError(str(reason)) from None


def read_frame(fields: Json) -> Frame:
    """Return a frame ``{type, start, end, exclude}``, for sessions ``{type, gap, exclude}``."""
    require_known(fields, {"type", "start", "end", "exclude", "gap"}, "frame")
    exclude = _EXCLUDES.get(fields.get("exclude", "no_others"))
    units = next((each for each in Units if each.name.lower() == fields["type"]), None)
    if units is None or exclude is None:
        raise NotUnderstoodError(f"frame {fields!r} is not understood")
    if units is Units.SESSION:
        return Frame.session(read_offset(fields["gap"]), exclude)
    return Frame(units, read_bound(fields["start"]), read_bound(fields["end"]), exclude)


def read_rows_frame(bounds: list[Any]) -> Frame:
    """Return the ROWS frame of ``[start, end]``."""
    return Frame.rows(read_bound(bounds[0]), read_bound(bounds[1]))


def read_call(fields: Json) -> OverCall:
    """Return a call; numbering, lag and lead carry a frame there that means nothing here."""
    require_known(fields, _CALL, "call")
    function, arguments = fields["func"], tuple(fields.get("args", ()))
    if function in NUMBERING:
        return OverCall(function, offset=fields.get("offset", 1))
    if function in OFFSET_FUNCTIONS:
        return OverCall(function, arguments, offset=fields.get("offset", 1), ignore_nulls=fields.get("ignore_nulls", False))
    frame = read_frame(fields["frame"])
    if is_defined(function):
        return OverCall.of(_aggregate(function, arguments), frame)
    try:
        return OverCall(function, arguments, frame, ignore_nulls=fields.get("ignore_nulls", False))
    except ValueError as reason:
        raise NotUnderstoodError(str(reason)) from None


def _aggregate(function: str, arguments: tuple[str, ...]) -> Aggregate:
    try:
        build: Aggregate = getattr(aggregates, function)(*arguments)
    except TypeError:
        raise NotUnderstoodError(f"{function} of {arguments} is not understood") from None
    return build


def read_spec(body: Json) -> OverSpec:
    """Return the window of a case."""
    order = tuple(read_order(column, words) for column, words in body["order_by"])
    calls = tuple(read_call(call) for call in body["calls"])
    return OverSpec(tuple(body["partition_by"]), order, tuple(body["pk"]), calls)
