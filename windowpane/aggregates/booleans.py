"""bool_and and bool_or. Accumulator: None while there was no value, then the bool."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import pyarrow as pa

from windowpane.aggregates.extremes import FramedMax, FramedMin, RunningMax, RunningMin, columnar
from windowpane.windowing.aggregates.definition import Definition, Returns, define
from windowpane.windowing.aggregates.protocol import BoundAggregate, Call
from windowpane.windowing.aggregates.spec import Aggregate


@dataclass(frozen=True, slots=True)
class Decided:
    """One value decides for good: False for bool_and, True for bool_or."""

    deciding: bool
    result_type: ClassVar[pa.DataType] = pa.bool_()

    def create_accumulator(self) -> bool | None:
        return None

    def add(self, accumulator: bool | None, value: bool | None) -> bool | None:
        return accumulator if value is None or accumulator is self.deciding else value

    def merge(self, left: bool | None, right: bool | None) -> bool | None:
        return self.add(left, right)

    def get_result(self, accumulator: bool | None) -> bool | None:
        return accumulator


def _bound(deciding: bool) -> Callable[[Call], BoundAggregate]:
    def bind(call: Call) -> BoundAggregate:
        if not pa.types.is_boolean(call.type):
            raise call.refusal("a boolean")
        return Decided(deciding)

    return bind


BOOL_AND = define(
    Definition(
        name="bool_and",
        bind=_bound(False),
        holistic=False,
        ordered=False,
        exact=True,
        idempotent=True,
        returns=Returns.OWN,
        compared_from=0,
        columnar=columnar("min"),  # false is less than true
        frame=lambda call: FramedMin,
        running=lambda call: RunningMin,
    )
)
BOOL_OR = define(
    Definition(
        name="bool_or",
        bind=_bound(True),
        holistic=False,
        ordered=False,
        exact=True,
        idempotent=True,
        returns=Returns.OWN,
        compared_from=0,
        columnar=columnar("max"),
        frame=lambda call: FramedMax,
        running=lambda call: RunningMax,
    )
)


def bool_and(column: Any) -> Aggregate:
    """Return whether every value is true.

    Result: boolean. Source: Spark SQL ``bool_and``.

    Example:
        >>> bool_and("on_time")
        bool_and('on_time')
    """
    return Aggregate.of("bool_and", column)


def bool_or(column: Any) -> Aggregate:
    """Return whether some value is true.

    Result: boolean. Source: Spark SQL ``bool_or``.

    Example:
        >>> bool_or("cancelled")
        bool_or('cancelled')
    """
    return Aggregate.of("bool_or", column)
