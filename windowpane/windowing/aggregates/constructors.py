"""The functions that users write: one per aggregate, each returning a spec.

Rules they share, those of Spark SQL: NULLs are skipped unless a docstring says otherwise; NaN equals NaN and
is larger than every number; -0.0 equals 0.0; the aggregate of no values is NULL, a count 0, a list empty. A
result that does not fit its type is an ``AggregateOverflowError`` when it is made, a column of the wrong type
an ``AggregateTypeError`` when the plan is built, and a wrong constant an ``InvalidSpecError`` at once.
Arguments are column names, or Spark Columns, which Spark computes first.
"""

from __future__ import annotations

from typing import Any

from windowpane.errors import InvalidSpecError
from windowpane.windowing.aggregates.spec import Aggregate


def _aggregate(name: str, *arguments: Any, **parameters: Any) -> Aggregate:
    for argument in arguments:
        # A Column is recognised by its methods: pyspark is not imported here, and Connect has its own.
        if not isinstance(argument, str) and not hasattr(argument, "cast"):
            raise InvalidSpecError(
                f"{name} was given {argument!r}, which is neither a column name nor a Spark Column. For a constant, use lit(...)."
            )
    return Aggregate(name, arguments, tuple(parameters.items()))


def _checked_share(name: str, q: float) -> float:
    if isinstance(q, bool) or not isinstance(q, int | float) or not 0 <= q <= 1:
        raise InvalidSpecError(f"{name} was given q={q!r}, but q is a number from 0 to 1: write 0.9 for the 90th percentile.")
    return float(q)


def count(column: Any = None) -> Aggregate:
    """Count the rows, or the rows where a column is not NULL.

    Result: bigint, 0 for no rows. Source: Spark SQL ``count(*)``, ``count(col)``.

    Example:
        >>> count(), count("dep_delay")
        (count(), count('dep_delay'))
    """
    return _aggregate("count") if column is None else _aggregate("count", column)


def count_distinct(column: Any, *columns: Any) -> Aggregate:
    """Count the distinct values of a column, or of several columns their combinations without a NULL.

    Works on every type, also arrays, structs and maps. Keeps every distinct value: see
    ``approx_count_distinct``.

    Result: bigint, 0 for no values. Source: Spark SQL ``count(DISTINCT col, ...)``.

    Example:
        >>> count_distinct("tail_number")
        count_distinct('tail_number')
    """
    return _aggregate("count_distinct", column, *columns)


def sum(column: Any) -> Aggregate:
    """Add up numbers or intervals.

    Result: bigint for integers, double for floating point (NaN if a value is), decimal(p + 10, s) for
    decimal(p, s), at most 38 digits, and interval for intervals. Integers, decimals and intervals are exact:
    only the result has to fit, where Spark also refuses a total that leaves the range on the way. Source:
    Spark SQL ``sum``.

    Raises:
        AggregateOverflowError: when the result is made and does not fit.

    Example:
        >>> sum("distance")
        sum('distance')
    """
    return _aggregate("sum", column)


def min(column: Any) -> Aggregate:
    """Take the smallest value; NaN only if there is nothing else.

    Works on every type with an order: all but maps. Result: the type of the column. Source: Spark SQL
    ``min``.

    Example:
        >>> min("dep_delay")
        min('dep_delay')
    """
    return _aggregate("min", column)


def max(column: Any) -> Aggregate:
    """Take the largest value; NaN if there is one.

    Works on every type with an order: all but maps. Result: the type of the column. Source: Spark SQL
    ``max``.

    Example:
        >>> max("dep_delay")
        max('dep_delay')
    """
    return _aggregate("max", column)


