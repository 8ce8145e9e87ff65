"""increase and rate of counters that only go up, and begin anew at a restart of what they count in.

Columnar partials: the values, their times and the arrival numbers of their rows, as lists.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from fractions import Fraction
from itertools import pairwise
from typing import ClassVar

import numpy as np
import pyarrow as pa

from windowpane.aggregates.few_values import ColumnarTopN
from windowpane.arrays import Doubles, Integers, NumpyArray
from windowpane.arrays.values import Value
from windowpane.kernels.aggregates.lists import Lists
from windowpane.kernels.keys.ordered_codes import codes_of
from windowpane.windowing.aggregates.canonical import Form, Frozen, form_of
from windowpane.windowing.aggregates.definition import BoundAggregate, Call, Definition, Returns, define
from windowpane.windowing.aggregates.spec import Aggregate
from windowpane.windowing.expressions import Argument

_MICROSECOND = timedelta(microseconds=1)
_ALL = 2**62

Samples = list[tuple[Frozen, Value]]
"""What a counter showed, each behind its time."""


@dataclass(frozen=True, slots=True)
class Counter:
    """What a counter grew by. Accumulator: the list of (frozen time, value), in order of arrival."""

    form: Form
    is_rate: bool
    result_type: ClassVar[pa.DataType] = pa.float64()

    def create_accumulator(self) -> Samples:
        return []

    def add(self, accumulator: Samples, value: Value, at: Value) -> Samples:
        if value is not None and at is not None:
            accumulator.append((self.form.freeze(at), value))
        return accumulator

    def merge(self, left: Samples, right: Samples) -> Samples:
        left.extend(right)
        return left

    def get_result(self, accumulator: Samples) -> float | None:
        samples = sorted(accumulator, key=lambda sample: sample[0])
        times = [(at - samples[0][0]) // _MICROSECOND for at, _ in samples]
        values = [value for _, value in samples]
        is_float = any(isinstance(value, float) for value in values)
        return _grown(np.array(values, np.float64 if is_float else object), times, self.is_rate)


class ColumnarCounter(ColumnarTopN):
    def __init__(self, prefix: str, slots: tuple[str, ...], is_rate: bool) -> None:
        super().__init__(prefix, slots, _ALL, is_ascending=True)
        self._is_rate = is_rate

    @property
    def coded_slots(self) -> tuple[str, ...]:
        return ()

    def finish(self, partials: pa.Table) -> pa.Array:
        values, times, _ = self.cut([Lists.of(partials[name]) for name in self.columns])
        numbers, micros = _numbers(values.values), codes_of(times.values)
        bounds = values.offsets.tolist()
        found = [_grown(numbers[i:j], micros[i:j], self._is_rate) for i, j in pairwise(bounds)]
        return pa.array(found, pa.float64())


def _numbers(values: pa.Array) -> NumpyArray:
    """Return floating point as doubles, and other numbers as they are."""
    if pa.types.is_decimal(values.type):
        return np.array(values.to_pylist(), object)
    numbers: NumpyArray = values.to_numpy(zero_copy_only=False)
    return numbers.astype(np.float64 if pa.types.is_floating(values.type) else np.int64)


def _grown(values: NumpyArray, times: Sequence[int] | Integers, is_rate: bool) -> float | None:
    """Return what a counter grew by from its first value to its last, or that by the second; ``None`` if no time is between."""
    if len(values) < 2 or times[-1] == times[0]:
        return None
    grown = _added(values) if values.dtype == np.float64 else _exactly(values)
    return grown / (int(times[-1] - times[0]) / 1_000_000) if is_rate else grown


def _added(values: Doubles) -> float:
    """Return what doubles grew by: infinite or NaN if that is no double."""
    with np.errstate(invalid="ignore", over="ignore"):
        steps = np.diff(values)
        steps = np.where(steps < 0, values[1:], steps)
        try:
            return math.fsum(steps)
        except (OverflowError, ValueError):  # a total beyond doubles, opposite infinities
            return float(np.sum(steps))


def _exactly(values: NumpyArray) -> float:
    """Return what whole numbers or decimals grew by, rounded once: large ones differ by less than doubles tell apart."""
    before_restarts = np.flatnonzero(values[1:] < values[:-1])
    first, last, *before = map(Fraction, values[[0, -1, *before_restarts]].tolist())
    return float(last - first + sum(before))


def _define(name: str, is_rate: bool) -> None:
    def bind(call: Call) -> BoundAggregate:
        value, at = call.types
        if not (pa.types.is_integer(value) or pa.types.is_floating(value) or pa.types.is_decimal(value)):
            raise call.refusal("a number, and a timestamp")
        if not pa.types.is_timestamp(at):
            raise call.refusal("a number, and a timestamp")
        return Counter(form_of(at), is_rate)

    define(
        Definition(
            name=name,
            bind=bind,
            holistic=True,
            ordered=True,
            exact=True,
            idempotent=False,
            invertible=False,
            returns=Returns.OWN,
            compared_from=1,
            columnar=lambda call: ColumnarCounter(call.prefix, call.slots, is_rate),
        )
    )


_define("increase", is_rate=False)
_define("rate", is_rate=True)


def increase(value: Argument, at: Argument) -> Aggregate:
    """Add up what a counter grew by, from its first value to its last in the order of time.

    A value below the one before it is a restart at 0: all of it counts. Rows whose value or time is NULL are left out; of rows of
    one time the order is that of arrival. Nothing is added for the time between the bounds of a window and the first and last
    value, so counters of whole numbers grow by whole numbers, exactly however large they are. State holds all values.

    Result: double, NULL if there are not two times. Source: PromQL's rule of resets; MetricsQL's ``increase`` and Timescale's
    ``counter_agg``, which do not extrapolate either, as PromQL does.

    Args:
        value: the counter, a number.
        at: when it had that value, a timestamp.

    Example:
        >>> increase("requests", at="read_at")
        increase('requests', 'read_at')
    """
    return Aggregate.of("increase", value, at)


def rate(value: Argument, at: Argument) -> Aggregate:
    """Divide what a counter grew by through the seconds between its first value and its last; else as ``increase``.

    Example:
        >>> rate("requests", at="read_at")
        rate('requests', 'read_at')
    """
    return Aggregate.of("rate", value, at)
