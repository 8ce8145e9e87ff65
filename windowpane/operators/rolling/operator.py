"""The rolling operator: the rows of each key in a list, and for each key the time at which to look at it again.

State of a key, by name: ``rows``, all rows that a window can still see, in order; ``last``, the instant and the features of the
row that was emitted last; ``seen``, the instant that features were last computed for; ``look``, its timer. Where ticks are
corrected: ``out``, the ticks at which the key was emitted, and how often again; ``shown``, what a reader sees of the newest tick,
if a correction was made after the last row. A key is looked at when a row enters or leaves one of its windows at a tick, and when
a row is past all windows. Where only rows emit, a key stays with its last features: nothing has taken them back.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import NamedTuple

from windowpane.arrays.values import Value
from windowpane.operators.rolling.features import Features, HeldRow
from windowpane.state.keyed import KeyedState
from windowpane.state.timers import TimerQueue
from windowpane.windowing.rolling import RollingEmit, RollingSpec
from windowpane.windowing.times import MAX, MIN


class RollingRow(NamedTuple):
    key: Value  # its key
    as_of: int  # the instant that the features are of
    values: tuple[Value, ...]  # the features, in the order of the calls
    has_rows: bool = True  # whether a window takes a row; if not, the key is forgotten
    is_first: bool = False  # whether the key has no earlier row
    by_tick: bool = False  # whether a tick made it, and no row
    revision: int = 0  # 0, or of a correction how often the key was emitted again as of this tick


@dataclass
class RollingOperator:
    spec: RollingSpec
    features: Features
    state: KeyedState
    timers: TimerQueue  # when a key is to be looked at
    _fresh: dict[bytes, tuple[Value, list[HeldRow]]] = field(default_factory=dict, init=False)
    taken: int = field(default=0, init=False)
    forgotten: int = field(default=0, init=False)

    def advance(self, watermark: int) -> Iterator[RollingRow]:
        if watermark == MIN:
            return
        emit = self.spec.emit
        while (timer := self.timers.poll(watermark)) is not None:
            self.state.set_current_key(timer.key, timer.key_bytes)
            if emit is RollingEmit.EACH:
                yield from (self._of_row(row) for row in self._rows() if row.time == timer.time)
            elif emit is RollingEmit.TICK and self.spec.last_tick(timer.time) == timer.time:
                yield from self._changed(timer.time, by_tick=True)
            elif emit is RollingEmit.CHANGED:
                rows, instant = self._rows(), self.spec.last_tick(watermark)
                if rows and (rows[-1].time < instant or self.state.get(None, "seen") is None):
                    yield from self._changed(max(rows[-1].time, instant), by_tick=True)
            self._look_again(timer.time if emit in (RollingEmit.EACH, RollingEmit.TICK) else watermark)

    def take(self, key: object, key_bytes: bytes, row: HeldRow) -> None:
        self.state.set_current_key(key, key_bytes)
        rows = self._rows()
        insort(rows, row, key=_ORDER)
        self.state.put(None, "rows", rows)
        self._fresh.setdefault(key_bytes, (key, []))[1].append(row)
        self.taken += 1

    def settle(self, watermark: int) -> None:
        """Keep the rows that were taken as a history up to ``watermark``: nothing is emitted for them before the next tick."""
        for key_bytes, (key, _) in self._fresh.items():
            self.state.set_current_key(key, key_bytes)
            self._look_again(watermark)
        self._fresh.clear()

    def finish(self, watermark: int) -> Iterator[RollingRow]:
        for key_bytes, (key, fresh) in self._fresh.items():
            self.state.set_current_key(key, key_bytes)
            if self.spec.emit is RollingEmit.EACH:
                due = sorted((row for row in fresh if row.time <= watermark), key=_ORDER)
                yield from [self._of_row(row) for row in due]
            elif self.spec.emit is not RollingEmit.TICK:
                newest, last = self._rows()[-1].time, self.state.get(None, "last")
                yield from self._changed(newest if last is None else max(newest, last[0]))
            elif late := [row for row in fresh if self.spec.tick_from(row.time) <= watermark]:
                if self.spec.corrects:
                    yield from self._corrections(late, fresh, watermark)
                self.state.put(None, "seen", None)  # the tick of a late row has passed: it counts from the next one on
            self._look_again(watermark)
        self._fresh.clear()

    def take_over(self, places: Sequence[int | None], now: int) -> None:
        """Read what another program has left of each key: for each feature its number in that program, ``None`` if it is new."""
        for timer in list(self.timers):
            self.state.set_current_key(timer.key, timer.key_bytes)
            last, shown = self.state.get(None, "last"), self.state.get(None, "shown")
            if last is not None:
                self.state.put(None, "last", (last[0], _placed(last[1], places)))
            if shown is not None:
                self.state.put(None, "shown", _placed(shown, places))
            self.state.put(None, "seen", None)
            self._look_again(now)

    # Emitting.

    def _changed(self, instant: int, by_tick: bool = False) -> Iterator[RollingRow]:
        """Yield the key's row as of ``instant`` if it differs from its last one."""
        rows, last = self._rows(), self.state.get(None, "last")
        is_empty = self.features.is_empty(rows, instant)
        values = self.features.values(rows, instant)
        self.state.put(None, "seen", instant)
        is_same = last is not None and self.features.same(last[1], values)
        if is_empty:
            self.state.put(None, "last", None)
        elif not is_same:
            self.state.put(None, "last", (instant, values))
        if (last is None and is_empty) or (is_same and not (is_empty and self.spec.deletes_empty)):
            yield from self._unlike_shown(instant, values)
            return
        if self.spec.corrects:
            self._note_emitted({instant: 0}, None)
        yield RollingRow(self.state.current_key, instant, values, not is_empty, last is None, by_tick)

    def _of_row(self, row: HeldRow) -> RollingRow:
        return RollingRow(self.state.current_key, row.time, self.features.values(self._rows(), row.time))

    # Corrections: rows of revision 0 are those of a run that corrects nothing; the last revisions have the present values.

    def _corrections(self, late: list[HeldRow], fresh: list[HeldRow], watermark: int) -> Iterator[RollingRow]:
        """Yield the key's ticks up to ``watermark`` that ``late`` rows of the batch change, and the one after them."""
        spec, features, arrived = self.spec, self.features, {row.arrival for row in fresh}
        rows = self._rows()
        before = [row for row in rows if row.arrival not in arrived]
        first = min(spec.tick_from(row.time) for row in late)
        left = max(spec.tick_from(window.leaving(row.time)) for row in late for window in spec.windows)
        last = spec.last_tick(watermark)
        out: dict[int, int] = self.state.get(None, "out") or {}
        earlier = features.values(rows, first - spec.step), features.is_empty(rows, first - spec.step)
        again: dict[int, int] = {}
        for instant in range(first, min(last, left) + 1, spec.step):
            values, is_empty = features.values(rows, instant), features.is_empty(rows, instant)
            if instant in out:
                is_emitted = not features.same(values, features.values(before, instant))
            else:
                is_emitted = not is_empty if earlier[1] else not features.same(values, earlier[0])
            if is_emitted:
                again[instant] = out.get(instant, 0) + 1
                yield RollingRow(self.state.current_key, instant, values, not is_empty, revision=again[instant])
            earlier = values, is_empty
        self._note_emitted(again, features.values(rows, last))

    def _unlike_shown(self, instant: int, values: tuple[Value, ...]) -> Iterator[RollingRow]:
        """Yield a tick that is like the key's last row, if a correction was emitted after that row and differs from it."""
        shown = self.state.get(None, "shown")
        if shown is not None and not self.features.same(shown, values):
            self._note_emitted({instant: 1}, None)
            yield RollingRow(self.state.current_key, instant, values, by_tick=True, revision=1)

    def _note_emitted(self, ticks: dict[int, int], shown: tuple[Value, ...] | None) -> None:
        """Keep that the current key was emitted at ticks, by revision, those that no late row can reach left out."""
        out = {**(self.state.get(None, "out") or {}), **ticks}
        horizon = max(out, default=0) - self.spec.reach - self.spec.step
        self.state.put(None, "out", {tick: revision for tick, revision in out.items() if tick > horizon} or None)
        self.state.put(None, "shown", shown)

    # When to look at a key.

    def _look_again(self, now: int) -> None:
        """Forget the rows of the current key that no window can see, and set its timer; all up to ``now`` is done."""
        rows = self._rows()
        kept = [row for row in rows if self.spec.forgotten(row.time) > now]
        self.forgotten += len(rows) - len(kept)
        self.state.put(None, "rows", kept or None)
        is_shown = self.spec.emit is RollingEmit.BATCH and now < MAX and self.state.get(None, "last") is not None
        if not kept and not is_shown:
            self.state.put(None, "out", None)
            self.state.put(None, "shown", None)
            self.state.put(None, "last", None)
            self.state.put(None, "seen", None)
        earlier, key_bytes = self.state.get(None, "look"), self.state.current_key_bytes
        if earlier is not None:
            self.timers.remove(earlier, key_bytes, None)
        look = min((moment for row in kept for moment in self._moments(row, now)), default=MAX if is_shown else None)
        self.state.put(None, "look", look)
        if look is not None:
            self.timers.add(look, key_bytes, None)

    def _moments(self, row: HeldRow, now: int) -> Iterator[int]:
        """Yield the times after ``now`` at which a row makes its key one to look at."""
        yield self.spec.forgotten(row.time)
        emit, seen = self.spec.emit, self.state.get(None, "seen")
        if emit is RollingEmit.EACH and row.time > now:
            yield row.time
        if emit is RollingEmit.TICK and (seen is None or self.spec.tick_from(row.time) > now):
            yield self.spec.tick_from(max(row.time, now + 1))
        if emit is RollingEmit.CHANGED and seen is None:
            yield self.spec.tick_from(now + 1)
        if emit in (RollingEmit.CHANGED, RollingEmit.TICK):
            for window in self.spec.windows:
                leaving = window.leaving(row.time)
                if seen is None or leaving > seen:
                    yield self.spec.tick_from(max(leaving, now + 1))

    def _rows(self) -> list[HeldRow]:
        return list(self.state.get(None, "rows") or ())


def _placed(values: Sequence[Value], places: Sequence[int | None]) -> tuple[Value, ...]:
    return tuple(None if place is None else values[place] for place in places)


_ORDER = itemgetter(0, 1)
"""What orders rows."""
