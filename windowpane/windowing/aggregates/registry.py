"""The built-in aggregates by name: how each is bound to types."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from windowpane.windowing.aggregates.averages import bind_avg
from windowpane.windowing.aggregates.booleans import bind_bool_and, bind_bool_or
from windowpane.windowing.aggregates.collecting import bind_collect_list, bind_collect_set, bind_string_agg
from windowpane.windowing.aggregates.counting import bind_count, bind_count_distinct
from windowpane.windowing.aggregates.extremes import bind_arg_max, bind_arg_min, bind_max, bind_min
from windowpane.windowing.aggregates.mode import bind_mode
from windowpane.windowing.aggregates.moments import (
    bind_stddev_pop,
    bind_stddev_samp,
    bind_var_pop,
    bind_var_samp,
)
from windowpane.windowing.aggregates.positions import bind_first, bind_last
from windowpane.windowing.aggregates.protocol import BoundAggregate, Call
from windowpane.windowing.aggregates.quantiles import bind_median, bind_quantile
from windowpane.windowing.aggregates.sums import bind_sum

Binder = Callable[[Call], BoundAggregate]


# Sketches bring DataSketches, which is imported for those who ask for one.
def _bind_approx_count_distinct(call: Call) -> BoundAggregate:
    from windowpane.windowing.aggregates.distinct_sketch import bind_approx_count_distinct

    return bind_approx_count_distinct(call)


def _bind_approx_quantile(call: Call) -> BoundAggregate:
    from windowpane.windowing.aggregates.quantile_sketch import bind_approx_quantile

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
