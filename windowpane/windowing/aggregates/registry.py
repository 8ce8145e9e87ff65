"""The built-in aggregates by name: how each is bound to types."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from windowpane.windowing.aggregates.algorithms.averages import bind_avg
from windowpane.windowing.aggregates.algorithms.booleans import bind_bool_and, bind_bool_or
from windowpane.windowing.aggregates.algorithms.collecting import bind_collect_list, bind_collect_set, bind_string_agg
from windowpane.windowing.aggregates.algorithms.counting import bind_count, bind_count_distinct
from windowpane.windowing.aggregates.algorithms.extremes import bind_arg_max, bind_arg_min, bind_max, bind_min
from windowpane.windowing.aggregates.algorithms.mode import bind_mode
from windowpane.windowing.aggregates.algorithms.moments import bind_stddev_pop, bind_stddev_samp, bind_var_pop, bind_var_samp
from windowpane.windowing.aggregates.algorithms.positions import bind_first, bind_last
from windowpane.windowing.aggregates.algorithms.quantiles import bind_median, bind_quantile
from windowpane.windowing.aggregates.algorithms.sums import bind_sum
from windowpane.windowing.aggregates.protocol import BoundAggregate, Call

Binder = Callable[[Call], BoundAggregate]


# Sketches bring DataSketches, which is imported only where one is used.
def _bind_approx_count_distinct(call: Call) -> BoundAggregate:
    from windowpane.windowing.aggregates.algorithms.distinct_sketch import bind_approx_count_distinct

    return bind_approx_count_distinct(call)


def _bind_approx_quantile(call: Call) -> BoundAggregate:
    from windowpane.windowing.aggregates.algorithms.quantile_sketch import bind_approx_quantile

    return bind_approx_quantile(call)


BINDERS: Mapping[str, Binder] = MappingProxyType(
    {
        "any_value": bind_first,
        "approx_count_distinct": _bind_approx_count_distinct,
        "approx_quantile": _bind_approx_quantile,
        "arg_max": bind_arg_max,
        "arg_min": bind_arg_min,
        "avg": bind_avg,
        "bool_and": bind_bool_and,
        "bool_or": bind_bool_or,
        "collect_list": bind_collect_list,
        "collect_set": bind_collect_set,
        "count": bind_count,
        "count_distinct": bind_count_distinct,
        "first": bind_first,
        "last": bind_last,
        "max": bind_max,
        "median": bind_median,
        "min": bind_min,
        "mode": bind_mode,
        "quantile": bind_quantile,
        "stddev_pop": bind_stddev_pop,
        "stddev_samp": bind_stddev_samp,
        "string_agg": bind_string_agg,
        "sum": bind_sum,
        "var_pop": bind_var_pop,
        "var_samp": bind_var_samp,
    }
)

VALUES_OF_ARGUMENT = frozenset({"any_value", "arg_max", "arg_min", "first", "last", "max", "min", "mode", "string_agg"})
"""Aggregates whose result is a value of their first argument, and has its type."""

_HANDS_ON = frozenset({"any_value", "collect_list", "count", "first", "last", "string_agg"})


def compared(name: str, arguments: Sequence[str]) -> Sequence[str]:
    """Return the arguments whose values an aggregate compares with each other; others it counts, or hands on as they are."""
    if name in ("arg_min", "arg_max"):
        return arguments[1:]
    return () if name in _HANDS_ON else arguments
