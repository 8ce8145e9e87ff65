"""Every call of an OVER window as a kernel on sorted rows: the fastest that gives the reference's value to the last bit.

Which kernel a call gets depends on the call and the types of its arguments alone, never on the rows, so that a row computed
again gives the same value again.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from windowpane.arrays import Mask
from windowpane.kernels.over import picks
from windowpane.kernels.over.calls import numbering
from windowpane.kernels.over.calls.by_frame import by_frame, values_by_frame
from windowpane.kernels.over.calls.folding import folded
from windowpane.kernels.over.calls.framed import CallKernel
from windowpane.kernels.over.rows import SortedRows
from windowpane.kernels.over.running.calls import Running
from windowpane.kernels.over.running.forms import running_form
from windowpane.windowing.over.spec import OverCall
from windowpane.windowing.over.types import bind_call


def call_kernel(call: OverCall, columns: pa.Schema) -> CallKernel:
    form = running_form(call, columns)
    if form is not None:
        return _RunningCall(call, columns, form)
    special = _SPECIAL.get(call.function)
    if special is not None:
        return special(call, columns)
    return (_framed(call, columns) or _Folded)(call, columns)


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


class _RunningCall(CallKernel):
    is_running = True

    def __init__(self, call: OverCall, columns: pa.Schema, form: Running) -> None:
        super().__init__(call, columns)
        self._form = form
        self.carries = form.carries

    def scan(self, rows: SortedRows) -> None:
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
