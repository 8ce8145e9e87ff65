"""count and count_distinct."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import pyarrow as pa

from windowpane.windowing.aggregates.canonical import Form, form_of
from windowpane.windowing.aggregates.protocol import BoundAggregate, Call


@dataclass(frozen=True, slots=True)
class CountRows:
    """The number of rows. Accumulator: that int."""

    result_type: ClassVar[pa.DataType] = pa.int64()

    def create_accumulator(self) -> int:
        return 0

    def add(self, accumulator: int) -> int:
        return accumulator + 1

    def merge(self, left: int, right: int) -> int:
        return left + right

    def get_result(self, accumulator: int) -> int:
        return accumulator


@dataclass(frozen=True, slots=True)
class CountValues:
    """The number of values that are not NULL. Accumulator: that int."""

    result_type: ClassVar[pa.DataType] = pa.int64()

    def create_accumulator(self) -> int:
        return 0

    def add(self, accumulator: int, value: Any) -> int:
        return accumulator if value is None else accumulator + 1

    def merge(self, left: int, right: int) -> int:
        return left + right

    def get_result(self, accumulator: int) -> int:
        return accumulator


@dataclass(frozen=True, slots=True)
class CountDistinct:
    """The number of distinct values. Accumulator: the set of frozen values."""

    form: Form
    result_type: ClassVar[pa.DataType] = pa.int64()

    def create_accumulator(self) -> set[Any]:
        return set()

    def add(self, accumulator: set[Any], value: Any) -> set[Any]:
        if value is not None:
            accumulator.add(self.form.freeze(value))
        return accumulator

    def merge(self, left: set[Any], right: set[Any]) -> set[Any]:
        left |= right
        return left

    def get_result(self, accumulator: set[Any]) -> int:
        return len(accumulator)


@dataclass(frozen=True, slots=True)
class CountDistinctRows:
    """The number of distinct combinations of several values, none of them NULL.

    Accumulator: the set of frozen tuples.
    """

    forms: tuple[Form, ...]
    result_type: ClassVar[pa.DataType] = pa.int64()

    def create_accumulator(self) -> set[Any]:
        return set()

    def add(self, accumulator: set[Any], *values: Any) -> set[Any]:
        if None not in values:
            accumulator.add(tuple(form.freeze(value) for form, value in zip(self.forms, values, strict=True)))
        return accumulator

    def merge(self, left: set[Any], right: set[Any]) -> set[Any]:
        left |= right
        return left

    def get_result(self, accumulator: set[Any]) -> int:
        return len(accumulator)


def bind_count(call: Call) -> BoundAggregate:
    """Bind ``count()`` or ``count(column)``."""
    return CountValues() if call.types else CountRows()


def bind_count_distinct(call: Call) -> BoundAggregate:
    """Bind ``count_distinct(column, ...)``."""
    forms = tuple(map(form_of, call.types))
    return CountDistinct(forms[0]) if len(forms) == 1 else CountDistinctRows(forms)
