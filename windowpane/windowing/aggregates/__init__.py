"""Built-in aggregates, with the meaning of Spark SQL's functions and the shape of Flink's AggregateFunction.

``constructors`` makes specs (``spec``); a spec is bound to the types of its arguments (``registry`` says by
whom) and becomes a bound aggregate (``protocol``), one algorithm a file; ``combined`` runs several over the
same rows.
"""

from windowpane.windowing.aggregates.algorithms.combined import CombinedAggregate
from windowpane.windowing.aggregates.constructors import (
    any_value,
    approx_count_distinct,
    approx_quantile,
    arg_max,
    arg_min,
    avg,
    bool_and,
    bool_or,
    collect_list,
    collect_set,
    count,
    count_distinct,
    first,
    last,
    max,
    median,
    min,
    mode,
    quantile,
    stddev,
    stddev_pop,
    stddev_samp,
    string_agg,
    sum,
    var,
    var_pop,
    var_samp,
    variance,
)
from windowpane.windowing.aggregates.protocol import BoundAggregate
from windowpane.windowing.aggregates.spec import Aggregate

__all__ = [
    "Aggregate",
    "BoundAggregate",
    "CombinedAggregate",
    "any_value",
    "approx_count_distinct",
    "approx_quantile",
    "arg_max",
    "arg_min",
    "avg",
    "bool_and",
    "bool_or",
    "collect_list",
    "collect_set",
    "count",
    "count_distinct",
    "first",
    "last",
    "max",
    "median",
    "min",
    "mode",
    "quantile",
    "stddev",
    "stddev_pop",
    "stddev_samp",
    "string_agg",
    "sum",
    "var",
    "var_pop",
    "var_samp",
    "variance",
]
