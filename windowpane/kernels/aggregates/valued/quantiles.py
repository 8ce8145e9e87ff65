"""median and quantile, exact: Spark's ``percentile``. Partial: the list of all values.

The result lies at position q * (n - 1) of the sorted values, NaN being the largest, interpolated linearly.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from windowpane.arrays import Doubles, Integers
from windowpane.kernels.aggregates.protocol import SegmentAggregate
from windowpane.kernels.aggregates.valued.lists import Lists, gathered_lists
from windowpane.kernels.grouping.segments import Segments
from windowpane.kernels.keys.codes import order_codes
from windowpane.windowing.aggregates.durations import RESULT_TYPE as DURATION


class Quantile(SegmentAggregate):
    """Numbers of any kind; the result is a double. Intervals; the result is one, cut off to a microsecond."""

    def __init__(self, prefix: str, slots: tuple[str, ...], q: float, is_duration: bool) -> None:
        super().__init__(prefix, slots)
        self._q = q
        self._is_duration = is_duration

    @property
    def columns(self) -> tuple[str, ...]:
        return (f"{self.prefix}v",)

    def lift(self, rows: pa.Table) -> Mapping[str, Any]:
        values = rows[self.slots[0]]
        numbers = values.cast(DURATION).cast(pa.int64()) if self._is_duration else values
        return {f"{self.prefix}v": Lists.of_one(numbers).to_arrow()}

    def merge(self, partials: pa.Table, segments: Segments) -> Mapping[str, pa.Array]:
        return {f"{self.prefix}v": gathered_lists(partials[f"{self.prefix}v"], segments).to_arrow()}

    def finish(self, partials: pa.Table) -> pa.Array:
        lists = Lists.of(partials[f"{self.prefix}v"])
        results, is_empty = self._interpolated(lists), lists.lengths == 0
        if not self._is_duration:
            return pa.array(results, mask=is_empty)
        micros = [None if empty else int(result) for result, empty in zip(results.tolist(), is_empty.tolist(), strict=True)]
        return pa.array([None if each is None else timedelta(microseconds=each) for each in micros], DURATION)

    def _interpolated(self, lists: Lists) -> Doubles:
        """Reckon in the order of Spark's ``percentile``."""
        if not len(lists.values):
            return np.zeros(len(lists.lengths))
        codes = _comparable(lists.values)
        order = np.lexsort((codes, lists.numbers))
        position = (lists.lengths - 1) * self._q
        lower, higher = np.floor(position), np.ceil(position)
        low_at, high_at = (_places(order, lists.offsets, bound) for bound in (lower, higher))
        low, high = _doubles(lists.values, low_at), _doubles(lists.values, high_at)
        is_one = (lower == higher) | (codes[low_at] == codes[high_at])
        with np.errstate(all="ignore"):
            return np.where(is_one, low, (higher - position) * low + (position - lower) * high) + 0.0  # never -0.0


def _places(order: Integers, offsets: Integers, bound: Doubles) -> Integers:
    """Return the place of the value at a position of each sorted list; any place for an empty list."""
    return order[np.minimum(offsets[:-1] + np.maximum(bound, 0).astype(np.int64), len(order) - 1)]


def _comparable(values: pa.Array) -> npt.NDArray[Any]:
    """Return what sorts as the values do: numpy's own order, with NaN last, is that of numbers."""
    return order_codes(values) if pa.types.is_decimal(values.type) else values.to_numpy(zero_copy_only=False)


def _doubles(values: pa.Array, at: Integers) -> Doubles:
    if pa.types.is_decimal(values.type):  # Arrow's cast of wide decimals is not rounded to the nearest double
        return np.array([float(value) for value in values.take(pa.array(at)).to_pylist()], np.float64)
    doubles: Doubles = pc.cast(values.take(pa.array(at)), pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return doubles
