"""OVER calls as the fluent API writes them: a function, its arguments, and the parts of its window.

``rows``, ``range``, ``groups`` and ``session`` set the frame, ``exclude`` takes rows out of it, ``over`` gives the call a
partition or an order of its own. Built-in aggregates take the same methods (``Windowable``); each returns a new value.
"""

from __future__ import annotations

import datetime as dt
from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING, TypeAlias

from windowpane.errors import InvalidFrameError, InvalidSpecError
from windowpane.windowing.expressions import Argument, Columns, Expression, Name, OrderLike, calls_in, signature
from windowpane.windowing.frames import (
    CURRENT_ROW,
    UNBOUNDED_FOLLOWING,
    UNBOUNDED_PRECEDING,
    Bound,
    Exclude,
    Frame,
    following,
    preceding,
)
from windowpane.windowing.intervals import Interval

if TYPE_CHECKING:
    from pyspark.sql import Column

NUMBERING = frozenset({"row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile"})
"""Functions of a row's place; they need ORDER BY and have no frame."""
RUNNING_NUMBERING = frozenset({"row_number", "rank", "dense_rank"})
"""Of those, the ones that only look at rows before: counters are all they need to continue."""
OFFSET_FUNCTIONS = frozenset({"lag", "lead"})
"""Functions of a row at a distance; they have no frame."""
VALUE_FUNCTIONS = frozenset({"first_value", "last_value", "nth_value"})
"""Functions of one row of the frame."""
FUNCTIONS = NUMBERING | OFFSET_FUNCTIONS | VALUE_FUNCTIONS
"""Functions that can be called OVER a window beside aggregates."""

_ENDLESS = 2**63 - 1
"""PySpark writes its unbounded ends as integers that large, with either sign."""

BoundLike: TypeAlias = int | float | Decimal | str | dt.timedelta | Interval | Bound | None
"""An end of a frame: its distance from the row, below zero before it; ``None`` for that of the partition."""


