"""count_distinct, exact. Partial: the list of distinct values; of several columns, of their combinations without a null."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windowpane.arrays import Integers
from windowpane.kernels.aggregates.protocol import SegmentAggregate
from windowpane.kernels.aggregates.valued.lists import Lists, gathered_lists, list_array
from windowpane.kernels.grouping.segments import Segments, flat
from windowpane.kernels.keys.codes import equality_codes
from windowpane.kernels.keys.dense_codes import combined, first_rows


class CountDistinct(SegmentAggregate):
    """The number of distinct values."""

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(f"{self.prefix}v{number}" for number in range(len(self.slots)))

    def lift(self, rows: pa.Table) -> Mapping[str, Any]:
        present = np.logical_and.reduce([rows[slot].is_valid().to_numpy() for slot in self.slots])
        offsets = np.concatenate(([0], np.cumsum(present, dtype=np.int64)))
        kept = pa.array(present)
        lifted = zip(self.columns, self.slots, strict=True)
        return {name: list_array(offsets, flat(rows[slot]).filter(kept)) for name, slot in lifted}

    def merge(self, partials: pa.Table, segments: Segments) -> Mapping[str, pa.Array]:
        joined = [gathered_lists(partials[name], segments) for name in self.columns]
        firsts = first_of_each(joined)
        return {name: lists.chosen(firsts).to_arrow() for name, lists in zip(self.columns, joined, strict=True)}

    def finish(self, partials: pa.Table) -> pa.Array:
        return pc.list_value_length(flat(partials[self.columns[0]])).cast(pa.int64())


def first_of_each(columns: list[Lists]) -> Integers:
    """Return where each distinct combination of values first stands in each list, list by list."""
    pairs = columns[0].numbers
    for lists in columns:
        pairs = combined(pairs, equality_codes(lists.values))
    return first_rows(pairs)
