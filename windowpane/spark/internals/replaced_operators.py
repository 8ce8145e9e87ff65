"""Operators of ours in the plan of a DataFrame, replaced by others of the same columns; PySpark has no public way to do that.

An operator is known by the name of its counters, which the plan observes right above it. What Spark does with its rows stays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from windowpane.errors import InvalidSpecError
from windowpane.spark.internals.plan_trees import STEPS, dataframe_of, listed, sequence
from windowpane.spark.internals.session import is_classic, jvm_of

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject, JVMView
    from pyspark.sql import DataFrame

_OBSERVED = "CollectMetrics"
_PASSED = (*STEPS, _OBSERVED, "EventTimeWatermark", "MapInArrow", "MapInPandas", "Generate", "Union", "View", "ResolvedHint")
"""Nodes of plans that take each row by itself: what comes out of two parts of a stream is what comes out of both together."""

Replaced = Callable[
    [str, int], "DataFrame | None"
]  # Given the name of an operator and the number of its columns, a DataFrame with as many


def replaced(dataframe: DataFrame, by: Replaced, role: str) -> DataFrame:
    """Return a DataFrame whose operators are those that ``by`` returns.

    Raises:
        InvalidSpecError: Spark does something with their rows that has a state of its own; or its plan cannot be read.
    """
    spark = dataframe.sparkSession
    if not is_classic(spark):
        raise InvalidSpecError(f"{role} of operators behind others needs a classic Spark session, and this is Spark Connect.")
    return dataframe_of(_plan(dataframe._jdf.queryExecution().analyzed(), by, role, jvm_of(spark)), spark)


def _plan(node: JavaObject, by: Replaced, role: str, jvm: JVMView) -> JavaObject:
    kind = str(node.nodeName())
    if kind == _OBSERVED:
        columns = listed(node.output())
        found = by(str(node.name()), len(columns))
        if found is not None:
            return _with_columns(found._jdf.queryExecution().analyzed(), columns, jvm)
    below = listed(node.children())
    if not below:
        raise InvalidSpecError(
            f"{role}: rows that come out of an operator and rows that do not are together in one DataFrame ({kind}). Build "
            "each of them by itself, and put the results together behind."
        )
    if kind not in _PASSED:
        raise InvalidSpecError(
            f"{role}: between two operators of this query Spark keeps rows itself ({kind}), and its state has no history. Do "
            "that behind the last one, or with an operator of windowpane's."
        )
    return node.withNewChildren(sequence([_plan(each, by, role, jvm) for each in below], jvm))


def _with_columns(plan: JavaObject, columns: Sequence[JavaObject], jvm: JVMView) -> JavaObject:
    """Return a plan whose columns go by the numbers that the nodes above know them by."""
    catalyst, nothing = jvm.org.apache.spark.sql.catalyst, sequence([], jvm)
    named = [
        catalyst.expressions.Alias(new, old.name(), old.exprId(), nothing, jvm.scala.Option.empty(), nothing)
        for new, old in zip(listed(plan.output()), columns, strict=True)
    ]
    return catalyst.plans.logical.Project(sequence(named, jvm), plan)
