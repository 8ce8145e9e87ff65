"""The row form of an aggregate: the bound aggregate, and the call that it is bound from.

A bound aggregate has the shape of Flink's ``AggregateFunction``. Its rules, for every aggregate of this
package:

- An accumulator is a plain Python object that pickles.
- ``add`` and ``merge`` give up the accumulator on their left: they may change it and return it. ``merge``
  neither changes nor keeps a mutable part of its right side, so a slice shared by several windows is safe on
  the right.
- ``merge``'s left side holds the earlier elements; for aggregates that depend on arrival this order counts.
- ``get_result`` changes nothing and hands out nothing that a later ``add`` could change.
- A bound aggregate has no state of its own and pickles.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from windowpane.errors import AggregateTypeError


class BoundAggregate(Protocol):
    """One aggregate, bound to the types of its arguments."""

    @property
    def result_type(self) -> pa.DataType:
        """The Arrow type of the result."""

    def create_accumulator(self) -> Any:
        """Return the accumulator of no elements."""

    def add(self, accumulator: Any, /, *arguments: Any, **unused: Any) -> Any:
        """Return the accumulator with one more row, given as the values of the arguments in order."""

    def merge(self, left: Any, right: Any, /) -> Any:
        """Return the accumulator of the elements of ``left``, the earlier ones, then those of ``right``."""

    def get_result(self, accumulator: Any, /) -> Any:
        """Return the result as a Python value that fits ``result_type``; None is NULL.

        Raises:
            AggregateOverflowError: the result does not fit.
        """


@dataclass(frozen=True)
class Call:
    """An aggregate about to be bound: how it prints, the types of its arguments, its constant parameters."""

    label: str
    types: tuple[pa.DataType, ...]
    parameters: Mapping[str, Any]

    @property
    def type(self) -> pa.DataType:
        return self.types[0]

    def refusal(self, wanted: str) -> AggregateTypeError:
        """Return the error that says which types the aggregate takes."""
        got = ", ".join(str(argument_type) for argument_type in self.types) or "no arguments"
        return AggregateTypeError(self.label, got, wanted)
