"""The aggregates of groups as calls of the window engines: where these have one with the same result."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from windowpane.sql.bind.scope import Column
from windowpane.sql.expressions.expr import quoted
from windowpane.sql.expressions.types import BIGINT
from windowpane.sql.nodes import Aggregate, Fold, Node, Project
from windowpane.sql.on_spark.programs.plan import NotStreamed, spark_type

_ROOM = 9
"""Digits that a sum needs beside those of its values: it has room for a billion rows of a group and slice."""

_CAST = re.compile(r'CAST\("([^"]+)" AS [A-Z]+(?:\(\d+, ?\d+\))?\)')


@dataclass(frozen=True)
class Call:
    """A built-in aggregate of the window engines.

    Args:
        function: its name.
        argument: SQL of its argument over the rows, ``None`` for ``count(*)``.
        kind: the DuckDB type of the argument.
        spark: the same of Spark.
        result: the column of the plan.
    """

    function: str
    argument: str | None
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
    for fold, sql, column in zip(groups.folds, groups.calls, results, strict=True):
        if fold is None or fold.distinct:
            raise NotStreamed(f"the window engines have no call with the result of {sql}")
        if mentions(fold.argument, *bounds) or mentions(fold.condition, *bounds):
            raise NotStreamed(f"{sql} reads window_start or window_end")
        made.append(_call(groups, fold, sql, column))
    return made


def _call(groups: Aggregate, fold: Fold, sql: str, column: Column) -> Call:
    if fold.function == "count":
        if fold.argument is None and fold.condition is None:
            return Call("count", None, "", "", column)
        counted = " AND ".join(
            part for part in (fold.condition, f"{fold.argument} IS NOT NULL" if fold.argument else None) if part
        )
        return Call("count", f"CASE WHEN {counted} THEN TRUE END", "BOOLEAN", "boolean", column)
    argument = fold.argument if fold.condition is None else f"CASE WHEN {fold.condition} THEN {fold.argument} END"
    if fold.function == "sum":
        return _sum(groups, fold, sql, column, argument)
    if fold.function in ("min", "max"):
        return Call(fold.function, argument, column.type.duckdb, spark_type(column.type, sql), column)
    raise NotStreamed(f"{sql} of floats depends on the order of rows")


def _sum(groups: Aggregate, fold: Fold, sql: str, column: Column, argument: str | None) -> Call:
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
        argument: its id, as SQL.
        scale: the digits behind the point that are asked for: where there are more, rounding may add one before it.
    """
    while True:
        column = next((column for column in node.columns if quoted(column.id) == argument), None)
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
        cast = _CAST.fullmatch(item)
        argument, node = (item if cast is None else quoted(cast[1])), node.input


def mentions(sql: str | None, *ids: str) -> bool:
    """Whether SQL reads one of some columns."""
    return sql is not None and any(quoted(name) in sql for name in ids)
