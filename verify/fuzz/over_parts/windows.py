"""Random OVER windows over the columns of ``inputs``."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from functools import lru_cache
from random import Random

import pyarrow as pa

from verify.fuzz.aggregates import every_aggregate
from windowpane import aggregates as agg
from windowpane.errors import InvalidFrameError
from windowpane.windowing.aggregates import Aggregate
from windowpane.windowing.frames import (
    CURRENT_ROW,
    UNBOUNDED_FOLLOWING,
    UNBOUNDED_PRECEDING,
    Bound,
    Exclude,
    Frame,
    Offset,
    Units,
    following,
    preceding,
)
from windowpane.windowing.intervals import Interval
from windowpane.windowing.over.spec import OrderColumn, OverCall, OverSpec

_NONE = pa.schema([])
VALUES = ("x", "y", "s", "d", "ok")
"""Columns that calls take as arguments: bigint, double, text, decimal, boolean."""

_NUMBERS = ("x", "y", "d")
_AGGREGATES = (
    lambda column: agg.count(column),
    lambda column: agg.min(column),
    lambda column: agg.max(column),
    lambda column: agg.collect_list(column),
    lambda column: agg.first(column),
    lambda column: agg.last(column, ignore_nulls=True),
    lambda column: agg.any_value(column, ignore_nulls=True),
    lambda column: agg.count_distinct(column),
    lambda column: agg.collect_set(column),
    lambda column: agg.arg_max(column, "id"),
    lambda column: agg.arg_min(column, "id"),
)
_NUMERIC_AGGREGATES = (
    lambda column: agg.sum(column),
    lambda column: agg.sum(column),
    lambda column: agg.avg(column),
    lambda column: agg.stddev_samp(column),
    lambda column: agg.stddev_pop(column),
    lambda column: agg.var_samp(column),
    lambda column: agg.var_pop(column),
    lambda column: agg.median(column),
    lambda column: agg.quantile(column, 0.25),
)
_DISTINCT = frozenset({"count", "sum", "avg", "min", "max"})
_NUMBERING = ("row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile")


def random_spec(rng: Random, order_type: pa.DataType, closes: bool, further: pa.Schema = _NONE) -> OverSpec:
    """Return a window; one that emits on window close orders by ``ts`` alone and needs nothing that never comes.

    Args:
        rng: draws it.
        order_type: the type of ``ts``.
        closes: whether it emits on window close.
        further: columns of other types that the window may be of, too.
    """
    sortable = [field.name for field in further if not pa.types.is_nested(field.type)]
    partition = rng.choice([("part",), ("part",), ("part",), ("part", "sub"), (), *((name,) for name in sortable)])
    order = _random_order(rng, closes, sortable)
    calls = tuple(_random_call(rng, order, order_type, closes, further) for _ in range(rng.randint(1, 4)))
    key = (rng.choice(sortable), "id") if sortable and rng.random() < 0.3 else ("id",)
    return OverSpec(partition, order, key, calls)


def _random_order(rng: Random, closes: bool, sortable: Sequence[str]) -> tuple[OrderColumn, ...]:
    if closes:
        return (OrderColumn("ts", nulls_first=rng.random() < 0.5),)
    further = [names for name in sortable for names in ([name], ["ts", name], [name, "ts"])]
    names = rng.choice([["ts"]] * 5 + [["ts", "s"], ["y", "ts"], ["s"], []] + further)
    return tuple(OrderColumn(name, rng.random() < 0.4, nulls_first=rng.random() < 0.5) for name in names)


def _random_call(
    rng: Random, order: tuple[OrderColumn, ...], order_type: pa.DataType, closes: bool, further: pa.Schema
) -> OverCall:
    kind = rng.choices(["numbering", "offset", "value", "aggregate"], [2 if order else 0, 3, 2, 5])[0]
    if kind == "numbering":
        return OverCall(rng.choice(_NUMBERING[:3] if closes else _NUMBERING), offset=rng.randint(1, 4))
    if kind == "offset":
        return _random_offset(rng, further)
    frame = random_frame(rng, order, order_type, closes)
    if kind == "value":
        function = rng.choice(["first_value", "last_value", "nth_value"])
        column = rng.choice([*VALUES, *further.names])
        return OverCall(function, (column,), frame, rng.randint(1, 3), ignore_nulls=rng.random() < 0.3)
    if further.names and rng.random() < 0.7:
        return _call_of(rng, rng.choice(_every(further)), frame)
    return _random_aggregate(rng, frame)


@lru_cache(maxsize=256)
def _every(columns: pa.Schema) -> tuple[Aggregate, ...]:
    return every_aggregate(columns, columns.names)


def _random_offset(rng: Random, further: pa.Schema) -> OverCall:
    column, nulls = rng.choice(["x", "s", *further.names]), rng.random() < 0.3
    default = rng.choice([None, None, {"x": -1, "s": "none"}.get(column)])
    offset = rng.choice([1, 1, 1, 2, 3, 0, -1])
    return OverCall(rng.choice(["lag", "lead"]), (column,), offset=offset, default=default, ignore_nulls=nulls)


def _random_aggregate(rng: Random, frame: Frame) -> OverCall:
    aggregate: Aggregate
    if rng.random() < 0.15:
        aggregate = rng.choice([agg.count(), agg.string_agg("s", "-"), agg.bool_and("ok"), agg.bool_or("ok")])
    elif rng.random() < 0.5:
        aggregate = rng.choice(_NUMERIC_AGGREGATES)(rng.choice(_NUMBERS))
    else:
        aggregate = rng.choice(_AGGREGATES)(rng.choice(VALUES))
    return _call_of(rng, aggregate, frame)


def _call_of(rng: Random, aggregate: Aggregate, frame: Frame) -> OverCall:
    distinct = bool(aggregate.arguments) and aggregate.name in _DISTINCT and rng.random() < 0.2
    return OverCall.of(aggregate, frame, "ok" if rng.random() < 0.2 else None, distinct)


def random_frame(rng: Random, order: tuple[OrderColumn, ...], order_type: pa.DataType, closes: bool) -> Frame:
    """Return a frame that the window can have."""
    measures = len(order) == 1 and order[0].name == "ts" and not pa.types.is_string(order_type)
    units = rng.choices([Units.ROWS, Units.RANGE, Units.GROUPS, Units.SESSION], [5, 4, 2, 1 if measures else 0])[0]
    exclude = rng.choice([Exclude.NO_OTHERS] * 3 + list(Exclude))
    if units is Units.SESSION:
        return Frame.session(_random_distance(rng, order_type, least=1), exclude)
    while True:
        try:
            start, end = (_random_bound(rng, units, order_type if measures else None) for _ in range(2))
            frame = Frame(units, start, end, exclude)
        except InvalidFrameError:
            continue
        if not (closes and frame.end.is_unbounded):
            return frame


def _random_bound(rng: Random, units: Units, order_type: pa.DataType | None) -> Bound:
    fixed = [UNBOUNDED_PRECEDING, CURRENT_ROW, CURRENT_ROW, UNBOUNDED_FOLLOWING]
    if units is Units.RANGE and order_type is None:
        return rng.choice(fixed)
    if rng.random() < 0.45:
        return rng.choice(fixed)
    assert order_type is not None or units is not Units.RANGE, "distances need a type"
    offset = _random_distance(rng, order_type) if units is Units.RANGE and order_type is not None else rng.randint(0, 4)
    return rng.choice([preceding, preceding, following])(offset)


def _random_distance(rng: Random, order_type: pa.DataType, least: int = 0) -> Offset:
    steps = rng.randint(least, 4)
    if pa.types.is_timestamp(order_type):
        return rng.choice(
            [Interval(micros=steps * 1_800_000_000), Interval(days=steps), Interval(months=rng.randint(0, 1), days=1)]
        )
    if pa.types.is_date(order_type):
        return Interval(days=steps)
    if pa.types.is_decimal(order_type):
        return Decimal(steps) / 2
    return steps / 2 if pa.types.is_floating(order_type) else steps
