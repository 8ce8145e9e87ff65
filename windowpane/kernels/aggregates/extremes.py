"""min and max by Spark SQL's order: NaN is the largest number, and zero has no sign."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windowpane.arrays import Mask
from windowpane.arrays.columns import flat
from windowpane.kernels.aggregates.protocol import KernelAggregate, Partial, SegmentAggregate
from windowpane.kernels.grouping.segments import Segments, take_or_null
from windowpane.kernels.keys.codes import canonical, codes_and_validity

_LEAST = np.iinfo(np.int64).min


class PlainExtreme(KernelAggregate):
    """Types that Arrow orders as Spark does. Partial: the value; false is less than true, so bool_and is a min."""

    takes_codes = True

    def __init__(self, prefix: str, slots: tuple[str, ...], kind: str) -> None:
        super().__init__(prefix, slots)
        self._kind = kind

    @property
    def partials(self) -> tuple[Partial, ...]:
        return (Partial(f"{self.prefix}m", self._kind, self._kind),)

    def finish(self, partials: pa.Table) -> pa.Array:
        return flat(partials[f"{self.prefix}m"])


class FloatExtreme(KernelAggregate):
    """Floating point. Partials: the extreme of the numbers, and whether there was a NaN, which Arrow skips."""

    def __init__(self, prefix: str, slots: tuple[str, ...], kind: str) -> None:
        super().__init__(prefix, slots)
        self._kind = kind

    @property
    def partials(self) -> tuple[Partial, ...]:
        return (Partial(f"{self.prefix}m", self._kind, self._kind), Partial(f"{self.prefix}x", "max", "max"))

    def prepare(self, rows: pa.Table) -> dict[str, Any]:
        values = canonical(rows[self.slots[0]])
        is_nan = pc.is_nan(values)
        numbers = pc.if_else(is_nan, pa.scalar(None, values.type), values)
        return {f"{self.prefix}m": numbers, f"{self.prefix}x": is_nan}

    def finish(self, partials: pa.Table) -> pa.Array:
        numbers, has_nan = partials[f"{self.prefix}m"], pc.fill_null(partials[f"{self.prefix}x"], False)
        nan = pa.scalar(float("nan"), numbers.type)
        wins = has_nan if self._kind == "max" else pc.and_(has_nan, numbers.is_null())
        return pc.if_else(wins, nan, numbers).combine_chunks()


class OrderedExtreme(SegmentAggregate):
    """Any other type with an order, nested ones too. Partial: the value."""

    def __init__(self, prefix: str, slots: tuple[str, ...], kind: str) -> None:
        super().__init__(prefix, slots)
        self._is_max = kind == "max"

    @property
    def columns(self) -> tuple[str, ...]:
        return (f"{self.prefix}m",)

    def lift(self, rows: pa.Table) -> Mapping[str, Any]:
        return {f"{self.prefix}m": canonical(rows[self.slots[0]])}

    def merge(self, partials: pa.Table, segments: Segments) -> Mapping[str, pa.Array]:
        values = flat(partials[f"{self.prefix}m"])
        best = segments.last_where(are_extreme(values, segments, self._is_max))
        return {f"{self.prefix}m": take_or_null(values, segments.rows_at(best))}

    def finish(self, partials: pa.Table) -> pa.Array:
        return flat(partials[f"{self.prefix}m"])


def are_extreme(values: pa.Array, segments: Segments, is_max: bool) -> Mask:
    """Return which gathered values are the largest, or the smallest, of their group; NULL is neither."""
    codes, present = map(segments.picked, codes_and_validity(values))
    codes = np.where(present, codes if is_max else ~codes, _LEAST)
    extreme: Mask = present & (codes == segments.greatest(codes)[segments.numbers])
    return extreme
