"""The reference of the interval join: a row meets the held rows of the other side, and leaves when nothing can match it.

Source of the rules: Flink's interval join, but that what is emitted equals the batch join of the rows that were accepted: each
result once, rows without a match when nothing can match them any more, none withdrawn.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from windowpane.operators.join.held import Arrival, Joined, KeyedRows, Matches, Row
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


class IntervalJoinOperator:
    """One interval join on the rows of a bucket."""

    def __init__(
        self, match: IntervalMatch, how: How, allowed_lateness: int, time_of: TimeOf, rows: KeyedRows, matches: Matches
    ) -> None:
        self._match = match
        self._how = how
        self._lateness = allowed_lateness
        self._time_of = time_of
        self._rows = rows
        self._matches = matches

    def advance(self, watermark: int) -> Iterator[Joined]:
        """Yield the rows without a match that are final under a watermark, and drop all rows that are."""
        while self._rows.turn_to_next(watermark):
            for name in (_LEFT, _RIGHT):
                held = self._rows.read(name)
                for each in held:
                    if each.final <= watermark and not each.has_matched and self._pads(name):
                        yield Joined(each.row, None, each.time) if name == _LEFT else Joined(None, each.row, each.time)
                self._rows.write(name, [each for each in held if each.final > watermark])

    def finish(self, watermark: int) -> Iterator[Joined]:
        return self.advance(watermark)

    def take(self, arrival: Arrival) -> Iterator[Joined]:
        own, other = (_LEFT, _RIGHT) if arrival.is_left else (_RIGHT, _LEFT)
        new = self._held(arrival)
        held = self._rows.read(other)
        for number, there in enumerate(held):
            left, right = (new, there) if arrival.is_left else (there, new)
            if arrival.meets and self._reaches(left, right.time) and self._matches(left.row, right.row):
                yield from self._pair(left, right)
                held[number] = there._replace(has_matched=True)
                new = new._replace(has_matched=True)
        if new.has_matched:
            self._rows.write(other, [each for each in held if not self._is_done(other, each)])
        if not self._is_done(own, new):
            self._rows.write(own, [*self._rows.read(own), new])
            self._rows.look_again(new.final)

    def _held(self, arrival: Arrival) -> _Held:
        time, match = arrival.time, self._match
        if not arrival.is_left:
            return _Held(time, None, add_clamped(time, self._lateness - match.lower), False, arrival.row)
        given = time if match.upper_column is None else arrival.upper
        upper = None if given is None else given + match.upper
        # A row that can match nothing is final when it arrives.
        final = MIN if upper is None or upper < time + match.lower else add_clamped(upper, self._lateness)
        return _Held(time, upper, final, False, arrival.row)

    def _reaches(self, left: _Held, right_time: int) -> bool:
        return left.upper is not None and left.time + self._match.lower <= right_time <= left.upper

    def _pair(self, left: _Held, right: _Held) -> Iterator[Joined]:
        if self._how == "semi" and not left.has_matched:
            yield Joined(left.row, None, left.time)
        elif self._how not in LEFT_ONLY:
            times = {"max": max(left.time, right.time), "left": left.time, "right": right.time}
            yield Joined(left.row, right.row, times[self._time_of])

    def _is_done(self, name: str, held: _Held) -> bool:
        return name == _LEFT and self._how in LEFT_ONLY and held.has_matched

    def _pads(self, name: str) -> bool:
        return self._how in PADS_RIGHT if name == _RIGHT else self._how in PADS_LEFT or self._how == "anti"
