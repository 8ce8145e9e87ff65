"""Late rows of a bucket, counted: by the hour of their event time, and by how late they were. Kept in the header, so bounded.

How late a row is: how much longer the delay of the watermark would have had to be for it to be on time. Of windows that is how
far the watermark was behind the last instant of the first window that had ended; rows that were folded before they arrived are
counted by their slice, which is in the same windows. Spans of lateness double: under a second, under two, under four...

A row is *dropped* if nothing took it, else it *refined* a window that had fired, and was still kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from windowpane.arrays import Integers
from windowpane.arrays.values import Value
from windowpane.sizes import Size
from windowpane.windowing.times import MAX, MIN

MOST_CELLS: Final = Size("cells of the counters of late rows", 256, (4, 8))
_HOUR, _SECOND, _LONGEST = 3_600_000_000, 1_000_000, 100
Cell = list[Value]  # the start of an hour, the number of a span of lateness, rows, how many were dropped, and the key of one


class LateCounts:
    """The counters of one bucket."""

    def __init__(self, cells: Sequence[Sequence[Value]] = ()) -> None:
        self._cells: dict[tuple[int, int], Cell] = {(cell[0], cell[1]): list(cell) for cell in cells}

    @classmethod
    def together(cls, counted: Iterable[Sequence[Sequence[Value]]]) -> LateCounts:
        """Return the counters of several buckets as those of one."""
        found = cls()
        for hour, span, rows, dropped, key in (cell for cells in counted for cell in cells):
            cell = found._cells.setdefault((hour, span), [hour, span, 0, 0, key])
            cell[2], cell[3] = cell[2] + rows, cell[3] + dropped
        found._bound()
        return found

    def note(
        self, times: Integers, last_instants: Integers, watermark: int, rows: Integers, dropped: Integers, key: Value = None
    ) -> None:
        """Count rows, by an event time of each, or of its slice, and the last instant at which it would not be late.

        Each stands for so many ``rows``, of which nothing took those that were ``dropped``, or that were noted before; ``key`` is
        that of the first of them, ``None`` where it is not known.
        """
        if not len(times) or watermark in (MIN, MAX):
            return
        seconds = np.maximum(watermark - last_instants, 0) // _SECOND
        spans = np.ceil(np.log2(seconds + 1)).astype(np.int64)
        hours = times // _HOUR * _HOUR
        codes, firsts, of = np.unique(hours + spans, return_index=True, return_inverse=True)  # no hour has so many spans
        counts = [np.bincount(of, weights=each, minlength=len(codes)).astype(np.int64).tolist() for each in (rows, dropped)]
        for hour, span, first, *added in zip(
            hours[firsts].tolist(), spans[firsts].tolist(), firsts.tolist(), *counts, strict=True
        ):
            cell = self._cells.setdefault((hour, span), [hour, span, 0, 0, None])
            cell[2], cell[3] = cell[2] + added[0], cell[3] + added[1]
            if key is not None and cell[4] is None and not first:
                cell[4] = str(key)[:_LONGEST]
        self._bound()

    def note_dropped(self, times: pa.ChunkedArray | pa.Array, watermark: int, key: Value = None) -> None:
        """Count rows by their event times, none of which was taken."""
        known = times.drop_null().to_numpy()
        each = np.ones(len(known), np.int64)
        self.note(known, known, watermark, each, each, key)

    def cells(self) -> list[Cell]:
        """Return what is kept, by hour and span."""
        return [self._cells[at] for at in sorted(self._cells)]

    def _bound(self) -> None:
        """Keep the latest hours apart, half as many cells as may be; earlier hours become part of the first one kept."""
        if len(self._cells) <= MOST_CELLS.value:
            return
        held, first = 0, MAX
        for hour, spans in sorted(Counter(hour for hour, _ in self._cells).items(), reverse=True):
            held += spans
            if first < MAX and held > MOST_CELLS.value // 2:
                break
            first = hour
        for at in sorted(at for at in self._cells if at[0] < first):
            was = self._cells.pop(at)
            cell = self._cells.setdefault((first, at[1]), [first, at[1], 0, 0, was[4]])
            cell[2], cell[3] = cell[2] + was[2], cell[3] + was[3]


def span_of(number: int) -> tuple[float, float]:
    """Return the seconds that a span of lateness begins and ends at.

    Example:
        >>> span_of(0), span_of(3)
        ((0.0, 1.0), (4.0, 8.0))
    """
    return (0.0, 1.0) if number == 0 else (float(2 ** (number - 1)), float(2**number))
