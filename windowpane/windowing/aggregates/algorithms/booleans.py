"""bool_and and bool_or. Accumulator: None while there was no value, then the bool."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from windowpane.windowing.aggregates.protocol import BoundAggregate, Call


@dataclass(frozen=True, slots=True)
class Decided:
    """One value decides for good: False for bool_and, True for bool_or."""

    deciding: bool
    result_type: ClassVar[pa.DataType] = pa.bool_()

    def create_accumulator(self) -> bool | None:
        return None

    def add(self, accumulator: bool | None, value: bool | None) -> bool | None:
        return accumulator if value is None or accumulator is self.deciding else value

    def merge(self, left: bool | None, right: bool | None) -> bool | None:
        return self.add(left, right)

    def get_result(self, accumulator: bool | None) -> bool | None:
        return accumulator


def _decided(call: Call, deciding: bool) -> BoundAggregate:
    if not pa.types.is_boolean(call.type):
        raise call.refusal("a boolean")
    return Decided(deciding)


def bind_bool_and(call: Call) -> BoundAggregate:
    """Bind ``bool_and(column)``."""
    return _decided(call, deciding=False)


def bind_bool_or(call: Call) -> BoundAggregate:
    """Bind ``bool_or(column)``."""
    return _decided(call, deciding=True)
