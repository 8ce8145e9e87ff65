"""The columnar form of each built-in aggregate, by its name and the types of its arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import cast

import pyarrow as pa

from windowpane.kernels.aggregates.arg_extremes import ArgExtreme
from windowpane.kernels.aggregates.counting import Count
from windowpane.kernels.aggregates.extremes import FloatExtreme, OrderedExtreme, PlainExtreme
from windowpane.kernels.aggregates.means import DecimalMean, DurationMean, FloatMean, IntegerMean
from windowpane.kernels.aggregates.moments import Moments
from windowpane.kernels.aggregates.positions import Position
from windowpane.kernels.aggregates.protocol import ColumnarAggregate
from windowpane.kernels.aggregates.sketches import Sketch
from windowpane.kernels.aggregates.sums import DecimalSum, DurationSum, FloatSum, IntegerSum
from windowpane.kernels.aggregates.valued.collecting import CollectList, CollectSet, StringAgg
from windowpane.kernels.aggregates.valued.distinct import CountDistinct
from windowpane.kernels.aggregates.valued.modes import Mode
from windowpane.kernels.aggregates.valued.quantiles import Quantile
from windowpane.windowing.aggregates import Aggregate
from windowpane.windowing.aggregates.canonical import is_array
from windowpane.windowing.aggregates.durations import is_duration
from windowpane.windowing.aggregates.protocol import BoundAggregate

ORDERED = frozenset({"any_value", "arg_max", "arg_min", "collect_list", "collect_set", "first", "last", "string_agg"})
"""The aggregates whose result depends on the order of arrival, by name."""

_SCALARS = (
    pa.types.is_signed_integer,
    pa.types.is_floating,
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_binary,
    pa.types.is_large_binary,
    pa.types.is_boolean,
    pa.types.is_date32,
    pa.types.is_timestamp,
    pa.types.is_decimal128,
    is_duration,
)


def is_scalar(kind: pa.DataType) -> bool:
    """Whether values of a type hold no other values, and Arrow's kernels know them."""
    return any(test(kind) for test in _SCALARS)


def _is_known(kind: pa.DataType) -> bool:
    if pa.types.is_map(kind):
        return _is_known(kind.key_type) and _is_known(kind.item_type)
    if is_array(kind):
        return _is_known(kind.value_type)
    if pa.types.is_struct(kind):
        return all(_is_known(field.type) for field in kind)
    return is_scalar(kind)


@dataclass(frozen=True)
class _Call:
    """An aggregate to be given a columnar form."""

    aggregate: Aggregate
    prefix: str
    slots: tuple[str, ...]
    types: tuple[pa.DataType, ...]
    bound: BoundAggregate

    @property
    def type(self) -> pa.DataType:
        return self.types[0]

    @property
    def label(self) -> str:
        return repr(self.aggregate)


Form = Callable[[_Call], ColumnarAggregate]


def columnar_form(
    aggregate: Aggregate, prefix: str, slots: tuple[str, ...], types: Sequence[pa.DataType]
) -> ColumnarAggregate | None:
    """Return the columnar form of a built-in aggregate, ``None`` if it has none for arguments of these types.

    Args:
        aggregate: the aggregate.
        prefix: what the names of its partial columns begin with.
        slots: the columns that hold its arguments.
        types: their types, in order.

    Raises:
        AggregateTypeError: the aggregate has no meaning for these types.
    """
    if not all(map(_is_known, types)):
        return None
    bound = aggregate.bind(types)
    return _FORMS[aggregate.name](_Call(aggregate, prefix, slots, tuple(types), bound))


def _extreme(kind: str) -> Form:
    def form(call: _Call) -> ColumnarAggregate:
        if pa.types.is_floating(call.type):
            return FloatExtreme(call.prefix, call.slots, kind)
        is_plain = is_scalar(call.type) and not pa.types.is_duration(call.type)
        return (PlainExtreme if is_plain else OrderedExtreme)(call.prefix, call.slots, kind)

    return form


