"""min and max, by Spark SQL's order of values: NaN is the largest number, and zero has no sign."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windowpane.arrays import Integers, Mask
from windowpane.arrays.columns import flat
from windowpane.arrays.values import Value
from windowpane.kernels.aggregates.protocol import ColumnarAggregate, KernelAggregate, Partial, SegmentAggregate, is_scalar
from windowpane.kernels.keys.codes import canonical, codes_and_validity
from windowpane.kernels.keys.ordered_codes import (
    decoded,
    has_codes,
    has_ranks,
    is_sortable,
    ordered_codes,
    ranked_codes,
    validity,
)
from windowpane.kernels.over import picks
from windowpane.kernels.over.extremes import extremes, neutral
from windowpane.kernels.over.picks import NOWHERE, taken
from windowpane.kernels.over.protocol import FramedAggregate, Running
from windowpane.kernels.over.rows import SortedRows
from windowpane.kernels.over.running import RunningCount, RunningValue, column_name, frame_ends, segment_scan
from windowpane.kernels.segments import Segments, take_or_null
from windowpane.windowing.aggregates.canonical import Form, Frozen, form_of, is_orderable
from windowpane.windowing.aggregates.definition import BoundAggregate, Call, ColumnarCall, Definition, Returns, define
from windowpane.windowing.aggregates.spec import Aggregate
from windowpane.windowing.expressions import Argument

Precedes = Callable[[Frozen, Frozen], bool]


@dataclass(frozen=True, slots=True)
class Extreme:
    """The value that precedes all others. Accumulator: None, then that value, frozen."""

    result_type: pa.DataType
    form: Form
    precedes: Precedes

    def create_accumulator(self) -> Frozen | None:
        return None

    def add(self, accumulator: Frozen | None, value: Value) -> Frozen | None:
        if value is None:
            return accumulator
        frozen = self.form.freeze(value)
        return frozen if accumulator is None or self.precedes(frozen, accumulator) else accumulator

    def merge(self, left: Frozen | None, right: Frozen | None) -> Frozen | None:
        if left is None or (right is not None and self.precedes(right, left)):
            return right
        return left

    def get_result(self, accumulator: Frozen | None) -> Value:
        return None if accumulator is None else self.form.thaw(accumulator)


def _bound(precedes: Precedes) -> Callable[[Call], BoundAggregate]:
    def bind(call: Call) -> BoundAggregate:
        if not is_orderable(call.type):
            raise call.refusal("a type with an order (maps have none)")
        return Extreme(call.type, form_of(call.type), precedes)

    return bind


# --- partials of columns ---


_LEAST = np.iinfo(np.int64).min


class PlainExtreme(KernelAggregate):
    """Types that Arrow orders as Spark does. Partial: the value; false is less than true, so bool_and is a min."""

    takes_codes = True

    def __init__(self, prefix: str, slots: tuple[str, ...], kind: str) -> None:
        super().__init__(prefix, slots)
        self._kind = kind

    @property
    def partials(self) -> tuple[Partial, ...]:
        return (Partial(f"{self.prefix}m", self._kind, self._kind),)

    def finish(self, partials: pa.Table) -> pa.Array:
        return flat(partials[f"{self.prefix}m"])


class FloatExtreme(KernelAggregate):
    """Floating point. Partials: the extreme of the numbers, and whether there was a NaN, which Arrow skips."""

    def __init__(self, prefix: str, slots: tuple[str, ...], kind: str) -> None:
        super().__init__(prefix, slots)
        self._kind = kind

    @property
    def partials(self) -> tuple[Partial, ...]:
        return (Partial(f"{self.prefix}m", self._kind, self._kind), Partial(f"{self.prefix}x", "max", "max"))

    def prepare(self, rows: pa.Table) -> dict[str, pa.Array]:
        values = canonical(rows[self.slots[0]])
        is_nan = pc.is_nan(values)
        numbers = pc.if_else(is_nan, pa.scalar(None, values.type), values)
        return {f"{self.prefix}m": numbers, f"{self.prefix}x": is_nan}

    def finish(self, partials: pa.Table) -> pa.Array:
        numbers, has_nan = partials[f"{self.prefix}m"], pc.fill_null(partials[f"{self.prefix}x"], False)
        nan = pa.scalar(float("nan"), numbers.type)
        wins = has_nan if self._kind == "max" else pc.and_(has_nan, numbers.is_null())
        return pc.if_else(wins, nan, numbers).combine_chunks()


class OrderedExtreme(SegmentAggregate):
    """Any other type with an order, nested ones too. Partial: the value."""

    parts = ("m",)

    def __init__(self, prefix: str, slots: tuple[str, ...], kind: str) -> None:
        super().__init__(prefix, slots)
        self._is_max = kind == "max"

    def lift(self, rows: pa.Table) -> Mapping[str, pa.Array]:
        return {f"{self.prefix}m": canonical(rows[self.slots[0]])}

    def merge(self, partials: pa.Table, segments: Segments) -> Mapping[str, pa.Array]:
        values = flat(partials[f"{self.prefix}m"])
        best = segments.last_where(are_extreme(values, segments, self._is_max))
        return {f"{self.prefix}m": take_or_null(values, segments.rows_at(best))}

    def finish(self, partials: pa.Table) -> pa.Array:
        return flat(partials[f"{self.prefix}m"])


def are_extreme(values: pa.Array, segments: Segments, is_max: bool) -> Mask:
    """Return which gathered values are the largest, or the smallest, of their group; NULL is neither."""
    codes, present = map(segments.picked, codes_and_validity(values))
    codes = np.where(present, codes if is_max else ~codes, _LEAST)
    extreme: Mask = present & (codes == segments.greatest(codes)[segments.numbers])
    return extreme


def columnar(kind: str) -> Callable[[ColumnarCall], ColumnarAggregate]:
    """Return what gives the columnar form of ``"min"`` or ``"max"``."""

    def form(call: ColumnarCall) -> ColumnarAggregate:
        if pa.types.is_floating(call.type):
            return FloatExtreme(call.prefix, call.slots, kind)
        is_plain = is_scalar(call.type) and not pa.types.is_duration(call.type)
        return (PlainExtreme if is_plain else OrderedExtreme)(call.prefix, call.slots, kind)

    return form


# --- frames of sorted rows ---


class FramedMin(FramedAggregate):
    is_max: ClassVar[bool] = False

    def over(self, rows: SortedRows, counted: Mask, count: Integers) -> pa.Array:
        column = self.argument(rows)
        codes, values = (ordered_codes(column), None) if has_codes(column.type) else ranked_codes(column)
        found = extremes(np.where(counted, codes, neutral(self.is_max)), rows.spans(self.call.own_frame), self.is_max)
        if values is None:
            return decoded(found, count > 0, column.type)
        return picks.taken(values, np.where(count > 0, found, picks.NOWHERE))


class FramedMax(FramedMin):
    is_max = True


# --- running frames ---


class RunningMin(RunningCount):
    is_max: ClassVar[bool] = False

    @property
    def code(self) -> str:
        return column_name(f"{self.call.function}", self.call)

    @property
    def carries(self) -> pa.Schema:
        return pa.schema([(self.name, pa.int64()), (self.code, pa.int64())])

    def scan(self, rows: SortedRows) -> None:
        super().scan(rows)
        if self.code not in rows.carries:
            codes = ordered_codes(rows.column(self.call.arguments[0]))
            codes = np.where(rows.counted(self.call.arguments, self.call.filter), codes, neutral(self.is_max))
            if rows.seeded.any():
                codes[rows.seeded_firsts] = rows.seeds(self.code)[0].to_numpy()
            rows.carries[self.code] = pa.array(segment_scan(np.maximum if self.is_max else np.minimum, codes, rows.layout))

    def value(self, rows: SortedRows) -> pa.Array:
        codes = rows.carries[self.code].to_numpy()
        picked = codes[frame_ends(rows, self.call).row] if len(codes) else codes
        return decoded(picked, self.totals(rows) > 0, self.kind)


class RunningMax(RunningMin):
    is_max = True


class RunningRankedMin(RunningValue):
    """The smallest of values that have no codes, by their ranks among those of a batch."""

    is_max: ClassVar[bool] = False

    @property
    def name(self) -> str:
        return column_name(self.call.function, self.call)

    def scan(self, rows: SortedRows) -> None:
        if self.name in rows.carries:
            return
        values = rows.column(self.call.arguments[0])
        seeds = rows.seeds(self.name)[0] if rows.seeded.any() else values.slice(0, 0)
        codes, ranked = ranked_codes(pa.chunked_array([values, seeds]).combine_chunks())
        none = -1 if self.is_max else len(ranked)
        ranks = np.where(rows.counted(self.call.arguments, self.call.filter), codes[: len(values)], none)
        if len(seeds):
            ranks[rows.seeded_firsts] = np.where(validity(seeds), codes[len(values) :], none)
        ranks = segment_scan(np.maximum if self.is_max else np.minimum, ranks, rows.layout)
        rows.carries[self.name] = taken(ranked, np.where(ranks == none, NOWHERE, ranks))


class RunningRankedMax(RunningRankedMin):
    is_max = True


def _define(
    name: str, precedes: Precedes, framed: type[FramedMin], coded: type[Running], ranked: type[Running], merged_by: str
) -> None:
    def running(call: Call) -> type[Running] | None:
        return coded if has_codes(call.type) else ranked if has_ranks(call.type) else None

    define(
        Definition(
            name=name,
            bind=_bound(precedes),
            holistic=False,
            ordered=False,
            exact=True,
            idempotent=True,
            invertible=False,
            returns=Returns.VALUE,
            compared_from=0,
            columnar=columnar(name),
            frame=lambda call: framed if is_sortable(call.type) else None,
            running=running,
            duckdb=name,
            merged_by=merged_by,
        )
    )


_define("min", operator.lt, FramedMin, RunningMin, RunningRankedMin, "least")
_define("max", operator.gt, FramedMax, RunningMax, RunningRankedMax, "greatest")


def min(column: Argument) -> Aggregate:
    """Take the smallest value; NaN only if there is nothing else.

    Works on every type with an order: all but maps. Result: the type of the column. Source: Spark SQL
    ``min``.

    Example:
        >>> min("dep_delay")
        min('dep_delay')
    """
    return Aggregate.of("min", column)


def max(column: Argument) -> Aggregate:
    """Take the largest value; NaN if there is one.

    Works on every type with an order: all but maps. Result: the type of the column. Source: Spark SQL
    ``max``.

    Example:
        >>> max("dep_delay")
        max('dep_delay')
    """
    return Aggregate.of("max", column)
