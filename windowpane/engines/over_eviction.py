"""Which stored rows no row to come can reach: those the general engine drops.

    rows of a partition   . . . | L | R | horizon | rows that may still change
                          dropped ^ kept

Rows at or below the horizon are final: no change to them is taken any more. A row to come stands behind them all, so it affects
at most the last R of them (as many rows as frames look ahead) and reaches at most L rows further back; running calls need
one row for its carry columns. That holds where rows are ordered by event time, ascending, and frames count rows. Source:
RisingWave #26917.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import pyarrow as pa

from windowpane.engines.over_program import OverProgram
from windowpane.kernels.ordered_codes import Mask
from windowpane.kernels.over_calls import CallKernel
from windowpane.kernels.over_rows import SortedRows
from windowpane.windowing.frames import Side, Units, merge_rows_frames


@dataclass(frozen=True)
class Eviction:
    """How many rows at or below the horizon are kept of each partition."""

    kept: int

    @classmethod
    def of(cls, program: OverProgram, calls: Sequence[CallKernel]) -> Self | None:
        """Return the eviction of a program, ``None`` if its rows are kept for ever."""
        order = program.spec.order_by
        if program.horizon(0) is None or not order or order[0].name != program.time_column:
            return None
        if order[0].descending or order[0].nulls_first:
            return None
        framed = [call.call.reach for call in calls if not call.is_running]
        if any(frame.units is not Units.ROWS for frame in framed):
            return None
        reach = merge_rows_frames(framed)
        behind = [_running_reach(call) for call in calls if call.is_running]
        if reach.n_preceding is None or reach.n_following is None or None in behind:
            return None
        return cls(reach.n_preceding + reach.n_following + max((each for each in behind if each is not None), default=0))

    def dropped(self, rows: SortedRows, times: pa.ChunkedArray, horizon: int) -> Mask:
        """Return which rows go."""
        layout = rows.layout
        final = (times.fill_null(horizon + 1).to_numpy() <= horizon).astype(np.int64)
        behind = np.add.reduceat(final, layout.segment_firsts) if layout.size else final
        last = layout.segment_firsts + behind - self.kept
        dropped: Mask = layout.numbers < last[layout.segment] if layout.size else np.zeros(0, np.bool_)
        return dropped


def _running_reach(call: CallKernel) -> int | None:
    """Return how many rows before a row to come a running call needs; ``None``: it depends on their values."""
    frame = call.call.frame
    if frame is None or frame.end.side is Side.CURRENT_ROW:
        return 1
    return 1 - (frame.end.steps or 0) if frame.units is Units.ROWS else None
