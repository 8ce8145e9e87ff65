"""What a PySpark Column says: its name, and its order.

PySpark has no public way to read them, so the tree behind a Column is read, through Py4J or as Spark Connect has it. Where a
Spark has another tree a Column counts as one that computes something, which is right for every Column but one with a direction.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from py4j.protocol import Py4JError
from pyspark import SparkContext

from windowpane.errors import InvalidSpecError

_UNKNOWN = (AttributeError, TypeError, Py4JError)  # What reading a tree of another form raises


class ColumnOrder(NamedTuple):
    by: Any
    descending: bool
    nulls_first: bool


def column_name(column: Any) -> str | None:
    """Return the name of the column that a Column refers to and nothing else, ``None`` if it computes something."""
    try:
        if hasattr(column, "_jc"):
            return _node_name(column._jc.node())
        expression = column._expr
        return str(expression._unparsed_identifier).strip("`") if type(expression).__name__ == "ColumnReference" else None
    except _UNKNOWN:
        return None


def column_order(column: Any) -> ColumnOrder | None:
    """Return the order of a Column, such as ``F.col("x").desc()``; ``None`` if it has no direction."""
    try:
        if not hasattr(column, "_jc"):
            expression = column._expr
            if type(expression).__name__ != "SortOrder":
                return None
            return ColumnOrder(type(column)(expression._child), not expression._ascending, bool(expression._nullsFirst))
        node = column._jc.node()
        if node.getClass().getSimpleName() != "SortOrder":
            return None
        by: Any = _node_name(node.child())
        if by is None:  # Py4J makes no Column of a node, but of an expression
            package = SparkContext._active_spark_context._jvm.org.apache.spark.sql.classic  # type: ignore[union-attr]
            converter = getattr(getattr(package, "ColumnNodeToExpressionConverter$"), "MODULE$")
            by = type(column)(package.ExpressionUtils.column(converter.apply(node.child())))
        return ColumnOrder(by, "Descending" in node.sortDirection().toString(), "First" in node.nullOrdering().toString())
    except _UNKNOWN as error:
        if str(column).endswith((" NULLS FIRST'>", " NULLS LAST'>")):
            raise InvalidSpecError(
                f"{column} has a direction that cannot be read on this Spark: write wp.col(...).desc() or .asc() instead."
            ) from error
        return None


def _node_name(node: Any) -> str | None:
    if node.getClass().getSimpleName() != "UnresolvedAttribute" or node.nameParts().size() != 1:
        return None
    return str(node.nameParts().apply(0))
