"""Frames written out: the rows of each frame one after the other, so that aggregates by group compute frames as groups.

Rows that share a frame (partitions as a whole, peers) share its elements. Writing a frame out costs its width; folding row by row
costs only what a frame has that the one before had not, but in Python: ``is_cheaper`` weighs them. Both give the same bits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from windowpane.arrays import Integers, Mask
from windowpane.kernels.over.frames import Span
from windowpane.kernels.over.sums import running
from windowpane.kernels.segments import Segments
from windowpane.kernels.sorting.packed_order import lexical_order
from windowpane.sizes import Size

BLOCK = Size("elements of frames written out at once", 1 << 20, (7, 40))
"""How many elements are written out at once."""
_GAIN = Size("elements folded in the time Python takes for one", 20, (0, 1_000_000))
"""How many elements are folded by group in the time that Python takes for one."""


@dataclass(frozen=True)
class WrittenFrames:
    """The distinct frames of some rows."""

    spans: Sequence[Span]  # of each frame, in numbers of the rows that count
    counted: Integers  # the rows that count
    frame_of: Integers  # the frame of each row

    @classmethod
    def of(cls, spans: Sequence[Span], wanted: Integers, counted: Mask) -> WrittenFrames:
        before = running(counted.astype(np.int64))
        picked = [(before[lo[wanted]], before[hi[wanted]]) for lo, hi in spans]
        starts = np.ones(len(wanted), np.bool_)
        starts[1:] = np.any([bound[1:] != bound[:-1] for span in picked for bound in span], axis=0)
        firsts = np.flatnonzero(starts)
        distinct = [(lo[firsts], hi[firsts]) for lo, hi in picked]
        return cls(distinct, np.flatnonzero(counted), np.cumsum(starts) - 1)

    @property
    def widths(self) -> Integers:
        widths: Integers = np.sum([hi - lo for lo, hi in self.spans], axis=0)
        return widths

    @property
    def is_cheaper(self) -> bool:
        widths = self.widths
        folded = widths.copy()
        if len(self.spans) == 1 and len(widths):
            ((lo, hi),) = self.spans
            continues = np.append(False, (lo[1:] == lo[:-1]) & (hi[1:] >= hi[:-1]))
            folded[continues] = np.diff(hi, prepend=0)[continues]
        return int(widths.sum()) <= _GAIN.value * int(folded.sum())

    def blocks(self) -> Iterator[tuple[int, Segments]]:
        """Yield frames that hold a row, as segments, with the number of the first: so many at once that they fit into memory."""
        ends = np.cumsum(self.widths)
        cuts = np.searchsorted(ends, np.arange(0, int(ends.max(initial=0)), BLOCK.value), side="right")
        for low, high in pairwise(sorted({0, *cuts.tolist(), len(ends)})):
            yield low, self._written(low, high)

    def _written(self, low: int, high: int) -> Segments:
        lo, hi = (np.stack([span[side][low:high] for span in self.spans], axis=1).ravel() for side in (0, 1))
        lengths = hi - lo
        starts = np.append(0, np.cumsum(lengths))
        order = np.arange(starts[-1]) - np.repeat(starts[:-1] - lo, lengths)
        return Segments(self.counted[order], starts[:: len(self.spans)])


def of_each_value_the_first(segments: Segments, codes: Sequence[Integers]) -> Segments:
    """Return segments with, of rows of one segment that are equal in all ``codes``, the first."""
    columns = [segments.numbers, *(code[segments.order] for code in codes)]
    order = lexical_order(columns)
    repeats = np.zeros(len(order), np.bool_)
    repeats[1:] = np.all([column[order[1:]] == column[order[:-1]] for column in columns], axis=0)
    kept = np.ones(len(order), np.bool_)
    kept[order[repeats]] = False
    return Segments(segments.order[kept], np.append(0, np.cumsum(kept))[segments.offsets])
