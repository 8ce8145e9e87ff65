"""Every call of an OVER window as a kernel on sorted rows: the fastest that gives the reference's value to the last bit.

Which kernel a call gets depends on the call and the types of its arguments alone, never on the rows, so that a row computed
again gives the same value again.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windowpane.arrays import Doubles, Integers, Mask
from windowpane.errors import AggregateOverflowError, MistakeError
from windowpane.kernels.keys.ordered_codes import decoded, has_codes, is_sortable, ordered_codes, ranked_codes
from windowpane.kernels.over.calls import numbering, picks
from windowpane.kernels.over.calls.by_frame import by_frame, values_by_frame
from windowpane.kernels.over.calls.decimals import decimal_means, decimal_sums
from windowpane.kernels.over.calls.extremes import extremes, neutral
from windowpane.kernels.over.calls.folding import folded
from windowpane.kernels.over.calls.means import integer_means
from windowpane.kernels.over.calls.sums import counts, float_sums, halves, overflowing, running, sums
from windowpane.kernels.over.rows import SortedRows
from windowpane.kernels.over.running.calls import Running
from windowpane.kernels.over.running.forms import running_form
from windowpane.windowing.over.spec import OverCall
from windowpane.windowing.over.types import bind_call, call_type


class CallKernel(ABC):
    """One call, bound to the types of its input."""

    carries = pa.schema([])
    """The carry columns of a running call."""
    is_running = False
    """Whether the call continues from the carry columns of the row before."""
    is_folded = False
    """Whether each frame is folded row by row, in Python."""

    def __init__(self, call: OverCall, columns: pa.Schema) -> None:
        """Compute ``call`` over rows with ``columns``."""
        self.call = call
        self.kind = columns.field(call.arguments[0]).type if call.arguments else None
        self.result_type = call_type(call, columns)

    @abstractmethod
    def value(self, rows: SortedRows) -> pa.Array:
        """Return the value of each row that is wanted."""

    def reaches_first(self, rows: SortedRows) -> Mask:
        """Return where the value may depend on rows before the segment's first."""
        return rows.frames(self.call.reach).reaches_first

    def reaches_end(self, rows: SortedRows) -> Mask:
        """Return where the value may depend on rows from the segment's end on."""
        return rows.frames(self.call.reach).reaches_end


def call_kernel(call: OverCall, columns: pa.Schema) -> CallKernel:
    """Return the kernel of a call."""
    kind = columns.field(call.arguments[0]).type if call.arguments else None
    form = running_form(call, kind)
    if form is not None:
        return _RunningCall(call, columns, form)
    special = _SPECIAL.get(call.function)
    if special is not None:
        return special(call, columns)
    fast = None if call.distinct and call.function not in ("min", "max") else _fast(call, kind)
    return (fast or _Folded)(call, columns)


def span_kernel(call: OverCall, columns: pa.Schema) -> CallKernel | None:
    """Return a kernel of an aggregate that reads nothing but columns and spans of rows, ``None`` if there is none."""
    kind = columns.field(call.arguments[0]).type if call.arguments else None
    fast = None if call.distinct else _fast(call, kind)
    return None if fast is None else fast(call, columns)


def _fast(call: OverCall, kind: pa.DataType | None) -> type[CallKernel] | None:
    if call.function == "count" and len(call.arguments) <= 1:
        return _Count
    if kind is None or len(call.arguments) != 1:
        return None
    if call.function in ("first", "last", "any_value"):
        return _PickedAggregate
    if call.function in ("min", "max", "bool_and", "bool_or"):
        return _Extreme if is_sortable(kind) else None
    if call.function in ("sum", "avg") and pa.types.is_signed_integer(kind):
        return _IntegerSum if call.function == "sum" else _IntegerMean
    if call.function in ("sum", "avg") and pa.types.is_floating(kind):
        return _FloatSum if call.function == "sum" else _FloatMean
    if call.function in ("sum", "avg") and pa.types.is_decimal128(kind) and has_codes(kind):
        return _DecimalSum if call.function == "sum" else _DecimalMean
    return None


