"""first, last and any_value: by arrival.

Accumulator: None while no row counted, then the tuple of one value, so that a NULL that counts differs from
nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from windowpane.windowing.aggregates.protocol import BoundAggregate, Call


@dataclass(frozen=True, slots=True)
class First:
    """The value of the row that arrived first."""

    result_type: pa.DataType
    ignore_nulls: bool

    def create_accumulator(self) -> tuple[Any] | None:
        return None

    def add(self, accumulator: tuple[Any] | None, value: Any) -> tuple[Any] | None:
        if accumulator is not None or (value is None and self.ignore_nulls):
            return accumulator
        return (value,)

    def merge(self, left: tuple[Any] | None, right: tuple[Any] | None) -> tuple[Any] | None:
        return right if left is None else left

    def get_result(self, accumulator: tuple[Any] | None) -> Any:
        return None if accumulator is None else accumulator[0]


@dataclass(frozen=True, slots=True)
class Last(First):
    """The value of the row that arrived last."""

    def add(self, accumulator: tuple[Any] | None, value: Any) -> tuple[Any] | None:
        return accumulator if value is None and self.ignore_nulls else (value,)

    def merge(self, left: tuple[Any] | None, right: tuple[Any] | None) -> tuple[Any] | None:
        return left if right is None else right


def bind_first(call: Call) -> BoundAggregate:
    """Bind ``first(column)`` or ``any_value(column)``."""
    return First(call.type, call.parameters["ignore_nulls"])


def bind_last(call: Call) -> BoundAggregate:
    """Bind ``last(column)``."""
    return Last(call.type, call.parameters["ignore_nulls"])
