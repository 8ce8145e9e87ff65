"""What both references of joins have in common: rows by key, timers, and results as they are emitted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from windowpane.arrays.values import Row, Value
from windowpane.state.keyed import KeyedState
from windowpane.state.timers import TimerQueue
from windowpane.windowing.outputs import INSERT

Matches = Callable[[Row, Row], bool]
"""Whether a left and a right row of equal keys fulfil the condition of the join."""


class Arrival(NamedTuple):
    is_left: bool  # whether it is of the left side
    row: Row  # the row
    time: int  # its event time
    meets: bool = True  # whether its key equals any; one with NULL may not
    deletes: bool = False  # whether it says that its key has no version any more
    upper: int | None = None  # of a left row, the last time of its matches where a column of it says so; ``None`` for none


class Joined(NamedTuple):
    left: Row | None  # its left row, ``None`` if it is a right row without a match
    right: Row | None  # its right row, ``None`` if it is a left row by itself
    time: int  # its event time
    change: str = INSERT  # the kind of change, where results are a changelog


@dataclass
class KeyedRows:
    state: KeyedState
    timers: TimerQueue

    @property
    def key(self) -> tuple[Value, bytes]:
        return self.state.current_key, self.state.current_key_bytes

    def turn_to(self, key: object, key_bytes: bytes) -> None:
        self.state.set_current_key(key, key_bytes)

    def read(self, name: str) -> list[Value]:
        return self.state.get(None, name) or []

    def write(self, name: str, rows: list[Value]) -> None:
        self.state.put(None, name, rows or None)

    def look_again(self, time: int) -> None:
        """Look at the current key once the watermark is at ``time``."""
        self.timers.add(time, self.state.current_key_bytes, None)

    def look_anew(self) -> Iterator[str]:
        """Forget when to look at keys, turn to each of them, and yield the names under which it has rows."""
        for timer in list(self.timers):
            self.timers.remove(timer.time, timer.key_bytes, timer.window)
        for key, _, name in list(self.state.slots()):
            self.state.set_current_key(key)
            yield name

    def turn_to_next(self, watermark: int) -> bool:
        """Turn to a key that is to be looked at by now; whether there is one."""
        timer = self.timers.poll(watermark)
        if timer is not None:
            self.turn_to(timer.key, timer.key_bytes)
        return timer is not None
