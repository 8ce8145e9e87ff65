"""Which calls run, and how: the running form of a call."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from windowpane.kernels.over.running.calls import (
    DenseRank,
    Rank,
    RowNumber,
    Running,
)
from windowpane.kernels.over.running.values import RunningFirst, RunningLast
from windowpane.windowing.frames import Exclude, Side, Units
from windowpane.windowing.over.spec import OverCall

_NUMBERING: dict[str, type[Running]] = {"row_number": RowNumber, "rank": Rank, "dense_rank": DenseRank}
_VALUES: dict[str, type[Running]] = {"first_value": RunningFirst, "last_value": RunningLast}


def running_form(call: OverCall, columns: pa.Schema) -> Running | None:
    types = [columns.field(name).type for name in call.arguments]
    form = _NUMBERING.get(call.function) or (_form(call, types) if _runs(call) else None)
    if form is None or (form.reads_every_row and call.filter is not None):
        return None
    return form(call, types[0] if types else None)


def _runs(call: OverCall) -> bool:
    frame = call.frame
    if frame is None or call.drops_repeats or call.ignore_nulls or frame.exclude is not Exclude.NO_OTHERS:
        return False
    ends = (Side.PRECEDING, Side.CURRENT_ROW)
    return frame.units is not Units.SESSION and frame.start.side is Side.UNBOUNDED_PRECEDING and frame.end.side in ends


def _form(call: OverCall, types: Sequence[pa.DataType]) -> type[Running] | None:
    if not call.is_aggregate:
        return _VALUES.get(call.function)
    definition = call.aggregate.definition
    form = None if definition.running is None else definition.running(call.aggregate.call(types))
    if form is None or (isinstance(form, type) and issubclass(form, Running)):
        return form
    raise definition.wrong_form(form, "Running")