class Windowable(Expression, ABC):
    """What can be called OVER a window: a function, or a built-in aggregate."""

    __slots__ = ()

    is_call = True

    @abstractmethod
    def as_call(self) -> WindowCall:
        """Return it as a call."""

    def rows(self, start: BoundLike = None, end: BoundLike = 0) -> WindowCall:
        """Set a frame that counts rows.

        Args:
            start: rows after the current one, below zero before it; ``None`` is the first row of the partition.
            end: likewise; ``None`` is the last row.

        Raises:
            InvalidFrameError: the bounds cannot be combined.

        Example:
            >>> from windowpane.aggregates import avg
            >>> avg("price").rows(-10, -1)
            avg('price').rows(10 PRECEDING, 1 PRECEDING)
        """
        return self._framed(Frame.rows(*_counted("rows", start, end)))

    def range(self, start: BoundLike = None, end: BoundLike = 0) -> WindowCall:
        """Set a frame by the distance of the ORDER BY value.

        Args:
            start: a number, an interval as text (``"-1 hour"``, ``"-1 month -2 days"``) or a ``timedelta``, below zero before the
                current row in the direction of the order; ``None`` is the start of the partition, 0 the first of the row's peers.
            end: likewise; ``None`` is the end of the partition, 0 the last of the peers.

        Raises:
            InvalidFrameError: the bounds cannot be combined, or one is neither a number nor an interval.

        Example:
            >>> from windowpane.aggregates import count
            >>> count().range("-1 hour", 0)
            count().range('1 hour' PRECEDING, CURRENT ROW)
        """
        return self._framed(Frame.range_(*_bounds(start, end)))

    def groups(self, start: BoundLike = None, end: BoundLike = 0) -> WindowCall:
        """Set a frame that counts groups of peers; arguments and errors are those of ``rows``.

        Example:
            >>> from windowpane.aggregates import count
            >>> count().groups(-1, 0)
            count().groups(1 PRECEDING, CURRENT ROW)
        """
        return self._framed(Frame.groups(*_counted("groups", start, end)))

    def session(self, gap: str | int | dt.timedelta | Interval) -> WindowCall:
        """Set the frame that is the row's session: rows that follow one another at less than ``gap`` (RisingWave's SESSION)."""
        return self._framed(Frame.session(Interval.of(gap) if isinstance(gap, str) else gap))

    def exclude(self, what: str | Exclude) -> WindowCall:
        """Take rows out of the frame: ``"current row"``, its whole ``"group"`` of peers, its ``"ties"``, or ``"no others"``.

        Raises:
            InvalidFrameError: ``what`` is none of these.

        Example:
            >>> from windowpane.aggregates import avg
            >>> avg("price").rows(-10, 10).exclude("current row")
            avg('price').rows(10 PRECEDING, 10 FOLLOWING).exclude('current row')
        """
        try:
            excluded = what if isinstance(what, Exclude) else Exclude(what.replace("_", " ").upper())
        except (AttributeError, ValueError) as error:
            known = ", ".join(repr(each.value.lower()) for each in Exclude)
            raise InvalidFrameError(f"exclude takes one of {known}, not {what!r}.") from error
        return replace(self.as_call(), exclusion=excluded)

    def filter(self, condition: Argument) -> WindowCall:
        """Let an aggregate see only the rows where ``condition`` (a column name, Column or expression) is true."""
        return replace(self.as_call(), condition=argument("filter", condition))

    def distinct(self) -> WindowCall:
        """Let an aggregate see each value once."""
        return replace(self.as_call(), is_distinct=True)

    def ignore_nulls(self) -> WindowCall:
        """Let ``lag``, ``lead``, ``first_value``, ``last_value`` or ``nth_value`` pass over NULLs."""
        return replace(self.as_call(), skips_nulls=True)

    def over(self, partition_by: Columns | None = None, order_by: Columns | None = None) -> WindowCall:
        """Give this call a partition or an order of its own, instead of those of the whole ``select``.

        Args:
            partition_by: name(s) or Column(s); ``()`` for one partition of all rows, ``None`` to keep the common one.
            order_by: likewise.

        Raises:
            InvalidSpecError: a window of PySpark's.
        """
        if hasattr(partition_by, "partitionBy"):
            raise InvalidSpecError(
                f"{self!r}.over(...) got a window of PySpark's: write .over(partition_by='user', order_by='at'), and a frame "
                "as .rows(-10, 0) or .range('-1 hour', 0). What all calls share is said before: wp.over(df).partition_by('user')."
            )
        call = self.as_call()
        partition = call.partition if partition_by is None else several(partition_by)
        return replace(call, partition=partition, order=call.order if order_by is None else several(order_by))

    def _framed(self, frame: Frame) -> WindowCall:
        return replace(self.as_call(), frame=frame)


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class WindowCall(Windowable):
    """One call of a function OVER a window, as it was written.

    ``None`` is the default frame, and the PARTITION BY and ORDER BY that all calls have in common.
    """

    function: str
    arguments: tuple[Argument, ...] = ()
    """Column names, PySpark Columns, or expressions without calls."""
    frame: Frame | None = None
    exclusion: Exclude | None = None
    offset: int = 1
    """Of ``lag`` and ``lead``; the n of ``nth_value``, the buckets of ``ntile``."""
    default: Hashable = None
    skips_nulls: bool = False
    condition: Argument | None = None
    is_distinct: bool = False
    parameters: tuple[tuple[str, Hashable], ...] = ()
    partition: tuple[OrderLike, ...] | None = None
    order: tuple[OrderLike, ...] | None = None

    def as_call(self) -> WindowCall:
        return self

    @property
    def is_aggregate(self) -> bool:
        return self.function not in FUNCTIONS

    @property
    def identity(self) -> Hashable:
        """What makes two calls the same computation, so that one column serves both."""
        text = (self.function, self.frame, self.exclusion, self.offset, repr(self.default), self.skips_nulls, self.is_distinct)
        return (
            text,
            self.parameters,
            signature((*self.arguments, self.condition)),
            signature(self.partition),
            signature(self.order),
        )

    def __repr__(self) -> str:
        parts = [each.name if isinstance(each, Name) else each for each in self.arguments]
        shown = [repr(part) for part in parts] + [f"{name}={value!r}" for name, value in self.parameters]
        if self.function in ("lag", "lead", "nth_value", "ntile"):
            shown.append(repr(self.offset))
        text = f"{self.function}({', '.join(shown)}{'' if self.default is None else f', {self.default!r}'})"
        return text + self._window_text()

    def _window_text(self) -> str:
        parts = [".distinct()"] if self.is_distinct else []
        parts += [".ignore_nulls()"] if self.skips_nulls else []
        parts += [f".filter({self.condition!r})"] if self.condition is not None else []
        if self.frame is not None:
            units, gap = self.frame.units.value.lower(), self.frame.gap
            parts.append(f".{units}({f'{self.frame.start}, {self.frame.end}' if gap is None else gap})")
        parts += [f".exclude({self.exclusion.value.lower()!r})"] if self.exclusion else []
        own = [
            f"{name}={value!r}"
            for name, value in (("partition_by", self.partition), ("order_by", self.order))
            if value is not None
        ]
        return "".join(parts) + (f".over({', '.join(own)})" if own else "")


