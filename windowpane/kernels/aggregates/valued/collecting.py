"""collect_list, collect_set and string_agg. Partials: the values, and beside each the arrival number of its row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windowpane.arrays import Integers
from windowpane.arrays.columns import flat
from windowpane.hidden_columns import ARRIVAL
from windowpane.kernels.aggregates.protocol import SegmentAggregate
from windowpane.kernels.aggregates.valued.distinct import first_of_each
from windowpane.kernels.aggregates.valued.lists import Lists, gathered_lists, list_array
from windowpane.kernels.grouping.segments import Segments
from windowpane.kernels.keys.codes import canonical, equality_codes


class CollectList(SegmentAggregate):
    """All values that are not null."""

    is_ordered = True
    takes_codes = True

    @property
    def columns(self) -> tuple[str, ...]:
        return f"{self.prefix}v", f"{self.prefix}a"

    def values_of(self, rows: pa.Table) -> pa.Array:
        """Return the values to collect."""
        return flat(rows[self.slots[0]])

    def lift(self, rows: pa.Table) -> Mapping[str, Any]:
        values = self.values_of(rows)
        lists = Lists.of_one(values)
        arrivals = flat(rows[ARRIVAL]).filter(values.is_valid())
        return dict(zip(self.columns, (lists.to_arrow(), list_array(lists.offsets, arrivals)), strict=True))

    def merge(self, partials: pa.Table, segments: Segments) -> Mapping[str, pa.Array]:
        values, arrivals = (gathered_lists(partials[name], segments) for name in self.columns)
        return dict(zip(self.columns, (values.to_arrow(), arrivals.to_arrow()), strict=True))

    def renumbered(self, partials: pa.Table, by: Integers) -> Mapping[str, Any]:
        arrivals = Lists.of(partials[f"{self.prefix}a"])
        numbers = arrivals.values.to_numpy() + by[arrivals.numbers]
        return {f"{self.prefix}a": list_array(arrivals.offsets, pa.array(numbers))}

    def finish(self, partials: pa.Table) -> pa.Array:
        return by_arrival(*(Lists.of(partials[name]) for name in self.columns))[0].to_arrow()


class StringAgg(CollectList):
    """The values joined into one, text or binary."""

    def __init__(self, prefix: str, slots: tuple[str, ...], separator: str | bytes) -> None:
        super().__init__(prefix, slots)
        self._separator = separator

    def finish(self, partials: pa.Table) -> pa.Array:
        lists = super().finish(partials)
        joined = pc.binary_join(lists, pa.scalar(self._separator, lists.type.value_type))
        return pc.if_else(pc.greater(pc.list_value_length(lists), 0), joined, pa.scalar(None, joined.type))


class CollectSet(CollectList):
    """The distinct values, each where it was first seen."""

    def values_of(self, rows: pa.Table) -> pa.Array:
        return canonical(rows[self.slots[0]])

    def merge(self, partials: pa.Table, segments: Segments) -> Mapping[str, pa.Array]:
        values, arrivals = by_arrival(*(gathered_lists(partials[name], segments) for name in self.columns))
        firsts = first_of_each(values.numbers, [equality_codes(values.values)])
        kept = values.chosen(firsts), arrivals.chosen(firsts)
        return dict(zip(self.columns, (lists.to_arrow() for lists in kept), strict=True))


def by_arrival(values: Lists, arrivals: Lists) -> tuple[Lists, Lists]:
    """Return both with each list in order of arrival."""
    times, numbers = arrivals.values.to_numpy(), arrivals.numbers
    if np.all((np.diff(times) > 0) | (np.diff(numbers) > 0)):
        return values, arrivals
    order = pa.array(np.lexsort((times, numbers)))
    return Lists(values.values.take(order), values.offsets), Lists(arrivals.values.take(order), arrivals.offsets)
