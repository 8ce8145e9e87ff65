"""var_pop, var_samp, stddev_pop, stddev_samp over central moments.

Partials: count, mean, and m2, the sum of squared distances from the mean. Parts merge as in Chan, Golub and LeVeque (1979), all
parts of a group at once and relative to the mean of one part, so that equal values have a variance of exactly 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windowpane.arrays import Doubles
from windowpane.kernels.aggregates.protocol import SegmentAggregate
from windowpane.kernels.grouping.segments import NOWHERE, Segments, flat


class Moments(SegmentAggregate):
    """The variance, or its root; ``missing`` degrees of freedom are 0 for the population, 1 for a sample."""

    def __init__(self, prefix: str, slots: tuple[str, ...], missing: int, is_root: bool) -> None:
        super().__init__(prefix, slots)
        self._missing = missing
        self._is_root = is_root

    @property
    def columns(self) -> tuple[str, ...]:
        return f"{self.prefix}n", f"{self.prefix}mean", f"{self.prefix}m2"

    def lift(self, rows: pa.Table) -> Mapping[str, Any]:
        values = flat(rows[self.slots[0]])
        counts = values.is_valid().cast(pa.float64())
        means = pc.fill_null(values.cast(pa.float64(), safe=False), 0.0)
        return dict(zip(self.columns, (counts, means, pa.array(np.zeros(len(values)))), strict=True))

    def merge(self, partials: pa.Table, segments: Segments) -> Mapping[str, pa.Array]:
        counts, means, m2 = (_doubles(segments.gather(partials[name])) for name in self.columns)
        with np.errstate(all="ignore"):  # infinities make NaN, as they do in Spark
            merged = _merged(counts, means, m2, segments)
        return dict(zip(self.columns, map(pa.array, merged), strict=True))

    def finish(self, partials: pa.Table) -> pa.Array:
        counts, _, m2 = (_doubles(flat(partials[name])) for name in self.columns)
        freedom = counts - self._missing
        with np.errstate(all="ignore"):
            variances = m2 / freedom
            return pa.array(np.sqrt(variances) if self._is_root else variances, mask=freedom <= 0)


def _merged(counts: Doubles, means: Doubles, m2: Doubles, segments: Segments) -> tuple[Doubles, Doubles, Doubles]:
    present = counts > 0
    at = segments.last_where(present)
    origins = np.where(at == NOWHERE, 0.0, means[at]) if len(means) else means
    shifts = np.where(present, means - origins[segments.numbers], 0.0)
    total = segments.total(counts)
    mean_shift = segments.total(counts * shifts) / np.where(total > 0, total, 1.0)
    distances = np.where(present, shifts - mean_shift[segments.numbers], 0.0)
    return total, origins + mean_shift, segments.total(m2 + counts * distances * distances)


def _doubles(array: pa.Array) -> Doubles:
    values: Doubles = array.to_numpy(zero_copy_only=False)
    return values
