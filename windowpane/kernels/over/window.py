"""An OVER window as one kernel: sorted rows in, the values of all calls out; and every call as a kernel.

Between a row's columns and its values are the carry columns of running calls; an engine that keeps a row keeps them with it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windowpane.arrays import Doubles, Integers, Mask
from windowpane.arrays.columns import flat
from windowpane.kernels.keys.ordered_codes import is_sortable
from windowpane.kernels.over import picks
from windowpane.kernels.over.by_frame import by_frame, folded, values_by_frame
from windowpane.kernels.over.frames import Layout
from windowpane.kernels.over.protocol import CallKernel
from windowpane.kernels.over.rows import SortedRows
from windowpane.kernels.over.running import running_form
from windowpane.kernels.over.sorting import layout_of
from windowpane.windowing.over.spec import OverCall, OverSpec
from windowpane.windowing.over.types import bind_call


@dataclass(frozen=True)
class Values:
    outputs: list[pa.Array]
    carries: list[pa.Array]


class OverWindow:
    def __init__(self, spec: OverSpec, columns: pa.Schema) -> None:
        self.spec = spec
        self.calls: list[CallKernel] = [call_kernel(call, columns) for call in spec.calls]
        self.framed = [call for call in self.calls if not call.is_running]
        self.running = [call for call in self.calls if call.is_running]
        self.carries = pa.schema(list({field.name: field for call in self.calls for field in call.carries}.values()))
        self.read = list(dict.fromkeys([*spec.order_names, *(name for call in spec.calls for name in call.columns)]))

    def rows(self, table: pa.Table, starts_segment: Mask, seeded: Mask, wanted: Mask | None = None) -> SortedRows:
        """Return sorted rows to be computed; the first of a seeded segment has carry columns. All are wanted if not said."""
        ordered = [flat(table[name]) for name in self.spec.order_names]
        layout: Layout = layout_of(starts_segment, ordered)
        every = np.ones(len(starts_segment), np.bool_) if wanted is None else wanted
        return SortedRows(self.spec, table, layout, seeded, every)

    def values(self, rows: SortedRows) -> Values:
        with np.errstate(invalid="ignore", over="ignore"):  # sums are infinite, and of opposite infinities NaN, as in Spark
            for call in self.calls:
                call.scan(rows)
            outputs = [call.value(rows).cast(call.result_type) for call in self.calls]
        return Values(outputs, [rows.carries[name] for name in self.carries.names])


def refusal(spec: OverSpec, columns: pa.Schema) -> str | None:
    for name in (*spec.partition_by, *spec.order_names, *spec.key):
        kind = columns.field(name).type
        if not is_sortable(kind):
            return f"column {name!r} of type {kind} is not sorted by Arrow as Spark does"
    return None


def call_kernel(call: OverCall, columns: pa.Schema) -> CallKernel:
    """Return the fastest kernel of a call that gives the reference's value to the last bit.

    It depends on the call and the types of its arguments alone, never on the rows: a row computed again has the same value again.
    """
    form = running_form(call, columns) or _SPECIAL.get(call.function) or _framed(call, columns) or _Folded
    return form(call, columns)


def span_kernel(call: OverCall, columns: pa.Schema) -> CallKernel | None:
    """Return a kernel of an aggregate that reads nothing but columns and spans of rows, ``None`` if there is none."""
    framed = _framed(call, columns)
    return None if framed is None else framed(call, columns)


def _framed(call: OverCall, columns: pa.Schema) -> type[CallKernel] | None:
    definition = call.aggregate.definition
    if definition.frame is None or call.drops_repeats:
        return None
    types = [columns.field(name).type for name in call.arguments]
    form = definition.frame(call.aggregate.call(types))
    if form is None or (isinstance(form, type) and issubclass(form, CallKernel)):
        return form
    raise definition.wrong_form(form, "CallKernel")


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


class _Place(CallKernel):
    """Numbering that needs the whole partition."""

    def value(self, rows: SortedRows) -> pa.Array:
        layout = rows.layout
        if self.call.function == "ntile":
            return pa.array(ntile(layout, self.call.offset))
        place = percent_rank if self.call.function == "percent_rank" else cume_dist
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


def percent_rank(layout: Layout) -> Doubles:
    """Return (rank - 1) / (rows - 1) of each row; 0 in a partition of one row."""
    ranks: Doubles = (layout.peer_first - layout.first) / np.maximum(layout.end - layout.first - 1, 1)
    return ranks


def cume_dist(layout: Layout) -> Doubles:
    shares: Doubles = (layout.peer_end - layout.first) / (layout.end - layout.first)
    return shares


def ntile(layout: Layout, buckets: int) -> Integers:
    """Return the bucket of each row, where the first buckets are one row larger if the rows do not go up evenly."""
    at, rows = layout.numbers - layout.first, layout.end - layout.first
    small, larger = rows // buckets, rows % buckets
    in_larger = at < larger * (small + 1)
    behind = at - larger * (small + 1)
    return np.where(in_larger, at // (small + 1), larger + behind // np.maximum(small, 1)) + 1
