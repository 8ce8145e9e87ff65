"""The order of the rows of a partition: the ORDER BY columns as written, then the key ascending.

A ``Position`` compares as the rows do; two rows are peers if their ``order`` parts are equal. Values compare as in Spark SQL
(NaN is the largest number, -0.0 equals 0.0). A NULL in the key is the largest value there, as in RisingWave.
"""

from __future__ import annotations

from typing import NamedTuple

import pyarrow as pa

from windowpane.arrays.values import Row, Value
from windowpane.windowing.aggregates.canonical import Form, form_of
from windowpane.windowing.over.spec import OrderColumn, OverSpec
from windowpane.windowing.over.types import BEYOND

OrderKey = tuple[Value, ...]


class Position(NamedTuple):
    order: OrderKey
    key: tuple[Value, ...]


class Descending:
    __slots__ = ("value",)

    def __init__(self, value: Value) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Descending) and bool(self.value == other.value)

    def __lt__(self, other: Descending) -> bool:
        return bool(other.value < self.value)

    def __hash__(self) -> int:
        return hash(self.value)

    def __repr__(self) -> str:
        return f"Descending({self.value!r})"


class _OrderedColumn:
    def __init__(self, column: OrderColumn, form: Form) -> None:
        self._form = form
        self.descending = column.descending
        self._null = (0,) if column.nulls_first else (2,)

    def key_of(self, value: Value) -> OrderKey:
        if value is None:
            return self._null
        frozen = self._form.freeze(value)
        return (1, Descending(frozen) if self.descending else frozen)

    def value_of(self, key: OrderKey) -> Value:
        if len(key) == 1:
            return None
        return self._form.thaw(key[1].value if self.descending else key[1])


class RowOrder:
    def __init__(self, spec: OverSpec, columns: pa.Schema) -> None:
        self._columns = [(each.name, _ordered(each, columns)) for each in spec.order_by]
        key = [OrderColumn(name, nulls_first=False) for name in spec.key]
        self._key = [(each.name, _ordered(each, columns)) for each in key]

    def position(self, row: Row) -> Position:
        return Position(self.order_key(row), tuple(column.key_of(row[name]) for name, column in self._key))

    def order_key(self, row: Row) -> OrderKey:
        """Return what makes rows peers."""
        return tuple(column.key_of(row[name]) for name, column in self._columns)

    def key_of(self, value: Value, forward: bool = True) -> OrderKey:
        """Return the order key of a value of the only ORDER BY column; ``BEYOND`` is after the last one, or before the first."""
        if value is BEYOND:
            return ((1.5,) if forward else (0.5,),)
        return (self._columns[0][1].key_of(value),)

    def value_of(self, order: OrderKey) -> Value:
        return self._columns[0][1].value_of(order[0])

    @property
    def is_descending(self) -> bool:
        """Whether the only ORDER BY column is: then PRECEDING adds and FOLLOWING subtracts."""
        return self._columns[0][1].descending


def _ordered(column: OrderColumn, columns: pa.Schema) -> _OrderedColumn:
    return _OrderedColumn(column, form_of(columns.field(column.name).type))