def avg(column: Any) -> Aggregate:
    """Take the arithmetic mean of numbers or intervals.

    Result: double for integers (from their exact total) and floating point; decimal(p + 4, s + 4) for
    decimal(p, s), both at most 38, rounded HALF_UP; interval for intervals, rounded HALF_UP to a microsecond.
    Source: Spark SQL ``avg``. (Below 12 digits Spark's optimizer averages decimals as doubles, which may
    differ in the last place on a tie.)

    Raises:
        AggregateOverflowError: when the result, a decimal, is made and does not fit.

    Example:
        >>> avg("dep_delay")
        avg('dep_delay')
    """
    return _aggregate("avg", column)


def var_pop(column: Any) -> Aggregate:
    """Take the variance of the whole population: the mean squared distance from the mean.

    Result: double, 0 for one value, NaN if a value is NaN. Source: Spark SQL ``var_pop``.

    Example:
        >>> var_pop("dep_delay")
        var_pop('dep_delay')
    """
    return _aggregate("var_pop", column)


def var_samp(column: Any) -> Aggregate:
    """Take the variance estimated from a sample: divided by n - 1.

    Result: double, NULL for one value, NaN if a value is NaN. Source: Spark SQL ``var_samp``.

    Example:
        >>> var_samp("dep_delay")
        var_samp('dep_delay')
    """
    return _aggregate("var_samp", column)


def variance(column: Any) -> Aggregate:
    """Take the variance of a sample: another name of ``var_samp``, as in Spark SQL.

    Example:
        >>> variance("dep_delay") == var_samp("dep_delay")
        True
    """
    return var_samp(column)


def var(column: Any) -> Aggregate:
    """Take the variance of a sample: a short name of ``var_samp``.

    Example:
        >>> var("dep_delay")
        var_samp('dep_delay')
    """
    return var_samp(column)


def stddev_pop(column: Any) -> Aggregate:
    """Take the standard deviation of the whole population: the square root of ``var_pop``.

    Result: double, 0 for one value, NaN if a value is NaN. Source: Spark SQL ``stddev_pop``.

    Example:
        >>> stddev_pop("dep_delay")
        stddev_pop('dep_delay')
    """
    return _aggregate("stddev_pop", column)


def stddev_samp(column: Any) -> Aggregate:
    """Take the standard deviation of a sample: the square root of ``var_samp``.

    Result: double, NULL for one value, NaN if a value is NaN. Source: Spark SQL ``stddev_samp``.

    Example:
        >>> stddev_samp("dep_delay")
        stddev_samp('dep_delay')
    """
    return _aggregate("stddev_samp", column)


def stddev(column: Any) -> Aggregate:
    """Take the standard deviation of a sample: another name of ``stddev_samp``, as in Spark SQL.

    Example:
        >>> stddev("dep_delay")
        stddev_samp('dep_delay')
    """
    return stddev_samp(column)


def first(column: Any, ignore_nulls: bool = False) -> Aggregate:
    """Take the value of the row that arrived first, NULL or not, or the first that is not NULL.

    Result: the type of the column. Source: Spark SQL ``first``; here the order is that of arrival, or the
    ``order_by`` of the stream.

    Example:
        >>> first("carrier", ignore_nulls=True)
        first('carrier', ignore_nulls=True)
    """
    return _aggregate("first", column, ignore_nulls=bool(ignore_nulls))


def last(column: Any, ignore_nulls: bool = False) -> Aggregate:
    """Take the value of the row that arrived last, NULL or not, or the last that is not NULL.

    Result: the type of the column. Source: Spark SQL ``last``; here the order is that of arrival, or the
    ``order_by`` of the stream. Rolling features take rows by event time and then arrival, OVER windows in the order of the frame.

    Example:
        >>> last("carrier")
        last('carrier', ignore_nulls=False)
    """
    return _aggregate("last", column, ignore_nulls=bool(ignore_nulls))


def any_value(column: Any, ignore_nulls: bool = False) -> Aggregate:
    """Take some value; here it is the first by arrival, NULL or not unless NULLs are ignored.

    Result: the type of the column. Source: Spark SQL ``any_value``.

    Example:
        >>> any_value("carrier")
        any_value('carrier', ignore_nulls=False)
    """
    return _aggregate("any_value", column, ignore_nulls=bool(ignore_nulls))


