"""bool_and and bool_or. Accumulator: None while there was no value, then the bool."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from windowpane.aggregates.extremes import FramedMax, FramedMin, RunningMax, RunningMin, columnar
from windowpane.windowing.aggregates.definition import BoundAggregate, Call, Definition, Returns, define
from windowpane.windowing.aggregates.spec import Aggregate
from windowpane.windowing.expressions import Argument


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


def _define(name: str, deciding: bool, kind: str, framed: type[FramedMin], running: type[RunningMin]) -> None:
    """Define a decision, which is also an extreme of the ``kind``: false is less than true."""

    def bind(call: Call) -> BoundAggregate:
        if not pa.types.is_boolean(call.type):
            raise call.refusal("a boolean")
        return Decided(deciding)

    define(
        Definition(
            name=name,
            bind=bind,
            holistic=False,
            ordered=False,
            exact=True,
            idempotent=True,
            invertible=False,
            returns=Returns.OWN,
            compared_from=0,
            columnar=columnar(kind),
            frame=lambda call: framed,
            running=lambda call: running,
            duckdb=name,
        )
    )


_define("bool_and", False, "min", FramedMin, RunningMin)
_define("bool_or", True, "max", FramedMax, RunningMax)


def bool_and(column: Argument) -> Aggregate:
    """Return whether every value is true.

    Result: boolean. Source: Spark SQL ``bool_and``.

    Example:
        >>> bool_and("on_time")
        bool_and('on_time')
    """
    return Aggregate.of("bool_and", column)


def bool_or(column: Argument) -> Aggregate:
    """Return whether some value is true.

    Result: boolean. Source: Spark SQL ``bool_or``.

    Example:
        >>> bool_or("cancelled")
        bool_or('cancelled')
    """
    return Aggregate.of("bool_or", column)
