"""Late rows of a batch: counted, and where it is asked for as data, with the windows they missed and whether none took them.

All rows of a slice are in the same windows, so a whole slice is late or not. Only for a row in a gap between windows, which is in
no slice, its own time decides. Source of the rules: Flink's WindowOperator.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from windowpane.arrays import Integers, Mask
from windowpane.arrays.values import Value
from windowpane.engines.batch.driver import OrderedBatch
from windowpane.engines.batch.late_rows import DROPPED, REASON, WINDOWS_MISSED, late_table
from windowpane.engines.common.slicing import Slices
from windowpane.engines.program import Program
from windowpane.engines.protocol import Clock
from windowpane.engines.rows import python_keys
from windowpane.errors import present
from windowpane.hidden_columns import TIME
from windowpane.windowing.times import MAX
from windowpane.windowing.windows import TimeWindow, Window

LATE, FINISHED = "late", "finished"
"""It was too late for the windows; or their trigger was finished."""

_MICROS = pa.list_(pa.struct([("start", pa.int64()), ("end", pa.int64())]))


def missing_rows(
    program: Program,
    rows: pa.Table,
    numbers: Sequence[int],
    missed: Sequence[Sequence[Window]],
    dropped: Sequence[bool],
    under: int | Integers,
    clock: Clock,
    reasons: Sequence[str] = (),
) -> pa.Table:
    """Return the late output for rows of a batch: for each of these numbers the windows it missed, and whether none took it.

    ``under`` is the watermark that they are late under, or that of each; ``reasons`` why each is here, where it is not that it is
    late.
    """
    number = present(program.late_output, "late rows are collected only where they are asked for")
    schema = program.side_outputs[number - 1].schema
    kept = rows.take(pa.array(numbers, pa.int64()))
    bounds = pa.array([[_bounds(window) for window in windows] for windows in missed], _MICROS)
    outcome = {
        WINDOWS_MISSED: bounds.cast(schema.field(WINDOWS_MISSED).type),
        DROPPED: pa.array(dropped, pa.bool_()),
        REASON: pa.array(reasons or [LATE] * len(numbers), pa.string()),
    }
    return late_table(schema, kept, under, clock, outcome)


def _bounds(window: Window) -> dict[str, int | None]:
    if isinstance(window, TimeWindow):
        return {"start": window.start, "end": window.end}
    return {"start": None, "end": None}


IsLate = Callable[[TimeWindow], bool]


class Missed(NamedTuple):
    """The windows that the rows of a slice missed, and whether they are all it has."""

    windows: list[TimeWindow]
    is_all: bool


_IN_GAP = Missed([], True)


class MissedWindows:
    """Counts and collects the rows that missed windows in one batch."""

    def __init__(self, batch: OrderedBatch[Program]) -> None:
        self._batch, self._program = batch, batch.program
        self._late_counts = batch.late_counts
        self.elements = self.dropped = self.finished = 0
        self._tables: list[pa.Table] = []

    def count(self, slices: Slices, starts: Integers, rows: Integers, clock: int, is_late: IsLate) -> None:
        """Count late rows where only their number in each slice is known."""
        for start, missed in self._missed(slices, starts, rows, clock, is_late).items():
            late = int(rows[starts == start].sum())
            self.elements += late
            self.dropped += late if missed.is_all else 0

    def report(self, slices: Slices, rows: pa.Table, starts: Integers, clock: int, is_late: IsLate) -> None:
        """Count the rows, of these slices, that missed windows, and keep them where late data is asked for, in their order.

        The times of rows in gaps between windows are compared with ``clock``, a watermark.
        """
        missed = self._missed(slices, starts, None, clock, is_late, rows)
        is_missing = np.isin(starts, list(missed)) if missed else np.zeros(len(starts), bool)
        in_gap = np.zeros(len(starts), bool)
        if slices.has_gaps:
            in_gap = ~slices.covers(rows[TIME].to_numpy(), starts)
            behind = self._program.spec.lateness.are_behind(rows[TIME].to_numpy(), clock)
            is_missing = np.where(in_gap, behind, is_missing)
        numbers = np.flatnonzero(is_missing).tolist()
        self._take(rows, numbers, [_IN_GAP if in_gap[number] else missed[int(starts[number])] for number in numbers])

    def _missed(
        self,
        slices: Slices,
        starts: Integers,
        rows: Integers | None,
        clock: int,
        is_late: IsLate,
        whole: pa.Table | None = None,
    ) -> dict[int, Missed]:
        """Return what slices missed, and note the rows of those some of whose windows have ended; a later slice has none."""
        behind = starts <= clock
        if not behind.any():
            return {}
        distinct, of = np.unique(starts[behind], return_inverse=True)
        counts = np.bincount(of, weights=None if rows is None else rows[behind]).astype(np.int64)
        found, noted = dict[int, Missed](), list[tuple[int, ...]]()
        for start, count in zip(distinct.tolist(), counts.tolist(), strict=True):
            windows = slices.windows_of(start)
            first = min((window.max_timestamp for window in windows), default=MAX)
            if first > clock:
                continue
            late = [window for window in windows if is_late(window)]
            if late:
                found[start] = Missed(late, len(late) == len(windows))
            noted.append((start, first, count, count * (len(late) == len(windows))))
        if noted:
            times, lasts, rows_of, dropped = (np.array(column) for column in zip(*noted, strict=True))
            self._late_counts.note(times, lasts, clock, rows_of, dropped, self._key(whole, starts == times[0]))
        return found

    def _key(self, rows: pa.Table | None, which: Mask) -> Value:
        return None if rows is None else python_keys(rows.slice(int(which.argmax()), 1), self._program.key_columns)[0]

    def count_dropped(self, rows: int) -> None:
        """Count rows that no window took, where only their number is known."""
        self.elements += rows
        self.dropped += rows

    def drop(self, rows: pa.Table, starts: Integers, ends: Integers) -> None:
        """Count rows that no window took, each of which missed one, and keep them where late data is asked for."""
        self.count_dropped(rows.num_rows)
        if rows.num_rows and self._program.late_output is not None:
            missed = [[TimeWindow(start, end)] for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]
            self._keep(rows, range(rows.num_rows), missed, [True] * rows.num_rows)

    def finish(self, rows: pa.Table, numbers: Integers, windows: Sequence[Window]) -> None:
        """Count rows of windows whose trigger is finished, and keep them where late data is asked for."""
        self.finished += len(numbers)
        if self._program.late_output is not None:
            missed: dict[int, list[Window]] = {}
            for number, window in zip(numbers.tolist(), windows, strict=True):
                missed.setdefault(number, []).append(window)
            count = len(missed)
            self._keep(rows, list(missed), list(missed.values()), [True] * count, [FINISHED] * count)

    def table(self) -> pa.Table | None:
        return pa.concat_tables(self._tables) if self._tables else None

    def _take(self, rows: pa.Table, numbers: list[int], missed: list[Missed]) -> None:
        self.elements += len(numbers)
        self.dropped += sum(each.is_all for each in missed)
        if numbers and self._program.late_output is not None:
            windows, dropped = zip(*missed, strict=True)
            self._keep(rows, numbers, windows, dropped)

    def _keep(
        self,
        rows: pa.Table,
        numbers: Sequence[int],
        missed: Sequence[Sequence[Window]],
        dropped: Sequence[bool],
        reasons: Sequence[str] = (),
    ) -> None:
        batch = self._batch
        self._tables.append(missing_rows(batch.program, rows, numbers, missed, dropped, batch.late_under, batch.clocks, reasons))
