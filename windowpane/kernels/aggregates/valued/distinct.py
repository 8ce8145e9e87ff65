"""count_distinct, exact. Partial: the list of distinct values; of several columns, of their combinations without a null."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windowpane.arrays import Integers
from windowpane.arrays.columns import flat
from windowpane.kernels.aggregates.protocol import SegmentAggregate
from windowpane.kernels.aggregates.valued.lists import Lists, list_array, offsets_of
from windowpane.kernels.grouping.segments import Segments
from windowpane.kernels.keys.codes import equality_codes
from windowpane.kernels.keys.dense_codes import combined, first_of_pairs


class CountDistinct(SegmentAggregate):
    """The number of distinct values."""

    takes_codes = True

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
        columns = [Lists.of(partials[name]) for name in self.columns]
        places, offsets = columns[0].gathered(segments)
        numbers = np.repeat(np.arange(segments.count), np.diff(offsets))
        firsts = first_of_each(numbers, [equality_codes(lists.values)[places] for lists in columns])
        kept, offsets = pa.array(places[firsts]), offsets_of(numbers[firsts], segments.count)
        return {name: list_array(offsets, lists.values.take(kept)) for name, lists in zip(self.columns, columns, strict=True)}

    def finish(self, partials: pa.Table) -> pa.Array:
        return pc.list_value_length(flat(partials[self.columns[0]])).cast(pa.int64())


def first_of_each(numbers: Integers, columns: Sequence[Integers]) -> Integers:
    """Return, ascending, where each combination of the codes in ``columns`` first occurs in each of the numbered lists."""
    *others, last = columns
    for codes in others:
        numbers = combined(numbers, codes)
    return first_of_pairs(numbers, last)
