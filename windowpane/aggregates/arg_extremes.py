"""arg_min and arg_max: of rows with equal ``by`` the one that arrived last counts, as in Spark's ``min_by``.

Columnar partials: the value, its ``by``, null while no row counted, and its arrival number.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from windowpane.aggregates.extremes import Precedes, are_extreme
from windowpane.arrays import Integers
from windowpane.arrays.columns import flat
from windowpane.arrays.values import Value
from windowpane.hidden_columns import ARRIVAL
from windowpane.kernels.aggregates.protocol import SegmentAggregate
from windowpane.kernels.segments import NOWHERE, Segments, take_or_null
from windowpane.windowing.aggregates.canonical import Form, Frozen, form_of, is_orderable
from windowpane.windowing.aggregates.definition import BoundAggregate, Call, Definition, Returns, define
from windowpane.windowing.aggregates.spec import Aggregate
from windowpane.windowing.expressions import Argument

Best = tuple[Frozen, Value]
"""The first or last ``by``, and the value beside it."""


@dataclass(frozen=True, slots=True)
class ArgExtreme:
    """The value beside the first or last ``by``. Accumulator: None, then (frozen by, value).

    Of rows with equal ``by`` the one that arrived last counts: only a strictly preceding ``by`` is kept, as
    in Spark's ``min_by``.
    """

    result_type: pa.DataType
    form: Form
    precedes: Precedes

    def create_accumulator(self) -> Best | None:
        return None

    def add(self, accumulator: Best | None, value: Value, by: Value) -> Best | None:
        if by is None:
            return accumulator
        frozen = self.form.freeze(by)
        if accumulator is not None and self.precedes(accumulator[0], frozen):
            return accumulator
        return frozen, value

    def merge(self, left: Best | None, right: Best | None) -> Best | None:
        if right is None or (left is not None and self.precedes(left[0], right[0])):
            return left
        return right

    def get_result(self, accumulator: Best | None) -> Value:
        return None if accumulator is None else accumulator[1]


class ColumnarArgExtreme(SegmentAggregate):
    parts = ("v", "by", "a")
    is_ordered = True

    def __init__(self, prefix: str, slots: tuple[str, ...], is_max: bool) -> None:
        super().__init__(prefix, slots)
        self._is_max = is_max

    @property
    def coded_slots(self) -> tuple[str, ...]:
        value, by = self.slots
        return () if value == by else (value,)

    def lift(self, rows: pa.Table) -> Mapping[str, pa.Array]:
        value, by = self.slots
        return dict(zip(self.columns, (rows[value], rows[by], rows[ARRIVAL]), strict=True))

    def merge(self, partials: pa.Table, segments: Segments) -> Mapping[str, pa.Array]:
        value, by, arrival = (flat(partials[name]) for name in self.columns)
        best = are_extreme(by, segments, self._is_max)
        arrivals = np.where(best, segments.picked(arrival.to_numpy()), NOWHERE)
        chosen = segments.last_where(best & (arrivals == segments.greatest(arrivals)[segments.numbers]))
        rows = segments.rows_at(chosen)
        latest = pa.array(np.where(chosen == NOWHERE, 0, arrivals[chosen]))
        return dict(zip(self.columns, (take_or_null(value, rows), take_or_null(by, rows), latest), strict=True))

    def renumbered(self, partials: pa.Table, by: Integers) -> Mapping[str, pa.Array]:
        return {f"{self.prefix}a": pa.array(partials[f"{self.prefix}a"].to_numpy() + by)}

    def finish(self, partials: pa.Table) -> pa.Array:
        return flat(partials[f"{self.prefix}v"])


def _define(name: str, precedes: Precedes, is_max: bool) -> None:
    def bind(call: Call) -> BoundAggregate:
        value_type, by_type = call.types
        if not is_orderable(by_type):
            raise call.refusal("a second argument with an order (maps have none)")
        return ArgExtreme(value_type, form_of(by_type), precedes)

    define(
        Definition(
            name=name,
            bind=bind,
            holistic=False,
            ordered=True,
            exact=True,
            idempotent=False,
            invertible=False,
            returns=Returns.VALUE,
            compared_from=1,
            columnar=lambda call: ColumnarArgExtreme(call.prefix, call.slots, is_max),
            duckdb=name,
        )
    )


_define("arg_min", operator.lt, False)
_define("arg_max", operator.gt, True)


def arg_min(value: Argument, by: Argument) -> Aggregate:
    """Take the value of the row with the smallest ``by``.

    Rows whose ``by`` is NULL are skipped; the value may be NULL. Of several rows with the smallest ``by`` the last counts, as in
    Spark over ordered input: the last to arrive (or by the ``order_by`` of the stream) in windows, the last by event time and
    then arrival in rolling features, the last in the order of the frame in OVER windows. ``by`` has any type but maps.

    Result: the type of ``value``. Source: Spark SQL ``min_by``.

    Example:
        >>> arg_min("flight", by="dep_delay")
        arg_min('flight', 'dep_delay')
    """
    return Aggregate.of("arg_min", value, by)


def arg_max(value: Argument, by: Argument) -> Aggregate:
    """Take the value of the row with the largest ``by``; NaN is the largest.

    Rows whose ``by`` is NULL are skipped; the value may be NULL. Of several rows with the largest ``by`` the last counts, as in
    Spark over ordered input: the last to arrive (or by the ``order_by`` of the stream) in windows, the last by event time and
    then arrival in rolling features, the last in the order of the frame in OVER windows. ``by`` has any type but maps.

    Result: the type of ``value``. Source: Spark SQL ``max_by``.

    Example:
        >>> arg_max("flight", by="dep_delay")
        arg_max('flight', 'dep_delay')
    """
    return Aggregate.of("arg_max", value, by)