def arg_min(value: Any, by: Any) -> Aggregate:
    """Take the value of the row with the smallest ``by``.

    Rows whose ``by`` is NULL are skipped; the value may be NULL. Of several rows with the smallest ``by`` the last counts, as in
    Spark over ordered input: the last to arrive (or by the ``order_by`` of the stream) in windows, the last by event time and
    then arrival in rolling features, the last in the order of the frame in OVER windows. ``by`` has any type but maps.

    Result: the type of ``value``. Source: Spark SQL ``min_by``.

    Example:
        >>> arg_min("flight", by="dep_delay")
        arg_min('flight', 'dep_delay')
    """
    return _aggregate("arg_min", value, by)


def arg_max(value: Any, by: Any) -> Aggregate:
    """Take the value of the row with the largest ``by``; NaN is the largest.

    Rows whose ``by`` is NULL are skipped; the value may be NULL. Of several rows with the largest ``by`` the last counts, as in
    Spark over ordered input: the last to arrive (or by the ``order_by`` of the stream) in windows, the last by event time and
    then arrival in rolling features, the last in the order of the frame in OVER windows. ``by`` has any type but maps.

    Result: the type of ``value``. Source: Spark SQL ``max_by``.

    Example:
        >>> arg_max("flight", by="dep_delay")
        arg_max('flight', 'dep_delay')
    """
    return _aggregate("arg_max", value, by)


def bool_and(column: Any) -> Aggregate:
    """Return whether every value is true.

    Result: boolean. Source: Spark SQL ``bool_and``.

    Example:
        >>> bool_and("on_time")
        bool_and('on_time')
    """
    return _aggregate("bool_and", column)


def bool_or(column: Any) -> Aggregate:
    """Return whether some value is true.

    Result: boolean. Source: Spark SQL ``bool_or``.

    Example:
        >>> bool_or("cancelled")
        bool_or('cancelled')
    """
    return _aggregate("bool_or", column)


def collect_list(column: Any) -> Aggregate:
    """Collect the values in order of arrival, duplicates too, NULLs not.

    Result: array of the column's type, empty for no values. Source: Spark SQL ``collect_list``.

    Example:
        >>> collect_list("flight")
        collect_list('flight')
    """
    return _aggregate("collect_list", column)


def collect_set(column: Any) -> Aggregate:
    """Collect the distinct values in the order in which each was first seen, NULLs not.

    Works on every type, also maps, which Spark refuses. Result: array of the column's type, empty for no
    values. Source: Spark SQL ``collect_set``, whose order is undefined.

    Example:
        >>> collect_set("carrier")
        collect_set('carrier')
    """
    return _aggregate("collect_set", column)


def string_agg(column: Any, separator: str = ",") -> Aggregate:
    """Join text or binary values in order of arrival, NULLs left out.

    Between binary values the separator is in UTF-8. Result: the type of the column, NULL for no values.
    Source: Spark SQL ``string_agg``, ``listagg``; the separator's default is a comma here, nothing there.

    Example:
        >>> string_agg("carrier", separator=" ")
        string_agg('carrier', separator=' ')
    """
    if not isinstance(separator, str):
        raise InvalidSpecError(f"string_agg was given separator={separator!r}, but a separator is text: write ',' or ''.")
    return _aggregate("string_agg", column, separator=separator)


def median(column: Any) -> Aggregate:
    """Take the exact median of numbers or intervals: ``quantile`` at 0.5.

    Result: double, or interval. Keeps every value: see ``approx_quantile``. Source: Spark SQL ``median``.

    Example:
        >>> median("dep_delay")
        median('dep_delay')
    """
    return _aggregate("median", column)


