"""Built-in aggregates as partial columns: folded from rows, merged from partials, finished into results.

A partial column merges by one of Arrow's grouped kernels (sum, min, max), so any number of groups costs one pass. The results
are those of the bound aggregates in ``windowing.aggregates``; what Arrow cannot do exactly has no columnar form, and the planner
leaves it to the row engine.

Integers are summed exactly: a partial is ``high * 2**32 + low`` with ``0 <= low < 2**32``, so a sum of up to 2**31 partials
cannot wrap, and only the finished result has to fit.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from windowpane.errors import AggregateOverflowError
from windowpane.windowing.aggregates import Aggregate

_LOW_BITS = 32
_LOW = (1 << _LOW_BITS) - 1


@dataclass(frozen=True)
class Partial:
    """A partial column: its name, how rows make it, how partials merge, and the array that rows make it from."""

    name: str
    fold: str
    merge: str


class ColumnarAggregate(ABC):
    """One aggregate over its partial columns, whose names begin with ``prefix``."""

    def __init__(self, prefix: str, slots: tuple[str, ...]) -> None:
        """Aggregate the columns ``slots``."""
        self.prefix = prefix
        self.slots = slots

    @property
    @abstractmethod
    def partials(self) -> tuple[Partial, ...]:
        """The partial columns."""

    def prepare(self, rows: pa.Table) -> dict[str, Any]:
        """Return the arrays that the partial columns are folded from, by partial name."""
        return {partial.name: rows[self.slots[0]] for partial in self.partials}

    def normalise(self, partials: pa.Table) -> pa.Table:
        """Return partials just folded or merged in the form that can be merged again."""
        return partials

    @abstractmethod
    def finish(self, partials: pa.Table) -> pa.Array:
        """Return the result of each group."""


class Count(ColumnarAggregate):
    """Rows, or values that are not null."""

    @property
    def partials(self) -> tuple[Partial, ...]:
        return (Partial(f"{self.prefix}n", "count" if self.slots else "count_all", "sum"),)

    def prepare(self, rows: pa.Table) -> dict[str, Any]:
        return super().prepare(rows) if self.slots else {}

    def finish(self, partials: pa.Table) -> pa.Array:
        return pc.fill_null(partials[f"{self.prefix}n"], 0).combine_chunks()


class Extreme(ColumnarAggregate):
    """min or max of types that Arrow orders as Spark does (no floating point: there NaN and zero have rules of their own)."""

    def __init__(self, prefix: str, slots: tuple[str, ...], kind: str) -> None:
        super().__init__(prefix, slots)
        self._kind = kind

    @property
    def partials(self) -> tuple[Partial, ...]:
        return (Partial(f"{self.prefix}m", self._kind, self._kind),)

    def finish(self, partials: pa.Table) -> pa.Array:
        return partials[f"{self.prefix}m"].combine_chunks()


class FloatSum(ColumnarAggregate):
    """Doubles, added in the order of the groups' partials: the last bit may differ from a sum in order of arrival."""

    @property
    def partials(self) -> tuple[Partial, ...]:
        return (Partial(f"{self.prefix}s", "sum", "sum"),)

    def prepare(self, rows: pa.Table) -> dict[str, Any]:
        return {f"{self.prefix}s": rows[self.slots[0]].cast(pa.float64())}

    def finish(self, partials: pa.Table) -> pa.Array:
        return partials[f"{self.prefix}s"].combine_chunks()


class IntegerSum(ColumnarAggregate):
    """Integers, exactly."""

    def __init__(self, prefix: str, slots: tuple[str, ...], label: str) -> None:
        super().__init__(prefix, slots)
        self._label = label

    @property
    def partials(self) -> tuple[Partial, ...]:
        return (Partial(f"{self.prefix}h", "sum", "sum"), Partial(f"{self.prefix}l", "sum", "sum"))

    def prepare(self, rows: pa.Table) -> dict[str, Any]:
        values = rows[self.slots[0]].cast(pa.int64())
        high = pc.shift_right(values, _LOW_BITS)
        return {f"{self.prefix}h": high, f"{self.prefix}l": pc.bit_wise_and(values, _LOW)}

    def normalise(self, partials: pa.Table) -> pa.Table:
        high, low = partials[f"{self.prefix}h"], partials[f"{self.prefix}l"]
        carry = pc.shift_right(low, _LOW_BITS)
        partials = _replace(partials, f"{self.prefix}h", pc.add(high, carry))
        return _replace(partials, f"{self.prefix}l", pc.bit_wise_and(low, _LOW))

    def finish(self, partials: pa.Table) -> pa.Array:
        high, low = partials[f"{self.prefix}h"], partials[f"{self.prefix}l"]
        bounds = pc.min_max(high).as_py()
        if bounds["min"] is not None and not (bounds["min"] >= -(2**31) and bounds["max"] < 2**31):
            raise AggregateOverflowError(self._label, self._culprit(partials), pa.int64())
        return pc.add(pc.shift_left(high, _LOW_BITS), low).combine_chunks()

    def _culprit(self, partials: pa.Table) -> int:
        totals = self.totals(partials)
        return next(total for total in totals if total is not None and not -(2**63) <= total < 2**63)

    def totals(self, partials: pa.Table) -> list[int | None]:
        """Return the exact sums as Python integers."""
        pairs = zip(partials[f"{self.prefix}h"].to_pylist(), partials[f"{self.prefix}l"].to_pylist(), strict=True)
        return [None if high is None else (high << _LOW_BITS) + low for high, low in pairs]


