"""mode: the most frequent value, the smallest of several. Partials: the distinct values, and how often each was seen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from windowpane.kernels.aggregates.protocol import SegmentAggregate
from windowpane.kernels.aggregates.valued.lists import Lists, gathered_lists, list_array
from windowpane.kernels.grouping.segments import NOWHERE, Segments, take_or_null
from windowpane.kernels.keys.codes import canonical, equality_codes, order_codes


class Mode(SegmentAggregate):
    """The most frequent value."""

    @property
    def columns(self) -> tuple[str, ...]:
        return f"{self.prefix}v", f"{self.prefix}n"

    def lift(self, rows: pa.Table) -> Mapping[str, Any]:
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
