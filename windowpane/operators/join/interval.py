"""The reference of the interval join: a row meets the held rows of the other side, and leaves when nothing can match it.

Source of the rules: Flink's interval join, but that what is emitted equals the batch join of the rows that were accepted: each
result once, rows without a match when nothing can match them any more, none withdrawn.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from windowpane.arrays.values import Row
from windowpane.operators.join.held import Arrival, Joined, KeyedRows, Matches
from windowpane.windowing.joins import LEFT_ONLY, PADS_LEFT, PADS_RIGHT, How, IntervalMatch, TimeOf
from windowpane.windowing.times import MIN, add_clamped

_LEFT, _RIGHT = "left", "right"


class _Held(NamedTuple):
    """A row in state: the last time of its matches, until which watermark it is held, and whether it has matched."""

    time: int
    upper: int | None
    final: int
    has_matched: bool
    row: Row


@dataclass
class IntervalJoinOperator:
    match: IntervalMatch
    how: How
    allowed_lateness: int
    time_of: TimeOf
    rows: KeyedRows
    matches: Matches

    def take_over(self, upper: int) -> None:
        """Hold rows until the present bounds make them final, of which the upper one was another so far."""
        moved = self.match.upper - upper
        for name in self.rows.look_anew():
            held = [each._replace(upper=None if each.upper is None else each.upper + moved) for each in self.rows.read(name)]
            held = [self._due(each, is_left=name == _LEFT) for each in held]
            self.rows.write(name, held)
            for each in held:
                self.rows.look_again(each.final)

    def advance(self, watermark: int) -> Iterator[Joined]:
        """Yield the rows without a match that are final under a watermark, and drop all rows that are."""
        while self.rows.turn_to_next(watermark):
            for name in (_LEFT, _RIGHT):
                held = self.rows.read(name)
                for each in held:
                    if each.final <= watermark and not each.has_matched and self._pads(name):
                        yield Joined(each.row, None, each.time) if name == _LEFT else Joined(None, each.row, each.time)
                self.rows.write(name, [each for each in held if each.final > watermark])

    def finish(self, watermark: int) -> Iterator[Joined]:
        return self.advance(watermark)

    def take(self, arrival: Arrival) -> Iterator[Joined]:
        own, other = (_LEFT, _RIGHT) if arrival.is_left else (_RIGHT, _LEFT)
        new = self._held(arrival)
        held = self.rows.read(other)
        for number, there in enumerate(held):
            left, right = (new, there) if arrival.is_left else (there, new)
            if (
                arrival.meets
                and left.upper is not None
                and left.time + self.match.lower <= right.time <= left.upper
                and self.matches(left.row, right.row)
            ):
                yield from self._pair(left, right)
                held[number] = there._replace(has_matched=True)
                new = new._replace(has_matched=True)
        if new.has_matched:
            self.rows.write(other, [each for each in held if not self._is_done(other, each)])
        if not self._is_done(own, new):
            self.rows.write(own, [*self.rows.read(own), new])
            self.rows.look_again(new.final)

    def _held(self, arrival: Arrival) -> _Held:
        given = arrival.time if self.match.upper_column is None else arrival.upper
        upper = None if given is None or not arrival.is_left else given + self.match.upper
        return self._due(_Held(arrival.time, upper, MIN, False, arrival.row), is_left=arrival.is_left)

    def _due(self, held: _Held, *, is_left: bool) -> _Held:
        """Return a row with the watermark that makes it final; one that can match nothing is final when it arrives."""
        if not is_left:
            final = add_clamped(held.time, self.allowed_lateness - self.match.lower)
        elif held.upper is None or held.upper < held.time + self.match.lower:
            final = MIN
        else:
            final = add_clamped(held.upper, self.allowed_lateness)
        return held._replace(final=final)

    def _pair(self, left: _Held, right: _Held) -> Iterator[Joined]:
        if self.how == "semi" and not left.has_matched:
            yield Joined(left.row, None, left.time)
        elif self.how not in LEFT_ONLY:
            times = {"max": max(left.time, right.time), "left": left.time, "right": right.time}
            yield Joined(left.row, right.row, times[self.time_of])

    def _is_done(self, name: str, held: _Held) -> bool:
        return name == _LEFT and self.how in LEFT_ONLY and held.has_matched

    def _pads(self, name: str) -> bool:
        return self.how in PADS_RIGHT if name == _RIGHT else self.how in PADS_LEFT or self.how == "anti"
