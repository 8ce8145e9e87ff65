"""Between expressions of the fluent API and PySpark Columns."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, cast

from pyspark.sql import functions as F

from windowpane.errors import InvalidSpecError
from windowpane.spark.internals.column_trees import column_order
from windowpane.spark.stages.project import quoted
from windowpane.windowing.expressions import Applied, Constant, Expression, Name, Operation, OrderLike, Sort, is_column

if TYPE_CHECKING:
    from pyspark.sql import Column

_OPERATORS: Mapping[str, Callable[..., Column]] = {
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


def column_of(expression: object) -> Column:
    if isinstance(expression, str):
        return F.col(quoted(expression))
    if isinstance(expression, Name):
        return F.col(quoted(expression.name))
    if isinstance(expression, Constant):
        return expression.value if is_column(expression.value) else F.lit(expression.value)
    if isinstance(expression, Operation):
        return _OPERATORS[expression.operator](*[column_of(part) for part in expression.parts])
    if isinstance(expression, Applied):
        return _applied(expression)
    return cast("Column", expression)


def _applied(expression: Applied) -> Column:
    try:
        return expression.function(*[column_of(part) for part in expression.parts])
    except (TypeError, ValueError) as error:  # PySpark's own are among them
        raise InvalidSpecError(
            f"{expression!r}: {error} A function is given a Column for each operand, constants too. One that takes a plain value "
            "is called by a function of yours: wp.apply(lambda at: F.date_format(at, 'yyyy-MM-dd'), wp.col('at'))."
        ) from error


def columns_in(expression: Expression) -> bool:
    """Whether PySpark Columns are part of an expression."""
    if isinstance(expression, Constant):
        return is_column(expression.value)
    return any(columns_in(part) for part in expression.operands)


def sort_of(value: OrderLike) -> Sort:
    """Return an item of ``order_by`` as a sort; without a direction it is Spark's default: ascending, NULLs first."""
    if isinstance(value, Sort):
        return value
    if isinstance(value, str):
        return Sort(Name(value))
    if isinstance(value, Expression):
        return Sort(value)
    if not is_column(value):
        raise InvalidSpecError(f"order_by was given {value!r}, which is neither a column name nor a Column.")
    order = column_order(value)
    if order is None:
        return Sort(value)
    return Sort(Name(order.by) if isinstance(order.by, str) else order.by, order.descending, order.nulls_first)
