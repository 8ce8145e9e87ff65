"""Expressions over aggregates: which calls of them an operator computes, what Spark computes of these, and steps behind that.

``rate=sum("a") / sum("b")`` is two calls, each a column of the operator's under a hidden name, and an expression over these
columns. Calls that say the same are one column. What Spark computes is no part of the state.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from windowpane.errors import DuplicateColumnError, InvalidSpecError, UnknownColumnError
from windowpane.hidden_columns import PREFIX, hidden
from windowpane.windowing.calls import Windowable
from windowpane.windowing.expressions import (
    Constant,
    Expression,
    Name,
    Named,
    Sort,
    calls_in,
    is_column,
    names_in,
    replaced,
    ways_of_spark,
)
from windowpane.windowing.outputs import CHANGE_TYPE

ALL = "*"
Call = TypeVar("Call")
Results = tuple[tuple[str, Expression], ...]
"""Columns by name, each an expression over columns of an operator's output."""


def is_computed(value: object) -> bool:
    """Whether a value given by name is an expression, and not one call alone."""
    is_expression = isinstance(value, Expression) and not isinstance(value, Windowable)
    return is_expression or (is_column(value) and not ways_of_spark(value))


def split(
    given: Mapping[str, object], call_of: Callable[[str, object], Call], identity: Callable[[Call], Hashable]
) -> tuple[dict[str, Call], Results]:
    """Return the calls by the names of their columns, and the results over them; no results where all are calls.

    Args:
        given: calls and expressions by name; an expression may name results that stand before it.
        call_of: checks what was given by a name, and returns the call.
        identity: what makes two calls one column.
    """
    calls = {name: call_of(name, value) for name, value in given.items() if not is_computed(value)}
    if len(calls) == len(given):
        return calls, ()
    columns: dict[Hashable, str] = {}
    for name, call in calls.items():
        columns.setdefault(identity(call), name)
    results: dict[str, Expression] = {}

    def leaf(part: Expression) -> Expression | None:
        if isinstance(part, Name):
            return results.get(part.name)
        if not part.is_call:
            return None
        call = call_of(current, part)
        which = identity(call)
        if which not in columns:
            name = hidden(repr(part))
            columns[which] = name if name not in calls else f"{name} {len(calls)}"
            calls[columns[which]] = call
        return Name(columns[which])

    for current, value in given.items():
        expression = value if isinstance(value, Expression) else Constant(value)
        results[current] = Name(current) if current in calls else replaced(expression, leaf)
    if not calls:
        raise InvalidSpecError(f"{', '.join(given)}: there is no aggregate among them: add one, such as n=wp.count().")
    return calls, tuple(results.items())


def texts(results: Results, calls: Mapping[str, object] | None = None) -> list[str]:
    """Return what Spark computes of the columns of an operator, as text, with calls in place of their hidden columns."""

    def written(part: Expression) -> Expression | None:
        return Constant(calls[part.name]) if calls and isinstance(part, Name) and part.name.startswith(PREFIX) else None

    computed = [(name, made) for name, made in results if not (isinstance(made, Name) and made.name == name)]
    return [f"{name} = {replaced(made, written)!r}" for name, made in computed]


# Columns that users choose.


def chosen(columns: Sequence[object], expressions: Mapping[str, object]) -> tuple[tuple[str, Expression | None], ...]:
    """Return the columns of a ``select``: (output name, expression), (``"*"``, ``None``) for all.

    Raises:
        InvalidSpecError: one is no expression, or two have one name.
    """
    found = [*_positional(columns), *((name, _expression(name, value)) for name, value in expressions.items())]
    names = [name for name, _ in found]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InvalidSpecError(f"select has two columns of the name {', '.join(twice)}; give them names of their own.")
    return tuple(found)


