"""The value of one call for one row of a sorted partition, from the rows of its frame: no state, nothing incremental.

Source: SQL's window functions as PostgreSQL and DuckDB have them; aggregates are the built-in ones, fed in the order of the
    frame.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from windowpane.operators.over.sorted_partition import SortedPartition
from windowpane.windowing.aggregates.canonical import Form, form_of
from windowpane.windowing.aggregates.protocol import BoundAggregate
from windowpane.windowing.over.spec import OverCall
from windowpane.windowing.over.types import bind_call

Evaluate = Callable[[SortedPartition, int], Any]
"""The value of a call for the row at an index of a partition."""


def evaluator(call: OverCall, columns: pa.Schema) -> Evaluate:
    if call.is_numbering:
        return lambda partition, index: NUMBERINGS[call.function](partition, index, call)
    if call.is_aggregate:
        bound, forms = bind_call(call, columns), [form_of(columns.field(name).type) for name in call.arguments]
        return lambda partition, index: _aggregate(partition, index, call, bound, forms)
    function = _OFFSETS if call.frame is None else _VALUES
    return lambda partition, index: function[call.function](partition, index, call)


# --- the place of a row --------------------------------------------------------------------------------


def _row_number(partition: SortedPartition, index: int, call: OverCall) -> int:
    return index + 1


def _rank(partition: SortedPartition, index: int, call: OverCall) -> int:
    return partition.peers(index).start + 1


def _dense_rank(partition: SortedPartition, index: int, call: OverCall) -> int:
    return partition.group_of(index) + 1


def _percent_rank(partition: SortedPartition, index: int, call: OverCall) -> float:
    others = len(partition.rows) - 1
    return partition.peers(index).start / others if others else 0.0


def _cume_dist(partition: SortedPartition, index: int, call: OverCall) -> float:
    return partition.peers(index).stop / len(partition.rows)


def _ntile(partition: SortedPartition, index: int, call: OverCall) -> int:
    """Buckets differ by one row at most, the larger ones first."""
    size, larger = divmod(len(partition.rows), call.offset)
    in_larger = larger * (size + 1)
    return index // (size + 1) + 1 if index < in_larger else larger + (index - in_larger) // size + 1


Place = Callable[[SortedPartition, int, OverCall], Any]

NUMBERINGS: Mapping[str, Place] = MappingProxyType(
    {
        "row_number": _row_number,
        "rank": _rank,
        "dense_rank": _dense_rank,
        "percent_rank": _percent_rank,
        "cume_dist": _cume_dist,
        "ntile": _ntile,
    }
)


# --- a row at a distance -------------------------------------------------------------------------------


def _lead(partition: SortedPartition, index: int, call: OverCall) -> Any:
    return _at_distance(partition, index, call, call.offset)


def _lag(partition: SortedPartition, index: int, call: OverCall) -> Any:
    return _at_distance(partition, index, call, -call.offset)


def _at_distance(partition: SortedPartition, index: int, call: OverCall, steps: int) -> Any:
    column, rows = call.arguments[0], partition.rows
    if steps == 0:
        return rows[index][column]
    away = range(index + 1, len(rows)) if steps > 0 else range(index - 1, -1, -1)
    values = _kept((rows[each][column] for each in away), call)
    return values[abs(steps) - 1] if len(values) >= abs(steps) else call.default


_OFFSETS: dict[str, Place] = {"lag": _lag, "lead": _lead}


# --- a row of the frame --------------------------------------------------------------------------------


def _first_value(partition: SortedPartition, index: int, call: OverCall) -> Any:
    values = _frame_values(partition, index, call)
    return values[0] if values else None


def _last_value(partition: SortedPartition, index: int, call: OverCall) -> Any:
    values = _frame_values(partition, index, call)
    return values[-1] if values else None


def _nth_value(partition: SortedPartition, index: int, call: OverCall) -> Any:
    values = _frame_values(partition, index, call)
    return values[call.offset - 1] if len(values) >= call.offset else None


def _frame_values(partition: SortedPartition, index: int, call: OverCall) -> list[Any]:
    column = call.arguments[0]
    return _kept((partition.rows[each][column] for each in partition.frame(index, call.own_frame)), call)


def _kept(values: Iterable[Any], call: OverCall) -> list[Any]:
    return [value for value in values if value is not None or not call.ignore_nulls]


_VALUES: dict[str, Place] = {"first_value": _first_value, "last_value": _last_value, "nth_value": _nth_value}


# --- aggregates ----------------------------------------------------------------------------------------


def _aggregate(partition: SortedPartition, index: int, call: OverCall, bound: BoundAggregate, forms: list[Form]) -> Any:
    rows = (partition.rows[each] for each in partition.frame(index, call.own_frame))
    counted = (row for row in rows if call.filter is None or row[call.filter])
    values: Iterable[tuple[Any, ...]] = (tuple(row[name] for name in call.arguments) for row in counted)
    accumulator = bound.create_accumulator()
    for arguments in _distinct(values, forms) if call.distinct else values:
        accumulator = bound.add(accumulator, *arguments)
    return bound.get_result(accumulator)


def _distinct(values: Iterable[tuple[Any, ...]], forms: list[Form]) -> Iterable[tuple[Any, ...]]:
    """The first of each combination, as Spark finds values equal."""
    seen = set()
    for arguments in values:
        frozen = tuple(None if value is None else form.freeze(value) for value, form in zip(arguments, forms, strict=True))
        if frozen not in seen:
            seen.add(frozen)
            yield arguments
