"""Which OVER windows can emit on window close, and how far their rows trail the watermark.

A row is emitted once, when its place in the order is certain (the watermark has passed it) and so is every row of its frames.
Source: RisingWave's rules for EMIT ON WINDOW CLOSE; that RANGE, GROUPS and SESSION frames close by the watermark, too, is an
addition.
"""

from __future__ import annotations

from windowpane.errors import InvalidSpecError, NeverClosesError
from windowpane.windowing.calls import RUNNING_NUMBERING
from windowpane.windowing.frames import Frame, Offset, Side, Units
from windowpane.windowing.intervals import MICROS_PER_DAY, Interval
from windowpane.windowing.over.spec import OverCall, OverSpec


def check_closes(spec: OverSpec) -> None:
    """Refuse a window that cannot emit on window close.

    Raises:
        InvalidSpecError: it does not order by a single column in ascending order.
        NeverClosesError: a call needs the whole partition.
    """
    if len(spec.order_by) != 1 or spec.order_by[0].descending:
        order = ", ".join(map(str, spec.order_by)) or "nothing"
        raise InvalidSpecError(f"emit on window close orders by one column, ascending: the event time. This orders by {order}.")
    for call in spec.calls:
        if call.is_numbering and call.function not in RUNNING_NUMBERING:
            raise NeverClosesError(call, f"{call.function} needs the whole partition, and a stream has no end")
        if call.frame is not None and call.frame.units is not Units.SESSION and call.frame.end.is_unbounded:
            raise NeverClosesError(call, "its frame goes to the end of the partition, and a stream has none")


def watermark_delay(spec: OverSpec) -> int | None:
    """Return by how many microseconds emitted rows can trail the watermark, ``None`` if there is no limit."""
    delays = [_delay(call) for call in spec.calls]
    return None if None in delays else max(delay for delay in delays if delay is not None)


def why_unlimited(call: OverCall) -> str | None:
    """Return why rows can trail the watermark without a limit because of this call; ``None`` if they cannot."""
    if _delay(call) is not None:
        return None
    return f"{call} waits for later rows, which a quiet partition may never get"


def _delay(call: OverCall) -> int | None:
    if call.is_numbering:
        return 0
    frame = call.reach
    if frame.units is Units.SESSION:
        return None
    if frame.end.side in (Side.PRECEDING, Side.CURRENT_ROW):
        return 0
    return _range_delay(frame) if frame.units is Units.RANGE else None if _waits(frame) else 0


def _waits(frame: Frame) -> bool:
    return frame.end.is_unbounded or bool(frame.end.offset)


def _range_delay(frame: Frame) -> int | None:
    offset: Offset | None = frame.end.offset
    if isinstance(offset, Interval):
        return offset.micros + (offset.days + 31 * offset.months) * MICROS_PER_DAY + (0 if offset.is_fixed else MICROS_PER_DAY)
    return offset if isinstance(offset, int) else None
