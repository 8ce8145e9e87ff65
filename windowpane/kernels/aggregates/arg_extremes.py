"""arg_min and arg_max: of rows with equal ``by`` the one that arrived last counts, as in Spark's ``min_by``.

Partials: the value, its ``by``, null while no row counted, and its arrival number.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from windowpane.arrays import Integers
from windowpane.arrays.columns import flat
from windowpane.hidden_columns import ARRIVAL
from windowpane.kernels.aggregates.extremes import are_extreme
from windowpane.kernels.aggregates.protocol import SegmentAggregate
from windowpane.kernels.grouping.segments import NOWHERE, Segments, take_or_null


class ArgExtreme(SegmentAggregate):
    """The value beside the first or last ``by``."""

    is_ordered = True

    def __init__(self, prefix: str, slots: tuple[str, ...], is_max: bool) -> None:
        super().__init__(prefix, slots)
        self._is_max = is_max

    @property
    def coded_slots(self) -> tuple[str, ...]:
        value, by = self.slots
        return () if value == by else (value,)

    @property
    def columns(self) -> tuple[str, ...]:
        return f"{self.prefix}v", f"{self.prefix}by", f"{self.prefix}a"

    def lift(self, rows: pa.Table) -> Mapping[str, Any]:
        value, by = self.slots
        return dict(zip(self.columns, (rows[value], rows[by], rows[ARRIVAL]), strict=True))

    def merge(self, partials: pa.Table, segments: Segments) -> Mapping[str, pa.Array]:
        value, by, arrival = (flat(partials[name]) for name in self.columns)
        best = are_extreme(by, segments, self._is_max)
        arrivals = np.where(best, segments.picked(arrival.to_numpy()), NOWHERE)
        chosen = segments.last_where(best & (arrivals == segments.greatest(arrivals)[segments.numbers]))
        rows = segments.rows_at(chosen)
        latest = pa.array(np.where(chosen == NOWHERE, 0, arrivals[chosen]))
        return dict(zip(self.columns, (take_or_null(value, rows), take_or_null(by, rows), latest), strict=True))

    def renumbered(self, partials: pa.Table, by: Integers) -> Mapping[str, Any]:
        return {f"{self.prefix}a": pa.array(partials[f"{self.prefix}a"].to_numpy() + by)}

    def finish(self, partials: pa.Table) -> pa.Array:
        return flat(partials[f"{self.prefix}v"])
