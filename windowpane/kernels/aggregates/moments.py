"""var_pop, var_samp, stddev_pop, stddev_samp over central moments.

Partials: count, mean, and m2, the sum of squared distances from the mean. Parts merge as in Chan, Golub and LeVeque (1979), all
parts of a group at once and relative to the mean of one part, so that equal values have a variance of exactly 0. Where a value
is NaN or infinite, m2 is NaN and the mean is not finite; where only squares are beyond the range of doubles, m2 is infinite and
the mean finite.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windowpane.arrays import Doubles, Mask
from windowpane.arrays.columns import flat
from windowpane.kernels.aggregates.protocol import SegmentAggregate
from windowpane.kernels.grouping.segments import NOWHERE, Segments


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
        with np.errstate(all="ignore"):
            m2 = _doubles(means) - _doubles(means)  # 0, or NaN
        return dict(zip(self.columns, (counts, means, pa.array(m2)), strict=True))

    def merge(self, partials: pa.Table, segments: Segments) -> Mapping[str, pa.Array]:
        counts, means, m2 = (_doubles(segments.gather(partials[name])) for name in self.columns)
        with np.errstate(all="ignore"):  # infinities make NaN, as they do in Spark
            merged = _merged(counts, means, m2, segments)
        return dict(zip(self.columns, map(pa.array, merged), strict=True))

    def finish(self, partials: pa.Table) -> pa.Array:
        counts, means, m2 = (_doubles(flat(partials[name])) for name in self.columns)
        freedom = counts - self._missing
        with np.errstate(all="ignore"):
            variances = np.where(np.isfinite(means), m2, np.nan) / freedom
            return pa.array(np.sqrt(variances) if self._is_root else variances, mask=freedom <= 0)


def _merged(counts: Doubles, means: Doubles, m2: Doubles, segments: Segments) -> tuple[Doubles, Doubles, Doubles]:
    present = counts > 0
    at = segments.last_where(present)
    origins = np.where(at == NOWHERE, 0.0, means[at]) if len(means) else means
    shifts = np.where(present, means - origins[segments.numbers], 0.0)
    total = segments.total(counts)
    mean_shift = segments.total(counts * shifts) / np.where(total > 0, total, 1.0)
    distances = np.where(present, shifts - mean_shift[segments.numbers], 0.0)
    merged = segments.total(m2 + counts * distances * distances)
    if np.isfinite(merged).all():
        return total, origins + mean_shift, merged
    return total, *_beyond_doubles(
        present & ~(np.isfinite(means) & ~np.isnan(m2)), origins + mean_shift, origins, merged, segments
    )


def _beyond_doubles(
    is_bad: Mask, means: Doubles, origins: Doubles, merged: Doubles, segments: Segments
) -> tuple[Doubles, Doubles]:
    """Return means and m2 of groups, some of which are beyond the range of doubles; bad parts have a value that is not finite."""
    has_bad = segments.total(is_bad.astype(np.int64)) > 0
    is_beyond = ~np.isfinite(merged)
    m2 = np.where(is_beyond, np.where(has_bad, np.nan, np.inf), merged)
    return np.where(is_beyond, np.where(has_bad, np.nan, origins), means), m2


def _doubles(array: pa.Array) -> Doubles:
    values: Doubles = array.to_numpy(zero_copy_only=False)
    return values