def quantile(column: Any, q: float) -> Aggregate:
    """Take the exact quantile of numbers or intervals, interpolated linearly between neighbours.

    It lies at position q * (n - 1) of the sorted values; NaN is the largest. Keeps every value: see
    ``approx_quantile``.

    Args:
        column: Numbers or intervals.
        q: From 0 (the smallest value) to 1 (the largest).

    Result: double, or interval cut off to a microsecond. Source: Spark SQL ``percentile``.

    Raises:
        InvalidSpecError: q is not within 0 and 1.

    Example:
        >>> quantile("dep_delay", 0.9)
        quantile('dep_delay', q=0.9)
    """
    return _aggregate("quantile", column, q=_checked_share("quantile", q))


def mode(column: Any) -> Aggregate:
    """Take the most frequent value, the smallest if there are several.

    Works on every type; maps, which have no order, are compared by their entries sorted by key. Result: the
    type of the column. Source: Spark SQL ``mode``, which does not define which of several is returned.

    Example:
        >>> mode("carrier")
        mode('carrier')
    """
    return _aggregate("mode", column)


def approx_count_distinct(column: Any, rsd: float = 0.05) -> Aggregate:
    """Estimate the number of distinct values in little memory: a HyperLogLog sketch of Apache DataSketches.

    The estimate has a relative standard deviation of at most ``rsd``: it is within 2 * rsd in 95 % of cases.
    Memory: about 1.1 / rsd**2 bytes, 512 for the default. Small counts, up to a few dozen, are practically
    exact. Equal values give one estimate, whatever the engine and the batches they are in.

    Args:
        column: A column of any type.
        rsd: The relative standard deviation, from 0.001 up to (not including) 1.

    Result: bigint, 0 for no values. Source: Spark SQL ``approx_count_distinct``, whose estimates differ
    within the same bounds.

    Raises:
        InvalidSpecError: rsd is out of range.

    Example:
        >>> approx_count_distinct("tail_number", rsd=0.01)
        approx_count_distinct('tail_number', rsd=0.01)
    """
    if isinstance(rsd, bool) or not isinstance(rsd, int | float) or not 0.001 <= rsd < 1:
        raise InvalidSpecError(
            f"approx_count_distinct was given rsd={rsd!r}, but the relative standard deviation is a number "
            "from 0.001 up to 1. For exact results use count_distinct."
        )
    return _aggregate("approx_count_distinct", column, rsd=float(rsd))


def approx_quantile(column: Any, q: float, accuracy: int = 1000) -> Aggregate:
    """Take a value whose rank is close to ``q``, in bounded memory: a KLL sketch of Apache DataSketches.

    With a probability of 99 % its rank is within 1 / accuracy of q, counted as a share of all values: 0.1 %
    for the default. Memory: about 10 * accuracy values at most; up to 2 * accuracy values the result is
    exact. Nothing is interpolated: the result is the smallest value whose rank is at least q. Two runs over
    the same rows may differ within the error.

    Args:
        column: A column of any type with an order: all but maps. NaN is the largest.
        q: From 0 (the smallest value) to 1 (the largest).
        accuracy: From 1 to 20,000.

    Result: the type of the column. Source: Spark SQL ``approx_percentile``, with a default accuracy of
    10,000.

    Raises:
        InvalidSpecError: q or accuracy is out of range.

    Example:
        >>> approx_quantile("dep_delay", 0.9)
        approx_quantile('dep_delay', q=0.9, accuracy=1000)
    """
    if isinstance(accuracy, bool) or not isinstance(accuracy, int) or not 1 <= accuracy <= 20_000:
        raise InvalidSpecError(
            f"approx_quantile was given accuracy={accuracy!r}, but it is an integer from 1 to 20,000: "
            "1000 means a rank within 0.1 %. For exact results use quantile."
        )
    return _aggregate("approx_quantile", column, q=_checked_share("approx_quantile", q), accuracy=accuracy)
