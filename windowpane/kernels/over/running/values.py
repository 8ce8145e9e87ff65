"""Running calls that give a value of the partition: its first, the last of the frame, the smallest or largest text."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
import pyarrow as pa

from windowpane.kernels.over.picks import NOWHERE, taken
from windowpane.kernels.over.rows import SortedRows
from windowpane.kernels.over.running.calls import Running, column_name, frame_ends
from windowpane.windowing.over.spec import OverCall


class RunningValue(Running):
    """A running call whose carry column is its value."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The carry column."""

    @property
    def carries(self) -> pa.Schema:
        return pa.schema([(self.name, self.kind)])

    def value(self, rows: SortedRows) -> pa.Array:
        return _at_ends(rows.carries[self.name], rows, self.call)


def _at_ends(values: pa.Array, rows: SortedRows, call: OverCall) -> pa.Array:
    """Return the values of the rows that frames end with, null for empty frames."""
    ends = frame_ends(rows, call)
    return taken(values, np.where(ends.some, ends.row, NOWHERE))


class RunningFirst(RunningValue):
    """The value of the partition's first row."""

    reads_every_row = True

    @property
    def name(self) -> str:
        return column_name("first", self.call)

    def scan(self, rows: SortedRows) -> None:
        if self.name in rows.carries:
            return
        values = rows.column(self.call.arguments[0])
        if rows.seeded.any():
            source: Any = pa.chunked_array([values, rows.seeds(self.name)[0]]).combine_chunks()
            pick = rows.layout.segment_firsts.copy()
            pick[rows.seeded] = len(values) + np.arange(int(rows.seeded.sum()))
        else:
            source, pick = values, rows.layout.segment_firsts
        rows.carries[self.name] = source.take(pa.array(np.repeat(pick, rows.layout.segment_ends - rows.layout.segment_firsts)))


class RunningLast(Running):
    """The value of the frame's last row: the rows carry nothing."""

    reads_every_row = True

    @property
    def carries(self) -> pa.Schema:
        return pa.schema([])

    def scan(self, rows: SortedRows) -> None:
        """There is nothing to carry."""

    def value(self, rows: SortedRows) -> pa.Array:
        return _at_ends(rows.column(self.call.arguments[0]), rows, self.call)
