"""sum: exact for integers, decimals and intervals; in order of arrival for doubles.

Accumulators: None while there was no value, then the total (int, float, Decimal, or int of microseconds). An
exact total may leave the range of the result type on the way; only the result has to fit. Spark raises on the
way, and so depends on order.

Columnar partials of integers are ``high * 2**32 + low`` with ``0 <= low < 2**32``, so a sum of up to 2**31 partials cannot wrap,
and only the finished result has to fit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from functools import partial
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windowpane.arrays import Doubles, Integers, Mask
from windowpane.arrays.columns import flat, replaced
from windowpane.arrays.values import Value
from windowpane.errors import AggregateOverflowError
from windowpane.kernels.aggregates.protocol import ColumnarAggregate, KernelAggregate
from windowpane.kernels.keys.ordered_codes import has_codes, ordered_codes
from windowpane.kernels.over.by_frame import BY_STEP, doubles, steps
from windowpane.kernels.over.protocol import FramedAggregate, Running
from windowpane.kernels.over.rows import SortedRows
from windowpane.kernels.over.running import RunningCount, column_name, frame_ends, running_total, segment_scan
from windowpane.kernels.over.sums import LOW_BITS, decimal_sums, exact_sum, float_sums, halves, overflowing, running, sums
from windowpane.kernels.segments import Segments
from windowpane.sizes import Size
from windowpane.windowing.aggregates.decimals import (
    EXACT,
    MICROSECOND,
    bounded_decimal,
    fitted,
    from_micros,
    is_duration,
    is_spark_decimal,
)
from windowpane.windowing.aggregates.decimals import RESULT_TYPE as DURATION
from windowpane.windowing.aggregates.definition import BoundAggregate, Call, ColumnarCall, Definition, Returns, define
from windowpane.windowing.aggregates.spec import Aggregate
from windowpane.windowing.expressions import Argument
from windowpane.windowing.times import MAX, MIN

T = TypeVar("T")
_LOW_BITS = 32
_LOW = (1 << _LOW_BITS) - 1
_WIDE_DIGITS = 76
_NARROW_DIGITS = Size("digits of decimals summed in 38", 28, (2, 5))
"""Decimals of so many digits cannot leave the 38 digits of their sum within ten billion rows."""

Sum = Value
"""A number, or a decimal: of the type of the values."""


@dataclass(frozen=True, slots=True)
class FloatSum:
    """Floating point: doubles added in order of arrival, onto 0.0 as in Spark: a sum is never -0.0."""

    label: str
    result_type: pa.DataType

    def create_accumulator(self) -> Sum | None:
        return None

    def add(self, accumulator: Sum | None, value: Sum | None) -> Sum | None:
        if value is None:
            return accumulator
        return value if accumulator is None else accumulator + value

    def merge(self, left: Sum | None, right: Sum | None) -> Sum | None:
        if right is None:
            return left
        return right if left is None else left + right

    def get_result(self, accumulator: Sum | None) -> Sum | None:
        return None if accumulator is None else accumulator + 0.0


@dataclass(frozen=True, slots=True)
class IntegerSum(FloatSum):
    """Integers: unbounded on the way, bigint at the end."""

    def get_result(self, accumulator: int | None) -> Value:
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


def _bound(call: Call) -> BoundAggregate:
    if pa.types.is_integer(call.type):
        return IntegerSum(call.label, pa.int64())
    if pa.types.is_floating(call.type):
        return FloatSum(call.label, pa.float64())
    if is_spark_decimal(call.type):
        return DecimalSum(call.label, bounded_decimal(call.type.precision + 10, call.type.scale))
    if is_duration(call.type):
        return DurationSum(call.label, DURATION)
    raise call.refusal("a number or an interval")


# --- partials of columns ---


class ColumnarFloatSum(KernelAggregate):
    """Doubles, added in the order of the groups' partials: the last bit may differ from a sum in order of arrival."""

    sums = ("s",)

    def prepare(self, rows: pa.Table) -> dict[str, pa.Array]:
        return {f"{self.prefix}s": rows[self.slots[0]].cast(pa.float64())}

    def finish(self, partials: pa.Table) -> pa.Array:
        return pc.add(flat(partials[f"{self.prefix}s"]), 0.0)  # never -0.0


