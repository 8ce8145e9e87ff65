"""min, max, arg_min and arg_max, by Spark SQL's order of values."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from windowpane.windowing.aggregates.canonical import Form, form_of, is_orderable
from windowpane.windowing.aggregates.protocol import BoundAggregate, Call

Precedes = Callable[[Any, Any], bool]


@dataclass(frozen=True, slots=True)
class Extreme:
    """The value that precedes all others. Accumulator: None, then that value, frozen."""

    result_type: pa.DataType
    form: Form
    precedes: Precedes

    def create_accumulator(self) -> Any:
        return None

    def add(self, accumulator: Any, value: Any) -> Any:
        if value is None:
            return accumulator
        frozen = self.form.freeze(value)
        return frozen if accumulator is None or self.precedes(frozen, accumulator) else accumulator

    def merge(self, left: Any, right: Any) -> Any:
        if left is None or (right is not None and self.precedes(right, left)):
            return right
        return left

    def get_result(self, accumulator: Any) -> Any:
        return None if accumulator is None else self.form.thaw(accumulator)


@dataclass(frozen=True, slots=True)
class ArgExtreme:
    """The value beside the first or last ``by``. Accumulator: None, then (frozen by, value).

    Of rows with equal ``by`` the one that arrived last counts: only a strictly preceding ``by`` is kept, as
    in Spark's ``min_by``.
    """

    result_type: pa.DataType
    form: Form
    precedes: Precedes

    def create_accumulator(self) -> tuple[Any, Any] | None:
        return None

    def add(self, accumulator: tuple[Any, Any] | None, value: Any, by: Any) -> tuple[Any, Any] | None:
        if by is None:
            return accumulator
        frozen = self.form.freeze(by)
        if accumulator is not None and self.precedes(accumulator[0], frozen):
            return accumulator
        return frozen, value

    def merge(self, left: tuple[Any, Any] | None, right: tuple[Any, Any] | None) -> tuple[Any, Any] | None:
        if right is None or (left is not None and self.precedes(left[0], right[0])):
            return left
        return right

    def get_result(self, accumulator: tuple[Any, Any] | None) -> Any:
        return None if accumulator is None else accumulator[1]


def _extreme(call: Call, precedes: Precedes) -> BoundAggregate:
    if not is_orderable(call.type):
        raise call.refusal("a type with an order (maps have none)")
    return Extreme(call.type, form_of(call.type), precedes)


def _arg_extreme(call: Call, precedes: Precedes) -> BoundAggregate:
    value_type, by_type = call.types
    if not is_orderable(by_type):
        raise call.refusal("a second argument with an order (maps have none)")
    return ArgExtreme(value_type, form_of(by_type), precedes)


def bind_min(call: Call) -> BoundAggregate:
    """Bind ``min(column)``."""
    return _extreme(call, operator.lt)


def bind_max(call: Call) -> BoundAggregate:
    """Bind ``max(column)``."""
    return _extreme(call, operator.gt)


def bind_arg_min(call: Call) -> BoundAggregate:
    """Bind ``arg_min(value, by)``."""
    return _arg_extreme(call, operator.lt)


def bind_arg_max(call: Call) -> BoundAggregate:
    """Bind ``arg_max(value, by)``."""
    return _arg_extreme(call, operator.gt)
