"""approx_count_distinct: a HyperLogLog sketch of Apache DataSketches.

Flajolet et al., "HyperLogLog: the analysis of a near-optimal cardinality estimation algorithm" (2007). The
estimate is a function of the distinct values: their order, how they were cut into batches, merged or restarted
does not matter, on any machine. A sketch pickles as its compact bytes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa
from datasketches import hll_sketch, hll_union, tgt_hll_type

from windowpane.arrays.values import Value
from windowpane.windowing.aggregates.canonical import Form, form_of
from windowpane.windowing.aggregates.definition import BoundAggregate, Call

_REGISTERS = tgt_hll_type.HLL_8
_MIN_LG_K, _MAX_LG_K = 7, 21
# Of the estimate that a merged sketch gives: 1.04 / sqrt(k).
_ERROR_OF_ONE_REGISTER = 1.04


def lg_k_for(rsd: float) -> int:
    """Return log2 of the least number of registers with a relative standard deviation of at most ``rsd``."""
    registers = (_ERROR_OF_ONE_REGISTER / rsd) ** 2
    return min(max(math.ceil(math.log2(registers)), _MIN_LG_K), _MAX_LG_K)


class DistinctSketch:
    __slots__ = ("hll",)

    def __init__(self, hll: hll_sketch) -> None:
        self.hll = hll

    def __reduce__(self) -> tuple[Callable[[bytes], DistinctSketch], tuple[bytes]]:
        return DistinctSketch.from_bytes, (self.to_bytes(),)

    def to_bytes(self) -> bytes:
        return bytes(self.hll.serialize_compact())

    @staticmethod
    def from_bytes(image: bytes) -> DistinctSketch:
        return DistinctSketch(hll_sketch.deserialize(image))


def _number(value: float) -> float:
    return value


TEXT_MARK = "="
"""What texts begin with in a sketch: it skips empty text, which is a value like any other."""


def _text(value: str) -> str:
    return TEXT_MARK + value


@dataclass(frozen=True, slots=True)
class _Printed:
    """Any other value by the text of its canonical form: equal values print alike."""

    form: Form

    def __call__(self, value: Value) -> str:
        return repr(self.form.freeze(value))


def _datum_of(value_type: pa.DataType) -> Callable[[Value], int | float | str]:
    # The sketch itself knows one NaN and one zero. Unsigned 64-bit integers are beyond its int64.
    if pa.types.is_signed_integer(value_type) or pa.types.is_floating(value_type):
        return _number
    if pa.types.is_string(value_type) or pa.types.is_large_string(value_type):
        return _text
    return _Printed(form_of(value_type))


@dataclass(frozen=True, slots=True)
class ApproxCountDistinct:
    lg_k: int
    datum: Callable[[Value], int | float | str]
    result_type: ClassVar[pa.DataType] = pa.int64()

    def create_accumulator(self) -> DistinctSketch:
        return DistinctSketch(hll_sketch(self.lg_k, _REGISTERS))

    def add(self, accumulator: DistinctSketch, value: Value) -> DistinctSketch:
        if value is not None:
            accumulator.hll.update(self.datum(value))
        return accumulator

    def merge(self, left: DistinctSketch, right: DistinctSketch) -> DistinctSketch:
        if right.hll.is_empty():
            return left
        union = hll_union(self.lg_k)
        union.update(left.hll)
        union.update(right.hll)
        return DistinctSketch(union.get_result(_REGISTERS))

    def get_result(self, accumulator: DistinctSketch) -> int:
        # A sketch that only saw updates estimates by their history (Ting 2014), a merged one by its registers.
        # Whether a sketch was merged is an accident of batches, so all are read as merged ones: the second update
        # changes no register.
        union = hll_union(self.lg_k)
        union.update(accumulator.hll)
        union.update(accumulator.hll)
        return round(float(union.get_estimate()))


def bound(call: Call) -> BoundAggregate:
    return ApproxCountDistinct(lg_k_for(call.parameters["rsd"]), _datum_of(call.type))
