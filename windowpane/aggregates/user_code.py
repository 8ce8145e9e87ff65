"""Arrow functions of the user's as columnar aggregates. Partials: a struct of the function's own columns; the rows themselves."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from windowpane.aggregates.collections import ColumnarList
from windowpane.arrays.columns import flat, padded, replaced, structs
from windowpane.kernels.aggregates.lists import Lists
from windowpane.kernels.aggregates.protocol import SegmentAggregate
from windowpane.kernels.segments import Segments
from windowpane.windowing.arrow_functions import ArrowAggregateFunction, partials_of, results_of


class UserAggregate(SegmentAggregate):
    parts = ("u",)

    def __init__(self, prefix: str, slots: tuple[str, ...], function: ArrowAggregateFunction, results: pa.Schema) -> None:
        super().__init__(prefix, slots)
        self._function = function
        self._results = results

    def lift(self, rows: pa.Table) -> Mapping[str, pa.Array]:
        return {self.prefix + slot: rows[slot] for slot in self.slots}

    def fold(self, lifted: pa.Table, segments: Segments) -> Mapping[str, pa.Array]:
        rows = pa.table({slot: lifted[self.prefix + slot] for slot in self.slots})
        return self._partials("partial", rows, segments)

    def merge(self, partials: pa.Table, segments: Segments) -> Mapping[str, pa.Array]:
        return self._partials("merge", pa.Table.from_struct_array(flat(partials[f"{self.prefix}u"])), segments)

    def _partials(self, step: str, table: pa.Table, segments: Segments) -> Mapping[str, pa.Array]:
        groups = np.empty(table.num_rows, np.int64)
        groups[segments.order] = segments.numbers
        return {f"{self.prefix}u": partials_of(self._function, step, table, groups, segments.count)}

    def finish(self, partials: pa.Table) -> pa.Array:
        return structs(results_of(self._function, flat(partials[f"{self.prefix}u"]), self._results))

    def results(self, partials: pa.Table) -> list[pa.Array]:
        return list(self.finish(partials).flatten())


class KeptRows(ColumnarList):
    """The rows of each group in order of arrival, as structs of the columns ``slots``."""

    def values_of(self, rows: pa.Table) -> pa.Array:
        return pa.StructArray.from_arrays([flat(rows[slot]) for slot in self.slots], self.slots)

    def padded(self, partials: pa.Table, types: pa.Schema) -> pa.Table:
        """Return partials whose rows lack columns of ``types``, with NULL in these."""
        kept = Lists.of(partials[self.columns[0]])
        rows = padded(pa.Table.from_struct_array(kept.values), pa.schema([types.field(slot) for slot in self.slots]))
        lists = Lists(self.values_of(rows), kept.offsets).to_arrow()
        return replaced(partials, self.columns[0], lists)
