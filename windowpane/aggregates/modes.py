"""mode: the most frequent value.

Accumulator: a dict from frozen value to its count. Columnar partials: the distinct values, and how often each was seen.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from windowpane.arrays.values import Value
from windowpane.kernels.aggregates.lists import Lists, gathered_lists, list_array
from windowpane.kernels.aggregates.protocol import SegmentAggregate
from windowpane.kernels.keys.codes import canonical, equality_codes, order_codes
from windowpane.kernels.segments import NOWHERE, Segments, take_or_null
from windowpane.windowing.aggregates.canonical import Form, Frozen, form_of
from windowpane.windowing.aggregates.definition import Definition, Returns, define
from windowpane.windowing.aggregates.spec import Aggregate
from windowpane.windowing.expressions import Argument


@dataclass(frozen=True, slots=True)
class Mode:
    """The most frequent value, the smallest of several; maps are ordered by their sorted entries here."""

    result_type: pa.DataType
    form: Form

    def create_accumulator(self) -> dict[Frozen, int]:
        return {}

    def add(self, accumulator: dict[Frozen, int], value: Value) -> dict[Frozen, int]:
        if value is not None:
            frozen = self.form.freeze(value)
            accumulator[frozen] = accumulator.get(frozen, 0) + 1
        return accumulator

    def merge(self, left: dict[Frozen, int], right: dict[Frozen, int]) -> dict[Frozen, int]:
        for frozen, count in right.items():
            left[frozen] = left.get(frozen, 0) + count
        return left

    def get_result(self, accumulator: dict[Frozen, int]) -> Value:
        if not accumulator:
            return None
        highest = max(accumulator.values())
        return self.form.thaw(min(frozen for frozen, count in accumulator.items() if count == highest))


class ColumnarMode(SegmentAggregate):
    parts = ("v", "n")

    def lift(self, rows: pa.Table) -> Mapping[str, pa.Array]:
        lists = Lists.of_one(canonical(rows[self.slots[0]]))
        ones = pa.array(np.ones(len(lists.values), np.int64))
        return dict(zip(self.columns, (lists.to_arrow(), list_array(lists.offsets, ones)), strict=True))

    def merge(self, partials: pa.Table, segments: Segments) -> Mapping[str, pa.Array]:
        values, counts = (gathered_lists(partials[name], segments) for name in self.columns)
        codes = equality_codes(values.values)
        pairs = values.numbers * (int(codes.max(initial=0)) + 1) + codes
        _, firsts, inverse = np.unique(pairs, return_index=True, return_inverse=True)
        totals = np.zeros(len(firsts), np.int64)
        np.add.at(totals, inverse, counts.values.to_numpy())
        kept = values.chosen(firsts)  # np.unique sorts by group first, so the values of a group are neighbours
        return dict(zip(self.columns, (kept.to_arrow(), list_array(kept.offsets, pa.array(totals))), strict=True))

    def finish(self, partials: pa.Table) -> pa.Array:
        values, counts = (Lists.of(partials[name]) for name in self.columns)
        order = np.lexsort((order_codes(values.values), -counts.values.to_numpy(), values.numbers))
        firsts = np.full(len(values.lengths), NOWHERE, np.int64)
        filled = values.lengths > 0
        firsts[filled] = order[values.offsets[:-1][filled]]
        return take_or_null(values.values, firsts)


MODE = define(
    Definition(
        name="mode",
        bind=lambda call: Mode(call.type, form_of(call.type)),
        holistic=True,
        ordered=False,
        exact=True,
        idempotent=False,
        invertible=False,
        returns=Returns.VALUE,
        compared_from=0,
        columnar=lambda call: ColumnarMode(call.prefix, call.slots),
        duckdb="mode",
    )
)


def mode(column: Argument) -> Aggregate:
    """Take the most frequent value, the smallest if there are several.

    Works on every type; maps, which have no order, are compared by their entries sorted by key. Result: the
    type of the column. Source: Spark SQL ``mode``, which does not define which of several is returned.

    Example:
        >>> mode("carrier")
        mode('carrier')
    """
    return Aggregate.of("mode", column)
