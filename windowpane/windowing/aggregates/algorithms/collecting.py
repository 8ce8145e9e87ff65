"""collect_list, collect_set and string_agg: the values themselves, in order of arrival."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from windowpane.windowing.aggregates.canonical import Form, form_of
from windowpane.windowing.aggregates.protocol import BoundAggregate, Call


@dataclass(frozen=True, slots=True)
class CollectList:
    """All values that are not NULL. Accumulator: the list of them."""

    result_type: pa.DataType

    def create_accumulator(self) -> list[Any]:
        return []

    def add(self, accumulator: list[Any], value: Any) -> list[Any]:
        if value is not None:
            accumulator.append(value)
        return accumulator

    def merge(self, left: list[Any], right: list[Any]) -> list[Any]:
        left.extend(right)
        return left

    def get_result(self, accumulator: list[Any]) -> Any:
        return list(accumulator)


@dataclass(frozen=True, slots=True)
class StringAgg(CollectList):
    """The values joined into one, text or binary."""

    separator: str | bytes

    def get_result(self, accumulator: list[Any]) -> Any:
        return self.separator.join(accumulator) if accumulator else None


@dataclass(frozen=True, slots=True)
class CollectSet:
    """The distinct values. Accumulator: a dict keyed by the frozen values, in order of arrival."""

    result_type: pa.DataType
    form: Form

    def create_accumulator(self) -> dict[Any, None]:
        return {}

    def add(self, accumulator: dict[Any, None], value: Any) -> dict[Any, None]:
        if value is not None:
            accumulator[self.form.freeze(value)] = None
        return accumulator

    def merge(self, left: dict[Any, None], right: dict[Any, None]) -> dict[Any, None]:
        left.update(right)
        return left

    def get_result(self, accumulator: dict[Any, None]) -> list[Any]:
        return list(map(self.form.thaw, accumulator))


def bind_collect_list(call: Call) -> BoundAggregate:
    """Bind ``collect_list(column)``."""
    return CollectList(pa.list_(call.type))


def bind_collect_set(call: Call) -> BoundAggregate:
    """Bind ``collect_set(column)``."""
    return CollectSet(pa.list_(call.type), form_of(call.type))


def bind_string_agg(call: Call) -> BoundAggregate:
    """Bind ``string_agg(column, separator)``."""
    separator = call.parameters["separator"]
    if pa.types.is_string(call.type) or pa.types.is_large_string(call.type):
        return StringAgg(call.type, separator)
    if pa.types.is_binary(call.type) or pa.types.is_large_binary(call.type):
        return StringAgg(call.type, separator.encode())
    raise call.refusal("text or binary")
