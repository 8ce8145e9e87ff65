"""Every built-in aggregate, of a column of any type that it takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from windowpane import aggregates as agg
from windowpane.errors import AggregateTypeError
from windowpane.windowing.aggregates import Aggregate

_OF_ANY: tuple[Callable[[str], Aggregate], ...] = (
    agg.count,
    agg.sum,
    agg.avg,
    agg.min,
    agg.max,
    agg.var_pop,
    agg.var_samp,
    agg.stddev_pop,
    agg.stddev_samp,
    agg.median,
    agg.mode,
    agg.first,
    agg.last,
    agg.any_value,
    agg.collect_list,
    agg.collect_set,
    agg.count_distinct,
    agg.approx_count_distinct,
    lambda column: agg.first(column, ignore_nulls=True),
    lambda column: agg.last(column, ignore_nulls=True),
    lambda column: agg.any_value(column, ignore_nulls=True),
    lambda column: agg.quantile(column, 0.7),
    lambda column: agg.approx_quantile(column, 0.5, accuracy=10_000),
    lambda column: agg.approx_count_distinct(column, rsd=0.4),
    lambda column: agg.string_agg(column, "\0"),
    agg.bool_and,
    agg.bool_or,
    lambda column: agg.first_n(column, 2),
    lambda column: agg.last_n(column, 2),
    lambda column: agg.top_n(column, 2),
    lambda column: agg.top_n(column, 3, ascending=True),
)
_OF_TWO: tuple[Callable[[str, str], Aggregate], ...] = (
    agg.arg_min,
    agg.arg_max,
    agg.count_distinct,
    lambda value, by: agg.top_n(value, 2, by=by),
    agg.increase,
    agg.rate,
)


def every_aggregate(columns: pa.Schema, seconds: Sequence[str]) -> tuple[Aggregate, ...]:
    """Return every aggregate of a column, and those of two with each of ``seconds`` on either side."""
    names = columns.names
    made = [make(name) for make in _OF_ANY for name in names]
    made += [make(*pair) for make in _OF_TWO for name in names for second in seconds for pair in ((name, second), (second, name))]
    return tuple(aggregate for aggregate in made if _is_taken(aggregate, columns))


def _is_taken(aggregate: Aggregate, columns: pa.Schema) -> bool:
    try:
        aggregate.bind([columns.field(name).type for name in aggregate.arguments])
    except AggregateTypeError:
        return False
    return True
