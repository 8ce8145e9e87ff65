"""Which rows of a batch missed windows: counted, and kept as late data where it is asked for.

All rows of a slice are in the same windows, so a whole slice is late or not. Only for a row in a gap between windows, which is in
no slice, its own time decides. Source of the rules: Flink's WindowOperator.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from windowpane.arrays import Integers
from windowpane.engines.common.late_rows import FINISHED, late_table
from windowpane.engines.common.slicing import Slices
from windowpane.engines.program import Program
from windowpane.hidden_columns import TIME
from windowpane.windowing.windows import TimeWindow, Window

IsLate = Callable[[TimeWindow], bool]


class Missed(NamedTuple):
    """The windows that the rows of a slice missed, and whether they are all it has."""

    windows: list[TimeWindow]
    is_all: bool


_IN_GAP = Missed([], True)


class MissedWindows:
    """Counts and collects the rows that missed windows in one batch."""

    def __init__(self, program: Program) -> None:
        self.elements = self.dropped = self.finished = 0
        self._program = program
        self._tables: list[pa.Table] = []

    def count(self, slices: Slices, starts: Integers, rows: Integers, is_late: IsLate) -> None:
        """Count late rows where only their number in each slice is known."""
        for start, missed in _missed(slices, starts, is_late).items():
            late = int(rows[starts == start].sum())
            self.elements += late
            self.dropped += late if missed.is_all else 0

    def report(self, slices: Slices, rows: pa.Table, starts: Integers, clock: int, is_late: IsLate) -> None:
        """Count the rows that missed windows, and keep them where late data is asked for.

        Args:
            slices: the slices of the windows.
            rows: the rows, in the order in which late ones are reported.
            starts: the slice of each.
            clock: the watermark, with which the times of rows in gaps between windows are compared.
            is_late: whether a window is over.
        """
        missed = _missed(slices, starts, is_late)
        is_missing = np.isin(starts, list(missed)) if missed else np.zeros(len(starts), bool)
        in_gap = np.zeros(len(starts), bool)
        if slices.has_gaps:
            in_gap = ~slices.covers(rows[TIME].to_numpy(), starts)
            behind = self._program.spec.lateness.are_behind(rows[TIME].to_numpy(), clock)
            is_missing = np.where(in_gap, behind, is_missing)
        numbers = np.flatnonzero(is_missing).tolist()
        self._take(rows, numbers, [_IN_GAP if in_gap[number] else missed[int(starts[number])] for number in numbers])

    def count_dropped(self, rows: int) -> None:
        """Count rows that no window took, where only their number is known."""
        self.elements += rows
        self.dropped += rows

    def drop(self, rows: pa.Table, starts: Integers, ends: Integers) -> None:
        """Count rows that no window took, each of which missed one, and keep them where late data is asked for."""
        self.count_dropped(rows.num_rows)
        if rows.num_rows and self._program.late_output is not None:
            missed = [[TimeWindow(start, end)] for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]
            numbers = range(rows.num_rows)
            self._tables.append(late_table(self._program, rows, numbers, missed, [True] * rows.num_rows))

    def finish(self, rows: pa.Table, numbers: Integers, windows: Sequence[Window]) -> None:
        """Count rows of windows whose trigger is finished, and keep them where late data is asked for."""
        self.finished += len(numbers)
        if self._program.late_output is not None:
            missed: dict[int, list[Window]] = {}
            for number, window in zip(numbers.tolist(), windows, strict=True):
                missed.setdefault(number, []).append(window)
            count = len(missed)
            self._tables.append(
                late_table(self._program, rows, list(missed), list(missed.values()), [True] * count, [FINISHED] * count)
            )

    def table(self) -> pa.Table | None:
        return pa.concat_tables(self._tables) if self._tables else None

    def _take(self, rows: pa.Table, numbers: list[int], missed: list[Missed]) -> None:
        self.elements += len(numbers)
        self.dropped += sum(each.is_all for each in missed)
        if numbers and self._program.late_output is not None:
            windows, dropped = zip(*missed, strict=True)
            self._tables.append(late_table(self._program, rows, numbers, windows, dropped))


def _missed(slices: Slices, starts: Integers, is_late: IsLate) -> dict[int, Missed]:
    found = {}
    for start in np.unique(starts).tolist():
        windows = slices.windows_of(start)
        late = [window for window in windows if is_late(window)]
        if late:
            found[start] = Missed(late, len(late) == len(windows))
    return found
