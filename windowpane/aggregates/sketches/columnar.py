"""The columnar form of aggregates whose accumulator is a sketch. Partial: the sketch as its bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import reduce
from itertools import pairwise

import pyarrow as pa

from windowpane.arrays import Integers
from windowpane.arrays.columns import flat
from windowpane.arrays.values import Value
from windowpane.kernels.aggregates.protocol import SegmentAggregate
from windowpane.kernels.segments import Segments
from windowpane.windowing.aggregates.definition import BoundAggregate


class Sketch(SegmentAggregate):
    """A bound aggregate whose accumulator is a sketch, with what turns sketches to bytes and back."""

    parts = ("b",)

    def __init__(
        self,
        prefix: str,
        slots: tuple[str, ...],
        bound: BoundAggregate,
        write: Callable[[Value], bytes],
        read: Callable[[bytes], Value],
    ) -> None:
        super().__init__(prefix, slots)
        self._bound = bound
        self._write = write
        self._read = read

    def lift(self, rows: pa.Table) -> Mapping[str, pa.Array]:
        return {f"{self.prefix}b": rows[self.slots[0]]}

    def fold(self, lifted: pa.Table, segments: Segments) -> Mapping[str, pa.Array]:
        return {f"{self.prefix}b": pa.array(self._images(flat(lifted[f"{self.prefix}b"]), segments), pa.binary())}

    def _images(self, column: pa.Array, segments: Segments) -> list[bytes]:
        return list(map(self._image, _cut(segments.gather(column).to_pylist(), segments.offsets)))

    def _image(self, values: list[Value]) -> bytes:
        return self._write(reduce(self._bound.add, values, self._bound.create_accumulator()))

    def merge(self, partials: pa.Table, segments: Segments) -> Mapping[str, pa.Array]:
        groups = _cut(segments.gather(partials[f"{self.prefix}b"]).to_pylist(), segments.offsets)
        merged = [images[0] if len(images) == 1 else self._merged(images) for images in groups]
        return {f"{self.prefix}b": pa.array(merged, pa.binary())}

    def _merged(self, images: list[bytes]) -> bytes:
        return self._write(reduce(self._bound.merge, map(self._read, images)))

    def finish(self, partials: pa.Table) -> pa.Array:
        return pa.array(map(self._result, partials[f"{self.prefix}b"].to_pylist()), self._bound.result_type)

    def _result(self, image: bytes) -> Value:
        return self._bound.get_result(self._read(image))


def _cut(values: list[Value], offsets: Integers) -> Iterable[list[Value]]:
    return (values[start:end] for start, end in pairwise(offsets.tolist()))
