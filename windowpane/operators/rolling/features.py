"""The features of one key as of an instant, from its rows: every window is folded anew."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from windowpane.arrays.values import Row, Value
from windowpane.windowing.aggregates import BoundAggregate
from windowpane.windowing.aggregates.canonical import written_form_of
from windowpane.windowing.rolling import RollingSpec


class HeldRow(NamedTuple):
    """A row of a key; rows are ordered by time, then by arrival."""

    time: int  # its event time
    arrival: int  # its number in the order of arrival
    values: Row  # the columns that calls read


class Features:
    def __init__(self, spec: RollingSpec, aggregates: Sequence[BoundAggregate]) -> None:
        self._calls = tuple(zip(spec.calls, aggregates, strict=True))
        self._forms = [written_form_of(aggregate.result_type) for aggregate in aggregates]
        self._windows = spec.windows

    def values(self, rows: Sequence[HeldRow], instant: int) -> tuple[Value, ...]:
        return tuple(
            _folded(aggregate, call.aggregate.arguments, call.condition, rows, call.window.start(instant), instant)
            for call, aggregate in self._calls
        )

    def same(self, one: Sequence[Value], other: Sequence[Value]) -> bool:
        """Whether two rows of features are equal and their zeros have the same signs; NaN equals NaN."""
        pairs = zip(self._forms, one, other, strict=True)
        return all(a is b if a is None or b is None else form.freeze(a) == form.freeze(b) for form, a, b in pairs)

    def is_empty(self, rows: Sequence[HeldRow], instant: int) -> bool:
        start = min(window.start(instant) for window in self._windows)
        return not any(start <= row.time <= instant for row in rows)


def _folded(
    aggregate: BoundAggregate,
    arguments: Sequence[str],
    condition: str | None,
    rows: Sequence[HeldRow],
    start: int,
    end: int,
) -> Value:
    accumulator = aggregate.create_accumulator()
    for row in rows:
        if start <= row.time <= end and (condition is None or row.values[condition]):
            accumulator = aggregate.add(accumulator, *(row.values[name] for name in arguments))
    return aggregate.get_result(accumulator)
