"""When the frames of a row are complete, and which rows later frames still need: for one call, on a partition in order.

    rows   e  e  k  k | c  .  .  .          e evicted, k kept, emitted before   c the first row not yet emitted
                      ^ index      closed: no row at or below it is still to come

``closed`` is the watermark in microseconds; for the rest the rows already here suffice, so ROWS frames close by rows alone. At
the end of a bounded input (``closed`` = MAX) every frame is complete.
"""

from __future__ import annotations

import datetime as dt
from math import ceil

from windowpane.arrays.values import Value
from windowpane.operators.over.row_order import RowOrder
from windowpane.operators.over.sorted_partition import SortedPartition
from windowpane.windowing.frames import Bound, Frame, Side, Units
from windowpane.windowing.intervals import Interval
from windowpane.windowing.over.spec import OverCall
from windowpane.windowing.over.types import BEYOND, CALENDAR_SLACK, shifted
from windowpane.windowing.times import MAX

_EPOCH = dt.datetime(1970, 1, 1)
_MICROSECOND = dt.timedelta(microseconds=1)


def instant(value: Value) -> int:
    """Return a value of the ORDER BY column in microseconds: a time, a day, or a number that is taken as it is."""
    if value is BEYOND:
        return MAX
    if isinstance(value, dt.datetime):
        naive = value if value.tzinfo is None else value.astimezone(dt.UTC).replace(tzinfo=None)
        return (naive - _EPOCH) // _MICROSECOND
    if isinstance(value, dt.date):
        return (dt.datetime(value.year, value.month, value.day) - _EPOCH) // _MICROSECOND
    number: int = ceil(value)
    return number


class Closing:
    def __init__(self, call: OverCall, order: RowOrder) -> None:
        self._call = call
        self._frame: Frame = call.reach
        self._order = order

    def is_complete(self, partition: SortedPartition, index: int, closed: int) -> bool:
        if closed == MAX or self._call.is_numbering:
            return True
        if self._passes_over_nulls:
            return self._steps <= 0 or len(self._values(partition, range(index + 1, len(partition.rows)))) >= self._steps
        return _IS_COMPLETE[self._frame.units](self, partition, index, closed)

    def keep_from(self, partition: SortedPartition, index: int, closed: int) -> int:
        """Return the first row that the rows from ``index`` on, or rows still to come, need."""
        if self._call.is_numbering:
            return index
        if self._passes_over_nulls:
            needed = self._values(partition, range(index))[self._steps :] if self._steps < 0 else []
            return needed[0] if needed else index
        if self._frame.start.is_unbounded and self._frame.units is not Units.SESSION:
            return 0
        return min(index, _KEEP_FROM[self._frame.units](self, partition, index, closed))

    # --- lag and lead that pass over NULLs -------------------------------------------------------------

    @property
    def _passes_over_nulls(self) -> bool:
        return self._call.frame is None and self._call.ignore_nulls and self._steps != 0

    @property
    def _steps(self) -> int:
        return self._call.offset if self._call.function == "lead" else -self._call.offset

    def _values(self, partition: SortedPartition, rows: range) -> list[int]:
        column = self._call.arguments[0]
        return [index for index in rows if partition.rows[index][column] is not None]

    # --- ROWS ------------------------------------------------------------------------------------------

    def _rows_complete(self, partition: SortedPartition, index: int, closed: int) -> bool:
        steps = self._frame.end.steps
        return steps is not None and index + steps < len(partition.rows)

    def _rows_keep(self, partition: SortedPartition, index: int, closed: int) -> int:
        return max(index + (self._frame.start.steps or 0), 0)

    # --- GROUPS ----------------------------------------------------------------------------------------

    def _groups_complete(self, partition: SortedPartition, index: int, closed: int) -> bool:
        steps, last = self._frame.end.steps, partition.group_of(len(partition.rows) - 1)
        if steps is None:
            return False
        group = partition.group_of(index) + steps
        return group < last or (group == last and self._instant(partition, -1) <= closed)

    def _groups_keep(self, partition: SortedPartition, index: int, closed: int) -> int:
        if not partition.rows:
            return 0
        if index < len(partition.rows):
            group = partition.group_of(index)
        else:
            group = partition.group_of(index - 1) + (self._instant(partition, -1) <= closed)
        return partition.group_rows(group + min(self._frame.start.steps or 0, 0)).start

    # --- RANGE -----------------------------------------------------------------------------------------

    def _range_complete(self, partition: SortedPartition, index: int, closed: int) -> bool:
        bound = self._frame.end
        if bound.is_unbounded:
            return False
        edge = self._moved(self._value(partition, index), bound)
        if edge is BEYOND:
            return bound.side is Side.PRECEDING
        return instant(edge) <= closed or self._order.key_of(edge) < partition.keys[-1]

    def _range_keep(self, partition: SortedPartition, index: int, closed: int) -> int:
        """The first row whose value plus the offset reaches the lowest value that may still come."""
        if not partition.rows:
            return 0
        lowest = self._instant(partition, index) if index < len(partition.rows) else max(closed + 1, self._instant(partition, -1))
        for row in range(index):
            if self._last_reach(self._value(partition, row)) >= lowest:
                return row
        return index

    def _last_reach(self, value: object) -> int:
        """The last instant whose frame can hold a row of this value."""
        offset = self._frame.start.offset
        if self._frame.start.side is not Side.PRECEDING or offset is None:
            return instant(value)
        reached = shifted(value, offset, forward=True)
        if reached is not BEYOND and isinstance(offset, Interval) and not offset.is_fixed:
            reached = shifted(reached, CALENDAR_SLACK, forward=True)
        return instant(reached)

    # --- SESSION ---------------------------------------------------------------------------------------

    def _session_complete(self, partition: SortedPartition, index: int, closed: int) -> bool:
        end = partition.session(index, self._frame.session_gap).stop
        if end < len(partition.rows):
            return True
        beyond = instant(shifted(self._value(partition, -1), self._frame.session_gap, forward=True))
        return beyond - 1 <= closed

    def _session_keep(self, partition: SortedPartition, index: int, closed: int) -> int:
        return partition.session(index, self._frame.session_gap).start if index < len(partition.rows) else index

    # --- values ----------------------------------------------------------------------------------------

    def _value(self, partition: SortedPartition, index: int) -> Value:
        return self._order.value_of(partition.keys[index])

    def _instant(self, partition: SortedPartition, index: int) -> int:
        return instant(self._value(partition, index))

    def _moved(self, value: object, bound: Bound) -> Value:
        return value if bound.offset is None else shifted(value, bound.offset, forward=bound.side is Side.FOLLOWING)


_IS_COMPLETE = {
    Units.ROWS: Closing._rows_complete,
    Units.GROUPS: Closing._groups_complete,
    Units.RANGE: Closing._range_complete,
    Units.SESSION: Closing._session_complete,
}
_KEEP_FROM = {
    Units.ROWS: Closing._rows_keep,
    Units.GROUPS: Closing._groups_keep,
    Units.RANGE: Closing._range_keep,
    Units.SESSION: Closing._session_keep,
}
