"""Which rows a batch of changes can affect: those whose frame holds, or held, a changed place. The changes may lie far apart.

``Merged`` holds the rows: those before and after the changes in one order, those that are deleted among them. All frames are
taken as ones that hold the current row: a change between a row and its ROWS or GROUPS frame shifts the frame, and the rows that
a change affects lie side by side up to the change, so whoever reads pages need only look beyond a page that ends with such a row.
The answer may be too wide, never too narrow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from windowpane.arrays import Mask
from windowpane.kernels.over.frames import find_frames
from windowpane.kernels.over.protocol import CallKernel
from windowpane.kernels.over.rows import SortedRows
from windowpane.windowing.frames import CURRENT_ROW, Frame, Side, Units, merge_rows_frames

_FAR = 1 << 40


@dataclass(frozen=True)
class Merged:
    rows: SortedRows  # all of them, sorted, with the segments of both
    deleted: Mask  # which are not there any more
    inserted: Mask  # which are new, or overwritten


def affected_by_frames(merged: Merged, calls: Sequence[CallKernel]) -> Mask:
    """Return which rows of ``merged`` a change may affect through the frames of calls that do not run."""
    frames = {call.call.reach for call in calls if not call.is_running}
    rows_frames = [frame for frame in frames if frame.units is Units.ROWS]
    changed = merged.deleted | merged.inserted
    found = changed.copy()
    if rows_frames:
        found |= _by_rows(merged, merge_rows_frames(rows_frames))
    before = np.append(0, np.cumsum(changed))
    for frame in frames:
        if frame.units is not Units.ROWS:
            wide = find_frames(_with_current_row(frame), merged.rows.order(frame))
            found |= before[wide.hi] > before[wide.lo]
    return found


def affected_by_running(merged: Merged) -> Mask:
    """Return which rows a change may affect through running calls: all from the peers of the first change on."""
    layout = merged.rows.layout
    changed = np.flatnonzero(merged.deleted | merged.inserted)
    first = np.full(len(layout.segment_firsts), layout.size)
    np.minimum.at(first, layout.segment[changed], layout.peer_first[changed])
    return layout.numbers >= first[layout.segment]


def _with_current_row(frame: Frame) -> Frame:
    if frame.units is Units.SESSION or frame.is_canonical:
        return frame
    start = CURRENT_ROW if frame.start.side is Side.FOLLOWING else frame.start
    end = CURRENT_ROW if frame.end.side is Side.PRECEDING else frame.end
    return Frame(frame.units, start, end)


def _by_rows(merged: Merged, frame: Frame) -> Mask:
    """Mark, around each change, as many existing rows as the frame reaches."""
    layout = merged.rows.layout
    live = np.append(0, np.cumsum(~merged.deleted))
    changed = np.flatnonzero(merged.deleted | merged.inserted)
    place = live[changed]
    stays = ~merged.deleted[changed]
    back, ahead = (_FAR if reach is None else reach for reach in (frame.n_following, frame.n_preceding))
    segment = layout.segment[changed]
    lowest, highest = live[layout.segment_firsts][segment], live[layout.segment_ends][segment]
    start = np.clip(place - back, lowest, highest)
    end = np.clip(place + ahead + stays, start, highest)
    marks = np.zeros(live[-1] + 1, np.int64)
    np.add.at(marks, start, 1)
    np.add.at(marks, end, -1)
    found = np.zeros(layout.size, np.bool_)
    found[~merged.deleted] = np.cumsum(marks[:-1]) > 0
    return found
