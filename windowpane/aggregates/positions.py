"""first, last and any_value: by arrival.

Accumulator: None while no row counted, then the tuple of one value, so that a NULL that counts differs from
nothing.

Columnar partials: the value, and the arrival number of its row, null while no row counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windowpane.arrays import Integers
from windowpane.arrays.columns import flat
from windowpane.arrays.values import Value
from windowpane.errors import InvalidSpecError
from windowpane.hidden_columns import ARRIVAL
from windowpane.kernels.aggregates.protocol import SegmentAggregate
from windowpane.kernels.over import picks
from windowpane.kernels.over.protocol import CallKernel, Running
from windowpane.kernels.over.rows import SortedRows
from windowpane.kernels.over.running import RunningFirst, RunningLast
from windowpane.kernels.segments import Segments, take_or_null
from windowpane.windowing.aggregates.definition import Definition, Returns, define
from windowpane.windowing.aggregates.spec import Aggregate
from windowpane.windowing.expressions import Argument

NEVER = -1
"""The arrival number of no row: real ones are not negative."""

Found = tuple[Value]
"""The value that was found, which may be NULL."""


@dataclass(frozen=True, slots=True)
class First:
    result_type: pa.DataType
    ignore_nulls: bool

    def create_accumulator(self) -> Found | None:
        return None

    def add(self, accumulator: Found | None, value: Value) -> Found | None:
        if accumulator is not None or (value is None and self.ignore_nulls):
            return accumulator
        return (value,)

    def merge(self, left: Found | None, right: Found | None) -> Found | None:
        return right if left is None else left

    def get_result(self, accumulator: Found | None) -> Value:
        return None if accumulator is None else accumulator[0]


@dataclass(frozen=True, slots=True)
class Last(First):
    def add(self, accumulator: Found | None, value: Value) -> Found | None:
        return accumulator if value is None and self.ignore_nulls else (value,)

    def merge(self, left: Found | None, right: Found | None) -> Found | None:
        return left if right is None else right


class ColumnarPosition(SegmentAggregate):
    parts = ("v", "a")
    is_ordered = True
    takes_codes = True

    def __init__(self, prefix: str, slots: tuple[str, ...], is_last: bool, ignores_nulls: bool) -> None:
        super().__init__(prefix, slots)
        self._is_last = is_last
        self._ignores_nulls = ignores_nulls

    def lift(self, rows: pa.Table) -> Mapping[str, pa.Array]:
        values, arrivals = rows[self.slots[0]], flat(rows[ARRIVAL])
        if self._ignores_nulls:
            arrivals = pc.if_else(flat(values.is_valid()), arrivals, pa.scalar(NEVER, pa.int64()))
        return dict(zip(self.columns, (values, arrivals), strict=True))

    def merge(self, partials: pa.Table, segments: Segments) -> Mapping[str, pa.Array]:
        values, arrivals = (flat(partials[name]) for name in self.columns)
        at = segments.picked(arrivals.to_numpy())
        ranked = at if self._is_last else np.where(at == NEVER, np.iinfo(np.int64).min, -at)
        rows = segments.rows_at(segments.last_where(ranked == segments.greatest(ranked)[segments.numbers]))
        return dict(zip(self.columns, (take_or_null(values, rows), take_or_null(arrivals, rows)), strict=True))

    def renumbered(self, partials: pa.Table, by: Integers) -> Mapping[str, pa.Array]:
        arrivals = partials[f"{self.prefix}a"].to_numpy()
        return {f"{self.prefix}a": pa.array(np.where(arrivals == NEVER, NEVER, arrivals + by))}

    def finish(self, partials: pa.Table) -> pa.Array:
        return partials[f"{self.prefix}v"].combine_chunks()


class FramedFirst(CallKernel):
    pick = staticmethod(picks.first)

    def value(self, rows: SortedRows) -> pa.Array:
        call = self.call
        counted = rows.counted(call.arguments if dict(call.parameters)["ignore_nulls"] else (), call.filter)
        return picks.taken(rows.column(call.arguments[0]), self.pick(rows.spans(call.own_frame), counted))


class FramedLast(FramedFirst):
    pick = staticmethod(picks.last)


def _define(name: str, form: type[First], frame: type[FramedFirst], running: type[Running]) -> None:
    define(
        Definition(
            name=name,
            bind=lambda call: form(call.type, call.parameters["ignore_nulls"]),
            holistic=False,
            ordered=True,
            exact=True,
            idempotent=form is First,  # of repeated values the first is kept
            invertible=False,
            returns=Returns.VALUE,
            compared_from=None,
            columnar=lambda call: ColumnarPosition(call.prefix, call.slots, form is Last, call.parameters["ignore_nulls"]),
            frame=lambda call: frame,
            running=lambda call: None if call.parameters["ignore_nulls"] else running,
            duckdb=name,
        )
    )


_define("first", First, FramedFirst, RunningFirst)
_define("any_value", First, FramedFirst, RunningFirst)
_define("last", Last, FramedLast, RunningLast)


def _position(name: str, column: Argument, offset: int, ignore_nulls: bool) -> Aggregate:
    if isinstance(offset, bool):  # as PySpark's ``first(column, ignorenulls)`` has it
        offset, ignore_nulls = 0, bool(offset)
    if not isinstance(offset, int) or offset < 0:
        raise InvalidSpecError(f"{name}({column!r}, {offset!r}): the offset is a whole number of rows, from 0 on.")
    return Aggregate.of(name, column, ignore_nulls=bool(ignore_nulls), **({"offset": offset} if offset else {}))


def first(column: Argument, offset: int = 0, *, ignore_nulls: bool = False) -> Aggregate:
    """Take the value of the row that arrived first, NULL or not, or the first that is not NULL.

    In a row pattern: of the first row of the match, or of a variable, ``first("up.price")``, ``offset`` rows further in.


    Result: the type of the column. Source: Spark SQL ``first``; here the order is that of arrival, or the
    ``order_by`` of the stream.

    Example:
        >>> first("carrier", ignore_nulls=True)
        first('carrier', ignore_nulls=True)
    """
    return _position("first", column, offset, ignore_nulls)


def last(column: Argument, offset: int = 0, *, ignore_nulls: bool = False) -> Aggregate:
    """Take the value of the row that arrived last, NULL or not, or the last that is not NULL.

    In a row pattern: of the last row of the match, or of a variable, ``last("up.price")``, ``offset`` rows further in.


    Result: the type of the column. Source: Spark SQL ``last``; here the order is that of arrival, or the
    ``order_by`` of the stream. Rolling features take rows by event time and then arrival, OVER windows in the order of the frame.

    Example:
        >>> last("carrier")
        last('carrier', ignore_nulls=False)
    """
    return _position("last", column, offset, ignore_nulls)


def any_value(column: Argument, ignore_nulls: bool = False) -> Aggregate:
    """Take some value; here it is the first by arrival, NULL or not unless NULLs are ignored.

    Result: the type of the column. Source: Spark SQL ``any_value``.

    Example:
        >>> any_value("carrier")
        any_value('carrier', ignore_nulls=False)
    """
    return Aggregate.of("any_value", column, ignore_nulls=bool(ignore_nulls))
