"""An OVER window meets the types of its input: the type of each call, and what is refused.

Numbering gives bigint (percent_rank and cume_dist double), lag, lead and the value functions give the type of their argument,
aggregates what they are bound to.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from windowpane.errors import InvalidSpecError, UnknownColumnError
from windowpane.windowing.aggregates.canonical import is_orderable
from windowpane.windowing.aggregates.protocol import BoundAggregate
from windowpane.windowing.frames import Offset
from windowpane.windowing.over.range_offsets import check_offset
from windowpane.windowing.over.spec import OverCall, OverSpec

_RATIOS = frozenset({"percent_rank", "cume_dist"})


def bind_call(call: OverCall, columns: pa.Schema) -> BoundAggregate:
    """Return the aggregate of a call, bound to the types of its arguments.

    Raises:
        AggregateTypeError: the aggregate has no meaning for them.
    """
    return call.aggregate.bind([columns.field(name).type for name in call.arguments])


def call_type(call: OverCall, columns: pa.Schema) -> pa.DataType:
    """Return the type of a call's result.

    Raises:
        AggregateTypeError: an aggregate has no meaning for the types of its arguments.
    """
    if call.function in _RATIOS:
        return pa.float64()
    if call.is_numbering:
        return pa.int64()
    return bind_call(call, columns).result_type if call.is_aggregate else columns.field(call.arguments[0]).type


def output_schema(spec: OverSpec, columns: pa.Schema, names: Sequence[str]) -> pa.Schema:
    """Return the columns of the calls under ``names``, after checking the window against the types of its input.

    Raises:
        UnknownColumnError: the input lacks a column.
        InvalidSpecError: a column of ORDER BY has no order, a filter is no boolean, an output name is taken.
        InvalidFrameError: the offset of a RANGE or SESSION frame does not go with the ORDER BY column.
        AggregateTypeError: an aggregate has no meaning for the types of its arguments.
    """
    for name in spec.columns:
        if name not in columns.names:
            raise UnknownColumnError(name, "OVER window", columns.names)
    _check_order(spec, columns)
    _check_names(columns, names)
    for call in spec.calls:
        _check_call(call, spec, columns)
    return pa.schema([(name, call_type(call, columns)) for name, call in zip(names, spec.calls, strict=True)])


def _check_order(spec: OverSpec, columns: pa.Schema) -> None:
    for name in (*spec.order_names, *spec.key):
        kind = columns.field(name).type
        if not is_orderable(kind):
            raise InvalidSpecError(f"column {name!r} of type {kind} has no order: it cannot stand in ORDER BY or the key.")


def _check_names(columns: pa.Schema, names: Sequence[str]) -> None:
    taken = sorted({name for name in names if name in columns.names or list(names).count(name) > 1})
    if taken:
        raise InvalidSpecError(f"output column {', '.join(taken)} is there already: give the call another name.")


def _check_call(call: OverCall, spec: OverSpec, columns: pa.Schema) -> None:
    if call.filter is not None and not pa.types.is_boolean(columns.field(call.filter).type):
        raise InvalidSpecError(f"{call}: the filter {call.filter!r} is {columns.field(call.filter).type}, not boolean.")
    if call.frame is not None and call.frame.has_range_offset:
        kind = columns.field(spec.order_names[0]).type
        for offset in _offsets(call):
            check_offset(offset, kind, call)


def _offsets(call: OverCall) -> list[Offset]:
    frame = call.frame
    offsets = [] if frame is None else [frame.start.offset, frame.end.offset, frame.gap]
    return [offset for offset in offsets if offset is not None]
