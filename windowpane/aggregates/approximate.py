"""approx_count_distinct and approx_quantile. Their sketches bring DataSketches, which is imported only where one is used."""

from __future__ import annotations

from windowpane.aggregates.quantiles import checked_share
from windowpane.errors import InvalidSpecError
from windowpane.kernels.aggregates.protocol import ColumnarAggregate
from windowpane.windowing.aggregates.definition import BoundAggregate, Call, ColumnarCall, Definition, Returns, define
from windowpane.windowing.aggregates.spec import Aggregate
from windowpane.windowing.expressions import Argument


def _distinct(call: Call) -> BoundAggregate:
    from windowpane.aggregates.sketches.distinct import bound

    return bound(call)


def _columnar_distinct(call: ColumnarCall) -> ColumnarAggregate:
    from windowpane.aggregates.sketches.registers import columnar

    return columnar(call)


def _quantile(call: Call) -> BoundAggregate:
    from windowpane.aggregates.sketches.quantiles import bound

    return bound(call)


def _columnar_quantile(call: ColumnarCall) -> ColumnarAggregate:
    from windowpane.aggregates.sketches.quantiles import columnar

    return columnar(call)


APPROX_COUNT_DISTINCT = define(
    Definition(
        name="approx_count_distinct",
        bind=_distinct,
        holistic=False,
        ordered=False,
        exact=False,
        idempotent=True,
        invertible=False,
        returns=Returns.OWN,
        compared_from=0,
        columnar=_columnar_distinct,
        duckdb="approx_count_distinct",
    )
)
APPROX_QUANTILE = define(
    Definition(
        name="approx_quantile",
        bind=_quantile,
        holistic=False,
        ordered=False,
        exact=False,
        idempotent=False,
        invertible=False,
        returns=Returns.OWN,
        compared_from=0,
        columnar=_columnar_quantile,
    )
)


def approx_count_distinct(column: Argument, rsd: float = 0.05) -> Aggregate:
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
    return Aggregate.of("approx_count_distinct", column, rsd=float(rsd))


def approx_quantile(column: Argument, q: float, accuracy: int = 1000) -> Aggregate:
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
    return Aggregate.of("approx_quantile", column, q=checked_share("approx_quantile", q), accuracy=accuracy)
