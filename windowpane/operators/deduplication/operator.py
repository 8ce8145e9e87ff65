"""The reference of deduplication: one row at a time, one key at a time.

State of a key, under ``runs``: its runs, none of which is near another. For *first* a run is one row that was emitted, of which
the time is kept; for *last* it is the span of rows that are near each other, with the newest of them and the row that was last
emitted for it. A timer for the end of each run, so that it is found when it can be forgotten. Who may mutate: this operator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from windowpane.arrays.values import Row, Value
from windowpane.errors import MistakeError
from windowpane.state.keyed import KeyedState
from windowpane.state.timers import TimerQueue
from windowpane.windowing.outputs import Change


@dataclass(frozen=True)
class Run:
    start: int  # the time of the oldest
    end: int  # the time of the newest
    row: Row | None = None  # the newest; ``None`` where only times count
    # (time, row) of those that downstream has, each once the newest of a run that is part of this one
    shown: tuple[tuple[int, Row], ...] = ()


@dataclass
class Deduplicator:
    within: int
    state: KeyedState
    timers: TimerQueue
    is_same: Callable[[Row, Row], bool]
    _touched: dict[bytes, Value] = field(default_factory=dict, init=False)

    def take_first(self, key: object, key_bytes: bytes, time: int) -> bool:
        """Take a row that is not late, and return whether it is emitted."""
        self.state.set_current_key(key, key_bytes)
        runs = self._runs()
        if any(self._is_near(time, time, run) for run in runs):
            return False
        self._put([*runs, Run(time, time)])
        return True

    def take_last(self, key: object, key_bytes: bytes, time: int, row: Row) -> None:
        """Take a row that is not late; ``changes`` yields its effect."""
        self.state.set_current_key(key, key_bytes)
        self._touched[key_bytes] = key
        runs = self._runs()
        near = self._connected(time, runs)
        newest = max(near, key=lambda run: run.end, default=None)
        joined = Run(
            min([time, *(run.start for run in near)]),
            max([time, *(run.end for run in near)]),
            row if newest is None or time >= newest.end else newest.row,
            tuple(shown for run in near for shown in run.shown),
        )
        self._put([*(run for run in runs if run not in near), joined])

    def changes(self) -> Iterator[Change]:
        """Yield how the last rows have changed since the last call, each row at most once."""
        for key_bytes, key in self._touched.items():
            self.state.set_current_key(key, key_bytes)
            runs = self._runs()
            for run in runs:
                yield from self._change(run)
            self._put([Run(run.start, run.end, run.row, ((run.end, run.row),)) for run in runs if run.row is not None])
        self._touched.clear()

    def _change(self, run: Run) -> Iterator[Change]:
        if run.row is None:
            raise MistakeError("the last rows are kept")
        *older, (_, before) = sorted(run.shown, key=lambda shown: shown[0]) if run.shown else [(0, None)]
        for _, row in older:
            yield Change(row, None)
        if before is None or not self.is_same(before, run.row):
            yield Change(before, run.row)

    def forget(self, forgotten: int) -> None:
        while (timer := self.timers.poll(forgotten)) is not None:
            self.state.set_current_key(timer.key, timer.key_bytes)
            self._put([run for run in self._runs() if run.end > forgotten])

    def _connected(self, time: int, runs: Sequence[Run]) -> list[Run]:
        """Return the runs that a row makes one: those it is near to, and such that a longer ``within`` makes near to these."""
        near, first, last = list[Run](), time, time
        while more := [run for run in runs if run not in near and self._is_near(first, last, run)]:
            near += more
            first, last = min(first, *(run.start for run in more)), max(last, *(run.end for run in more))
        return near

    def _is_near(self, first: int, last: int, run: Run) -> bool:
        return run.start - self.within < last and first < run.end + self.within

    def _runs(self) -> list[Run]:
        return list(self.state.get(None, "runs") or ())

    def _put(self, runs: list[Run]) -> None:
        for run in self._runs():
            self.timers.remove(run.end, self.state.current_key_bytes, None)
        self.state.put(None, "runs", runs or None)
        for run in runs:
            self.timers.add(run.end, self.state.current_key_bytes, None)
