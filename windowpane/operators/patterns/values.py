"""The value of an expression for a match, or for the rows that a path to a match has taken so far.

Logic is that of SQL: what is compared or computed with NULL is NULL, ``&`` and ``|`` know three values. A division by zero is
NULL. NaN equals NaN and is larger than every number.
"""

from __future__ import annotations

import operator
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from datetime import date, datetime, time
from decimal import ROUND_HALF_UP, Decimal, localcontext
from typing import NamedTuple, Protocol, cast

import numpy as np

from windowpane.arrays.values import Value
from windowpane.errors import ConditionError
from windowpane.windowing.expressions import Constant, Expression, Operation
from windowpane.windowing.patterns.values import Aggregated, Began, Classifier, MatchNumber, MatchTime, Moved, Picked


class Label(NamedTuple):
    """A row of a path, and the variable that took it; ``None`` where the row was passed over."""

    row: int
    variable: str | None
    is_shown: bool


class Path:
    """The rows that a path has taken so far, in order, and those of each name: a variable, a subset, ``None`` for all of them.

    An aggregate goes on where it was: what it has folded is kept as long as its rows stay on the path.
    """

    def __init__(self, subsets: Mapping[str, frozenset[str]], labels: Iterable[Label] = ()) -> None:
        self._subsets = subsets
        self._names: dict[str, tuple[str | None, ...]] = {}
        self.labels: list[Label] = []
        self.of: defaultdict[str | None, list[Label]] = defaultdict(list)
        self.folded: defaultdict[str | None, dict[int, tuple[int, Value]]] = defaultdict(dict)
        for label in labels:
            self.append(label)

    def __len__(self) -> int:
        return len(self.labels)

    def append(self, label: Label) -> None:
        self.labels.append(label)
        if label.variable is not None:
            for name in self._names_of(label.variable):
                self.of[name].append(label)

    def cut(self, count: int) -> None:
        """Leave the first rows."""
        while len(self.labels) > count:
            label = self.labels.pop()
            if label.variable is not None:
                for name in self._names_of(label.variable):
                    self.of[name].pop()
                    left, folded = len(self.of[name]), self.folded[name]
                    for call in [call for call, (rows, _) in folded.items() if rows > left]:
                        del folded[call]

    def _names_of(self, variable: str) -> tuple[str | None, ...]:
        found = self._names.get(variable)
        if found is None:
            found = (None, variable, *(name for name, of in self._subsets.items() if variable in of))
            self._names[variable] = found
        return found


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
        start: the row that the attempt begins at.
        number: that of the match to be.
        time: its event time, in microseconds.
    """

    def __init__(self, rows: Rows, start: int, number: int, time: int | None = None) -> None:
        self._rows, self._start, self._number, self._time = rows, start, number, time

    def of(self, expression: Expression, path: Path) -> Value:
        """Return a value over the rows of a path: of a condition, the row that it is asked for is the last one."""
        match expression:
            case Constant(value):
                return value
            case Picked(_, _, column, _):
                return self._at(self._row(expression, path), column)
            case Moved(of, moved):
                row = self._row(of, path)
                return None if row is None else self._at(self._beside(row + moved), of.column)
            case Began(column):
                return self._at(self._start, column)
            case Aggregated():
                return self._aggregate(expression, path)
            case Classifier(variable):
                return path.of[variable][-1].variable if path.of[variable] else None
            case MatchNumber():
                return self._number
            case MatchTime():
                return self._time
            case Operation(name, parts):
                return self._operation(expression, name, [self.of(part, path) for part in parts])
        raise ConditionError(expression, "it is no value of a match")

    def _row(self, picked: Picked, path: Path) -> int | None:
        labels, offset = path.of[picked.variable], picked.offset
        if offset >= len(labels):
            return None
        return labels[offset if picked.end == "first" else -1 - offset].row

    def _beside(self, row: int) -> int | None:
        return None if row < 0 or (row >= self._start and not self._rows.has(row)) else row

    def _at(self, row: int | None, column: str) -> Value:
        return None if row is None else self._rows.columns[column][row]

    def _aggregate(self, call: Aggregated, path: Path) -> Value:
        aggregate, columns = call.aggregate, [self._rows.columns[name] for name in call.columns]
        labels, folded = path.of[call.variable], path.folded[call.variable]
        count, accumulator = folded.get(id(call)) or (0, aggregate.create_accumulator())
        for label in labels[count:]:
            accumulator = aggregate.add(accumulator, *(column[label.row] for column in columns))
        folded[id(call)] = len(labels), accumulator
        return aggregate.get_result(accumulator)

    @staticmethod
    def _operation(expression: Expression, name: str, values: list[Value]) -> Value:
        if name not in _LOGIC and any(value is None for value in values):
            return None
        try:
            with localcontext(prec=_DIGITS) if Decimal in map(type, values) else nullcontext():
                return _LOGIC[name](*values) if name in _LOGIC else _OPERATORS[name](*_alike(values))
        except (TypeError, ArithmeticError) as error:
            raise ConditionError(expression, str(error)) from error


def _alike(values: list[Value]) -> list[Value]:
    """Return operands as Spark and PostgreSQL take them: a number beside a float is a float, a date beside a time a time."""
    kinds = set(map(type, values))
    if kinds == {date, datetime}:
        zone = next(value.tzinfo for value in values if type(value) is datetime)
        return [value if type(value) is datetime else datetime.combine(value, time.min, zone) for value in values]
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


def _quotient(left: Value, right: Value) -> Value:
    if right == 0:
        return None
    return (left / right).quantize(_PLACES, ROUND_HALF_UP) if Decimal in (type(left), type(right)) else left / right


def _mean(total: Value, count: int) -> Decimal | None:
    """Return an exact mean, with as many places as a quotient of SQL has."""
    with localcontext(prec=_DIGITS):
        return cast("Decimal | None", _quotient(Decimal(total), count))


def _real(number: float) -> float:
    """Return the nearest number of 32 bits: that of a sum, difference, product or quotient is as if it was computed with 32."""
    with np.errstate(over="ignore"):
        return float(np.float32(number))


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
    "/": _quotient,
    "%": _remainder,
    "div": lambda left, right: None if right == 0 else abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1),
    "mean": _mean,
    "neg": operator.neg,
    "real": _real,
}
