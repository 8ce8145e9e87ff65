"""The reference of the as-of join: left rows wait until their match is known, right ones stay while they can match.

Of right rows with one key and time the one with the largest sequence counts, of equal ones the last to arrive. A right row that
deletes hides older ones, and is no match.
Source of the rules: Flink's temporal join.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from windowpane.arrays.values import Row, Value
from windowpane.operators.join.held import Arrival, Joined, KeyedRows, Matches
from windowpane.windowing.joins import AsOfMatch
from windowpane.windowing.outputs import DELETE, INSERT, UPDATE_POSTIMAGE, UPDATE_PREIMAGE
from windowpane.windowing.times import MAX, add_clamped

_LEFT, _VERSIONS = "left", "versions"
_MICROSECOND = dt.timedelta(microseconds=1)


class _Version(NamedTuple):
    """A right row from its time on; without a row, a key that was deleted. Versions are in the order of ``place``."""

    time: int
    row: Row | None
    sequence: Value = 0

    @property
    def place(self) -> tuple[int, Value]:
        return self.time, self.sequence


class _Waiting(NamedTuple):
    """A left row whose match is not final, and its results that are in force: none, or the one that was emitted last."""

    time: int
    row: Row
    shown: tuple[Joined, ...] = ()


@dataclass
class AsOfJoinOperator:
    match: AsOfMatch  # which version matches
    pads: bool  # whether a left row without a match is emitted
    allowed_lateness: int  # how long rows behind the watermark are waited for
    rows: KeyedRows  # the state
    # what a left row and its version must fulfil besides; a version that does not is no match, and hides older ones
    matches: Matches
    is_same: Callable[[Row, Row], bool]  # whether two versions show the same values, as they are written
    updates: bool = False  # whether left rows are emitted at once, and are corrected until they are final
    sequence: Callable[[Row], Value] = lambda row: 0  # what orders versions of one time
    _touched: dict[bytes, Value] = field(default_factory=dict, init=False)

    def advance(self, watermark: int) -> Iterator[Joined]:
        while self.rows.turn_to_next(watermark):
            yield from self.settle(watermark)

    def settle(self, watermark: int) -> Iterator[Joined]:
        versions, waits = self.rows.read(_VERSIONS), []
        for left in self.rows.read(_LEFT):
            before, after = self._before(left.time, versions), self._after(left.time, versions)
            final = self._final(left.time, before and before.time, after and after.time)
            if final > watermark:
                waits.append(left)
                self.rows.look_again(final)
            else:
                yield from self._corrected(left.shown, self._joined(left, versions))
        kept = self._kept(versions, watermark)
        self.rows.write(_VERSIONS, kept)
        if self.updates:
            for number, left in enumerate(waits):
                now = self._joined(left, kept)
                yield from self._corrected(left.shown, now)
                waits[number] = left._replace(shown=now)
        self.rows.write(_LEFT, waits)
        end = self._end_of_oldest(kept)
        if end is not None and max(end, watermark) < MAX:
            self.rows.look_again(max(end, watermark + 1))

    def take(self, arrival: Arrival) -> Iterator[Joined]:
        """Take a row of the current key; nothing is emitted before all rows of the batch are taken."""
        key, key_bytes = self.rows.key
        self._touched[key_bytes] = key
        if arrival.is_left:
            self.rows.write(_LEFT, [*self.rows.read(_LEFT), _Waiting(arrival.time, arrival.row)])
        elif arrival.meets:
            version = _Version(arrival.time, None if arrival.deletes else arrival.row, self.sequence(arrival.row))
            self.rows.write(_VERSIONS, sorted([*self.rows.read(_VERSIONS), version], key=lambda each: each.place))
        return iter(())

    def finish(self, watermark: int) -> Iterator[Joined]:
        for key_bytes, key in self._touched.items():
            self.rows.turn_to(key, key_bytes)
            yield from self.settle(watermark)
        yield from self.advance(watermark)

    def _final(self, time: int, before: int | None, after: int | None) -> int:
        """Return the watermark from which the match of a left row is known, at the latest the last of all."""
        if self.match.direction == "backward":
            return add_clamped(time, self.allowed_lateness)
        ends = [MAX if self.match.tolerance is None else time + self.match.tolerance]
        ends += [] if after is None else [after]
        if self.match.direction == "nearest":
            ends += [] if before is None else [2 * time - before - 1]
        return add_clamped(max(time, min(ends)), self.allowed_lateness)

    def takes_late_version(self, time: int, row: Row, watermark: int) -> bool:
        """Whether a late right row of the current key can still match left rows to come."""
        if self.match.direction != "backward" or self._is_expired(_Version(time, None), watermark):
            return False
        older = [each.place for each in self.rows.read(_VERSIONS) if each.time <= watermark - self._behind]
        return not older or not (time, self.sequence(row)) < older[-1]

    # The match.

    def _joined(self, left: _Waiting, versions: list[_Version]) -> tuple[Joined, ...]:
        versions = self._filled(versions)
        match = self._chosen(left, self._before(left.time, versions), self._after(left.time, versions))
        return (Joined(left.row, match, left.time),) if match is not None or self.pads else ()

    def _before(self, time: int, versions: list[_Version]) -> _Version | None:
        found = [each for each in versions if each.time < time or (each.time == time and self.match.allow_exact)]
        return found[-1] if found and self.match.direction != "forward" and self._is_near(time - found[-1].time) else None

    def _after(self, time: int, versions: list[_Version]) -> _Version | None:
        found = [each for each in versions if each.time > time or (each.time == time and self.match.allow_exact)]
        if not found or self.match.direction == "backward" or not self._is_near(found[0].time - time):
            return None
        return [each for each in found if each.time == found[0].time][-1]

    def _filled(self, versions: list[_Version]) -> list[_Version]:
        """Return versions with the last values that are no NULLs, where these are skipped."""
        if not self.match.skips_nulls:
            return versions
        found, values = [], dict[str, Value]()
        for each in versions:
            if each.row is None:
                values = {}
            else:
                values = {name: values.get(name) if value is None else value for name, value in each.row.items()}
                if self.match.sequence is not None:  # which is the version's own
                    values[self.match.sequence] = each.row[self.match.sequence]
            found.append(each._replace(row=None if each.row is None else values))
        return found

    def _is_near(self, distance: int) -> bool:
        return self.match.tolerance is None or distance <= self.match.tolerance

    def _chosen(self, left: _Waiting, before: _Version | None, after: _Version | None) -> Row | None:
        if before is None or after is None:
            found = before or after
        else:
            found = before if left.time - before.time <= after.time - left.time else after
        if found is None or found.row is None:
            return None
        limit = None if self.match.tolerance_of is None else left.row[self.match.tolerance_of]
        if limit is not None and abs(left.time - found.time) > limit // _MICROSECOND:
            return None
        if not self.matches(left.row, found.row):
            return None
        return found.row

    # What is kept.

    def _kept(self, versions: list[_Version], watermark: int) -> list[_Version]:
        edge = watermark - self._behind
        newer = [each for each in versions if each.time > edge]
        older = [each for each in self._filled(versions) if each.time <= edge]
        # The last version before the edge can still match, or hide an older one that arrives late.
        is_anchor = bool(older) and self.match.direction != "forward" and not self._is_expired(older[-1], watermark)
        return [older[-1], *newer] if is_anchor else newer

    def _is_expired(self, anchor: _Version, watermark: int) -> bool:
        end = self._end_of(anchor.time)
        return end is not None and end <= watermark

    @property
    def _behind(self) -> int:
        """By how much the time until which versions are needed one by one is behind the watermark."""
        ahead = 0 if self.match.direction == "backward" else self.match.tolerance or 0
        return self.allowed_lateness + ahead

    def _end_of(self, time: int) -> int | None:
        """Return the watermark from which a version that is the last until then is of no use; ``None``: it is for ever."""
        ends = [time + length + self._behind for length in (self.match.tolerance, self.match.retain) if length is not None]
        return min(ends) if ends else None

    def _end_of_oldest(self, versions: list[_Version]) -> int | None:
        if not versions:
            return None
        first = versions[0]
        edge = first.time + self._behind
        if self.match.direction == "forward":
            return edge
        end = self._end_of(first.time)
        return None if end is None else max(end, edge)

    def _corrected(self, shown: tuple[Joined, ...], now: tuple[Joined, ...]) -> Iterator[Joined]:
        """Yield what turns the result that was shown of a left row into that of now."""
        pairs = [(one.right, other.right) for one, other in zip(shown, now, strict=False)]
        if len(shown) == len(now) and all(a is b if a is None or b is None else self.is_same(a, b) for a, b in pairs):
            return
        yield from (each._replace(change=UPDATE_PREIMAGE if now else DELETE) for each in shown)
        yield from (each._replace(change=UPDATE_POSTIMAGE if shown else INSERT) for each in now)


_VERSION = "version"


@dataclass
class ArrivalJoinOperator:
    pads: bool
    rows: KeyedRows
    matches: Matches

    def advance(self, watermark: int) -> Iterator[Joined]:
        return iter(())

    def finish(self, watermark: int) -> Iterator[Joined]:
        return iter(())

    def take(self, arrival: Arrival) -> Iterator[Joined]:
        """Take a row of the current key: a right one is the version from now on, a left one meets it."""
        if not arrival.is_left:
            if arrival.meets:
                self.rows.write(_VERSION, [] if arrival.deletes else [arrival.row])
            return
        found = [version for version in self.rows.read(_VERSION) if arrival.meets and self.matches(arrival.row, version)]
        if found or self.pads:
            yield Joined(arrival.row, found[0] if found else None, arrival.time)
