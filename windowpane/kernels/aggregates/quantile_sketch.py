"""approx_quantile of numbers: whole arrays are sketched as doubles, not value by value.

Partial: the bytes of a sketch of Apache DataSketches: of doubles behind a mark, or of Python values, each as its pickle. Values
are sketched as doubles where that loses nothing: integers that are doubles, and no NaN, which a sketch of doubles leaves out.
Sketches of both kinds merge into one of Python values.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from datasketches import kll_doubles_sketch

from windowpane.arrays import Doubles
from windowpane.kernels.aggregates.sketches import Sketch
from windowpane.kernels.grouping.segments import Segments
from windowpane.windowing.aggregates.algorithms.quantile_sketch import ApproxQuantile, QuantileSketch

_MARK = b"\xff"
"""No preamble begins so: its first byte is its length in words."""
_LARGEST = 2**53
"""Integers up to here are doubles."""


class NumberSketch(Sketch):
    """approx_quantile of integers or floating point."""

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
        """Return a sketch as one of Python values."""
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
    """Return whether all of them are doubles."""
    bounds = pc.min_max(integers)
    least, greatest = bounds["min"].as_py(), bounds["max"].as_py()
    return least is None or (least >= -_LARGEST and greatest <= _LARGEST)
