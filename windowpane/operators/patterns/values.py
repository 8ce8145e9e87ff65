"""The value of an expression for a match, or for the rows that a path to a match has taken so far.

Logic is that of SQL: what is compared or computed with NULL is NULL, ``&`` and ``|`` know three values. A division by zero is
NULL. NaN equals NaN and is larger than every number.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from decimal import ROUND_HALF_UP, Decimal, localcontext
from typing import NamedTuple, Protocol

from windowpane.arrays.values import Value
from windowpane.errors import ConditionError
from windowpane.windowing.expressions import Constant, Expression, Operation
from windowpane.windowing.patterns.values import Aggregated, Began, Classifier, MatchNumber, MatchTime, Moved, Picked


class Label(NamedTuple):
    """A row of a path, and the variable that took it; ``None`` where the row was passed over."""

    row: int
    variable: str | None
    is_shown: bool


class SoFar(list[Label]):
    """The rows of a match up to each of them: it only grows, so that an aggregate goes on where it was."""


class Rows(Protocol):
    """The rows of a partition, as far as they are known."""

    @property
    def columns(self) -> Mapping[str, Sequence[Value]]:
        """The values of the rows, by column."""

    def has(self, row: int) -> bool:
        """Return whether there is such a row; raises where that is not known yet."""


class Values:
    """The values of expressions over the rows of an attempt.

    Args:
        rows: the rows.
        subsets: the variables that a name stands for, where it stands for several.
        start: the row that the attempt begins at.
        number: that of the match to be.
        time: its event time, in microseconds.
    """

    def __init__(
        self, rows: Rows, subsets: Mapping[str, frozenset[str]], start: int, number: int, time: int | None = None
    ) -> None:
        self._rows, self._subsets = rows, subsets
        self._start, self._number, self._time = start, number, time
        self._folded: dict[int, tuple[SoFar, int, Value]] = {}

    def of(self, expression: Expression, labels: Sequence[Label]) -> Value:
        """Return a value over the rows of a path, in order: of a condition, the row that it is asked for is the last one."""
        match expression:
            case Constant(value):
                return value
            case Picked(_, _, column, _):
                return self._at(self._row(expression, labels), column)
            case Moved(of, moved):
                row = self._row(of, labels)
                return None if row is None else self._at(self._beside(row + moved), of.column)
            case Began(column):
                return self._at(self._start, column)
            case Aggregated():
                return self._aggregate(expression, labels)
            case Classifier(variable):
                return next((label.variable for label in reversed(labels) if self._is_of(label, variable)), None)
            case MatchNumber():
                return self._number
            case MatchTime():
                return self._time
            case Operation(name, parts):
                return self._operation(expression, name, [self.of(part, labels) for part in parts])
        raise ConditionError(expression, "it is no value of a match")

    def _is_of(self, label: Label, variable: str | None) -> bool:
        if variable is None or label.variable is None:
            return label.variable is not None
        return label.variable in self._subsets[variable] if variable in self._subsets else label.variable == variable

    def _row(self, picked: Picked, labels: Sequence[Label]) -> int | None:
        left = picked.offset
        for label in labels if picked.end == "first" else reversed(labels):
            if self._is_of(label, picked.variable):
                if not left:
                    return label.row
                left -= 1
        return None

    def _beside(self, row: int) -> int | None:
        return None if row < 0 or (row >= self._start and not self._rows.has(row)) else row

    def _at(self, row: int | None, column: str) -> Value:
        return None if row is None else self._rows.columns[column][row]

    def _aggregate(self, call: Aggregated, labels: Sequence[Label]) -> Value:
        aggregate, columns = call.aggregate, [self._rows.columns[name] for name in call.columns]
        before, count, accumulator = self._folded.get(id(call), (None, 0, None))
        if before is None or before is not labels:
            count, accumulator = 0, aggregate.create_accumulator()
        for label in labels[count:]:
            if self._is_of(label, call.variable):
                accumulator = aggregate.add(accumulator, *(column[label.row] for column in columns))
        if isinstance(labels, SoFar):
            self._folded[id(call)] = labels, len(labels), accumulator
        return aggregate.get_result(accumulator)

    @staticmethod
    def _operation(expression: Expression, name: str, values: list[Value]) -> Value:
        if name not in _LOGIC and any(value is None for value in values):
            return None
        try:
            with localcontext(prec=_DIGITS) if Decimal in map(type, values) else nullcontext():
                return _LOGIC[name](*values) if name in _LOGIC else _OPERATORS[name](*_alike(values))
        except TypeError as error:
            raise ConditionError(expression, str(error)) from error


def _alike(values: list[Value]) -> list[Value]:
    """Return operands as Spark and PostgreSQL take them: beside a floating-point number every number is one."""
    kinds = set(map(type, values))
    return [float(value) for value in values] if float in kinds and {float} < kinds <= {int, float, Decimal} else values


def _and(left: bool | None, right: bool | None) -> bool | None:
    return False if left is False or right is False else None if left is None or right is None else True


def _or(left: bool | None, right: bool | None) -> bool | None:
    return True if left is True or right is True else None if left is None or right is None else False


def _differs(left: Value, right: Value) -> bool:
    return (left is None) != (right is None) or (left is not None and bool(_compared(operator.ne)(*_alike([left, right]))))


def _compared(compare: Callable[[Value, Value], Value]) -> Callable[[Value, Value], Value]:
    """Return a comparison to which NaN, the one value that differs from itself, is the largest number."""
    return lambda left, right: compare(left != left, right != right) if left != left or right != right else compare(left, right)


def _remainder(left: Value, right: Value) -> Value:
    if right == 0:
        return None
    rest = abs(left) % abs(right)
    return -rest if left < 0 else rest


def _mean(total: Value, count: int) -> Decimal | None:
    """Return an exact mean, with as many places as a quotient of SQL has."""
    if not count:
        return None
    with localcontext(prec=_DIGITS):
        return (Decimal(total) / count).quantize(_PLACES, ROUND_HALF_UP)


_DIGITS = 80
_PLACES = Decimal(1).scaleb(-28)
_LOGIC: Mapping[str, Callable[..., Value]] = {
    "&": _and,
    "|": _or,
    "~": lambda value: None if value is None else not value,
    "is null": lambda value: value is None,
    "is not null": lambda value: value is not None,
    "is distinct from": _differs,
    "coalesce": lambda *values: next((value for value in values if value is not None), None),
}
_OPERATORS: Mapping[str, Callable[..., Value]] = {
    "==": _compared(operator.eq),
    "!=": _compared(operator.ne),
    "<": _compared(operator.lt),
    "<=": _compared(operator.le),
    ">": _compared(operator.gt),
    ">=": _compared(operator.ge),
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": lambda left, right: None if right == 0 else left / right,
    "%": _remainder,
    "div": lambda left, right: None if right == 0 else abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1),
    "mean": _mean,
    "neg": operator.neg,
}
