"""The reference of the interval join: a row meets the held rows of the other side, and leaves when nothing can match it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from windowpane.operators.join.held import Arrival, Joined, KeyedRows, Matches, Row
from windowpane.windowing.joins import LEFT, IntervalJoin, gives_pairs, pads_left, pads_right

_NAMES = ("left", "right")


class _Held(NamedTuple):
    """A row in state: until which watermark it is held, and whether it has matched."""

    time: int
    final: int
    has_matched: bool
    row: Row


class IntervalJoinOperator:
    """One interval join on the rows of a bucket.

    Args:
        spec: the join.
        rows: its state.
        matches: what pairs must fulfil besides.
    """

    def __init__(self, spec: IntervalJoin, rows: KeyedRows, matches: Matches) -> None:
        self._spec = spec
        self._rows = rows
        self._matches = matches

    def advance(self, watermark: int) -> Iterator[Joined]:
        """Yield the rows without a match that are final under a watermark, and drop all rows that are."""
        while self._rows.turn_to_next(watermark):
            for side, name in enumerate(_NAMES):
                held = self._rows.read(name)
                yield from (
                    self._alone(side, each)
                    for each in held
                    if each.final <= watermark and not each.has_matched and self._pads(side)
                )
                self._rows.write(name, [each for each in held if each.final > watermark])

    def take(self, arrival: Arrival) -> Iterator[Joined]:
        """Take a row of the current key and yield what it makes with the rows that are held."""
        side, other = arrival.side, 1 - arrival.side
        new = self._held(arrival)
        held = self._rows.read(_NAMES[other])
        for number, there in enumerate(held):
            left, right = (new, there) if side == LEFT else (there, new)
            if arrival.meets and self._reaches(left, right.time) and self._matches(left.row, right.row):
                yield from self._pair(left, right)
                held[number] = there._replace(has_matched=True)
                new = new._replace(has_matched=True)
        if new.has_matched:
            self._rows.write(_NAMES[other], [each for each in held if not self._is_done(other, each)])
        if not self._is_done(side, new):
            self._rows.write(_NAMES[side], [*self._rows.read(_NAMES[side]), new])
            self._rows.look_again(new.final)

    def finish(self, watermark: int) -> Iterator[Joined]:
        """Yield what is final when the rows of a batch are taken."""
        return self.advance(watermark)

    def _held(self, arrival: Arrival) -> _Held:
        spec, row, time = self._spec, arrival.row, arrival.time
        upper = None if spec.upper_column is None or arrival.side != LEFT else row[spec.upper_column]
        final = spec.left_final(time, upper) if arrival.side == LEFT else spec.right_final(time)
        return _Held(time, final, False, row)

    def _reaches(self, left: _Held, right_time: int) -> bool:
        upper: Any = self._spec.upper
        upper = left.row[self._spec.upper_column] if upper is None else left.time + upper  # type: ignore[index]
        return upper is not None and left.time + self._spec.lower <= right_time <= upper

    def _pair(self, left: _Held, right: _Held) -> Iterator[Joined]:
        if gives_pairs(self._spec.how):
            time = {"max": max(left.time, right.time), "left": left.time, "right": right.time}[self._spec.time]
            yield Joined(left.row, right.row, time)
        elif self._spec.how == "semi" and not left.has_matched:
            yield Joined(left.row, None, left.time)

    def _is_done(self, side: int, held: _Held) -> bool:
        return self._spec.how in ("semi", "anti") and side == LEFT and held.has_matched

    def _pads(self, side: int) -> bool:
        return pads_left(self._spec.how) if side == LEFT else pads_right(self._spec.how)

    def _alone(self, side: int, held: _Held) -> Joined:
        return Joined(held.row, None, held.time) if side == LEFT else Joined(None, held.row, held.time)
