"""approx_quantile: a KLL sketch of Apache DataSketches.

Karnin, Lang, Liberty, "Optimal Quantile Approximation in Streams" (2016). The sketch holds frozen values, so
every type with an order works and the result is one of the values. Up to k values it is exact; beyond, it
drops values by coin flips that cannot be seeded, so two runs may differ within the error. A sketch pickles as
its bytes, each value in them as a pickle.
"""

from __future__ import annotations

import pickle
import struct
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from datasketches import PyObjectSerDe, kll_items_sketch

from windowpane.windowing.aggregates.canonical import Form, form_of, is_orderable
from windowpane.windowing.aggregates.protocol import BoundAggregate, Call

_MIN_K, _MAX_K = 8, 65_535
_LENGTH = struct.Struct("<I")
_FLAGS, _HAS_NO_LEVELS, _SHORT = 3, 0b101, 8
"""Of a stored sketch: the place of its flags, those of an empty one and of one value, and the bytes before that value."""
_LEVELS, _LONG, _LEVEL, _DOUBLE = 18, 20, 4, 8
"""The place of the number of levels, the bytes before the levels, those of a level and of a double."""


def rank_error(k: int) -> float:
    """Return the error in rank, a share of all values, that 99 % of results stay below."""
    return float(kll_items_sketch.get_normalized_rank_error(k, False))


def k_for(accuracy: int) -> int:
    """Return the smallest k whose error in rank is at most 1 / accuracy."""
    return bisect_left(range(_MAX_K), -1 / accuracy, lo=_MIN_K, key=lambda k: -rank_error(k))


class _PickledItems(PyObjectSerDe):  # type: ignore[misc]  # the library is untyped
    """Writes each item as the length of its pickle and the pickle."""

    def __init__(self) -> None:
        PyObjectSerDe.__init__(self)

    def get_size(self, item: Any) -> int:
        return len(self.to_bytes(item))

    def to_bytes(self, item: Any) -> bytes:
        image = pickle.dumps(item, pickle.HIGHEST_PROTOCOL)
        return _LENGTH.pack(len(image)) + image

    def from_bytes(self, data: bytes, offset: int) -> tuple[Any, int]:
        (length,) = _LENGTH.unpack_from(data, offset)
        start = offset + _LENGTH.size
        return pickle.loads(data[start : start + length]), _LENGTH.size + length


class QuantileSketch:
    """A KLL sketch that pickles."""

    __slots__ = ("kll",)

    def __init__(self, kll: kll_items_sketch) -> None:
        self.kll = kll

    def __reduce__(self) -> tuple[Callable[[bytes], QuantileSketch], tuple[bytes]]:
        return QuantileSketch.from_bytes, (self.to_bytes(),)

    def to_bytes(self) -> bytes:
        """Return the sketch in the format of the library."""
        return bytes(self.kll.serialize(_PickledItems()))

    @staticmethod
    def from_bytes(image: bytes) -> QuantileSketch:
        """Return the sketch that ``to_bytes`` wrote."""
        return QuantileSketch(kll_items_sketch.deserialize(image, _PickledItems()))

    @staticmethod
    def from_doubles(image: bytes, value: Callable[[float], Any]) -> QuantileSketch:
        """Return the sketch of the values of a stored sketch of doubles.

        The library stores both alike: a preamble, where levels end, the least and the greatest value, the retained values. Only
        the values differ.

        Args:
            image: what a ``kll_doubles_sketch`` wrote.
            value: a double -> the frozen value.
        """
        head = _SHORT if image[_FLAGS] & _HAS_NO_LEVELS else _LONG + _LEVEL * image[_LEVELS]
        write = _PickledItems().to_bytes
        values = struct.unpack(f"<{(len(image) - head) // _DOUBLE}d", image[head:])
        return QuantileSketch.from_bytes(image[:head] + b"".join(write(value(each)) for each in values))


@dataclass(frozen=True, slots=True)
class ApproxQuantile:
    """A value whose rank is close to q. Accumulator: a QuantileSketch."""

    result_type: pa.DataType
    form: Form
    q: float
    k: int

    def create_accumulator(self) -> QuantileSketch:
        return QuantileSketch(kll_items_sketch(self.k))

    def add(self, accumulator: QuantileSketch, value: Any) -> QuantileSketch:
        if value is not None:
            accumulator.kll.update(self.form.freeze(value))
        return accumulator

    def merge(self, left: QuantileSketch, right: QuantileSketch) -> QuantileSketch:
        left.kll.merge(right.kll)
        return left

    def get_result(self, accumulator: QuantileSketch) -> Any:
        if accumulator.kll.is_empty():
            return None
        return self.form.thaw(accumulator.kll.get_quantile(self.q, True))


def bind_approx_quantile(call: Call) -> BoundAggregate:
    """Bind ``approx_quantile(column, q, accuracy)``."""
    if not is_orderable(call.type):
        raise call.refusal("a type with an order (maps have none)")
    return ApproxQuantile(call.type, form_of(call.type), call.parameters["q"], k_for(call.parameters["accuracy"]))
