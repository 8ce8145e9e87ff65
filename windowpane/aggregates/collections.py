"""collect_list, collect_set and string_agg: the values themselves, in order of arrival.

Columnar partials: the values, and beside each the arrival number of its row.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from windowpane.arrays import Integers
from windowpane.arrays.columns import flat
from windowpane.arrays.values import Value
from windowpane.errors import InvalidSpecError
from windowpane.hidden_columns import ARRIVAL
from windowpane.kernels.aggregates.lists import Lists, by_arrival, first_of_each, gathered_lists, list_array
from windowpane.kernels.aggregates.protocol import SegmentAggregate
from windowpane.kernels.keys.codes import canonical, equality_codes
from windowpane.kernels.segments import Segments
from windowpane.windowing.aggregates.canonical import Form, Frozen, form_of
from windowpane.windowing.aggregates.definition import Call, Definition, Returns, define
from windowpane.windowing.aggregates.spec import Aggregate
from windowpane.windowing.expressions import Argument


@dataclass(frozen=True, slots=True)
class CollectList:
    """All values that are not NULL. Accumulator: the list of them."""

    result_type: pa.DataType

    def create_accumulator(self) -> list[Value]:
        return []

    def add(self, accumulator: list[Value], value: Value) -> list[Value]:
        if value is not None:
            accumulator.append(value)
        return accumulator

    def merge(self, left: list[Value], right: list[Value]) -> list[Value]:
        left.extend(right)
        return left

    def get_result(self, accumulator: list[Value]) -> Value:
        return list(accumulator)


@dataclass(frozen=True, slots=True)
class StringAgg(CollectList):
    separator: str | bytes

    def get_result(self, accumulator: list[Value]) -> Value:
        return self.separator.join(accumulator) if accumulator else None


@dataclass(frozen=True, slots=True)
class CollectSet:
    """The distinct values. Accumulator: a dict keyed by the frozen values, in order of arrival."""

    result_type: pa.DataType
    form: Form

    def create_accumulator(self) -> dict[Frozen, None]:
        return {}

    def add(self, accumulator: dict[Frozen, None], value: Value) -> dict[Frozen, None]:
        if value is not None:
            accumulator[self.form.freeze(value)] = None
        return accumulator

    def merge(self, left: dict[Frozen, None], right: dict[Frozen, None]) -> dict[Frozen, None]:
        left.update(right)
        return left

    def get_result(self, accumulator: dict[Frozen, None]) -> list[Value]:
        return list(map(self.form.thaw, accumulator))


# --- partials of columns ---


class ColumnarList(SegmentAggregate):
    parts: ClassVar[tuple[str, ...]] = ("v", "a")
    is_ordered = True
    takes_codes = True

    def values_of(self, rows: pa.Table) -> pa.Array:
        return flat(rows[self.slots[0]])

    def lift(self, rows: pa.Table) -> Mapping[str, pa.Array]:
        values = self.values_of(rows)
        lists = Lists.of_one(values)
        arrivals = flat(rows[ARRIVAL]).filter(values.is_valid())
        return dict(zip(self.columns, (lists.to_arrow(), list_array(lists.offsets, arrivals)), strict=True))

    def merge(self, partials: pa.Table, segments: Segments) -> Mapping[str, pa.Array]:
        values, arrivals = (gathered_lists(partials[name], segments) for name in self.columns)
        return dict(zip(self.columns, (values.to_arrow(), arrivals.to_arrow()), strict=True))

    def renumbered(self, partials: pa.Table, by: Integers) -> Mapping[str, pa.Array]:
        arrivals = Lists.of(partials[f"{self.prefix}a"])
        numbers = arrivals.values.to_numpy() + by[arrivals.numbers]
        return {f"{self.prefix}a": list_array(arrivals.offsets, pa.array(numbers))}

    def finish(self, partials: pa.Table) -> pa.Array:
        return by_arrival(*(Lists.of(partials[name]) for name in self.columns))[0].to_arrow()


class ColumnarStringAgg(ColumnarList):
    def __init__(self, prefix: str, slots: tuple[str, ...], separator: str | bytes) -> None:
        super().__init__(prefix, slots)
        self._separator = separator

    def finish(self, partials: pa.Table) -> pa.Array:
        lists = super().finish(partials)
        joined = pc.binary_join(lists, pa.scalar(self._separator, lists.type.value_type))
        return pc.if_else(pc.greater(pc.list_value_length(lists), 0), joined, pa.scalar(None, joined.type))


class ColumnarSet(ColumnarList):
    """The distinct values, each where it was first seen."""

    def values_of(self, rows: pa.Table) -> pa.Array:
        return canonical(rows[self.slots[0]])

    def merge(self, partials: pa.Table, segments: Segments) -> Mapping[str, pa.Array]:
        values, arrivals = by_arrival(*(gathered_lists(partials[name], segments) for name in self.columns))
        firsts = first_of_each(values.numbers, [equality_codes(values.values)])
        kept = values.chosen(firsts), arrivals.chosen(firsts)
        return dict(zip(self.columns, (lists.to_arrow() for lists in kept), strict=True))


def _separator(call: Call) -> str | bytes:
    """Return the separator as the values are, text or binary."""
    separator: str = call.parameters["separator"]
    if pa.types.is_string(call.type) or pa.types.is_large_string(call.type):
        return separator
    if pa.types.is_binary(call.type) or pa.types.is_large_binary(call.type):
        return separator.encode()
    raise call.refusal("text or binary")


COLLECT_LIST = define(
    Definition(
        name="collect_list",
        bind=lambda call: CollectList(pa.list_(call.type)),
        holistic=True,
        ordered=True,
        exact=True,
        idempotent=False,
        invertible=False,
        returns=Returns.LIST,
        compared_from=None,
        columnar=lambda call: ColumnarList(call.prefix, call.slots),
        duckdb="array_agg",  # which has NULLs, too
    )
)
COLLECT_SET = define(
    Definition(
        name="collect_set",
        bind=lambda call: CollectSet(pa.list_(call.type), form_of(call.type)),
        holistic=True,
        ordered=True,
        exact=True,
        idempotent=True,
        invertible=False,
        returns=Returns.OWN,
        compared_from=0,
        columnar=lambda call: ColumnarSet(call.prefix, call.slots),
    )
)
STRING_AGG = define(
    Definition(
        name="string_agg",
        bind=lambda call: StringAgg(call.type, _separator(call)),
        holistic=True,
        ordered=True,
        exact=True,
        idempotent=False,
        invertible=False,
        returns=Returns.VALUE,
        compared_from=None,
        columnar=lambda call: ColumnarStringAgg(call.prefix, call.slots, _separator(call)),
        duckdb="string_agg",
    )
)


def collect_list(column: Argument) -> Aggregate:
    """Collect the values in order of arrival, duplicates too, NULLs not.

    Result: array of the column's type, empty for no values. Source: Spark SQL ``collect_list``.

    Example:
        >>> collect_list("flight")
        collect_list('flight')
    """
    return Aggregate.of("collect_list", column)


def collect_set(column: Argument) -> Aggregate:
    """Collect the distinct values in the order in which each was first seen, NULLs not.

    Works on every type, also maps, which Spark refuses. Result: array of the column's type, empty for no
    values. Source: Spark SQL ``collect_set``, whose order is undefined.

    Example:
        >>> collect_set("carrier")
        collect_set('carrier')
    """
    return Aggregate.of("collect_set", column)


def string_agg(column: Argument, separator: str = ",") -> Aggregate:
    """Join text or binary values in order of arrival, NULLs left out.

    Between binary values the separator is in UTF-8. Result: the type of the column, NULL for no values.
    Source: Spark SQL ``string_agg``, ``listagg``; the separator's default is a comma here, nothing there.

    Example:
        >>> string_agg("carrier", separator=" ")
        string_agg('carrier', separator=' ')
    """
    if not isinstance(separator, str):
        raise InvalidSpecError(f"string_agg was given separator={separator!r}, but a separator is text: write ',' or ''.")
    return Aggregate.of("string_agg", column, separator=separator)
