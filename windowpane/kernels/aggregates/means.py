"""avg: the sum beside the number of values, divided once."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from windowpane.kernels.aggregates.protocol import KernelAggregate, Partial
from windowpane.kernels.aggregates.sums import DecimalSum, DurationSum, FloatSum, IntegerSum
from windowpane.windowing.aggregates.decimals import divide_half_up, fitted, mean
from windowpane.windowing.aggregates.durations import RESULT_TYPE as DURATION
from windowpane.windowing.aggregates.durations import from_micros


class _Counted(KernelAggregate):
    """Beside the sum it is mixed with: how many values were added up."""

    @property
    def partials(self) -> tuple[Partial, ...]:
        return (*super().partials, Partial(f"{self.prefix}n", "count", "sum"))  # type: ignore[safe-super]  # of the sum

    def prepare(self, rows: pa.Table) -> dict[str, Any]:
        return {**super().prepare(rows), f"{self.prefix}n": rows[self.slots[0]]}


class FloatMean(_Counted, FloatSum):
    """Doubles."""

    def finish(self, partials: pa.Table) -> pa.Array:
        return pc.divide(super().finish(partials), partials[f"{self.prefix}n"].cast(pa.float64()).combine_chunks())


class IntegerMean(_Counted, IntegerSum):
    """Integers: the exact sum by the count, rounded once."""

    def finish(self, partials: pa.Table) -> pa.Array:
        counts = partials[f"{self.prefix}n"]
        high = pc.min_max(partials[f"{self.prefix}h"]).as_py()
        if high["min"] is None or (high["min"] >= -(2**20) and high["max"] < 2**20):
            total = pc.add(pc.shift_left(partials[f"{self.prefix}h"], 32), partials[f"{self.prefix}l"])
            return pc.divide(total.cast(pa.float64()), counts.cast(pa.float64())).combine_chunks()
        pairs = zip(self.totals(partials), counts.to_pylist(), strict=True)
        return pa.array([None if total is None else total / count for total, count in pairs], pa.float64())


class DurationMean(_Counted, DurationSum):
    """Intervals: whole microseconds, HALF_UP."""

    def finish(self, partials: pa.Table) -> pa.Array:
        pairs = zip(self.totals(partials), partials[f"{self.prefix}n"].to_pylist(), strict=True)
        return pa.array([_mean_interval(total, count) for total, count in pairs], DURATION)


class DecimalMean(_Counted, DecimalSum):
    """Decimals: the exact sum by the count, four more decimal places, HALF_UP."""

    def finish(self, partials: pa.Table) -> pa.Array:
        totals: Sequence[Decimal | None] = partials[f"{self.prefix}s"].to_pylist()
        pairs = zip(totals, partials[f"{self.prefix}n"].to_pylist(), strict=True)
        return pa.array([self._mean(total, count) for total, count in pairs], self._type)

    def _mean(self, total: Decimal | None, count: int) -> Decimal | None:
        return None if total is None else fitted(mean(total, count, self._type.scale), self._type, self._label)


def _mean_interval(total: int | None, count: int) -> timedelta | None:
    return None if total is None else from_micros(divide_half_up(total, count))
