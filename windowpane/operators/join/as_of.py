"""The reference of the as-of join: left rows wait until their match is known, right ones stay while they can match."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from windowpane.operators.join.held import Arrival, Joined, KeyedRows, Matches, Row
from windowpane.windowing.changes import DELETE, INSERT, UPDATE_POSTIMAGE, UPDATE_PREIMAGE
from windowpane.windowing.joins import LEFT, AsOfJoin
from windowpane.windowing.times import MAX

_LEFT, _VERSIONS = "left", "versions"


class _Version(NamedTuple):
    """A right row from its time on; without a row, a key that was deleted."""

    time: int
    row: Row | None


class _Waiting(NamedTuple):
    """A left row whose match is not final, and where results are corrected, what has come out of it."""

    time: int
    row: Row
    is_shown: bool = False
    shown: Row | None = None


class AsOfJoinOperator:
    """One as-of join on the rows of a bucket.

    Args:
        spec: the join.
        rows: its state.
        matches: what a left row and its version must fulfil besides; a version that does not is no match, and hides older ones.
    """

    def __init__(self, spec: AsOfJoin, rows: KeyedRows, matches: Matches) -> None:
        self._spec = spec
        self._rows = rows
        self._matches = matches
        self._touched: dict[bytes, Any] = {}

    def advance(self, watermark: int) -> Iterator[Joined]:
        """Yield what is final under a watermark, of the keys that are to be looked at by now."""
        while self._rows.turn_to_next(watermark):
            yield from self.settle(watermark)

    def settle(self, watermark: int) -> Iterator[Joined]:
        """Yield what is final of the current key, or has changed, and drop what is no longer needed."""
        versions, waits = self._rows.read(_VERSIONS), []
        for left in self._rows.read(_LEFT):
            before, after = self._before(left.time, versions), self._after(left.time, versions)
            final = self._spec.final(left.time, before and before.time, after and after.time)
            match = self._match(left, before, after)
            is_final = final <= watermark
            if self._spec.updates:
                yield from self._correct(left, match)
            elif is_final:
                yield from self._result(left, match)
            if not is_final:
                waits.append(left._replace(is_shown=self._spec.updates, shown=match))
                self._rows.look_again(final)
        self._rows.write(_LEFT, waits)
        kept = self._kept(versions, watermark)
        self._rows.write(_VERSIONS, kept)
        ends = self._end_of_oldest(kept)
        if ends is not None and max(ends, watermark) < MAX:
            self._rows.look_again(max(ends, watermark + 1))

    def take(self, arrival: Arrival) -> Iterator[Joined]:
        """Take a row of the current key; by arrival a left row's result comes out."""
        time, row = arrival.time, arrival.row
        key, key_bytes = self._rows.key
        self._touched[key_bytes] = key
        if arrival.side == LEFT and self._spec.by_arrival:
            versions = self._rows.read(_VERSIONS)
            yield from self._result(_Waiting(time, row), self._fulfilled(row, versions[-1]) if versions else None)
        elif arrival.side == LEFT:
            self._rows.write(_LEFT, [*self._rows.read(_LEFT), _Waiting(time, row)])
        elif arrival.meets:
            # Of versions of one time the last to come counts; by arrival there is one, the last.
            others = [each for each in self._rows.read(_VERSIONS) if each.time != time and not self._spec.by_arrival]
            version = _Version(time, None if arrival.deletes else row)
            self._rows.write(_VERSIONS, sorted([*others, version], key=lambda each: each.time))

    def finish(self, watermark: int) -> Iterator[Joined]:
        """Yield what is final when the rows of a batch are taken, or has changed by them."""
        if self._spec.by_arrival:
            return
        for key_bytes, key in self._touched.items():
            self._rows.turn_to(key, key_bytes)
            yield from self.settle(watermark)
        yield from self.advance(watermark)

    def takes_late_version(self, time: int, watermark: int) -> bool:
        """Whether a right row of the current key that is late is still of use for left rows to come."""
        if self._spec.direction != "backward":
            return False
        older = [each.time for each in self._rows.read(_VERSIONS) if each.time <= self._spec.kept_from(watermark)]
        return not older or time >= older[-1]

    # The match.

    def _before(self, time: int, versions: list[_Version]) -> _Version | None:
        found = [each for each in versions if each.time < time or (each.time == time and self._spec.allow_exact)]
        return found[-1] if found and self._spec.looks_back and self._is_near(time - found[-1].time) else None

    def _after(self, time: int, versions: list[_Version]) -> _Version | None:
        found = [each for each in versions if each.time > time or (each.time == time and self._spec.allow_exact)]
        return found[0] if found and self._spec.looks_ahead and self._is_near(found[0].time - time) else None

    def _is_near(self, distance: int) -> bool:
        return self._spec.tolerance is None or distance <= self._spec.tolerance

    def _match(self, left: _Waiting, before: _Version | None, after: _Version | None) -> Row | None:
        if before is None or after is None:
            found = before or after
        else:
            found = before if left.time - before.time <= after.time - left.time else after
        return None if found is None else self._fulfilled(left.row, found)

    def _fulfilled(self, left: Row, version: _Version) -> Row | None:
        return version.row if version.row is not None and self._matches(left, version.row) else None

    # What comes out.

    def _result(self, left: _Waiting, match: Row | None) -> Iterator[Joined]:
        if match is not None or self._spec.how == "left":
            yield Joined(left.row, match, left.time, INSERT if self._spec.updates else None)

    def _correct(self, left: _Waiting, match: Row | None) -> Iterator[Joined]:
        if not left.is_shown:
            yield from self._result(left, match)
            return
        if match == left.shown:
            return
        pads = self._spec.how == "left"
        if left.shown is not None or pads:
            yield Joined(left.row, left.shown, left.time, DELETE if match is None and not pads else UPDATE_PREIMAGE)
        if match is not None or pads:
            yield Joined(left.row, match, left.time, INSERT if left.shown is None and not pads else UPDATE_POSTIMAGE)

    # What is kept.

    def _kept(self, versions: list[_Version], watermark: int) -> list[_Version]:
        edge = self._spec.kept_from(watermark)
        newer = [each for each in versions if each.time > edge]
        older = [each for each in versions if each.time <= edge]
        return [older[-1], *newer] if older and self._is_anchor(older[-1], watermark) else newer

    def _is_anchor(self, version: _Version, watermark: int) -> bool:
        """Whether the last version before the edge can still match; looking both ways, a deletion decides ties."""
        if not self._spec.looks_back or (version.row is None and self._spec.direction == "backward"):
            return False
        return not self._is_gone(version, watermark)

    def _is_gone(self, anchor: _Version, watermark: int) -> bool:
        end = self._end_of(anchor.time)
        return end is not None and end <= watermark

    def _end_of(self, time: int) -> int | None:
        """Return the watermark from which a version that is the last before the edge is of no use; ``None``: it is for ever."""
        spec = self._spec
        ends = [
            time + length + spec.allowed_lateness + ahead
            for length, ahead in ((spec.tolerance, (spec.tolerance or 0) if spec.looks_ahead else 0), (spec.retain, 0))
            if length is not None
        ]
        return min(ends) if ends else None

    def _end_of_oldest(self, versions: list[_Version]) -> int | None:
        """Return the watermark at which the oldest version may go."""
        if not versions:
            return None
        first = versions[0]
        edge = self._spec.kept_from(0)  # by how much the edge is behind the watermark
        if not self._spec.looks_back or (first.row is None and self._spec.direction == "backward"):
            return first.time - edge
        end = self._end_of(first.time)
        return None if end is None else max(end, first.time - edge)
