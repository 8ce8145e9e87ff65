"""mode: the most frequent value. Accumulator: a dict from frozen value to its count."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from windowpane.windowing.aggregates.canonical import Form, form_of
from windowpane.windowing.aggregates.protocol import BoundAggregate, Call


@dataclass(frozen=True, slots=True)
class Mode:
    """The most frequent value, the smallest of several; maps are ordered by their sorted entries here."""

    result_type: pa.DataType
    form: Form

    def create_accumulator(self) -> dict[Any, int]:
        return {}

    def add(self, accumulator: dict[Any, int], value: Any) -> dict[Any, int]:
        if value is not None:
            frozen = self.form.freeze(value)
            accumulator[frozen] = accumulator.get(frozen, 0) + 1
        return accumulator

    def merge(self, left: dict[Any, int], right: dict[Any, int]) -> dict[Any, int]:
        for frozen, count in right.items():
            left[frozen] = left.get(frozen, 0) + count
        return left

    def get_result(self, accumulator: dict[Any, int]) -> Any:
        if not accumulator:
            return None
        highest = max(accumulator.values())
        return self.form.thaw(min(frozen for frozen, count in accumulator.items() if count == highest))


def bind_mode(call: Call) -> BoundAggregate:
    """Bind ``mode(column)``."""
    return Mode(call.type, form_of(call.type))