class ColumnarIntegerSum(KernelAggregate):
    """Integers, exactly."""

    sums = ("h", "l")

    def __init__(self, prefix: str, slots: tuple[str, ...], label: str) -> None:
        super().__init__(prefix, slots)
        self._label = label

    def prepare(self, rows: pa.Table) -> dict[str, pa.Array]:
        values = self.integers(rows[self.slots[0]])
        high = pc.shift_right(values, _LOW_BITS)
        return {f"{self.prefix}h": high, f"{self.prefix}l": pc.bit_wise_and(values, _LOW)}

    def integers(self, values: pa.Array) -> pa.Array:
        return values.cast(pa.int64())

    def normalise(self, partials: pa.Table) -> pa.Table:
        high, low = partials[f"{self.prefix}h"], partials[f"{self.prefix}l"]
        carry = pc.shift_right(low, _LOW_BITS)
        partials = replaced(partials, f"{self.prefix}h", pc.add(high, carry))
        return replaced(partials, f"{self.prefix}l", pc.bit_wise_and(low, _LOW))

    def finish(self, partials: pa.Table) -> pa.Array:
        high, low = partials[f"{self.prefix}h"], partials[f"{self.prefix}l"]
        bounds = pc.min_max(high).as_py()
        if bounds["min"] is not None and not (bounds["min"] >= -(2**31) and bounds["max"] < 2**31):
            raise self.overflow(self._culprit(partials))
        return pc.add(pc.shift_left(high, _LOW_BITS), low).combine_chunks()

    def overflow(self, total: int) -> AggregateOverflowError:
        return AggregateOverflowError(self._label, total, pa.int64())

    def _culprit(self, partials: pa.Table) -> int:
        totals = self.totals(partials)
        return next(total for total in totals if total is not None and not -(2**63) <= total < 2**63)

    def totals(self, partials: pa.Table) -> list[int | None]:
        pairs = zip(partials[f"{self.prefix}h"].to_pylist(), partials[f"{self.prefix}l"].to_pylist(), strict=True)
        return [None if high is None else exact_sum(high, low) for high, low in pairs]


class ColumnarDurationSum(ColumnarIntegerSum):
    """Intervals, as integers of microseconds."""

    def integers(self, values: pa.Array) -> pa.Array:
        return values.cast(DURATION).cast(pa.int64())

    def finish(self, partials: pa.Table) -> pa.Array:
        return super().finish(partials).cast(DURATION)

    def overflow(self, total: int) -> AggregateOverflowError:
        return AggregateOverflowError(self._label, f"{total} µs", DURATION)


class ColumnarDecimalSum(KernelAggregate):
    """Decimals, in as many digits as their sum can need: 38, or 76 for wide ones."""

    sums = ("s",)

    def __init__(
        self, prefix: str, slots: tuple[str, ...], value_type: pa.DataType, result_type: pa.DataType, label: str
    ) -> None:
        super().__init__(prefix, slots)
        self._is_wide = value_type.precision > _NARROW_DIGITS.value
        self._wide = pa.decimal256(_WIDE_DIGITS, value_type.scale)
        self._type = result_type
        self._label = label

    def prepare(self, rows: pa.Table) -> dict[str, pa.Array]:
        values = rows[self.slots[0]]
        return {f"{self.prefix}s": values.cast(self._wide) if self._is_wide else values}

    def finish(self, partials: pa.Table) -> pa.Array:
        sums = partials[f"{self.prefix}s"]
        try:
            return sums.cast(self._type).combine_chunks()
        except pa.ArrowInvalid:
            for total in sums.drop_null().to_pylist():
                fitted(total, self._type, self._label)
            raise


# --- frames of sorted rows ---


class FramedIntegerSum(FramedAggregate):
    """Integers, as differences of one running total."""

    def over(self, rows: SortedRows, counted: Mask, count: Integers) -> pa.Array:
        values = np.where(counted, ordered_codes(self.argument(rows)), 0)
        spans = rows.spans(self.call.own_frame)
        for row, total in overflowing(values, spans):
            if rows.wanted[row]:
                raise AggregateOverflowError(str(self.call), total, pa.int64())
        return pa.array(sums(running(values), spans), mask=count == 0)


