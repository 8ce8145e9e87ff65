"""sum: exact for integers, decimals and intervals.

Integers are summed exactly: a partial is ``high * 2**32 + low`` with ``0 <= low < 2**32``, so a sum of up to 2**31 partials
cannot wrap, and only the finished result has to fit.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from windowpane.arrays.columns import flat
from windowpane.errors import AggregateOverflowError
from windowpane.kernels.aggregates.protocol import KernelAggregate, Partial
from windowpane.kernels.aggregates.tables import replaced
from windowpane.sizes import Size
from windowpane.windowing.aggregates.decimals import fitted
from windowpane.windowing.aggregates.durations import RESULT_TYPE as DURATION

_LOW_BITS = 32
_LOW = (1 << _LOW_BITS) - 1
_WIDE_DIGITS = 76
_NARROW_DIGITS = Size("digits of decimals summed in 38", 28, (2, 5))
"""Decimals of so many digits cannot leave the 38 digits of their sum within ten billion rows."""


class FloatSum(KernelAggregate):
    """Doubles, added in the order of the groups' partials: the last bit may differ from a sum in order of arrival."""

    @property
    def partials(self) -> tuple[Partial, ...]:
        return (Partial(f"{self.prefix}s", "sum", "sum"),)

    def prepare(self, rows: pa.Table) -> dict[str, Any]:
        return {f"{self.prefix}s": rows[self.slots[0]].cast(pa.float64())}

    def finish(self, partials: pa.Table) -> pa.Array:
        return pc.add(flat(partials[f"{self.prefix}s"]), 0.0)  # never -0.0


class IntegerSum(KernelAggregate):
    """Integers, exactly."""

    def __init__(self, prefix: str, slots: tuple[str, ...], label: str) -> None:
        super().__init__(prefix, slots)
        self._label = label

    @property
    def partials(self) -> tuple[Partial, ...]:
        return (Partial(f"{self.prefix}h", "sum", "sum"), Partial(f"{self.prefix}l", "sum", "sum"))

    def prepare(self, rows: pa.Table) -> dict[str, Any]:
        values = self.integers(rows[self.slots[0]])
        high = pc.shift_right(values, _LOW_BITS)
        return {f"{self.prefix}h": high, f"{self.prefix}l": pc.bit_wise_and(values, _LOW)}

    def integers(self, values: Any) -> Any:
        """Return the numbers to add up, of 64 bits."""
        return values.cast(pa.int64())

    def normalise(self, partials: pa.Table) -> pa.Table:
        high, low = partials[f"{self.prefix}h"], partials[f"{self.prefix}l"]
        carry = pc.shift_right(low, _LOW_BITS)
        partials = replaced(partials, f"{self.prefix}h", pc.add(high, carry))
        return replaced(partials, f"{self.prefix}l", pc.bit_wise_and(low, _LOW))

    def finish(self, partials: pa.Table) -> pa.Array:
        high, low = partials[f"{self.prefix}h"], partials[f"{self.prefix}l"]
        bounds = pc.min_max(high).as_py()
        if bounds["min"] is not None and not (bounds["min"] >= -(2**31) and bounds["max"] < 2**31):
            raise self.overflow(self._culprit(partials))
        return pc.add(pc.shift_left(high, _LOW_BITS), low).combine_chunks()

    def overflow(self, total: int) -> AggregateOverflowError:
        """Return the refusal of a sum that does not fit."""
        return AggregateOverflowError(self._label, total, pa.int64())

    def _culprit(self, partials: pa.Table) -> int:
        totals = self.totals(partials)
        return next(total for total in totals if total is not None and not -(2**63) <= total < 2**63)

    def totals(self, partials: pa.Table) -> list[int | None]:
        """Return the exact sums as Python integers."""
        pairs = zip(partials[f"{self.prefix}h"].to_pylist(), partials[f"{self.prefix}l"].to_pylist(), strict=True)
        return [None if high is None else (high << _LOW_BITS) + low for high, low in pairs]


class DurationSum(IntegerSum):
    """Intervals, as integers of microseconds."""

    def integers(self, values: Any) -> Any:
        return values.cast(DURATION).cast(pa.int64())

    def finish(self, partials: pa.Table) -> pa.Array:
        return super().finish(partials).cast(DURATION)

    def overflow(self, total: int) -> AggregateOverflowError:
        return AggregateOverflowError(self._label, f"{total} µs", DURATION)


class DecimalSum(KernelAggregate):
    """Decimals, in as many digits as their sum can need: 38, or 76 for wide ones."""

    def __init__(
        self, prefix: str, slots: tuple[str, ...], value_type: pa.DataType, result_type: pa.DataType, label: str
    ) -> None:
        super().__init__(prefix, slots)
        self._is_wide = value_type.precision > _NARROW_DIGITS.value
        self._wide = pa.decimal256(_WIDE_DIGITS, value_type.scale)
        self._type = result_type
        self._label = label

    @property
    def partials(self) -> tuple[Partial, ...]:
        return (Partial(f"{self.prefix}s", "sum", "sum"),)

    def prepare(self, rows: pa.Table) -> dict[str, Any]:
        values = rows[self.slots[0]]
        return {f"{self.prefix}s": values.cast(self._wide) if self._is_wide else values}

    def finish(self, partials: pa.Table) -> pa.Array:
        sums = partials[f"{self.prefix}s"]
        try:
            return sums.cast(self._type).combine_chunks()
        except pa.ArrowInvalid:
            for total in sums.drop_null().to_pylist():
                fitted(total, self._type, self._label)
            raise
