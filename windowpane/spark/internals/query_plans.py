"""What the plan of a DataFrame says, which PySpark has no public way to read."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from windowpane.errors import InvalidSpecError
from windowpane.spark.internals.plan_trees import (
    FILTERED,
    SELECTED,
    UNREADABLE,
    Steps,
    Tree,
    column_of,
    columns_in,
    connect_nodes,
    dataframe_of,
    number_of,
    sequence,
    tree_of,
)
from windowpane.spark.internals.session import is_classic, jvm_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WATERMARK = "spark.watermarkDelayMs"  # Metadata of a column that Spark makes a watermark of: the delay, in milliseconds

_REUSE = "spark.sql.exchange.reuse"
_WATERMARK_NODE = "EventTimeWatermark"
_NO_IDEA = 1 << 50  # Spark multiplies by the largest long where it knows nothing of an input
_OBSERVED = re.compile(r"CollectMetrics ([^,]+),")


class BelowWatermark(NamedTuple):
    rows: DataFrame
    delay: int  # the delay of the watermark, in milliseconds
    steps: Steps  # what was selected of the rows that Spark reads, of the plan without the watermark


def metrics_names(dataframe: DataFrame) -> set[str]:
    """Return the names of the metrics that a DataFrame observes; none where the plan cannot be read."""
    try:
        if hasattr(dataframe, "_jdf"):
            return set(_OBSERVED.findall(dataframe._jdf.queryExecution().analyzed().toString()))
        return {str(each._observation) for each in connect_nodes(dataframe._plan) if type(each).__name__ == "CollectMetrics"}
    except UNREADABLE:
        return set()


def with_own_counters(dataframe: DataFrame, name: str) -> DataFrame:
    """Return a stream whose union with one that has counters of the same name is refused in our words.

    Classic Spark analyzes a union at once; what was selected of the stream before it has Spark's own message.
    """
    if is_classic(dataframe.sparkSession):
        for method in ("union", "unionAll", "unionByName"):
            setattr(dataframe, method, partial(_united, getattr(dataframe, method), name))
    return dataframe


def _united(union: Callable[..., DataFrame], name: str, *given: object, **options: object) -> DataFrame:
    try:
        return union(*given, **options)
    except AnalysisException as error:
        if error.getCondition() != "DUPLICATED_METRICS_NAME":
            raise
        raise InvalidSpecError(
            f"two programs of one query have counters of the same name, {name!r}, among its observedMetrics. Give one of them "
            f"another: name='second' of wp.stream, wp.over or wp.rolling."
        ) from None


def estimated_bytes(dataframe: DataFrame) -> int | None:
    """Return how large Spark estimates the rows of a DataFrame; ``None`` where it has no idea, or does not say (Connect)."""
    if not hasattr(dataframe, "_jdf"):
        return None
    try:
        size = int(str(dataframe._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()))
    except (*UNREADABLE, ValueError):
        return None
    return size if size < _NO_IDEA else None


def without_watermark(dataframe: DataFrame, column: str) -> BelowWatermark | None:
    """Return the rows of a DataFrame without the watermark of ``withWatermark(column, ...)``.

    Columns may have been selected and renamed since, and rows filtered by other columns than the event time: Spark itself puts
    such a filter below the watermark, which is then of the rows that are left.

    ``None`` where more was done since, or the plan cannot be read (Connect).
    """
    if not getattr(dataframe, "isStreaming", False) or not is_classic(dataframe.sparkSession):
        return None
    delays = {field.name: field.metadata[WATERMARK] for field in dataframe.schema.fields if WATERMARK in field.metadata}
    if delays.keys() != {column}:
        return None
    try:
        return _below_watermark(dataframe, column, int(delays[column]))
    except (*UNREADABLE, KeyError, ValueError, RecursionError):
        return None


def _below_watermark(dataframe: DataFrame, column: str, delay: int) -> BelowWatermark | None:
    """Return the rows that the watermark is made of, with what was selected of them since; ``None`` if that says otherwise."""
    steps = Steps.of(dataframe._jdf.queryExecution().analyzed())
    if steps.below.nodeName() != _WATERMARK_NODE:
        return None
    if steps.nodes:
        if not _keep_watermark(steps.trees):
            return None
        if not all(step.condition().deterministic() for step in steps.nodes if step.nodeName() == FILTERED):
            return None
    spark, plan = dataframe.sparkSession, steps.below.child()
    for step in reversed(steps.nodes):
        plan = step.withNewChildren(sequence([plan], jvm_of(spark)))
    rows = dataframe_of(plan, spark)
    return BelowWatermark(rows.withMetadata(column, {}) if steps.nodes else rows, delay, steps.without_below())


def _keep_watermark(steps: Sequence[Tree]) -> bool:
    """Whether the watermark that is the last of these nodes is of the same rows if it is the first, and is the only one."""
    *above, watermark = steps
    if any(_has_watermark(each) for each in watermark.children):
        return False
    event_times = {number_of(tree_of(watermark.fields["eventTime"]))}
    for step in reversed(above):
        if step.kind == FILTERED and any(
            number_of(each) in event_times for each in columns_in(tree_of(step.fields["condition"]))
        ):
            return False
        if step.kind == SELECTED:
            selected = {number_of(each): column_of(each) for each in map(tree_of, step.fields["projectList"])}
            if None in selected.values():
                return False
            event_times |= {number for number, column in selected.items() if column and number_of(column) in event_times}
    return True


def _has_watermark(plan: Tree) -> bool:
    return plan.kind == _WATERMARK_NODE or any(_has_watermark(each) for each in plan.children)


def each_use_its_own(encoded: DataFrame) -> DataFrame:
    """Return encoded rows, all of them, whose shuffle Spark does not share between two uses in one streaming query.

    A result that is used twice is two operators of equal plans. Spark reuses the shuffle of the first below the second; but it
    finds the watermark of an operator by walking its plan downward, where a reused shuffle is a leaf. So the second would have
    none, and its windows would never fire (Spark 4.0 to 4.3, with operators of its own as well).

    A streaming query gives each random expression a seed of its own, so plans with one are never equal. One below the shuffle of
    an operator, computed once a blob, is enough where the watermark is made there. Where the DataFrame made it, shuffles of its
    own may be above it; then Spark is asked to reuse none (``reuse_no_exchange``).
    """
    return encoded.filter(F.expr("uuid() <> ''"))  # rand() < 1 is found to be true, and is gone before there are seeds


def reuse_no_exchange(spark: SparkSession) -> None:
    """Ask Spark to share no shuffle in queries that a session starts, unless the user has set that."""
    if spark.conf.get(_REUSE, None) is None:
        spark.conf.set(_REUSE, "false")
