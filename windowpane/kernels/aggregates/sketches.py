"""approx_count_distinct and approx_quantile. Partial: the sketch of Apache DataSketches as its bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import reduce
from itertools import pairwise
from typing import Any

import pyarrow as pa

from windowpane.arrays import Integers
from windowpane.kernels.aggregates.protocol import SegmentAggregate
from windowpane.kernels.grouping.segments import Segments, flat
from windowpane.windowing.aggregates.protocol import BoundAggregate


class Sketch(SegmentAggregate):
    """A bound aggregate whose accumulator is a sketch, with what turns sketches to bytes and back."""

    def __init__(
        self,
        prefix: str,
        slots: tuple[str, ...],
        bound: BoundAggregate,
        write: Callable[[Any], bytes],
        read: Callable[[bytes], Any],
    ) -> None:
        super().__init__(prefix, slots)
        self._bound = bound
        self._write = write
        self._read = read

    @property
    def columns(self) -> tuple[str, ...]:
        return (f"{self.prefix}b",)

    def lift(self, rows: pa.Table) -> Mapping[str, Any]:
        return {f"{self.prefix}b": rows[self.slots[0]]}

    def fold(self, lifted: pa.Table, segments: Segments) -> Mapping[str, pa.Array]:
        return {f"{self.prefix}b": pa.array(self._images(flat(lifted[f"{self.prefix}b"]), segments), pa.binary())}

    def _images(self, column: pa.Array, segments: Segments) -> list[bytes]:
        """Return the sketch of the values of each segment, as its bytes."""
        groups = cut(segments.gather(column).to_pylist(), segments.offsets)
        return [self._write(reduce(self._bound.add, group, self._bound.create_accumulator())) for group in groups]

    def merge(self, partials: pa.Table, segments: Segments) -> Mapping[str, pa.Array]:
        images = segments.gather(partials[f"{self.prefix}b"]).to_pylist()
        groups = cut(images, segments.offsets)
        merged = [
            group[0] if len(group) == 1 else self._write(reduce(self._bound.merge, map(self._read, group))) for group in groups
        ]
        return {f"{self.prefix}b": pa.array(merged, pa.binary())}

    def finish(self, partials: pa.Table) -> pa.Array:
        results = [self._bound.get_result(self._read(image)) for image in partials[f"{self.prefix}b"].to_pylist()]
        return pa.array(results, self._bound.result_type)


def cut(values: list[Any], offsets: Integers) -> Iterable[list[Any]]:
    """Return the values of each group."""
    return (values[start:end] for start, end in pairwise(offsets.tolist()))
