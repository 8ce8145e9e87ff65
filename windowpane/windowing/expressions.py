"""Expressions: trees of columns, constants, operators and OVER calls, which Spark computes around an operator.

A tree is a value: it prints as it was written and is never evaluated here. Each node says how many operands it has; the Spark
room turns them into Columns, from the leaves up. What is an OVER call in a tree (``calls_in``) is computed by the operator and
is a column of its output.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypeAlias

from windowpane.arrays.values import Value
from windowpane.errors import InvalidSpecError
from windowpane.guidance import Guided

if TYPE_CHECKING:
    from pyspark.sql import Column
    from pyspark.sql.types import DataType

ColumnLike: TypeAlias = "str | Column"  # By its name or as PySpark's
Argument: TypeAlias = "ColumnLike | Expression"
"""What a call computes with: a column by its name, one of PySpark's, or an expression."""
OrderLike: TypeAlias = "Argument | Sort"
"""What rows are ordered by: without a direction ascending."""
Columns: TypeAlias = "OrderLike | Sequence[OrderLike]"
Side = Literal["left", "right"]
SIDES: tuple[Side, Side] = ("left", "right")

_SPARKS_CALL = re.compile(
    r"Column<'(row_number|rank|dense_rank|percent_rank|cume_dist|ntile|lag|lead|first_value|last_value|nth_value|count|sum|avg"
    r"|min|max|first|last|median|mode|stddev|stddev_pop|stddev_samp|var_pop|var_samp|variance|collect_list|collect_set)\("
)
"""How PySpark writes a call of a window function or an aggregate."""


def _operators(symbol: str) -> tuple[Callable[[Expression, object], Operation], Callable[[Expression, object], Operation]]:
    """Return the method of an operator, and of the one that is asked where the expression is its second operand."""

    def forward(self: Expression, other: object) -> Operation:
        return Operation(symbol, (self, operand(other)))

    def backward(self: Expression, other: object) -> Operation:
        return Operation(symbol, (operand(other), self))

    return forward, backward