def _sum(call: _Call) -> ColumnarAggregate:
    if pa.types.is_floating(call.type):
        return FloatSum(call.prefix, call.slots)
    if pa.types.is_decimal(call.type):
        return DecimalSum(call.prefix, call.slots, call.type, call.bound.result_type, call.label)
    return (DurationSum if pa.types.is_duration(call.type) else IntegerSum)(call.prefix, call.slots, call.label)


def _mean(call: _Call) -> ColumnarAggregate:
    if pa.types.is_floating(call.type):
        return FloatMean(call.prefix, call.slots)
    if pa.types.is_decimal(call.type):
        return DecimalMean(call.prefix, call.slots, call.type, call.bound.result_type, call.label)
    return (DurationMean if pa.types.is_duration(call.type) else IntegerMean)(call.prefix, call.slots, call.label)


def _moments(missing: int, is_root: bool) -> Form:
    return lambda call: Moments(call.prefix, call.slots, missing, is_root)


def _position(is_last: bool) -> Form:
    return lambda call: Position(call.prefix, call.slots, is_last, call.aggregate.parameter("ignore_nulls"))


def _string_agg(call: _Call) -> ColumnarAggregate:
    separator = call.aggregate.parameter("separator")
    is_text = pa.types.is_string(call.type) or pa.types.is_large_string(call.type)
    return StringAgg(call.prefix, call.slots, separator if is_text else separator.encode())


def _quantile(call: _Call) -> ColumnarAggregate:
    q = 0.5 if call.aggregate.name == "median" else call.aggregate.parameter("q")
    return Quantile(call.prefix, call.slots, q, pa.types.is_duration(call.type))


# Sketches bring DataSketches, which is imported only where one is used.
def _distinct_sketch(call: _Call) -> ColumnarAggregate:
    from windowpane.kernels.aggregates.register_sketch import RegisterSketch
    from windowpane.windowing.aggregates.algorithms.distinct_sketch import ApproxCountDistinct

    return RegisterSketch(call.prefix, call.slots, cast("ApproxCountDistinct", call.bound))


def _quantile_sketch(call: _Call) -> ColumnarAggregate:
    from windowpane.kernels.aggregates.quantile_sketch import NumberSketch
    from windowpane.windowing.aggregates.algorithms.quantile_sketch import ApproxQuantile, QuantileSketch

    if pa.types.is_signed_integer(call.type) or pa.types.is_floating(call.type):
        return NumberSketch(call.prefix, call.slots, cast("ApproxQuantile", call.bound))
    return Sketch(call.prefix, call.slots, call.bound, QuantileSketch.to_bytes, QuantileSketch.from_bytes)


_FORMS: Mapping[str, Form] = MappingProxyType(
    {
        "any_value": _position(is_last=False),
        "approx_count_distinct": _distinct_sketch,
        "approx_quantile": _quantile_sketch,
        "arg_max": lambda call: ArgExtreme(call.prefix, call.slots, is_max=True),
        "arg_min": lambda call: ArgExtreme(call.prefix, call.slots, is_max=False),
        "avg": _mean,
        "bool_and": _extreme("min"),
        "bool_or": _extreme("max"),
        "collect_list": lambda call: CollectList(call.prefix, call.slots),
        "collect_set": lambda call: CollectSet(call.prefix, call.slots),
        "count": lambda call: Count(call.prefix, call.slots),
        "count_distinct": lambda call: CountDistinct(call.prefix, call.slots),
        "first": _position(is_last=False),
        "last": _position(is_last=True),
        "max": _extreme("max"),
        "median": _quantile,
        "min": _extreme("min"),
        "mode": lambda call: Mode(call.prefix, call.slots),
        "quantile": _quantile,
        "stddev_pop": _moments(missing=0, is_root=True),
        "stddev_samp": _moments(missing=1, is_root=True),
        "string_agg": _string_agg,
        "sum": _sum,
        "var_pop": _moments(missing=0, is_root=False),
        "var_samp": _moments(missing=1, is_root=False),
    }
)
