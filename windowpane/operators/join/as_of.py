"""The reference of the as-of join: left rows wait until their match is known, right ones stay while they can match.

Of right rows with one key and time the last to arrive counts. A right row that deletes hides older ones, and is no match.
Source of the rules: Flink's temporal join.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from windowpane.operators.join.held import Arrival, Joined, KeyedRows, Matches, Row
from windowpane.windowing.joins import AsOfMatch
from windowpane.windowing.outputs import DELETE, INSERT, UPDATE_POSTIMAGE, UPDATE_PREIMAGE
from windowpane.windowing.times import MAX, add_clamped

_LEFT, _VERSIONS = "left", "versions"


class _Version(NamedTuple):
    """A right row from its time on; without a row, a key that was deleted."""

    time: int
    row: Row | None


class _Waiting(NamedTuple):
    """A left row whose match is not final, and its results that are in force: none, or the one that was emitted last."""

    time: int
    row: Row
    shown: tuple[Joined, ...] = ()


class AsOfJoinOperator:
    """One as-of join on the rows of a bucket.

    Args:
        match: which version matches.
        pads: whether a left row without a match is emitted.
        allowed_lateness: how long rows behind the watermark are waited for.
        rows: the state.
        matches: what a left row and its version must fulfil besides; a version that does not is no match, and hides older ones.
        is_same: whether two versions show the same values, as they are written.
        updates: whether left rows are emitted at once, and are corrected until they are final.
    """

    def __init__(
        self,
        match: AsOfMatch,
        pads: bool,
        allowed_lateness: int,
        rows: KeyedRows,
        matches: Matches,
        is_same: Callable[[Row, Row], bool],
        updates: bool = False,
    ) -> None:
        self._match = match
        self._pads = pads
        self._lateness = allowed_lateness
        self._rows = rows
        self._matches = matches
        self._is_same = is_same
        self._updates = updates
        self._touched: dict[bytes, Any] = {}

    def advance(self, watermark: int) -> Iterator[Joined]:
        while self._rows.turn_to_next(watermark):
            yield from self.settle(watermark)

    def settle(self, watermark: int) -> Iterator[Joined]:
        versions, waits = self._rows.read(_VERSIONS), []
        for left in self._rows.read(_LEFT):
            before, after = self._before(left.time, versions), self._after(left.time, versions)
            final = self._final(left.time, before and before.time, after and after.time)
            if final > watermark:
                waits.append(left)
                self._rows.look_again(final)
            else:
                yield from self._corrected(left.shown, self._joined(left, versions))
        kept = self._kept(versions, watermark)
        self._rows.write(_VERSIONS, kept)
        if self._updates:
            for number, left in enumerate(waits):
                now = self._joined(left, kept)
                yield from self._corrected(left.shown, now)
                waits[number] = left._replace(shown=now)
        self._rows.write(_LEFT, waits)
        end = self._end_of_oldest(kept)
        if end is not None and max(end, watermark) < MAX:
            self._rows.look_again(max(end, watermark + 1))

    def take(self, arrival: Arrival) -> Iterator[Joined]:
        """Take a row of the current key; nothing is emitted before all rows of the batch are taken."""
        key, key_bytes = self._rows.key
        self._touched[key_bytes] = key
        if arrival.is_left:
            self._rows.write(_LEFT, [*self._rows.read(_LEFT), _Waiting(arrival.time, arrival.row)])
        elif arrival.meets:
            others = [each for each in self._rows.read(_VERSIONS) if each.time != arrival.time]
            version = _Version(arrival.time, None if arrival.deletes else arrival.row)
            self._rows.write(_VERSIONS, sorted([*others, version], key=lambda each: each.time))
        return iter(())

    def finish(self, watermark: int) -> Iterator[Joined]:
        for key_bytes, key in self._touched.items():
            self._rows.turn_to(key, key_bytes)
            yield from self.settle(watermark)
        yield from self.advance(watermark)

    def _final(self, time: int, before: int | None, after: int | None) -> int:
        """Return the watermark from which the match of a left row is known, at the latest the last of all."""
        if self._match.direction == "backward":
            return add_clamped(time, self._lateness)
        ends = [MAX if self._match.tolerance is None else time + self._match.tolerance]
        ends += [] if after is None else [after]
        if self._match.direction == "nearest":
            ends += [] if before is None else [2 * time - before - 1]
        return add_clamped(max(time, min(ends)), self._lateness)

    def takes_late_version(self, time: int, watermark: int) -> bool:
        """Whether a late right row of the current key can still match left rows to come."""
        if self._match.direction != "backward" or self._is_expired(_Version(time, None), watermark):
            return False
        older = [each.time for each in self._rows.read(_VERSIONS) if each.time <= watermark - self._behind]
        return not older or time >= older[-1]

    # The match.

    def _joined(self, left: _Waiting, versions: list[_Version]) -> tuple[Joined, ...]:
        match = self._chosen(left, self._before(left.time, versions), self._after(left.time, versions))
        return (Joined(left.row, match, left.time),) if match is not None or self._pads else ()

    def _before(self, time: int, versions: list[_Version]) -> _Version | None:
        found = [each for each in versions if each.time < time or (each.time == time and self._match.allow_exact)]
        return found[-1] if found and self._match.direction != "forward" and self._is_near(time - found[-1].time) else None

    def _after(self, time: int, versions: list[_Version]) -> _Version | None:
        found = [each for each in versions if each.time > time or (each.time == time and self._match.allow_exact)]
        return found[0] if found and self._match.direction != "backward" and self._is_near(found[0].time - time) else None

    def _is_near(self, distance: int) -> bool:
        return self._match.tolerance is None or distance <= self._match.tolerance

    def _chosen(self, left: _Waiting, before: _Version | None, after: _Version | None) -> Row | None:
        if before is None or after is None:
            found = before or after
        else:
            found = before if left.time - before.time <= after.time - left.time else after
        if found is None or found.row is None or not self._matches(left.row, found.row):
            return None
        return found.row

    # What is kept.

    def _kept(self, versions: list[_Version], watermark: int) -> list[_Version]:
        edge = watermark - self._behind
        newer = [each for each in versions if each.time > edge]
        older = [each for each in versions if each.time <= edge]
        return [older[-1], *newer] if older and self._is_anchor(older[-1], watermark) else newer

    def _is_anchor(self, version: _Version, watermark: int) -> bool:
        """Whether the last version before the edge can still match, or hide an older one that arrives late."""
        if self._match.direction == "forward":
            return False
        return not self._is_expired(version, watermark)

    def _is_expired(self, anchor: _Version, watermark: int) -> bool:
        end = self._end_of(anchor.time)
        return end is not None and end <= watermark

    @property
    def _behind(self) -> int:
        """By how much the time until which versions are needed one by one is behind the watermark."""
        ahead = 0 if self._match.direction == "backward" else self._match.tolerance or 0
        return self._lateness + ahead

    def _end_of(self, time: int) -> int | None:
        """Return the watermark from which a version that is the last until then is of no use; ``None``: it is for ever."""
        ends = [time + length + self._behind for length in (self._match.tolerance, self._match.retain) if length is not None]
        return min(ends) if ends else None

    def _end_of_oldest(self, versions: list[_Version]) -> int | None:
        if not versions:
            return None
        first = versions[0]
        edge = first.time + self._behind
        if self._match.direction == "forward":
            return edge
        end = self._end_of(first.time)
        return None if end is None else max(end, edge)

    def _corrected(self, shown: tuple[Joined, ...], now: tuple[Joined, ...]) -> Iterator[Joined]:
        """Yield what turns the result that was shown of a left row into that of now."""
        if len(shown) == len(now) and all(map(self._is_unchanged, shown, now)):
            return
        yield from (each._replace(change=UPDATE_PREIMAGE if now else DELETE) for each in shown)
        yield from (each._replace(change=UPDATE_POSTIMAGE if shown else INSERT) for each in now)

    def _is_unchanged(self, shown: Joined, now: Joined) -> bool:
        one, other = shown.right, now.right
        return one is other if one is None or other is None else self._is_same(one, other)
