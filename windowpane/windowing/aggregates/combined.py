"""Several aggregates over the same rows as one aggregate function, in Flink's argument order.

Accumulator: the list of the accumulators, in the order of the output columns. The rules of ``protocol`` hold
for it too: the left side of ``merge`` is given up, the right side stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Any

import pyarrow as pa

from windowpane.windowing.aggregates.protocol import BoundAggregate
from windowpane.windowing.aggregates.spec import Aggregate
from windowpane.windowing.functions import AggregateFunction

Column = tuple[str, BoundAggregate, tuple[str, ...]]
Slots = Mapping[str, Sequence[str]]


class CombinedAggregate(AggregateFunction):
    """An aggregate function from rows (dicts) to a row: one output column per aggregate.

    Args:
        columns: for each output column its name, its bound aggregate, and the names under which a row holds the arguments
            of that.

    Example:
        >>> from windowpane import aggregates as agg
        >>> both = CombinedAggregate.of(
        ...     {"flights": agg.count(), "delay": agg.avg("dep_delay")},
        ...     slots={"flights": [], "delay": ["dep_delay"]},
        ...     types={"dep_delay": pa.int64()},
        ... )
        >>> accumulator = both.add({"dep_delay": 5}, both.create_accumulator())
        >>> both.get_result(both.add({"dep_delay": None}, accumulator))
        {'flights': 2, 'delay': 5.0}
    """

    def __init__(self, columns: tuple[Column, ...]) -> None:
        self.columns = columns
        self._aggregates = tuple(bound for _, bound, _ in columns)
        # One loop for each number of arguments: looking slots up one by one is what a row would cost most.
        self._nullary = tuple((i, bound.add) for i, (_, bound, slots) in enumerate(columns) if not slots)
        self._unary = tuple((i, bound.add, slots[0]) for i, (_, bound, slots) in enumerate(columns) if len(slots) == 1)
        self._wide = tuple((i, bound.add, itemgetter(*slots)) for i, (_, bound, slots) in enumerate(columns) if len(slots) > 1)

    @classmethod
    def of(cls, aggregates: Mapping[str, Aggregate], slots: Slots, types: Mapping[str, pa.DataType]) -> CombinedAggregate:
        """Bind aggregates by output name, given the slots of each and the type of each slot.

        Raises:
            AggregateTypeError: an aggregate has no meaning for the types of its slots.
        """
        return cls(
            tuple(
                (name, aggregate.bind([types[slot] for slot in slots[name]]), tuple(slots[name]))
                for name, aggregate in aggregates.items()
            )
        )

    def __reduce__(self) -> tuple[Callable[..., CombinedAggregate], tuple[tuple[Column, ...]]]:
        return CombinedAggregate, (self.columns,)

    @property
    def result_schema(self) -> pa.Schema:
        """The output columns with their Arrow types."""
        return pa.schema([(name, bound.result_type) for name, bound, _ in self.columns])

    def create_accumulator(self) -> list[Any]:
        return [bound.create_accumulator() for bound in self._aggregates]

    def add(self, value: Mapping[str, Any], accumulator: list[Any]) -> list[Any]:
        for index, add in self._nullary:
            accumulator[index] = add(accumulator[index])
        for index, add, slot in self._unary:
            accumulator[index] = add(accumulator[index], value[slot])
        for index, add, arguments in self._wide:
            accumulator[index] = add(accumulator[index], *arguments(value))
        return accumulator

    def get_result(self, accumulator: list[Any]) -> dict[str, Any]:
        """Return the output row.

        Raises:
            AggregateOverflowError: a result does not fit its type.
        """
        columns = zip(self.columns, accumulator, strict=True)
        return {name: bound.get_result(part) for (name, bound, _), part in columns}

    def merge(self, left: list[Any], right: list[Any]) -> list[Any]:
        parts = zip(self._aggregates, left, right, strict=True)
        return [bound.merge(left, right) for bound, left, right in parts]
