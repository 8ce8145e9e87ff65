"""The aggregates of groups as calls of the window engines: where these have one with the same result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from windowpane.sql.bind.scope import Column
from windowpane.sql.expressions.expr import Expr, build, if_kept
from windowpane.sql.expressions.types import BIGINT, BOOLEAN
from windowpane.sql.nodes import Aggregate, Fold, Node, Project
from windowpane.sql.on_spark.programs.plan import NotStreamed, spark_type

_ROOM = 9
"""Digits that a sum needs beside those of its values: it has room for a billion rows of a group and slice."""


@dataclass(frozen=True)
class Call:
    """A built-in aggregate of the window engines.

    Args:
        argument: its argument over the rows, ``None`` for ``count(*)``.
        kind: the DuckDB type of the argument.
    """

    function: str
    argument: Expr | None
    kind: str
    spark: str
    result: Column


def engine_calls(groups: Aggregate, bounds: Sequence[str]) -> list[Call]:
    """Return the aggregates of groups as calls of the window engines; ``bounds``: the columns that no call may read.

    Raises:
        NotStreamed: one has no call with the same result.
    """
    made = []
    results = groups.columns[len(groups.groups) :]
    for fold, call, column in zip(groups.folds, groups.calls, results, strict=True):
        sql = call.sql
        if fold is None or fold.distinct:
            raise NotStreamed(f"the window engines have no call with the result of {sql}")
        if {fold.argument, fold.condition} & set(bounds):
            raise NotStreamed(f"{sql} reads window_start or window_end")
        made.append(_call(groups, fold, sql, column))
    return made


def _call(groups: Aggregate, fold: Fold, sql: str, column: Column) -> Call:
    if fold.function == "count":
        if fold.argument is None and fold.condition is None:
            return Call("count", None, "", "", column)
        return Call("count", _where(groups, fold, Expr("TRUE", BOOLEAN)), "BOOLEAN", "boolean", column)
    argument = _where(groups, fold, groups.input.column(str(fold.argument)).expr)
    if fold.function == "sum":
        return _sum(groups, fold, sql, column, argument)
    if fold.function in ("min", "max"):
        return Call(fold.function, argument, column.type.duckdb, spark_type(column.type, sql), column)
    raise NotStreamed(f"{sql} of floats depends on the order of rows")


def _where(groups: Aggregate, fold: Fold, value: Expr) -> Expr:
    """Return a value of the rows that count for a call, NULL of the others."""
    if fold.function == "count" and fold.argument is not None:
        there = build(BOOLEAN, "({0} IS NOT NULL)", groups.input.column(fold.argument).expr, operator="IS")
        value = if_kept(there, value)
    return value if fold.condition is None else if_kept(groups.input.column(fold.condition).expr, value)


def _sum(groups: Aggregate, fold: Fold, sql: str, column: Column, argument: Expr) -> Call:
    if column.type.name == "double" or column.type.name == "real":
        raise NotStreamed(f"{sql} of floats depends on the order of rows")
    if column.type == BIGINT:
        return Call("sum", argument, "BIGINT", "bigint", column)
    digits, scale = _digits(groups.input, str(fold.argument), column.type.scale), column.type.scale
    if digits is None or digits + scale + _ROOM > 38:
        raise NotStreamed(f"{sql} may need more than 38 digits; numeric(precision, scale) says how many there are")
    # Sums of up to 28 digits are added up in half as many bytes, see kernels/aggregates/sums.py.
    kind = f"decimal({digits + scale}, {scale})"
    return Call("sum", argument, kind.upper(), kind, column)


def _digits(node: Node, argument: str, scale: int) -> int | None:
    """Return how many digits before the point the values of a column have at most, ``None`` where it is not known.

    Args:
        node: has the column.
        argument: its id.
        scale: the digits behind the point that are asked for: where there are more, rounding may add one before it.
    """
    while True:
        column = next((column for column in node.columns if column.id == argument), None)
        if column is None:
            return None
        if column.type == BIGINT:
            return 19
        if column.type.name != "numeric" or column.type.scale > scale:
            return None
        if column.type.whole + column.type.scale < 38:
            return column.type.whole
        if not isinstance(node, Project):
            return None
        item = next(item for item, each in zip(node.items, node.columns, strict=True) if each is column)
        below = item.parts[0] if item.operator == "CAST" else item
        argument, node = below.column, node.input
