"""The pending fire time of each pane under a continuous trigger.

Key layout: a segment log ``t`` with one segment a window, named by its end; a chunk has the keys that a batch brought and the
``FIRE_TIME`` that each would begin with. A pane's pending time is the first one written for it: a pending time stays, so a batch
need not read. Firing writes a segment anew. A pane that has fired at the end of a window that is kept beyond it has the time
``DONE``, so that later elements find a pending time and start none. ``d`` holds for each window the time before which none of its
panes is due.

Who may mutate: the engine of the bucket. Recovery: read them back. Source of the rules: Flink's continuous triggers.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from windowpane.arrays import Integers
from windowpane.hidden_columns import FIRE_TIME
from windowpane.kernels.keys.dense_codes import dense_codes, places_in
from windowpane.state.blob_store import BlobStore
from windowpane.state.codec import frame, unframe
from windowpane.state.segment_log import SegmentLog
from windowpane.windowing.times import MAX

DONE = MAX
"""The time of a pane that fires no more: time itself ends before it is due."""

_DUE, _DUE_KIND = "d", "due-fire-times"


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

    def __init__(self, store: BlobStore, keys: list[str], interval: int) -> None:
        """Read the index."""
        self._store = store
        self._keys = keys
        self._interval = interval
        self._log = SegmentLog(store, "t")
        self._due = self._read_due()
        self._changed = False

    def ends(self) -> list[int]:
        """Return the ends of windows with pending fire times."""
        return self._log.segments()

    def due_times(self) -> list[int]:
        """Return, for each window of which something is due yet, the time before which nothing is."""
        return [time for time in self._due.values() if time != DONE]

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
        self._note_due(end, min(self._due.get(end, MAX), int(fire_times.min())))

    def advance(self, end: int, last: int, now: int, is_ending: bool) -> Pending | None:
        """Return the panes that fire early in a window up to ``now``, ``None`` for none, and keep the pending times after it.

        Args:
            end: the end of the window.
            last: its last instant.
            now: the time of the trigger's clock.
            is_ending: whether all panes fire at ``last`` anyway: then no fire time is left.
        """
        if not is_ending and self._due.get(end, MAX) > now:
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
        self._changed |= self._due.pop(end, None) is not None

    def flush(self) -> None:
        """Write what changed; nothing pending leaves nothing."""
        self._log.flush()
        if not self._changed:
            return
        if self._due:
            pairs = array("q", [number for pair in sorted(self._due.items()) for number in pair])
            self._store.put(_DUE, frame(_DUE_KIND, pairs.tobytes()))
        else:
            self._store.remove(_DUE)

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
        self._note_due(end, int(following.min()))

    def _read(self, end: int) -> pa.Table | None:
        chunks = self._log.read(end)
        if not chunks:
            return None
        panes = pa.concat_tables(chunks)
        firsts = dense_codes([panes[name] for name in self._keys], panes.num_rows).firsts
        return panes.take(pa.array(firsts))

    def _note_due(self, end: int, time: int) -> None:
        self._changed |= self._due.get(end) != time
        self._due[end] = time

    def _read_due(self) -> dict[int, int]:
        blob = self._store.get(_DUE)
        if blob is None:
            return {}
        numbers = array("q", unframe(_DUE_KIND, blob))
        return dict(zip(numbers[::2], numbers[1::2], strict=True))


def _truncated(times: Integers, interval: int) -> Integers:
    """Return times rounded toward zero to multiples of the interval: Java's division."""
    truncated: Integers = times - np.fmod(times, interval)
    return truncated