class FramedDecimalSum(FramedAggregate):
    """Decimals, in whole numbers of the last decimal place."""

    def halves(self, rows: SortedRows, counted: Mask) -> tuple[Integers, Integers]:
        values, spans = np.where(counted, ordered_codes(self.argument(rows)), 0), rows.spans(self.call.own_frame)
        high, low = halves(values)
        return sums(running(high), spans), sums(running(low), spans)

    def over(self, rows: SortedRows, counted: Mask, count: Integers) -> pa.Array:
        return decimal_sums(*self.halves(rows, counted), count > 0, self.result_type)


class FramedFloatSum(FramedAggregate):
    """Doubles, each frame from its first row to its last."""

    def summed(self, rows: SortedRows, counted: Mask) -> Doubles:
        numbers = self.argument(rows).cast(pa.float64()).fill_null(0.0).to_numpy()
        return float_sums(np.where(counted, numbers, -0.0), rows.spans(self.call.own_frame))

    def over(self, rows: SortedRows, counted: Mask, count: Integers) -> pa.Array:
        return pa.array(self.summed(rows, counted), mask=count == 0)


def float_sums_by_frame(column: pa.ChunkedArray, segments: Segments, is_mean: bool) -> pa.Array:
    """Return the sum, or the mean, of each segment of rows, added in their order."""
    values, valid = doubles(column)
    elements = np.where(valid, values, -0.0)[segments.order]
    lengths = np.diff(segments.offsets)
    total = np.zeros(segments.count)
    for rows, at in steps(segments):
        total[rows] += elements[at]
    for row in np.flatnonzero(lengths > BY_STEP.value).tolist():
        start = segments.offsets[row]
        total[row] = np.add.accumulate(np.append(total[row], elements[start : start + lengths[row]]))[-1]
    counts = segments.total(valid[segments.order].astype(np.int64))
    return pa.array(total / np.maximum(counts, 1) if is_mean else total, mask=counts == 0)


# --- running frames ---


class RunningIntegerSum(RunningCount):
    """Halves of the exact total, and the count, since an empty sum is not 0."""

    @property
    def halves(self) -> tuple[str, str]:
        return column_name("high", self.call), column_name("low", self.call)

    @property
    def carries(self) -> pa.Schema:
        high, low = self.halves
        return pa.schema([(self.name, pa.int64()), (high, pa.int64()), (low, pa.int64())])

    def scan(self, rows: SortedRows) -> None:
        super().scan(rows)
        if self.halves[0] in rows.carries:
            return
        values = ordered_codes(rows.column(self.call.arguments[0]))
        high, low = halves(np.where(rows.counted(self.call.arguments, self.call.filter), values, 0))
        high, low = running_total(rows, high, self.halves[0]), running_total(rows, low, self.halves[1])
        carried = low >> LOW_BITS
        rows.carries[self.halves[0]] = pa.array(high + carried)
        rows.carries[self.halves[1]] = pa.array(low - (carried << LOW_BITS))

    def summed(self, rows: SortedRows) -> tuple[Integers, Integers]:
        ends = frame_ends(rows, self.call)
        high, low = (rows.carries[name].to_numpy() for name in self.halves)
        return (np.where(ends.some, high[ends.row], 0), np.where(ends.some, low[ends.row], 0)) if len(high) else (high, low)

    def value(self, rows: SortedRows) -> pa.Array:
        high, low = self.summed(rows)
        bad = np.flatnonzero(rows.wanted & ((high < -(1 << 31)) | (high >= 1 << 31)))
        if len(bad):
            raise AggregateOverflowError(str(self.call), exact_sum(high[bad[0]], low[bad[0]]), pa.int64())
        return pa.array((high << LOW_BITS) + low, mask=self.totals(rows) == 0)