def _positional(columns: Sequence[object]) -> Iterator[tuple[str, Expression | None]]:
    for column in columns:
        if isinstance(column, str):
            yield (ALL, None) if column == ALL else (column, Name(column))
        elif isinstance(column, Named):
            yield column.name, column.expression
        elif isinstance(column, Name):
            yield column.name, column
        else:
            raise unnamed(column)


def unnamed(column: object) -> InvalidSpecError:
    """Return the error for something in ``select`` that has no name; a Column of PySpark keeps its alias to itself."""
    ways = "write select(name=...)" if is_column(column) else "write select(name=...), or use .alias('name')"
    return InvalidSpecError(f"select was given {column!r} without a name: {ways}.")


def _expression(name: str, value: object) -> Expression:
    if isinstance(value, Expression):
        return value
    if isinstance(value, Named):
        return value.expression
    if hasattr(value, "cast"):
        if instead := ways_of_spark(value):
            raise InvalidSpecError(f"select {name}={value!r}:{instead}")
        return Constant(value)
    if isinstance(value, str | Sort) or value is None or isinstance(value, bool):
        raise InvalidSpecError(
            f"select {name}={value!r}: expected an expression such as wp.col('price') - wp.lag('price'). A column by its name is "
            "wp.col('price'); two plain aggregates are compared as expressions with .over(): wp.max('x').over() == wp.min('x')."
        )
    raise InvalidSpecError(f"select {name}={value!r}: expected an expression; a constant is F.lit({value!r}).")


# Steps on results before a sink.


@dataclass(frozen=True, eq=False)
class Select:
    """The columns of results, each an expression over those before."""

    columns: Results

    @property
    def expressions(self) -> list[Expression]:
        """The expressions of its columns."""
        return [made for _, made in self.columns]

    def __str__(self) -> str:
        return f"select {', '.join(texts(self.columns)) or ', '.join(name for name, _ in self.columns)}"


@dataclass(frozen=True, eq=False)
class Where:
    """Which results stay: those for which the condition is true."""

    condition: Expression
    of_changes: bool = False
    """Whether results are a changelog: of an update one row may stay alone, so both are a ``delete`` and an ``insert``."""

    @property
    def expressions(self) -> list[Expression]:
        """Its condition."""
        return [self.condition]

    def __str__(self) -> str:
        return f"where {self.condition!r}"


Step = Select | Where


def select_step(columns: Sequence[object], expressions: Mapping[str, object], there: Sequence[str]) -> Select:
    """Return the step for columns over those that are ``there``.

    Raises:
        UnknownColumnError: an expression names a column that is not there.
        DuplicateColumnError: two columns of one name, one of them by ``"*"``.
        InvalidSpecError: a column is no expression, or has a call.
    """
    found: list[tuple[str, Expression]] = []
    for name, made in chosen(columns, expressions):
        found += [(each, Name(each)) for each in there] if made is None else [(name, checked(made, "select", there))]
    names = [name for name, _ in found]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise DuplicateColumnError(twice, "One is there by '*': give the new one another name.")
    return Select(tuple(found))


def where_step(condition: object, there: Sequence[str]) -> Where:
    """Return the step for a condition over the columns that are ``there``; errors are those of ``select_step``."""
    if not isinstance(condition, Expression) and not hasattr(condition, "cast"):
        raise InvalidSpecError(f"where({condition!r}): expected a condition over the results, such as wp.col('n') > 100.")
    rows = [name for name in there if name != CHANGE_TYPE]
    found = checked(condition if isinstance(condition, Expression) else Constant(condition), "where", rows)
    return Where(found, of_changes=len(rows) < len(there))


def checked(made: Expression, step: str, there: Iterable[str]) -> Expression:
    known = list(there)
    if call := next(calls_in(made), None):
        raise InvalidSpecError(
            f"{step}: {call!r} is no column of the results. Name it where it is computed, such as aggregate(total=...), and use "
            "wp.col('total') here."
        )
    for name in names_in(made):
        if name not in known and name.lower() not in map(str.lower, known):
            raise UnknownColumnError(name, step, known)
    return made
