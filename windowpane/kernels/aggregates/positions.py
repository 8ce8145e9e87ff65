"""first, last and any_value. Partials: the value, and the arrival number of its row, null while no row counted."""

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
from windowpane.kernels.grouping.segments import Segments, take_or_null

NEVER = -1
"""The arrival number of no row: real ones are not negative."""


class Position(SegmentAggregate):
    """The value of the row that arrived first or last."""

    is_ordered = True
    takes_codes = True

    def __init__(self, prefix: str, slots: tuple[str, ...], is_last: bool, ignores_nulls: bool) -> None:
        super().__init__(prefix, slots)
        self._is_last = is_last
        self._ignores_nulls = ignores_nulls

    @property
    def columns(self) -> tuple[str, ...]:
        return f"{self.prefix}v", f"{self.prefix}a"

    def lift(self, rows: pa.Table) -> Mapping[str, Any]:
        values, arrivals = rows[self.slots[0]], flat(rows[ARRIVAL])
        if self._ignores_nulls:
            arrivals = pc.if_else(flat(values.is_valid()), arrivals, pa.scalar(NEVER, pa.int64()))
        return dict(zip(self.columns, (values, arrivals), strict=True))

    def merge(self, partials: pa.Table, segments: Segments) -> Mapping[str, pa.Array]:
        values, arrivals = (flat(partials[name]) for name in self.columns)
        at = segments.picked(arrivals.to_numpy())
        ranked = at if self._is_last else np.where(at == NEVER, np.iinfo(np.int64).min, -at)
        rows = segments.rows_at(segments.last_where(ranked == segments.greatest(ranked)[segments.numbers]))
        return dict(zip(self.columns, (take_or_null(values, rows), take_or_null(arrivals, rows)), strict=True))

    def renumbered(self, partials: pa.Table, by: Integers) -> Mapping[str, Any]:
        arrivals = partials[f"{self.prefix}a"].to_numpy()
        return {f"{self.prefix}a": pa.array(np.where(arrivals == NEVER, NEVER, arrivals + by))}

    def finish(self, partials: pa.Table) -> pa.Array:
        return partials[f"{self.prefix}v"].combine_chunks()