class RunningFloatSum(RunningCount):
    what, start = "sum", -0.0

    @property
    def total(self) -> str:
        return column_name(self.what, self.call)

    @property
    def carries(self) -> pa.Schema:
        return pa.schema([(self.name, pa.int64()), (self.total, pa.float64())])

    def scan(self, rows: SortedRows) -> None:
        super().scan(rows)
        if self.total not in rows.carries:
            numbers = rows.column(self.call.arguments[0]).cast(pa.float64()).fill_null(0.0).to_numpy()
            numbers = np.where(rows.counted(self.call.arguments, self.call.filter), numbers, -0.0)
            firsts = rows.layout.segment_firsts
            numbers[firsts] = self.start + numbers[firsts]
            if rows.seeded.any():
                numbers[rows.seeded_firsts] = rows.seeds(self.total)[0].to_numpy()
            rows.carries[self.total] = pa.array(segment_scan(np.add, numbers, rows.layout))

    def summed(self, rows: SortedRows) -> Doubles:
        sums: Doubles = rows.carries[self.total].to_numpy()
        return sums[frame_ends(rows, self.call).row] if len(sums) else sums

    def value(self, rows: SortedRows) -> pa.Array:
        return pa.array(self.summed(rows) + 0.0, mask=self.totals(rows) == 0)  # never -0.0


class RunningDecimalSum(RunningIntegerSum):
    def value(self, rows: SortedRows) -> pa.Array:
        return decimal_sums(*self.summed(rows), self.totals(rows) > 0, self.result_type)


_Form = Callable[..., ColumnarAggregate]


def of_numbers(integers: type[T], floats: type[T], decimals: type[T]) -> Callable[[Call], type[T] | None]:
    """Return what gives one of three forms, by the kind of numbers that a call is of; ``None`` for others."""

    def form(call: Call) -> type[T] | None:
        if pa.types.is_signed_integer(call.type):
            return integers
        if pa.types.is_floating(call.type):
            return floats
        return decimals if pa.types.is_decimal128(call.type) and has_codes(call.type) else None

    return form


def columnar_of(integers: _Form, floats: _Form, decimals: _Form, durations: _Form) -> Callable[[ColumnarCall], ColumnarAggregate]:
    """Return what makes one of four forms over columns, by the kind of what a call is of."""

    def columnar(call: ColumnarCall) -> ColumnarAggregate:
        if pa.types.is_floating(call.type):
            return floats(call.prefix, call.slots)
        if pa.types.is_decimal(call.type):
            return decimals(call.prefix, call.slots, call.type, call.bound.result_type, call.label)
        of = durations if pa.types.is_duration(call.type) else integers
        return of(call.prefix, call.slots, call.label)

    return columnar


def is_exact(call: Call) -> bool:
    return not pa.types.is_floating(call.type)


def define_total(
    name: str,
    bind: Callable[[Call], BoundAggregate],
    columnar: Callable[[ColumnarCall], ColumnarAggregate],
    frame: Callable[[Call], type[FramedAggregate] | None],
    running_form: Callable[[Call], type[Running] | None],
    *,
    is_mean: bool,
) -> None:
    def by_frame(call: Call, bound: BoundAggregate) -> Callable[..., pa.Array] | None:
        return None if is_exact(call) else partial(float_sums_by_frame, is_mean=is_mean)

    define(
        Definition(
            name=name,
            bind=bind,
            holistic=False,
            ordered=False,
            exact=is_exact,
            idempotent=False,
            invertible=is_exact,
            returns=Returns.OWN,
            compared_from=0,
            columnar=columnar,
            frame=frame,
            by_frame=by_frame,
            running=running_form,
            duckdb=name,
            merged_by="+",
        )
    )


define_total(
    "sum",
    _bound,
    columnar_of(ColumnarIntegerSum, ColumnarFloatSum, ColumnarDecimalSum, ColumnarDurationSum),
    of_numbers(FramedIntegerSum, FramedFloatSum, FramedDecimalSum),
    of_numbers(RunningIntegerSum, RunningFloatSum, RunningDecimalSum),
    is_mean=False,
)


def sum(column: Argument) -> Aggregate:
    """Add up numbers or intervals.

    Result: bigint for integers, double for floating point (NaN if a value is), decimal(p + 10, s) for
    decimal(p, s), at most 38 digits, and interval for intervals. Integers, decimals and intervals are exact:
    only the result has to fit, where Spark also refuses a total that leaves the range on the way. Source:
    Spark SQL ``sum``.

    Raises:
        AggregateOverflowError: when the result is made and does not fit.

    Example:
        >>> sum("distance")
        sum('distance')
    """
    return Aggregate.of("sum", column)