class Expression(Guided):
    """What can be part of an expression: operators build larger ones. Comparing two with ``==`` builds an expression, too.

    Operands may be other expressions, PySpark Columns or constants. A PySpark Column cannot be first, since it does not know
    expressions: write ``wp.col("price") - wp.lag("price")``.
    """

    __slots__ = ()

    is_call = False
    """Whether the operator computes it, and not Spark."""

    def _get_object_id(self) -> str:
        """Raise with what to write where a PySpark Column is first: Py4J reads this of its arguments."""
        raise self._is_second()

    @property
    def _expr(self) -> NoReturn:
        """Raise it on Spark Connect, whose Columns read this."""
        raise self._is_second()

    def _is_second(self) -> InvalidSpecError:
        return InvalidSpecError(
            f"a PySpark Column cannot stand before {self!r}: write wp.col('name') in its place, as in "
            "wp.col('price') - wp.lag('price')."
        )

    @property
    def operands(self) -> tuple[Expression, ...]:
        """The expressions this one is made of."""
        return ()

    __add__, __radd__ = _operators("+")
    __sub__, __rsub__ = _operators("-")
    __mul__, __rmul__ = _operators("*")
    __truediv__, __rtruediv__ = _operators("/")
    __mod__, __rmod__ = _operators("%")
    __and__, __rand__ = _operators("&")
    __or__, __ror__ = _operators("|")
    __lt__, __gt__ = _operators("<")[0], _operators(">")[0]
    __le__, __ge__ = _operators("<=")[0], _operators(">=")[0]

    def __eq__(self, other: object) -> Any:
        return Operation("==", (self, operand(other)))

    def __ne__(self, other: object) -> Any:
        return Operation("!=", (self, operand(other)))

    def __neg__(self) -> Operation:
        return Operation("neg", (self,))

    def __invert__(self) -> Operation:
        return Operation("~", (self,))

    __hash__ = object.__hash__

    def is_null(self) -> Operation:
        """Return whether the value is NULL."""
        return Operation("is null", (self,))

    def is_not_null(self) -> Operation:
        """Return whether the value is not NULL."""
        return Operation("is not null", (self,))

    def is_distinct_from(self, other: object) -> Operation:
        """Return whether the values differ, where NULL equals NULL: never NULL itself."""
        return Operation("is distinct from", (self, operand(other)))

    def cast(self, to: str | DataType) -> Applied:
        """Return the value as another type: a DDL name or a DataType."""
        return Applied(Cast(to), (self,))

    def alias(self, name: str) -> Named:
        """Give it a name, where ``select`` takes it without one."""
        return Named(self, name)

    def final(self) -> Final:
        """Return the value of the whole match, for each row of it that ``all_rows`` shows: SQL's FINAL."""
        return Final(self)

    def running(self) -> Final:
        """Return the value of the rows of a match up to the one that is shown: SQL's RUNNING, as without it."""
        return Final(self, is_final=False)

    def asc(self) -> Sort:
        """Order ascending, NULLs first (Spark's default)."""
        return Sort(self)

    def desc(self) -> Sort:
        """Order descending, NULLs last (Spark's default)."""
        return Sort(self, descending=True, nulls_first=False)

    def asc_nulls_first(self) -> Sort:
        """Order ascending, NULLs first."""
        return Sort(self)

    def asc_nulls_last(self) -> Sort:
        """Order ascending, NULLs last."""
        return Sort(self, nulls_first=False)

    def desc_nulls_first(self) -> Sort:
        """Order descending, NULLs first."""
        return Sort(self, descending=True)

    def desc_nulls_last(self) -> Sort:
        """Order descending, NULLs last."""
        return Sort(self, descending=True, nulls_first=False)


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Name(Expression):
    name: str

    def __repr__(self) -> str:
        return f"col({self.name!r})"


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class SideName(Expression):
    side: Side
    name: str

    def __repr__(self) -> str:
        return f"{self.side}({self.name!r})"


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Constant(Expression):
    value: Value

    def __repr__(self) -> str:
        return repr(self.value)


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Operation(Expression):
    operator: str
    parts: tuple[Expression, ...]

    def __bool__(self) -> bool:
        raise InvalidSpecError(
            f"{self!r} is computed by Spark, and has no truth here: combine expressions with & | ~, and compare them one by one."
        )

    @property
    def operands(self) -> tuple[Expression, ...]:
        return self.parts

    def __repr__(self) -> str:
        if len(self.parts) == 2:
            return f"({self.parts[0]!r} {self.operator} {self.parts[1]!r})"
        if self.operator.startswith("is "):
            return f"({self.parts[0]!r} {self.operator})"
        return f"{'-' if self.operator == 'neg' else self.operator}{self.parts[0]!r}"


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Applied(Expression):
    function: Callable[..., Column]
    parts: tuple[Expression, ...]

    @property
    def operands(self) -> tuple[Expression, ...]:
        return self.parts

    def __repr__(self) -> str:
        name = getattr(self.function, "__name__", None) or repr(self.function)
        return f"{name}({', '.join(repr(part) for part in self.parts)})"


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Final(Expression):
    """A value of a row pattern, of the whole match or of its rows up to the one that is shown."""

    part: Expression
    is_final: bool = True

    @property
    def operands(self) -> tuple[Expression, ...]:
        return (self.part,)

    def __repr__(self) -> str:
        return f"{self.part!r}.{'final' if self.is_final else 'running'}()"


@dataclass(frozen=True)
class Cast:
    to: str | DataType

    def __call__(self, column: Column) -> Column:
        return column.cast(self.to)

    def __repr__(self) -> str:
        return f"cast[{self.to}]"


@dataclass(frozen=True)
class Named:
    expression: Expression
    name: str


@dataclass(frozen=True)
class Sort:
    expression: Expression | Column
    descending: bool = False
    nulls_first: bool = True

    def __repr__(self) -> str:
        direction = "DESC" if self.descending else "ASC"
        return f"{self.expression!r} {direction} NULLS {'FIRST' if self.nulls_first else 'LAST'}"


