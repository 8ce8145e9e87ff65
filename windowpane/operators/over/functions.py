"""The value of one call for one row of a sorted partition, from the rows of its frame: no state, nothing incremental.

Source: SQL's window functions as PostgreSQL and DuckDB have them; aggregates are the built-in ones, fed in the order of the
frame.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pyarrow as pa

from windowpane.arrays.values import Value
from windowpane.operators.over.sorted_partition import SortedPartition
from windowpane.windowing.aggregates.canonical import Form, form_of
from windowpane.windowing.aggregates.definition import BoundAggregate
from windowpane.windowing.over.spec import OverCall
from windowpane.windowing.over.types import bind_call

Evaluate = Callable[[SortedPartition, int], Value]
"""The value of a call for the row at an index of a partition."""


Function = Callable[[SortedPartition, int, OverCall], Value]


def evaluator(call: OverCall, columns: pa.Schema) -> Evaluate:
    if call.is_aggregate:
        bound, forms = bind_call(call, columns), [form_of(columns.field(name).type) for name in call.arguments]
        return lambda partition, index: _aggregate(partition, index, call, bound, forms)
    function = _FUNCTIONS[call.function]
    return lambda partition, index: function(partition, index, call)


def _percent_rank(partition: SortedPartition, index: int, call: OverCall) -> float:
    others = len(partition.rows) - 1
    return partition.peers(index).start / others if others else 0.0


def _ntile(partition: SortedPartition, index: int, call: OverCall) -> int:
    """Buckets differ by one row at most, the larger ones first."""
    size, larger = divmod(len(partition.rows), call.offset)
    in_larger = larger * (size + 1)
    return index // (size + 1) + 1 if index < in_larger else larger + (index - in_larger) // size + 1


def _at_distance(partition: SortedPartition, index: int, call: OverCall, steps: int) -> Value:
    column, rows = call.arguments[0], partition.rows
    if steps == 0:
        return rows[index][column]
    away = range(index + 1, len(rows)) if steps > 0 else range(index - 1, -1, -1)
    values = _kept((rows[each][column] for each in away), call)
    return values[abs(steps) - 1] if len(values) >= abs(steps) else call.default


def _nth(values: list[Value], number: int) -> Value:
    return values[number - 1] if len(values) >= number else None


def _frame_values(partition: SortedPartition, index: int, call: OverCall) -> list[Value]:
    column = call.arguments[0]
    return _kept((partition.rows[each][column] for each in partition.frame(index, call.own_frame)), call)


def _kept(values: Iterable[Value], call: OverCall) -> list[Value]:
    return [value for value in values if value is not None or not call.ignore_nulls]


_FUNCTIONS: dict[str, Function] = {
    "row_number": lambda partition, index, call: index + 1,
    "rank": lambda partition, index, call: partition.peers(index).start + 1,
    "dense_rank": lambda partition, index, call: partition.group_of(index) + 1,
    "percent_rank": _percent_rank,
    "cume_dist": lambda partition, index, call: partition.peers(index).stop / len(partition.rows),
    "ntile": _ntile,
    "lead": lambda partition, index, call: _at_distance(partition, index, call, call.offset),
    "lag": lambda partition, index, call: _at_distance(partition, index, call, -call.offset),
    "first_value": lambda partition, index, call: _nth(_frame_values(partition, index, call), 1),
    "last_value": lambda partition, index, call: _nth(_frame_values(partition, index, call)[::-1], 1),
    "nth_value": lambda partition, index, call: _nth(_frame_values(partition, index, call), call.offset),
}


def _aggregate(partition: SortedPartition, index: int, call: OverCall, bound: BoundAggregate, forms: list[Form]) -> Value:
    rows = (partition.rows[each] for each in partition.frame(index, call.own_frame))
    counted = (row for row in rows if call.filter is None or row[call.filter])
    values: Iterable[tuple[Value, ...]] = (tuple(row[name] for name in call.arguments) for row in counted)
    accumulator = bound.create_accumulator()
    for arguments in _distinct(values, forms) if call.distinct else values:
        accumulator = bound.add(accumulator, *arguments)
    return bound.get_result(accumulator)


def _distinct(values: Iterable[tuple[Value, ...]], forms: list[Form]) -> Iterable[tuple[Value, ...]]:
    """The first of each combination, as Spark finds values equal."""
    seen = set()
    for arguments in values:
        frozen = tuple(None if value is None else form.freeze(value) for value, form in zip(arguments, forms, strict=True))
        if frozen not in seen:
            seen.add(frozen)
            yield arguments