class FloatMean(FloatSum):
    """avg of doubles: sum and count."""

    @property
    def partials(self) -> tuple[Partial, ...]:
        return (*super().partials, Partial(f"{self.prefix}n", "count", "sum"))

    def prepare(self, rows: pa.Table) -> dict[str, Any]:
        return {**super().prepare(rows), f"{self.prefix}n": rows[self.slots[0]]}

    def finish(self, partials: pa.Table) -> pa.Array:
        return pc.divide(super().finish(partials), partials[f"{self.prefix}n"].cast(pa.float64()).combine_chunks())


class IntegerMean(IntegerSum):
    """avg of integers: the exact sum by the count, rounded once."""

    @property
    def partials(self) -> tuple[Partial, ...]:
        return (*super().partials, Partial(f"{self.prefix}n", "count", "sum"))

    def prepare(self, rows: pa.Table) -> dict[str, Any]:
        return {**super().prepare(rows), f"{self.prefix}n": rows[self.slots[0]]}

    def finish(self, partials: pa.Table) -> pa.Array:
        counts = partials[f"{self.prefix}n"]
        high = pc.min_max(partials[f"{self.prefix}h"]).as_py()
        if high["min"] is None or (high["min"] >= -(2**20) and high["max"] < 2**20):
            total = pc.add(pc.shift_left(partials[f"{self.prefix}h"], _LOW_BITS), partials[f"{self.prefix}l"])
            return pc.divide(total.cast(pa.float64()), counts.cast(pa.float64())).combine_chunks()
        pairs = zip(self.totals(partials), counts.to_pylist(), strict=True)
        return pa.array([None if total is None else total / count for total, count in pairs], pa.float64())


class DecimalSum(ColumnarAggregate):
    """Decimals of up to 28 digits, summed in 38: ten billion rows cannot overflow."""

    def __init__(self, prefix: str, slots: tuple[str, ...], result_type: pa.DataType) -> None:
        super().__init__(prefix, slots)
        self._type = result_type

    @property
    def partials(self) -> tuple[Partial, ...]:
        return (Partial(f"{self.prefix}s", "sum", "sum"),)

    def finish(self, partials: pa.Table) -> pa.Array:
        return partials[f"{self.prefix}s"].cast(self._type).combine_chunks()


def _replace(table: pa.Table, name: str, column: Any) -> pa.Table:
    return table.set_column(table.column_names.index(name), name, column)


def columnar(aggregate: Aggregate, prefix: str, slots: tuple[str, ...], kind: pa.DataType | None) -> ColumnarAggregate | None:
    """Return the columnar form of a built-in aggregate over an argument of type ``kind``; ``None`` if it has none."""
    if aggregate.name == "count":
        return Count(prefix, slots) if len(slots) <= 1 else None
    if len(slots) != 1 or kind is None:
        return None
    if aggregate.name in ("min", "max"):
        return Extreme(prefix, slots, aggregate.name) if _is_plainly_ordered(kind) else None
    if aggregate.name == "sum":
        return _sum(aggregate, prefix, slots, kind)
    if aggregate.name == "avg":
        return _mean(aggregate, prefix, slots, kind)
    return None


def _sum(aggregate: Aggregate, prefix: str, slots: tuple[str, ...], kind: pa.DataType) -> ColumnarAggregate | None:
    if pa.types.is_signed_integer(kind):
        return IntegerSum(prefix, slots, repr(aggregate))
    if pa.types.is_floating(kind):
        return FloatSum(prefix, slots)
    if pa.types.is_decimal128(kind) and kind.precision <= 28:
        return DecimalSum(prefix, slots, aggregate.bind([kind]).result_type)
    return None


def _mean(aggregate: Aggregate, prefix: str, slots: tuple[str, ...], kind: pa.DataType) -> ColumnarAggregate | None:
    if pa.types.is_signed_integer(kind):
        return IntegerMean(prefix, slots, repr(aggregate))
    return FloatMean(prefix, slots) if pa.types.is_floating(kind) else None


def _is_plainly_ordered(kind: pa.DataType) -> bool:
    plain = (
        pa.types.is_signed_integer,
        pa.types.is_date32,
        pa.types.is_timestamp,
        pa.types.is_string,
        pa.types.is_binary,
        pa.types.is_decimal128,
        pa.types.is_boolean,
    )
    return any(is_kind(kind) for is_kind in plain)
