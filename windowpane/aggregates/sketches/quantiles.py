"""approx_quantile: a KLL sketch of Apache DataSketches.

Karnin, Lang, Liberty, "Optimal Quantile Approximation in Streams" (2016). The sketch holds frozen values, so
every type with an order works and the result is one of the values. Up to k values it is exact; beyond, it
drops values by coin flips that cannot be seeded, so two runs may differ within the error. A sketch pickles as
its bytes, each value in them as a pickle.

By column, whole arrays are sketched as doubles, not value by value, where that loses nothing: integers that are doubles, and no
NaN, which a sketch of doubles leaves out. The partial is the bytes of a sketch of doubles behind a mark, or of Python values.
Sketches of both kinds merge into one of Python values.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from datasketches import PyObjectSerDe, kll_doubles_sketch, kll_items_sketch

from windowpane import pickles
from windowpane.aggregates.sketches.columnar import Sketch
from windowpane.arrays import Doubles
from windowpane.arrays.values import Value
from windowpane.kernels.segments import Segments
from windowpane.windowing.aggregates.canonical import Form, form_of, is_orderable
from windowpane.windowing.aggregates.definition import BoundAggregate, Call, ColumnarCall

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

    def get_size(self, item: Value) -> int:
        return len(self.to_bytes(item))

    def to_bytes(self, item: Value) -> bytes:
        image = pickles.dumps(item)
        return _LENGTH.pack(len(image)) + image

    def from_bytes(self, data: bytes, offset: int) -> tuple[Value, int]:
        (length,) = _LENGTH.unpack_from(data, offset)
        start = offset + _LENGTH.size
        return pickles.loads(data[start : start + length]), _LENGTH.size + length


class QuantileSketch:
    __slots__ = ("kll",)

    def __init__(self, kll: kll_items_sketch) -> None:
        self.kll = kll

    def __reduce__(self) -> tuple[Callable[[bytes], QuantileSketch], tuple[bytes]]:
        return QuantileSketch.from_bytes, (self.to_bytes(),)

    def to_bytes(self) -> bytes:
        return bytes(self.kll.serialize(_PickledItems()))

    @staticmethod
    def from_bytes(image: bytes) -> QuantileSketch:
        return QuantileSketch(kll_items_sketch.deserialize(image, _PickledItems()))

    @staticmethod
    def from_doubles(image: bytes, value: Callable[[float], Value]) -> QuantileSketch:
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

    def add(self, accumulator: QuantileSketch, value: Value) -> QuantileSketch:
        if value is not None:
            accumulator.kll.update(self.form.freeze(value))
        return accumulator

    def merge(self, left: QuantileSketch, right: QuantileSketch) -> QuantileSketch:
        left.kll.merge(right.kll)
        return left

    def get_result(self, accumulator: QuantileSketch) -> Value:
        if accumulator.kll.is_empty():
            return None
        return self.form.thaw(accumulator.kll.get_quantile(self.q, True))


def bound(call: Call) -> BoundAggregate:
    if not is_orderable(call.type):
        raise call.refusal("a type with an order (maps have none)")
    return ApproxQuantile(call.type, form_of(call.type), call.parameters["q"], k_for(call.parameters["accuracy"]))


_MARK = b"\xff"
"""No preamble begins so: its first byte is its length in words."""
_LARGEST = 2**53
"""Integers up to here are doubles."""


class NumberSketch(Sketch):
    def __init__(self, prefix: str, slots: tuple[str, ...], bound: ApproxQuantile) -> None:
        super().__init__(prefix, slots, bound, QuantileSketch.to_bytes, self._of_values)
        self._quantile = bound
        self._is_integer = pa.types.is_integer(bound.result_type)

    def _images(self, column: pa.Array, segments: Segments) -> list[bytes]:
        if self._is_integer and not _fit(column):
            return super()._images(column, segments)
        numbers = pc.fill_null(segments.gather(column).cast(pa.float64()), 0).to_numpy()
        present = segments.gather(column.is_valid()).to_numpy(zero_copy_only=False)
        bounds = np.concatenate(([0], np.cumsum(present)))[segments.offsets].tolist()
        # Adding 0.0 turns -0.0 into 0.0 and leaves every other number as it is.
        numbers = numbers[present] + 0.0
        return [self._image_of_doubles(numbers[start:end]) for start, end in pairwise(bounds)]

    def _image_of_doubles(self, numbers: Doubles) -> bytes:
        if np.isnan(numbers).any():
            return self._image(numbers.tolist())
        sketch = kll_doubles_sketch(self._quantile.k)
        sketch.update(numbers)
        return _MARK + bytes(sketch.serialize())

    def _merged(self, images: list[bytes]) -> bytes:
        if not all(image.startswith(_MARK) for image in images):
            return super()._merged(images)
        merged = _of_doubles(images[0])
        for image in images[1:]:
            merged.merge(_of_doubles(image))
        return _MARK + bytes(merged.serialize())

    def _of_values(self, image: bytes) -> QuantileSketch:
        if not image.startswith(_MARK):
            return QuantileSketch.from_bytes(image)
        return QuantileSketch.from_doubles(image.removeprefix(_MARK), int if self._is_integer else float)

    def _result(self, image: bytes) -> float | None:
        if not image.startswith(_MARK):
            found: float | None = super()._result(image)
            return found
        sketch = _of_doubles(image)
        if sketch.is_empty():
            return None
        value: float = sketch.get_quantile(self._quantile.q, True)
        return int(value) if self._is_integer else value


def _of_doubles(image: bytes) -> kll_doubles_sketch:
    return kll_doubles_sketch.deserialize(image.removeprefix(_MARK))


def _fit(integers: pa.Array) -> bool:
    bounds = pc.min_max(integers)
    least, greatest = bounds["min"].as_py(), bounds["max"].as_py()
    return least is None or (least >= -_LARGEST and greatest <= _LARGEST)


def columnar(call: ColumnarCall) -> Sketch:
    if pa.types.is_signed_integer(call.type) or pa.types.is_floating(call.type):
        return NumberSketch(call.prefix, call.slots, cast("ApproxQuantile", call.bound))
    return Sketch(call.prefix, call.slots, call.bound, QuantileSketch.to_bytes, QuantileSketch.from_bytes)
