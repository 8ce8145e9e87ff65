"""The program of an OVER window: everything an engine needs to run it on a bucket, as one picklable value.

Input tables carry the columns of ``OverProgram.columns``, ``CHANGE_TYPE`` (absent: every row is an insert) and the system columns
TIME, PARTITION and POSITION of ``engines.program``. Output tables carry the input columns, one column per call, ``CHANGE_TYPE``
in mode update, and TIME and FIRING_WATERMARK. Changes of one batch to one row count as one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

import pyarrow as pa

from windowpane.engines.batch.late_rows import INSTANT, late_schema
from windowpane.engines.changes import Description, shown
from windowpane.engines.program import BucketProgram
from windowpane.errors import ChangedPlanError
from windowpane.hidden_columns import FIRING_WATERMARK, TIME
from windowpane.windowing.lateness import horizon
from windowpane.windowing.outputs import CHANGE_TYPE
from windowpane.windowing.over.spec import OverSpec, watermark_delay
from windowpane.windowing.times import MIN


class Emit(Enum):
    UPDATE = "update"
    """With every batch, as a changelog."""
    CLOSE = "close"
    """Once for each row, when order and frame are complete."""


class Inconsistent(Enum):
    """What happens to a change that cannot be: a double insert, a delete of an absent row, an update after a delete."""

    ERROR = "error"
    WARN = "warn"
    """It is counted. The newest row counts, and a delete of an absent row is ignored."""


@dataclass(frozen=True)
class OverProgram(BucketProgram):
    spec: OverSpec  # the window itself
    columns: pa.Schema  # names and types of the input columns
    outputs: pa.Schema  # names and types of the columns of the calls, in call order
    mode: Emit = Emit.UPDATE  # when results are emitted
    # the column with the event time, ``None`` if there is none. In mode close it is the ORDER BY column.
    time_column: str | None = None
    allowed_lateness: int = 0  # in mode close, how long in microseconds a row is waited for after the watermark has passed it
    append_only: bool = False  # whether the input has inserts only
    # in mode update, how long in microseconds of event time rows are kept behind the watermark. ``None``: as long as a row that
    # is not late can reach them, if the input is append-only and has an event time; else for ever.
    retain: int | None = None
    on_inconsistent: Inconsistent = Inconsistent.ERROR  # what happens to changes that cannot be
    has_late_output: bool = False  # whether late rows are emitted as output ``LATE``
    # where each partition has a watermark of its own, the microseconds by which it stays behind the latest of its rows
    key_delay: int | None = None
    # the input columns and outputs that are emitted, ``None`` for all: no other is read behind the operator
    read: frozenset[str] | None = None
    earlier: tuple[OverProgram, ...] = ()  # those with other calls that may have written what a bucket holds

    def writer_of(self, was: Description) -> OverProgram:
        """Return the earlier program that a header describes.

        Raises:
            ChangedPlanError: it is none of those that a start has found.
        """
        found = next((each for each in self.earlier if each.description["calls"] == was["calls"]), None)
        if found is None:
            note = "  its calls were others, which result.start(...) knows of, and result.df does not"
            raise ChangedPlanError({"calls": (shown("calls", was["calls"]), shown("calls", self.description["calls"]))}, [note])
        columns = pa.schema([field for field in self.columns if field.name in {each["name"] for each in was["columns"]}])
        return replace(found, columns=columns)

    @property
    def main_schema(self) -> pa.Schema:
        changes = [pa.field(CHANGE_TYPE, pa.string())] if self.mode is Emit.UPDATE else []
        system = [pa.field(TIME, pa.int64()), pa.field(FIRING_WATERMARK, pa.int64())]
        rows = [field for field in (*self.columns, *self.outputs) if self.read is None or field.name in self.read]
        return pa.schema([*rows, *changes, *system])

    @property
    def result_schema(self) -> pa.Schema:
        return pa.schema([field for field in self.main_schema if field.name != FIRING_WATERMARK])

    @property
    def late_schema(self) -> pa.Schema:
        """What late rows are emitted with."""
        kind = None if self.time_column is None else self.columns.field(self.time_column).type
        return late_schema(self.columns, kind if kind is not None and pa.types.is_timestamp(kind) else INSTANT)

    def horizon(self, watermark: int) -> int | None:
        """Return the event time at or below which rows are late under a watermark; ``None``: no row ever is.

        In mode update rows are late only where state behind the watermark may have been dropped.
        """
        if self.mode is Emit.CLOSE:
            lateness: int | None = self.allowed_lateness
        else:
            keeps_all = self.time_column is None or not (self.append_only or self.retain is not None)
            lateness = None if keeps_all else self.retain or 0
        if lateness is None:
            return None
        return horizon(watermark, lateness)

    @property
    def null_is_late(self) -> bool:
        """Whether rows without event time are late once there is a horizon: where they are with the oldest of the order."""
        order = self.spec.order_by
        if self.mode is Emit.CLOSE or self.horizon(0) is None or not order or order[0].name != self.time_column:
            return False
        return order[0].nulls_first != order[0].descending

    def fired_under(self, watermark: int) -> int:
        """Return the FIRING_WATERMARK of rows that are emitted when the watermark advances from ``watermark``.

        No row that is emitted now or later is at or below it. It is ``MIN`` where rows can trail the watermark without a limit:
        those of a changelog, and of frames that wait for later rows.
        """
        if self.mode is Emit.UPDATE:
            return MIN
        late, delay = self.horizon(watermark), watermark_delay(self.spec)
        return MIN if late is None or delay is None else horizon(late, delay)