def row_number() -> WindowCall:
    """Number the rows of a partition from 1, ties in the order of the key. Result: bigint.

    The rule is that of SQL, as PostgreSQL has it; there ties may be in any order.

    Example:
        >>> row_number()
        row_number()
    """
    return WindowCall("row_number")


def rank() -> WindowCall:
    """Number rows so that peers share the number of the first of them; the next group has its row number.

    Rows 10, 10, 20 in their order have 1, 1, 3. Result: bigint. The rule is that of SQL, as PostgreSQL has it.

    Example:
        >>> rank().over(partition_by="origin", order_by="delay")
        rank().over(partition_by=('origin',), order_by=('delay',))
    """
    return WindowCall("rank")


def dense_rank() -> WindowCall:
    """Number groups of peers from 1, without gaps.

    Rows 10, 10, 20 in their order have 1, 1, 2. Result: bigint. The rule is that of SQL, as PostgreSQL has it.

    Example:
        >>> dense_rank()
        dense_rank()
    """
    return WindowCall("dense_rank")


def percent_rank() -> WindowCall:
    """Return ``(rank - 1) / (rows of the partition - 1)``, 0 for a single row. Result: double, from 0 to 1.

    Each new row of the partition changes it, so it cannot be had on window close. The rule is that of SQL, as PostgreSQL has it.

    Example:
        >>> percent_rank()
        percent_rank()
    """
    return WindowCall("percent_rank")


def cume_dist() -> WindowCall:
    """Return the share of the partition's rows that come before the row or are its peers. Result: double, above 0, at most 1.

    Each new row of the partition changes it, so it cannot be had on window close. The rule is that of SQL, as PostgreSQL has it.

    Example:
        >>> cume_dist()
        cume_dist()
    """
    return WindowCall("cume_dist")


def ntile(buckets: int) -> WindowCall:
    """Divide the partition into as many buckets of sizes that differ by at most 1, larger ones first; number them from 1.

    Result: bigint. Each new row of the partition may change it, so it cannot be had on window close. The rule is that of SQL, as
    PostgreSQL has it.

    Args:
        buckets: how many, at least 1.

    Raises:
        InvalidSpecError: ``buckets`` is no whole number.

    Example:
        >>> ntile(4)
        ntile(4)
    """
    return WindowCall("ntile", offset=_whole("ntile", "the number of buckets", buckets))


def lag(column: Argument, offset: int = 1, default: Hashable = None) -> WindowCall:
    """Return the value of the row ``offset`` rows before; ``default`` where the partition has no such row.

    Result: the type of the column. The rule is that of SQL, as PostgreSQL has it, and with IGNORE NULLS that of SQL:2016.

    Args:
        column: a column name, PySpark Column, or expression.
        offset: rows; 0 is the row itself, below zero it is ``lead``.
        default: a constant of the column's type.

    Raises:
        InvalidSpecError: ``column`` is no column, or ``offset`` no whole number.

    Example:
        >>> lag("price", 2)
        lag('price', 2)
    """
    return WindowCall("lag", (argument("lag", column),), offset=_whole("lag", "the offset", offset), default=default)


def lead(column: Argument, offset: int = 1, default: Hashable = None) -> WindowCall:
    """Return the value of the row ``offset`` rows after; ``default`` where the partition has no such row.

    All else is as ``lag`` has it.

    Args:
        column: a column name, PySpark Column, or expression.
        offset: rows; 0 is the row itself, below zero it is ``lag``.
        default: a constant of the column's type.

    Raises:
        InvalidSpecError: ``column`` is no column, or ``offset`` no whole number.

    Example:
        >>> lead("price", 1, 0)
        lead('price', 1, 0)
    """
    return WindowCall("lead", (argument("lead", column),), offset=_whole("lead", "the offset", offset), default=default)