class _RunningCall(CallKernel):
    is_running = True

    def __init__(self, call: OverCall, columns: pa.Schema, form: Running) -> None:
        super().__init__(call, columns)
        self._form = form
        self.carries = form.carries

    def scan(self, rows: SortedRows) -> None:
        """Put the carry columns into ``rows.carries``."""
        self._form.scan(rows)

    def value(self, rows: SortedRows) -> pa.Array:
        self._form.scan(rows)
        return self._form.value(rows)

    def reaches_first(self, rows: SortedRows) -> Mask:
        return self._form.reaches_first(rows)


class _Offset(CallKernel):
    """lag and lead."""

    def value(self, rows: SortedRows) -> pa.Array:
        call = self.call
        column = rows.column(call.arguments[0])
        counted = rows.counted(call.arguments, None) if call.ignore_nulls else None
        picked = picks.at_offset(rows.layout, call.offset if call.function == "lead" else -call.offset, counted)
        values = picks.taken(column, picked)
        if call.default is None:
            return values
        default = pa.scalar(call.default, column.type)
        return pc.if_else(pa.array(picked == picks.NOWHERE), default, values)


class _FrameValue(CallKernel):
    """first_value, last_value and nth_value."""

    def value(self, rows: SortedRows) -> pa.Array:
        call = self.call
        counted = rows.counted(call.arguments, None) if call.ignore_nulls else None
        spans = rows.spans(call.own_frame)
        if call.function == "last_value":
            picked = picks.last(spans, counted)
        else:
            picked = picks.nth(spans, call.offset - 1 if call.function == "nth_value" else 0, counted)
        return picks.taken(rows.column(call.arguments[0]), picked)


class _PickedAggregate(CallKernel):
    """The aggregates first, last and any_value, by row order."""

    def value(self, rows: SortedRows) -> pa.Array:
        call = self.call
        ignores_nulls = dict(call.parameters).get("ignore_nulls", False)
        counted = rows.counted(call.arguments if ignores_nulls else (), call.filter)
        pick = picks.last if call.function == "last" else picks.first
        return picks.taken(rows.column(call.arguments[0]), pick(rows.spans(call.own_frame), counted))


class _Place(CallKernel):
    """Numbering that needs the whole partition."""

    def value(self, rows: SortedRows) -> pa.Array:
        layout = rows.layout
        if self.call.function == "ntile":
            return pa.array(numbering.ntile(layout, self.call.offset))
        place = numbering.percent_rank if self.call.function == "percent_rank" else numbering.cume_dist
        return pa.array(place(layout))


_SPECIAL: dict[str, type[CallKernel]] = {
    "lag": _Offset,
    "lead": _Offset,
    "first_value": _FrameValue,
    "last_value": _FrameValue,
    "nth_value": _FrameValue,
    "percent_rank": _Place,
    "cume_dist": _Place,
    "ntile": _Place,
}


class _Aggregate(CallKernel):
    """An aggregate of at most one argument, NULLs and rows that the FILTER leaves out not counted."""

    def value(self, rows: SortedRows) -> pa.Array:
        counted = rows.counted(self.call.arguments, self.call.filter)
        return self.over(rows, counted, counts(counted, rows.spans(self.call.own_frame)))

    @abstractmethod
    def over(self, rows: SortedRows, counted: Mask, count: Integers) -> pa.Array:
        """Return the value of each row, given which rows count and how many of them each frame holds."""

    def argument(self, rows: SortedRows) -> pa.Array:
        """Return the argument's column."""
        return rows.column(self.call.arguments[0])


class _Count(_Aggregate):
    def over(self, rows: SortedRows, counted: Mask, count: Integers) -> pa.Array:
        return pa.array(count)


