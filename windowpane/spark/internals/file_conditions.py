"""Conditions of Spark's on columns of files, as conditions that Arrow evaluates (``kernels.conditions``) with the same result.

Only what is the same in both, for every value and for NULL: columns compared with constants and with each other, where both are
integers, decimals of one type, texts without a collation, booleans, dates or times without a zone; ``IS NULL``; ``IN``, ``AND``,
``OR`` and ``NOT``. Floating point is left to Spark, to which NaN equals NaN and is the largest number. So are instants: Spark
writes a constant of them in the JVM's time zone, in which an hour can stand for two.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Context, Decimal
from functools import reduce

from windowpane.arrays.values import Value
from windowpane.spark.internals.plan_trees import Tree, number_of, tree_of
from windowpane.windowing.expressions import Constant, Expression, Name, Operation

_BITS = {"byte": 8, "short": 16, "integer": 32, "long": 64}
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")
_ISO_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_EXACT = Context(prec=100)
_COMPARISONS = {
    "EqualTo": "==",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
    "EqualNullSafe": "is distinct from",
}
_LONGEST_LIST = 64
_FIRST_YEAR = 1900  # Spark writes dates before 1582 in another calendar; nobody needs those near it


class UnknownConditionError(Exception):
    """Spark may find another result than Arrow."""


def condition_of(tree: Tree, columns: Mapping[int, str]) -> Expression:
    """Return a condition of Spark's; ``columns`` are those of the files by the numbers (``exprId``) that they have in it."""
    kind, parts = tree.kind, tree.children
    if kind in ("And", "Or"):
        left, right = (condition_of(part, columns) for part in parts)
        return Operation("&" if kind == "And" else "|", (left, right))
    if kind == "Not":
        return Operation("~", (condition_of(parts[0], columns),))
    if kind in ("IsNull", "IsNotNull"):
        return Operation("is null" if kind == "IsNull" else "is not null", (_Value.of(parts[0], columns).column,))
    if kind in _COMPARISONS:
        found = _compared(_COMPARISONS[kind], _Value.of(parts[0], columns), _Value.of(parts[1], columns))
        return Operation("~", (found,)) if kind == "EqualNullSafe" else found
    if kind == "In":
        return _in_list([_Value.of(part, columns) for part in parts])
    if kind == "Between":
        value, least, most = (_Value.of(tree_of(tree.fields[name]), columns) for name in ("input", "lower", "upper"))
        return Operation("&", (_compared(">=", value, least.cast(value.kind)), _compared("<=", value, most.cast(value.kind))))
    return _Value.of(tree, columns).truth


@dataclass(frozen=True)
class _Value:
    expression: Name | Constant
    kind: str

    @classmethod
    def of(cls, tree: Tree, columns: Mapping[int, str]) -> _Value:
        kind = str(tree.fields.get("dataType"))
        if tree.kind == "AttributeReference":
            number = number_of(tree)
            if number in columns:
                return cls(Name(columns[number]), kind)
        if tree.kind == "Literal":
            return cls(Constant(_constant(tree.fields["value"], kind)), kind)
        if tree.kind == "Cast":
            return cls.of(tree.children[0], columns).cast(kind)
        raise UnknownConditionError

    def cast(self, kind: str) -> _Value:
        """Return the value as another type, where it stays the same number or day."""
        if self.kind == kind or (self.kind in _BITS and _BITS[self.kind] <= _BITS.get(kind, 0)):
            return _Value(self.expression, kind)
        if not isinstance(self.expression, Constant):
            raise UnknownConditionError
        value = self.expression.value
        if value is None:
            return _Value(self.expression, kind)
        if kind == "date" and isinstance(value, str) and _ISO_DATE.fullmatch(value):
            return _Value(Constant(_date(value)), kind)
        if not (self.kind in _BITS or _DECIMAL.fullmatch(self.kind)):
            raise UnknownConditionError
        return _Value(Constant(_exactly(Decimal(value), kind)), kind)

    @property
    def column(self) -> Name:
        if not isinstance(self.expression, Name):
            raise UnknownConditionError
        return self.expression

    @property
    def truth(self) -> Expression:
        if self.kind != "boolean" or (isinstance(self.expression, Constant) and self.expression.value is None):
            raise UnknownConditionError
        return self.expression


def _compared(operator: str, left: _Value, right: _Value) -> Operation:
    if left.kind != right.kind or (left.kind not in _READERS and _DECIMAL.fullmatch(left.kind) is None):
        raise UnknownConditionError
    if isinstance(left.expression, Constant) and isinstance(right.expression, Constant):
        raise UnknownConditionError
    return Operation(operator, (left.expression, right.expression))


def _in_list(values: list[_Value]) -> Expression:
    """Return whether the first value equals one of the others; NULL as in a chain of ``OR``."""
    value, *others = values
    if not others or len(others) > _LONGEST_LIST:
        raise UnknownConditionError
    equal: list[Expression] = [_compared("==", value, other) for other in others]
    return reduce(lambda left, right: Operation("|", (left, right)), equal)


def _constant(text: str | None, kind: str) -> Value:
    if text is None:
        return None
    if kind in _READERS:
        return _READERS[kind](text)
    if _DECIMAL.fullmatch(kind) is None:
        raise UnknownConditionError
    return _exactly(Decimal(text), kind)


def _exactly(number: Decimal, kind: str) -> Decimal:
    found = _DECIMAL.fullmatch(kind)
    if found is None:
        raise UnknownConditionError
    digits, scale = int(found[1]), int(found[2])
    shifted = _EXACT.scaleb(number, scale)
    if shifted != _EXACT.to_integral_value(shifted) or abs(shifted) >= 10**digits:
        raise UnknownConditionError
    return _EXACT.quantize(number, Decimal((0, (1,), -scale)))


def _date(text: str) -> dt.date:
    found = dt.date.fromisoformat(text)
    if found.year < _FIRST_YEAR:
        raise UnknownConditionError
    return found


def _wall_time(text: str) -> dt.datetime:
    return dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=int(text))


_READERS: Mapping[str, Callable[[str], Value]] = {
    **dict.fromkeys(_BITS, int),
    "string": str,
    "boolean": "true".__eq__,
    "date": _date,
    "timestamp_ntz": _wall_time,
}
"""The types that are compared, and how a constant of each is read."""
