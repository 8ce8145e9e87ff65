"""Sorted rows on their way through the calls of an OVER window, and what the calls derive from them, each once.

``seeded`` says of each segment whether its first row carries what the running calls knew up to it (the carry columns); if not,
the segment begins where its partition does.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from windowpane.arrays import Integers, Mask
from windowpane.kernels.keys.ordered_codes import validity
from windowpane.kernels.over.frames import Frames, Layout, SortedOrder, Span, find_frames, spans
from windowpane.kernels.sorting.order_axis import order_axis
from windowpane.windowing.frames import Frame
from windowpane.windowing.over.spec import OverSpec


@dataclass
class SortedRows:
    spec: OverSpec  # the window
    table: pa.Table  # the columns the calls read, and the carry columns of the rows that have them; without chunks
    layout: Layout  # segments and peers
    seeded: Mask  # for each segment, whether its first row has carry columns
    wanted: Mask  # the rows whose outputs are asked for; those of others may be any value
    carries: dict[str, pa.Array] = field(default_factory=dict)
    _frames: dict[Frame, Frames] = field(default_factory=dict)
    _orders: dict[Frame, SortedOrder] = field(default_factory=dict)
    _columns: dict[str, pa.Array] = field(default_factory=dict)

    def column(self, name: str) -> pa.Array:
        if name not in self._columns:
            chunks = self.table[name]
            self._columns[name] = chunks.chunk(0) if chunks.num_chunks == 1 else chunks.combine_chunks()
        return self._columns[name]

    def frames(self, frame: Frame) -> Frames:
        if frame not in self._frames:
            self._frames[frame] = find_frames(frame, self.order(frame))
        return self._frames[frame]

    def spans(self, frame: Frame) -> list[Span]:
        return spans(frame, self.frames(frame), self.layout)

    def order(self, frame: Frame) -> SortedOrder:
        if not frame.has_range_offset:
            return SortedOrder(self.layout)
        if frame not in self._orders:
            ordered = self.spec.order_by[0]
            offsets = tuple(o for o in (frame.start.offset, frame.end.offset, frame.gap) if o is not None)
            self._orders[frame] = SortedOrder(self.layout, ordered, order_axis(self.column(ordered.name), offsets))
        return self._orders[frame]

    def counted(self, arguments: tuple[str, ...], filter: str | None) -> Mask:
        """Return the rows that pass a FILTER and have a value in every argument."""
        mask = self.filtered(filter)
        for name in arguments:
            mask = mask & validity(self.column(name))
        return mask

    def filtered(self, filter: str | None) -> Mask:
        if filter is None:
            return np.ones(self.layout.size, np.bool_)
        passed: Mask = self.column(filter).fill_null(False).to_numpy(zero_copy_only=False)
        return passed

    @property
    def seeded_firsts(self) -> Integers:
        return self.layout.segment_firsts[self.seeded]

    def seeds(self, name: str) -> tuple[pa.Array, Mask]:
        """Return the carry column of ``seeded_firsts``, and where it has a value."""
        column = self.column(name).take(pa.array(self.seeded_firsts))
        return column, validity(column)

    def rebased(self, totals: Integers, values: Integers, seeds: Integers) -> Integers:
        """Return totals of all rows as totals of each segment that begin with its seed, or with its first value."""
        firsts = self.layout.segment_firsts
        base = values[firsts].copy()
        base[self.seeded] = seeds
        return totals + self.layout.spread(base - totals[firsts])
