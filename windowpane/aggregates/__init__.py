"""The built-in aggregates, one family a file: what users write, the row form, the forms of engines, and the definition of each.

They have the meaning of Spark SQL's functions. Rules they share: NULLs are skipped unless a docstring says otherwise; NaN equals
NaN and is larger than every number; -0.0 equals 0.0; the aggregate of no values is NULL, a count 0, a list empty. A result that
does not fit its type is an ``AggregateOverflowError`` when it is made, a column of the wrong type an ``AggregateTypeError`` when
the plan is built, and a wrong constant an ``InvalidSpecError`` at once. Arguments are column names, or Spark Columns, which Spark
computes first.
"""

from windowpane.aggregates.approximate import approx_count_distinct, approx_quantile
from windowpane.aggregates.arg_extremes import arg_max, arg_min
from windowpane.aggregates.averages import avg
from windowpane.aggregates.booleans import bool_and, bool_or
from windowpane.aggregates.collections import collect_list, collect_set, string_agg
from windowpane.aggregates.counters import increase, rate
from windowpane.aggregates.counts import count, count_distinct
from windowpane.aggregates.extremes import max, min
from windowpane.aggregates.few_values import first_n, last_n, top_n
from windowpane.aggregates.modes import mode
from windowpane.aggregates.moments import stddev, stddev_pop, stddev_samp, var, var_pop, var_samp, variance
from windowpane.aggregates.positions import any_value, first, last
from windowpane.aggregates.quantiles import median, quantile
from windowpane.aggregates.sums import sum

__all__ = [
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
    "first_n",
    "increase",
    "last",
    "last_n",
    "max",
    "median",
    "min",
    "mode",
    "quantile",
    "rate",
    "stddev",
    "stddev_pop",
    "stddev_samp",
    "string_agg",
    "sum",
    "top_n",
    "var",
    "var_pop",
    "var_samp",
    "variance",
]