class _Extreme(_Aggregate):
    def over(self, rows: SortedRows, counted: Mask, count: Integers) -> pa.Array:
        largest = self.call.function in ("max", "bool_or")
        column = self.argument(rows)
        codes, values = (ordered_codes(column), None) if has_codes(column.type) else ranked_codes(column)
        found = extremes(np.where(counted, codes, neutral(largest)), self._spans(rows), largest)
        if values is None:
            return decoded(found, count > 0, column.type)
        return picks.taken(values, np.where(count > 0, found, picks.NOWHERE))

    def _spans(self, rows: SortedRows) -> list[tuple[Integers, Integers]]:
        return rows.spans(self.call.own_frame)


class _IntegerSum(_Aggregate):
    def over(self, rows: SortedRows, counted: Mask, count: Integers) -> pa.Array:
        values = np.where(counted, ordered_codes(self.argument(rows)), 0)
        spans = rows.spans(self.call.own_frame)
        for row, total in overflowing(values, spans):
            if rows.wanted[row]:
                raise AggregateOverflowError(str(self.call), total, pa.int64())
        return pa.array(sums(running(values), spans), mask=count == 0)


class _IntegerMean(_Aggregate):
    def over(self, rows: SortedRows, counted: Mask, count: Integers) -> pa.Array:
        values = np.where(counted, ordered_codes(self.argument(rows)), 0)
        spans = rows.spans(self.call.own_frame)
        high, low = (sums(running(half), spans) for half in halves(values))
        return integer_means(high, low, count)


class _DecimalSum(_Aggregate):
    def halves(self, rows: SortedRows, counted: Mask) -> tuple[Integers, Integers]:
        """Return the halves of the total of each frame, in whole numbers of the last decimal place."""
        values, spans = np.where(counted, ordered_codes(self.argument(rows)), 0), rows.spans(self.call.own_frame)
        high, low = halves(values)
        return sums(running(high), spans), sums(running(low), spans)

    def over(self, rows: SortedRows, counted: Mask, count: Integers) -> pa.Array:
        return decimal_sums(*self.halves(rows, counted), count > 0, self.result_type)


class _DecimalMean(_DecimalSum):
    def over(self, rows: SortedRows, counted: Mask, count: Integers) -> pa.Array:
        if self.kind is None:
            raise MistakeError("it has an argument")
        wanted = np.where(rows.wanted, count, 0)
        return decimal_means(*self.halves(rows, counted), wanted, self.kind.scale, self.result_type, str(self.call))


class _FloatSum(_Aggregate):
    def summed(self, rows: SortedRows, counted: Mask) -> Doubles:
        """Return the total of each frame."""
        numbers = self.argument(rows).cast(pa.float64()).fill_null(0.0).to_numpy()
        return float_sums(np.where(counted, numbers, -0.0), rows.spans(self.call.own_frame))

    def over(self, rows: SortedRows, counted: Mask, count: Integers) -> pa.Array:
        return pa.array(self.summed(rows, counted), mask=count == 0)


class _FloatMean(_FloatSum):
    def over(self, rows: SortedRows, counted: Mask, count: Integers) -> pa.Array:
        return pa.array(self.summed(rows, counted) / np.maximum(count, 1), mask=count == 0)


class _Folded(CallKernel):
    """Any other aggregate: by frame, or row by row where frames grow by a row at a time, or nothing computes it by frame."""

    def __init__(self, call: OverCall, columns: pa.Schema) -> None:
        super().__init__(call, columns)
        self._bound = bind_call(call, columns)
        self._by_frame = by_frame(call, columns, self._bound)
        self.is_folded = self._by_frame is None or (call.frame is not None and call.frame.start.is_unbounded)

    def value(self, rows: SortedRows) -> pa.Array:
        found = None if self._by_frame is None else values_by_frame(rows, self.call, self._bound, self._by_frame)
        return folded(rows, self.call, self._bound) if found is None else found
