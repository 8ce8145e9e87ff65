"""What a call of an OVER window is as a kernel on sorted rows, and what aggregates of frames and running calls have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import pyarrow as pa

from windowpane.arrays import Integers, Mask
from windowpane.kernels.over.rows import SortedRows
from windowpane.kernels.over.sums import counts
from windowpane.windowing.over.spec import OverCall
from windowpane.windowing.over.types import call_type


class CallKernel(ABC):
    """One call, bound to the types of its input."""

    is_running: ClassVar[bool] = False
    """Whether the call continues from the carry columns of the row before."""
    is_folded = False
    """Whether each frame is folded row by row, in Python."""

    def __init__(self, call: OverCall, columns: pa.Schema) -> None:
        self.call = call
        self.kind = columns.field(call.arguments[0]).type if call.arguments else None
        self.result_type = call_type(call, columns)

    @property
    def carries(self) -> pa.Schema:
        """The carry columns of a running call."""
        return pa.schema([])

    def scan(self, rows: SortedRows) -> None:
        """Put the carry columns of all rows into ``rows.carries``, those that are not there yet."""

    @abstractmethod
    def value(self, rows: SortedRows) -> pa.Array:
        """Return the value of each row that is wanted, after ``scan``."""

    def reaches_first(self, rows: SortedRows) -> Mask:
        """Return where the value may depend on rows before the segment's first, besides its carry columns."""
        return rows.frames(self.call.reach).reaches_first

    def reaches_end(self, rows: SortedRows) -> Mask:
        """Return where the value may depend on rows from the segment's end on."""
        return rows.frames(self.call.reach).reaches_end


class FramedAggregate(CallKernel):
    """An aggregate of frames that counts the rows where every argument has a value, and that pass the FILTER."""

    def value(self, rows: SortedRows) -> pa.Array:
        counted = rows.counted(self.call.arguments, self.call.filter)
        return self.over(rows, counted, counts(counted, rows.spans(self.call.own_frame)))

    @abstractmethod
    def over(self, rows: SortedRows, counted: Mask, count: Integers) -> pa.Array:
        """Return the value of each row, given which rows count and how many of them each frame holds."""

    def argument(self, rows: SortedRows) -> pa.Array:
        return rows.column(self.call.arguments[0])


class Running(CallKernel):
    """A call whose frames begin where partitions do; its value needs no row but the carry columns of the row before."""

    is_running = True
    reads_every_row: ClassVar[bool] = False
    """Whether it knows no FILTER."""

    @property
    @abstractmethod
    def carries(self) -> pa.Schema: ...

    @abstractmethod
    def scan(self, rows: SortedRows) -> None: ...

    def reaches_first(self, rows: SortedRows) -> Mask:
        unknown: Mask = rows.frames(self.call.own_frame).hi == rows.layout.first
        return unknown
