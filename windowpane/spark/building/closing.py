"""What closes sessions, as columns that Spark computes of each row before the operator."""

from __future__ import annotations

import dataclasses
from typing import Any

from pyspark.sql import functions as F
from pyspark.sql import types as T

from windowpane.errors import InvalidSpecError
from windowpane.hidden_columns import PREFIX
from windowpane.spark.building.expressions import column_of, is_column
from windowpane.spark.stages.project import Projection
from windowpane.windowing.assigners.closed_sessions import CLOSES, WEIGHT, ClosedSessionWindows
from windowpane.windowing.expressions import Expression

_WHOLE = (T.ByteType, T.ShortType, T.IntegerType, T.LongType)


def with_closing_columns(projection: Projection, assigner: ClosedSessionWindows) -> ClosedSessionWindows:
    """Select the columns of an assigner, and return it with texts in place of Columns: these do not travel to workers.

    Raises:
        InvalidSpecError: a condition that is no boolean, or a size of a column that has no whole numbers.
    """
    condition, size = assigner.condition, assigner.size
    if condition is not None:
        column = F.expr(condition) if isinstance(condition, str) else _column("closed_by", condition)
        kind = _type(projection, column)
        if not isinstance(kind, T.BooleanType):
            raise InvalidSpecError(f"closed_by({condition!r}) is {kind.simpleString()}, and a condition is true or false.")
        projection.add(column, "closed_by", CLOSES.removeprefix(PREFIX))
        condition = _text(condition)
    if size is not None:
        column = _column("closed_by", size[0])
        kind = _type(projection, column)
        if not isinstance(kind, _WHOLE):
            raise InvalidSpecError(
                f"closed_by(size={size!r}): the column is {kind.simpleString()}, and sums that close sessions are of whole "
                "numbers. Cast it to bigint, in a smaller unit where it has fractions."
            )
        projection.add(column.cast("long"), "closed_by size", WEIGHT.removeprefix(PREFIX))
        size = (_text(size[0]), size[1])
    return dataclasses.replace(assigner, condition=condition, size=size)


def _column(role: str, given: Any) -> Any:
    if not is_column(given) and not isinstance(given, str | Expression):
        raise InvalidSpecError(f"{role} was given {given!r}, which is neither text nor a Column.")
    return column_of(given)


def _type(projection: Projection, column: Any) -> Any:
    return projection.dataframe.select(column).schema[0].dataType


def _text(given: Any) -> str:
    return given if isinstance(given, str) else str(given) if is_column(given) else repr(given)
