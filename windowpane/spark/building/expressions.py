"""Between expressions of the fluent API and PySpark Columns."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

from pyspark import SparkContext
from pyspark.sql import functions as F

from windowpane.errors import InvalidSpecError
from windowpane.spark.stages.project import quoted
from windowpane.windowing.expressions import Applied, Constant, Expression, Name, Operation, Sort

_OPERATORS: Mapping[str, Callable[..., Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "%": operator.mod,
    "neg": operator.neg,
    "~": operator.invert,
    "&": operator.and_,
    "|": operator.or_,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
    "is null": lambda column: column.isNull(),
    "is not null": lambda column: column.isNotNull(),
    "is distinct from": lambda column, other: ~column.eqNullSafe(other),
}


def column_of(expression: Any) -> Any:
    """Return an expression without OVER calls as a Column."""
    if isinstance(expression, str):
        return F.col(quoted(expression))
    if isinstance(expression, Name):
        return F.col(quoted(expression.name))
    if isinstance(expression, Constant):
        return expression.value if is_column(expression.value) else F.lit(expression.value)
    if isinstance(expression, Operation):
        return _OPERATORS[expression.operator](*[column_of(part) for part in expression.parts])
    if isinstance(expression, Applied):
        return expression.function(*[column_of(part) for part in expression.parts])
    return expression


def replaced(expression: Expression, leaf: Callable[[Expression], Expression | None]) -> Expression:
    """Return an expression with the parts for which ``leaf`` has another one replaced by that, from the top down."""
    found = leaf(expression)
    if found is not None:
        return found
    parts = tuple(replaced(part, leaf) for part in expression.operands)
    if isinstance(expression, Operation):
        return Operation(expression.operator, parts)
    return Applied(expression.function, parts) if isinstance(expression, Applied) else expression


def is_column(value: Any) -> bool:
    """Whether a value is a PySpark Column, classic or Connect."""
    return hasattr(value, "cast") and not isinstance(value, Expression)


def sort_of(value: Any) -> Sort:
    """Return an item of ``order_by`` as a sort; without a direction it is Spark's default: ascending, NULLs first.

    Raises:
        InvalidSpecError: it is nothing that orders.
    """
    if isinstance(value, Sort):
        return value
    if isinstance(value, str):
        return Sort(Name(value))
    if isinstance(value, Expression):
        return Sort(value)
    if not is_column(value):
        raise InvalidSpecError(f"order_by was given {value!r}, which is neither a column name nor a Column.")
    return _classic_sort(value) if hasattr(value, "_jc") else _connect_sort(value)


def _classic_sort(column: Any) -> Sort:
    node = column._jc.node()
    if node.getClass().getSimpleName() != "SortOrder":
        return Sort(column)
    descending = "Descending" in node.sortDirection().toString()
    name = _node_name(node.child())
    child = _classic_child(column) if name is None else Name(name)
    return Sort(child, descending, "First" in node.nullOrdering().toString())


def _classic_child(column: Any) -> Any:
    """Return what a sort Column orders by as a Column: py4j cannot make one from a node, but from an expression."""
    package = SparkContext._active_spark_context._jvm.org.apache.spark.sql.classic  # type: ignore[union-attr]
    converter = getattr(getattr(package, "ColumnNodeToExpressionConverter$"), "MODULE$")
    return type(column)(package.ExpressionUtils.column(converter.apply(column._jc.node().child())))


def _connect_sort(column: Any) -> Sort:
    expression = column._expr
    if type(expression).__name__ != "SortOrder":
        return Sort(column)
    return Sort(type(column)(expression._child), not expression._ascending, bool(expression._nullsFirst))


def plain_name(column: Any) -> str | None:
    """Return the name of the column that a Column refers to and nothing else, ``None`` if it computes something."""
    if hasattr(column, "_jc"):
        return _node_name(column._jc.node())
    expression = column._expr
    return str(expression._unparsed_identifier).strip("`") if type(expression).__name__ == "ColumnReference" else None


def _node_name(node: Any) -> str | None:
    if node.getClass().getSimpleName() != "UnresolvedAttribute" or node.nameParts().size() != 1:
        return None
    return str(node.nameParts().apply(0))
