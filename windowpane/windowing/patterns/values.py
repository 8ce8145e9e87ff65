"""What conditions and measures ask of a match: leaves of expressions, beside constants and operators.

A *variable* of ``None`` stands for every row of the match; passed-over rows are none of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from windowpane.windowing.aggregates.definition import BoundAggregate
from windowpane.windowing.expressions import Constant, Expression, Operation


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Picked(Expression):
    """A column of the first or last row of a variable, or of one ``offset`` such rows further in."""

    end: Literal["first", "last"]
    variable: str | None
    column: str
    offset: int = 0

    def __repr__(self) -> str:
        name = self.column if self.variable is None else f"{self.variable}.{self.column}"
        return f"{self.end}({name!r}{f', {self.offset}' if self.offset else ''})"


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Moved(Expression):
    """A column of the row ``rows`` behind the one that ``of`` finds (below zero: before it), also out of the match."""

    of: Picked
    rows: int

    def __repr__(self) -> str:
        return f"{'lag' if self.rows <= 0 else 'lead'}({self.of!r}, {abs(self.rows)})"


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Began(Expression):
    """A column of the row that the attempt began at, which a match without rows has, too."""

    column: str

    def __repr__(self) -> str:
        return f"began({self.column!r})"


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Aggregated(Expression):
    """An aggregate of columns over the rows of a variable; without a column it counts rows."""

    variable: str | None
    columns: tuple[str, ...]
    aggregate: BoundAggregate
    name: str
    text: str

    def __repr__(self) -> str:
        return self.text


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Classifier(Expression):
    """The variable that took the last row of a variable."""

    variable: str | None = None

    def __repr__(self) -> str:
        return f"classifier({'' if self.variable is None else repr(self.variable)})"


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class MatchNumber(Expression):
    """The number of the match in its partition, from 1 on."""

    def __repr__(self) -> str:
        return "match_number()"


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class MatchTime(Expression):
    """The event time of the match, in microseconds: that of its last row, or the one at which its absence is certain."""

    def __repr__(self) -> str:
        return "match_time()"


Value = Picked | Moved | Began | Aggregated | Classifier | MatchNumber | MatchTime
"""A leaf that is computed of a match."""


def lookback(expression: Expression) -> int:
    """Return how many rows before the first row of a match an expression looks at."""
    own = max(-expression.rows, 0) if isinstance(expression, Moved) else 0
    return max([own, *(lookback(part) for part in expression.operands)])


def is_moved(expression: Expression) -> bool:
    """Whether an expression looks at a row before or behind the one that it finds."""
    return (isinstance(expression, Moved) and expression.rows != 0) or any(map(is_moved, expression.operands))


def is_of_rows(condition: Expression, stands_for: Callable[[str], frozenset[str]], name: str) -> bool:
    """Whether a condition of a variable is of its row and of those before: the last row of the variable is the row itself."""
    match condition:
        case Constant():
            return True
        case Operation(_, parts):
            return all(is_of_rows(part, stands_for, name) for part in parts)
        case Picked(end, variable, _, offset):
            return end == "last" and not offset and (variable is None or name in stands_for(variable))
        case Moved(of, rows):
            return rows <= 0 and is_of_rows(of, stands_for, name)
    return False


def columns_of(expression: Expression) -> set[str]:
    """Return the columns that an expression asks for."""
    if isinstance(expression, Moved):
        return {expression.of.column}
    own = {expression.column} if isinstance(expression, Picked | Began) else set(getattr(expression, "columns", ()))
    return own.union(*map(columns_of, expression.operands))


def classifier(variable: str | None = None) -> Classifier:
    """Return the variable that took a row: the last row of the match, or of those of ``variable``.

    Result: text. Source: SQL:2016, ``CLASSIFIER()``.

    Example:
        >>> classifier()
        classifier()
    """
    return Classifier(variable)


def match_number() -> MatchNumber:
    """Return the number of the match in its partition, from 1 on.

    Result: a 64-bit integer. Source: SQL:2016, ``MATCH_NUMBER()``.

    Example:
        >>> match_number()
        match_number()
    """
    return MatchNumber()


def match_time() -> MatchTime:
    """Return the event time of the match: that of its last row; of an absence or a timeout the end of its bound.

    Result: the type of the event-time column. Windows and OVER windows behind a pattern count by this column.
    Source: Flink SQL, ``MATCH_ROWTIME()``.

    Example:
        >>> match_time()
        match_time()
    """
    return MatchTime()