def first_value(column: Argument) -> WindowCall:
    """Return the value of the first row of the frame, NULL if it is empty.

    Result: the type of the column. The rule is that of SQL, as PostgreSQL has it.

    Args:
        column: a column name, PySpark Column, or expression.

    Raises:
        InvalidSpecError: ``column`` is no column.

    Example:
        >>> first_value("price").rows(-10, 0).ignore_nulls()
        first_value('price').ignore_nulls().rows(10 PRECEDING, CURRENT ROW)
    """
    return WindowCall("first_value", (argument("first_value", column),))


def last_value(column: Argument) -> WindowCall:
    """Return the value of the last row of the frame, NULL if it is empty.

    The default frame ends with the row's last peer: the end of the partition is ``.rows(None, None)``. Result: the type of the
    column. The rule is that of SQL, as PostgreSQL has it.

    Args:
        column: a column name, PySpark Column, or expression.

    Raises:
        InvalidSpecError: ``column`` is no column.

    Example:
        >>> last_value("price").rows(None, None)
        last_value('price').rows(UNBOUNDED PRECEDING, UNBOUNDED FOLLOWING)
    """
    return WindowCall("last_value", (argument("last_value", column),))


def nth_value(column: Argument, n: int) -> WindowCall:
    """Return the value of the ``n``-th row of the frame; NULL if the frame is shorter.

    Result: the type of the column. The rule is that of SQL, as PostgreSQL has it.

    Args:
        column: a column name, PySpark Column, or expression.
        n: counts from 1.

    Raises:
        InvalidSpecError: ``column`` is no column, or ``n`` no whole number.

    Example:
        >>> nth_value("price", 2)
        nth_value('price', 2)
    """
    return WindowCall("nth_value", (argument("nth_value", column),), offset=_whole("nth_value", "n", n))


def argument(role: str, value: Argument) -> Expression | Column:
    if isinstance(value, str):
        return Name(value)
    if isinstance(value, Expression) and any(calls_in(value)):
        raise InvalidSpecError(
            f"{role} was given {value!r}, an OVER call inside another. Compute the inner one first: emit it, and begin a second "
            "window on the result."
        )
    if isinstance(value, Expression) or hasattr(value, "cast"):
        return value
    raise InvalidSpecError(
        f"{role} was given {value!r}, which is neither a column name nor a Column. For a constant, use lit(...)."
    )


def several(columns: Columns) -> tuple[OrderLike, ...]:
    return (columns,) if isinstance(columns, str) or not isinstance(columns, Sequence) else tuple(columns)


def _whole(role: str, what: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidSpecError(f"{role}: {what} is a whole number, not {value!r}.")
    return value


def _counted(frame: str, start: BoundLike, end: BoundLike) -> tuple[Bound, Bound]:
    for bound in (start, end):
        if isinstance(bound, str | dt.timedelta | Interval):
            raise InvalidFrameError(
                f"{frame} counts {frame}, and {bound!r} is a time: write .range('-1 hour', 0) for the rows of the last hour."
            )
    return _bounds(start, end)


def _bounds(start: BoundLike, end: BoundLike) -> tuple[Bound, Bound]:
    return _bound(start, UNBOUNDED_PRECEDING), _bound(end, UNBOUNDED_FOLLOWING)


def _bound(value: BoundLike, unbounded: Bound) -> Bound:
    """Return a bound from a signed offset; ``None`` is ``unbounded``."""
    if value is None:
        return unbounded
    if isinstance(value, Bound):
        return value
    if isinstance(value, str | dt.timedelta | Interval):
        return _interval_bound(Interval.of(value), value)
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise InvalidFrameError(f"{value!r} is no bound of a frame: use a number, an interval such as '-1 hour', or None.")
    if not -_ENDLESS < value < _ENDLESS:
        return UNBOUNDED_PRECEDING if value < 0 else UNBOUNDED_FOLLOWING
    if value == 0:
        return CURRENT_ROW
    return preceding(-value) if value < 0 else following(value)


def _interval_bound(interval: Interval, written: BoundLike) -> Bound:
    if interval.is_zero:
        return CURRENT_ROW
    if not interval.is_negative:
        return following(interval)
    if (-interval).is_negative:
        raise InvalidFrameError(
            f"{written!r} goes in both directions: every part of an interval has its own sign. Write '-1 month -2 days'."
        )
    return preceding(-interval)
