"""first_n, last_n and top_n: a few of the values of a group, as a list.

Columnar partials: lists of at most n values, what orders them where that is no arrival, and the arrival numbers of their rows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windowpane.aggregates.collections import CollectList, ColumnarList
from windowpane.arrays import Integers
from windowpane.arrays.columns import flat
from windowpane.arrays.values import Value
from windowpane.errors import InvalidSpecError
from windowpane.hidden_columns import ARRIVAL
from windowpane.kernels.aggregates.lists import Lists, by_arrival, gathered_lists, list_array
from windowpane.kernels.keys.ordered_codes import codes_of, is_sortable
from windowpane.kernels.segments import Segments
from windowpane.windowing.aggregates.canonical import Form, Frozen, form_of, is_orderable
from windowpane.windowing.aggregates.definition import BoundAggregate, Call, ColumnarCall, Definition, Returns, define
from windowpane.windowing.aggregates.spec import Aggregate
from windowpane.windowing.expressions import Argument

Ranked = list[tuple[Frozen, Value]]
"""Values, each behind what ranks it."""


@dataclass(frozen=True, slots=True)
class FirstN(CollectList):
    """The first values that are not NULL. Accumulator: the list of them."""

    n: int

    def add(self, accumulator: list[Value], value: Value) -> list[Value]:
        if value is not None and len(accumulator) < self.n:
            accumulator.append(value)
        return accumulator

    def merge(self, left: list[Value], right: list[Value]) -> list[Value]:
        left.extend(right[: self.n - len(left)])
        return left


@dataclass(frozen=True, slots=True)
class LastN(CollectList):
    """The last values that are not NULL. Accumulator: the list of them."""

    n: int

    def add(self, accumulator: list[Value], value: Value) -> list[Value]:
        return accumulator if value is None else self.merge(accumulator, [value])

    def merge(self, left: list[Value], right: list[Value]) -> list[Value]:
        left.extend(right)
        del left[: -self.n]
        return left


@dataclass(frozen=True, slots=True)
class TopN:
    """The values of the rows with the largest, or smallest, ``by``. Accumulator: the list of (frozen by, value), in order."""

    result_type: pa.DataType
    form: Form
    n: int
    is_ascending: bool

    def create_accumulator(self) -> Ranked:
        return []

    def add(self, accumulator: Ranked, value: Value, by: Value) -> Ranked:
        return accumulator if value is None or by is None else self.merge(accumulator, [(self.form.freeze(by), value)])

    def merge(self, left: Ranked, right: Ranked) -> Ranked:
        for each in right:
            at = len(left)
            while at and self._precedes(each[0], left[at - 1][0]):
                at -= 1
            left.insert(at, each)
        del left[self.n :]
        return left

    def get_result(self, accumulator: Ranked) -> list[Value]:
        return [value for _, value in accumulator]

    def _precedes(self, one: Frozen, other: Frozen) -> bool:
        return bool(one < other if self.is_ascending else one > other)


# --- partials of columns ---


class ColumnarFew(ColumnarList, ABC):
    """Lists that are cut to the values that stay, whenever they merge."""

    def merge(self, partials: pa.Table, segments: Segments) -> Mapping[str, pa.Array]:
        kept = self.cut([gathered_lists(partials[name], segments) for name in self.columns])
        return dict(zip(self.columns, (lists.to_arrow() for lists in kept), strict=True))

    def finish(self, partials: pa.Table) -> pa.Array:
        return self.cut([Lists.of(partials[name]) for name in self.columns])[0].to_arrow()

    @abstractmethod
    def cut(self, parts: Sequence[Lists]) -> Sequence[Lists]:
        """Return the lists of all partials, in their order, with the values that stay."""


class ColumnarFirstN(ColumnarFew):
    def __init__(self, prefix: str, slots: tuple[str, ...], n: int, is_last: bool) -> None:
        super().__init__(prefix, slots)
        self._n, self._is_last = n, is_last

    def cut(self, parts: Sequence[Lists]) -> Sequence[Lists]:
        values, arrivals = by_arrival(*parts)
        kept = _first_places(values.offsets, self._n) if not self._is_last else _last_places(values.offsets, self._n)
        return values.chosen(kept), arrivals.chosen(kept)


class ColumnarTopN(ColumnarFew):
    parts = ("v", "by", "a")

    def __init__(self, prefix: str, slots: tuple[str, ...], n: int, is_ascending: bool) -> None:
        super().__init__(prefix, slots)
        self._n, self._is_ascending = n, is_ascending

    @property
    def coded_slots(self) -> tuple[str, ...]:
        value, by = self.slots
        return () if value == by else (value,)

    def lift(self, rows: pa.Table) -> Mapping[str, pa.Array]:
        columns = [flat(rows[name]) for name in (*self.slots, ARRIVAL)]
        counts = pc.and_(columns[0].is_valid(), columns[1].is_valid())
        offsets = np.concatenate(([0], np.cumsum(counts.to_numpy(zero_copy_only=False), dtype=np.int64)))
        return {name: list_array(offsets, column.filter(counts)) for name, column in zip(self.columns, columns, strict=True)}

    def cut(self, parts: Sequence[Lists]) -> Sequence[Lists]:
        values, by, arrivals = parts
        codes = codes_of(by.values)
        order = np.lexsort((arrivals.values.to_numpy(), codes if self._is_ascending else ~codes, values.numbers))
        kept = order[_first_places(values.offsets, self._n)]
        return [lists.chosen(kept) for lists in parts]


def _first_places(offsets: Integers, n: int) -> Integers:
    """Return the places of the first values of each list."""
    places = np.arange(offsets[-1])
    found: Integers = places[places - np.repeat(offsets[:-1], np.diff(offsets)) < n]
    return found


def _last_places(offsets: Integers, n: int) -> Integers:
    places = np.arange(offsets[-1])
    found: Integers = places[np.repeat(offsets[1:], np.diff(offsets)) - places <= n]
    return found


def _define_by_arrival(name: str, form: type[FirstN | LastN], is_last: bool) -> None:
    define(
        Definition(
            name=name,
            bind=lambda call: form(pa.list_(call.type), call.parameters["n"]),
            holistic=False,
            ordered=True,
            exact=True,
            idempotent=False,
            invertible=False,
            returns=Returns.LIST,
            compared_from=None,
            columnar=lambda call: ColumnarFirstN(call.prefix, call.slots, call.parameters["n"], is_last),
        )
    )


def _bind_top(call: Call) -> BoundAggregate:
    value, by = call.types
    if not is_orderable(by):
        raise call.refusal("values with an order (maps have none)")
    return TopN(pa.list_(value), form_of(by), call.parameters["n"], call.parameters["ascending"])


def _columnar_top(call: ColumnarCall) -> object:
    if not is_sortable(call.types[1]):
        return None
    return ColumnarTopN(call.prefix, call.slots, call.parameters["n"], call.parameters["ascending"])


_define_by_arrival("first_n", FirstN, is_last=False)
_define_by_arrival("last_n", LastN, is_last=True)
define(
    Definition(
        name="top_n",
        bind=_bind_top,
        holistic=False,
        ordered=True,
        exact=True,
        idempotent=False,
        invertible=False,
        returns=Returns.LIST,
        compared_from=1,
        columnar=_columnar_top,
    )
)


def first_n(column: Argument, n: int) -> Aggregate:
    """Collect the first n values, NULLs left out.

    First are those that arrived first (or by the ``order_by`` of the stream) in windows, by event time and then arrival in
    rolling features, in the order of the frame in OVER windows. State holds n values a group.

    Result: array of the column's type, empty for no values. Source: ``collect_list``, cut.

    Args:
        column: the values.
        n: how many of them, at least 1.

    Raises:
        InvalidSpecError: ``n`` is no such number.

    Example:
        >>> first_n("flight", 3)
        first_n('flight', n=3)
    """
    return Aggregate.of("first_n", column, n=_checked("first_n", n))


def last_n(column: Argument, n: int) -> Aggregate:
    """Collect the last n values in the order of arrival, NULLs left out; else as ``first_n``.

    Example:
        >>> last_n("flight", 3)
        last_n('flight', n=3)
    """
    return Aggregate.of("last_n", column, n=_checked("last_n", n))


def top_n(column: Argument, n: int, by: Argument | None = None, ascending: bool = False) -> Aggregate:
    """Collect the values of the n rows with the largest ``by``, the largest first.

    Rows whose value or ``by`` is NULL are left out, NaN is the largest, and of rows with equal ``by`` the one that arrived first
    is first. State holds n values a group. For whole rows of each window see ``Result.top``.

    Result: array of the column's type, empty for no values. Source: DuckDB's ``max(x, n)`` and ``arg_max(x, by, n)``.

    Args:
        column: the values.
        n: how many of them, at least 1.
        by: what orders them; the values themselves if left out. It has any type but maps.
        ascending: whether the smallest are first.

    Raises:
        InvalidSpecError: ``n`` is no such number.

    Example:
        >>> top_n("flight", 3, by="dep_delay")
        top_n('flight', 'dep_delay', n=3, ascending=False)
    """
    return Aggregate.of("top_n", column, column if by is None else by, n=_checked("top_n", n), ascending=bool(ascending))


def _checked(name: str, n: object) -> int:
    if not isinstance(n, int) or isinstance(n, bool) or n < 1:
        raise InvalidSpecError(f"{name} was given n={n!r}, but it takes the number of values, at least 1.")
    return n
