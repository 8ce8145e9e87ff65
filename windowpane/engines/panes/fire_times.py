"""The pending fire time of each pane under a continuous trigger.

Key layout: a segment log ``t`` with one segment a window, named by its end; a chunk has the keys that a batch brought and the
``FIRE_TIME`` that each would begin with. A pane's pending time is the first one written for it: a pending time stays, so a batch
need not read. Firing writes a segment anew. A pane that has fired at the end of a window that is kept beyond it has the time
``DONE``, so that later elements find a pending time and start none. ``d`` has the time before which no pane of a window is due
(see ``due_timers``).

Who may mutate: the engine of the bucket. Recovery: read them back. Source of the rules: Flink's continuous triggers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from windowpane.arrays import Integers
from windowpane.engines.panes.due_timers import DueTimers
from windowpane.hidden_columns import FIRE_TIME
from windowpane.kernels.keys.dense_codes import dense_codes, places_in
from windowpane.state.blob_store import BlobStore
from windowpane.state.segment_log import SegmentLog
from windowpane.windowing.times import MAX

DONE = MAX
"""The time of a pane that fires no more: time itself ends before it is due."""


@dataclass(frozen=True)
class Pending:
    """What fires early in one window.

    Args:
        ticks: the instants at which panes fire, ascending.
        panes: the keys of panes that have a fire time, and that time: a pane fires at each tick from then on.
    """

    ticks: list[int]
    panes: pa.Table

    def times_of(self, keys: pa.Table) -> Integers:
        """Return the first fire time of each key, ``DONE`` for none."""
        places = places_in(keys, self.panes.select(keys.column_names))
        times = np.append(self.panes[FIRE_TIME].to_numpy(), DONE)
        found: Integers = times[places]  # -1 is the last
        return found


class FireTimes:
    """The fire times of the panes of a bucket, every ``interval`` microseconds."""

    def __init__(self, store: BlobStore, keys: list[str], interval: int, by_event_time: bool) -> None:
        """Read the index."""
        self._keys = keys
        self._interval = interval
        self._by_event_time = by_event_time
        self._log = SegmentLog(store, "t")
        self._due = DueTimers(store)

    def ends(self) -> list[int]:
        """Return the ends of windows with pending fire times."""
        return self._log.segments()

    @property
    def next_processing_time(self) -> int | None:
        """When the clock is first waited for, ``None`` for never."""
        return self._due.next_processing_time

    @property
    def byte_size(self) -> int:
        """The size of the state in bytes."""
        return self._log.byte_size

    def start(self, end: int, keys: pa.Table, times: Integers, last: int) -> None:
        """See that each pane has a fire time: the first multiple of the interval after the time of its first element.

        Args:
            end: the end of the window.
            keys: the keys of its elements, in their order.
            times: the time of each, by the clock of the trigger.
            last: the last instant of the window; nothing fires beyond it.
        """
        firsts = dense_codes(keys.columns, keys.num_rows).firsts
        begun = _truncated(times[firsts], self._interval)
        fire_times = np.where(begun > last - self._interval, last, begun + self._interval)
        self._log.append(end, keys.take(pa.array(firsts)).append_column(FIRE_TIME, pa.array(fire_times)))
        self._due.bring_forward(end, *self._of_clock(int(fire_times.min())))

    def advance(self, end: int, last: int, now: int, is_ending: bool) -> Pending | None:
        """Return the panes that fire early in a window up to ``now``, ``None`` for none, and keep the pending times after it.

        Args:
            end: the end of the window.
            last: its last instant.
            now: the time of the trigger's clock.
            is_ending: whether all panes fire at ``last`` anyway: then no fire time is left.
        """
        if not is_ending and not self._due.is_due(end, now, self._by_event_time):
            return None
        panes = self._read(end)
        if panes is None:
            return None
        times = panes[FIRE_TIME].to_numpy()
        due = times[times <= now]
        if is_ending:
            self.drop(end)
        else:
            self._move_on(end, panes, last, now)
        ticks = [] if not len(due) else list(range(int(due.min()), min(now, last - 1) + 1, self._interval))
        return Pending(ticks + ([last] if len(due) and now >= last and not is_ending else []), panes)

    def drop(self, end: int) -> None:
        """Forget a window."""
        self._log.drop(end)
        self._due.drop(end)

    def flush(self) -> None:
        """Write what changed."""
        self._log.flush()
        self._due.flush()

    def _move_on(self, end: int, panes: pa.Table, last: int, now: int) -> None:
        """Give the panes that are due their next fire time; none is beyond the last instant: after it they are done."""
        self.drop(end)
        times = panes[FIRE_TIME].to_numpy()
        if now >= last:
            following = np.full(len(times), DONE)
        else:
            steps = np.where(times <= now, (now - times) // self._interval + 1, 0)
            following = np.where(times > last - steps * self._interval, last, times + steps * self._interval)
        at = panes.column_names.index(FIRE_TIME)
        self._log.append(end, panes.set_column(at, FIRE_TIME, pa.array(following)))
        self._due.note(end, *self._of_clock(int(following.min())))

    def _read(self, end: int) -> pa.Table | None:
        chunks = self._log.read(end)
        if not chunks:
            return None
        panes = pa.concat_tables(chunks)
        firsts = dense_codes([panes[name] for name in self._keys], panes.num_rows).firsts
        return panes.take(pa.array(firsts))

    def _of_clock(self, time: int) -> tuple[int, int]:
        """Return when something is due by event time, and by the clock of the machine."""
        return (time, MAX) if self._by_event_time else (MAX, time)


def _truncated(times: Integers, interval: int) -> Integers:
    """Return times rounded toward zero to multiples of the interval: Java's division."""
    truncated: Integers = times - np.fmod(times, interval)
    return truncated
