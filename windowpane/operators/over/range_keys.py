"""Order keys at a distance: the edges of RANGE frames and the seams between sessions.

PRECEDING moves toward the start of the partition, which adds to the value if the order is descending. Source: RisingWave's RANGE
and SESSION frames; there a descending session adds the gap in the wrong direction, here distances follow the order.
"""

from __future__ import annotations

from windowpane.operators.over.row_order import OrderKey, RowOrder
from windowpane.windowing.frames import Bound, Offset, Side
from windowpane.windowing.over.range_offsets import shifted


def moved_key(order: RowOrder, key: OrderKey, offset: Offset, toward_end: bool) -> OrderKey:
    """Return the order key at a distance from another one; NULL stays where it is."""
    value = shifted(order.value_of(key), offset, forward=toward_end != order.is_descending)
    return order.key_of(value, toward_end)


def frame_edge(order: RowOrder, key: OrderKey, bound: Bound) -> OrderKey:
    """Return the order key at which a bound, not an unbounded one, of the frame of a row lies."""
    if bound.offset is None:
        return key
    return moved_key(order, key, bound.offset, toward_end=bound.side is Side.FOLLOWING)


def starts_session(order: RowOrder, previous: OrderKey, key: OrderKey, gap: Offset) -> bool:
    """Return whether a row begins a new session behind its predecessor; NULLs are a session of their own."""
    if order.value_of(previous) is None:
        return previous != key
    return not key < moved_key(order, previous, gap, toward_end=True)