def col(name: str) -> Name:
    """Return a column of the input, to compute with beside OVER calls.

    Example:
        >>> col("price") - 1
        (col('price') - 1)
    """
    return Name(_column_name("col", name))


def left(name: str) -> SideName:
    """Return a column of the left side of a join, to compute with in ``select``.

    Args:
        name: of the column.

    Raises:
        InvalidSpecError: it is no text.

    Example:
        >>> right("price") - left("cost")
        (right('price') - left('cost'))
    """
    return SideName("left", _column_name("left", name))


def right(name: str) -> SideName:
    """Return a column of the right side of a join, to compute with in ``select``.

    Args:
        name: of the column.

    Raises:
        InvalidSpecError: it is no text.

    Example:
        >>> right("word")
        right('word')
    """
    return SideName("right", _column_name("right", name))


def _column_name(function: str, name: str) -> str:
    if not isinstance(name, str):
        raise InvalidSpecError(f"{function} takes the name of a column, got {name!r}.")
    return name


def apply(function: Callable[..., Column], *operands: object) -> Applied:
    """Return a function of PySpark, or one of yours from Columns to a Column, applied to expressions.

    Args:
        function: takes a Column for each operand and returns a Column.
        operands: expressions, PySpark Columns or constants; a column by name is ``col("name")``.

    Example:
        >>> from pyspark.sql import functions as F
        >>> apply(F.coalesce, col("price"), 0)
        coalesce(col('price'), 0)
    """
    if not callable(function):
        raise InvalidSpecError(f"apply takes a function such as F.coalesce, got {function!r}.")
    return Applied(function, tuple(operand(each) for each in operands))


def is_column(value: object) -> bool:
    """Whether a value is a PySpark Column, classic or Connect."""
    return hasattr(value, "cast") and not isinstance(value, Expression)


def ways_of_spark(column: object) -> str:
    """Return what to write in place of a call of PySpark's, such as ``F.sum(...)``, to follow a message; else nothing."""
    called = _SPARKS_CALL.match(str(column)) if is_column(column) else None
    return f" F.{called[1]}(...) is Spark's, which cannot run here: use wp.{called[1]}(...)." if called else ""


def operand(value: object) -> Expression:
    return value if isinstance(value, Expression) else Constant(value)


def calls_in(expression: Expression) -> Iterator[Expression]:
    if expression.is_call:
        yield expression
        return
    for part in expression.operands:
        yield from calls_in(part)


def replaced(expression: Expression, leaf: Callable[[Expression], Expression | None]) -> Expression:
    """Return an expression with the parts for which ``leaf`` has another one replaced by that, from the top down."""
    found = leaf(expression)
    if found is not None:
        return found
    parts = tuple(replaced(part, leaf) for part in expression.operands)
    if isinstance(expression, Operation):
        return Operation(expression.operator, parts)
    return Applied(expression.function, parts) if isinstance(expression, Applied) else expression


def names_in(expression: Expression) -> Iterator[str]:
    if isinstance(expression, Name):
        yield expression.name
    for part in expression.operands:
        yield from names_in(part)


def sides_in(expression: Expression) -> Iterator[SideName]:
    if isinstance(expression, SideName):
        yield expression
    for part in expression.operands:
        yield from sides_in(part)


def signature(value: object) -> Hashable:
    """Return what makes two pieces of a tree the same: texts and numbers by value, Columns by identity."""
    if isinstance(value, tuple):
        return tuple(signature(each) for each in value)
    if isinstance(value, Name):
        return value.name
    if isinstance(value, SideName):
        return value.side, value.name
    if isinstance(value, Constant):
        return "constant", signature(value.value)
    if isinstance(value, Operation):
        return value.operator, signature(value.parts)
    if isinstance(value, Applied):
        return value.function, signature(value.parts)
    if isinstance(value, Sort):
        return signature(value.expression), value.descending, value.nulls_first
    return (type(value), value) if _is_plain(value) else id(value)


def _is_plain(value: object) -> bool:
    return not hasattr(value, "cast") and isinstance(value, Hashable)
