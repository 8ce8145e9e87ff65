"""When the first timers of the panes of each segment are due: a clock that moves opens no segment of which nothing is.

Key layout: one blob ``d``, for each segment that holds something its name and the first time of either clock. Who may mutate:
the engine of the bucket, once a batch. Recovery: read it back.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence

from windowpane.state.blob_store import BlobStore
from windowpane.state.codec import frame, unframe
from windowpane.windowing.times import MAX

_DUE, _DUE_KIND = "d", "due-timers"


class DueTimers:
    """By segment that holds something when its first timers are due, of event time and of the clock."""

    def __init__(self, store: BlobStore) -> None:
        self._store = store
        blob = store.get(_DUE)
        numbers = array("q", b"" if blob is None else unframe(_DUE_KIND, blob))
        self._times = {at: (one, other) for at, one, other in zip(numbers[::3], numbers[1::3], numbers[2::3], strict=True)}
        self._changed = False

    def segments(self, clock: int, event_time: bool) -> list[int]:
        return sorted(at for at in self._times if self.is_due(at, clock, event_time))

    def is_due(self, segment: int, clock: int, event_time: bool) -> bool:
        return self._times.get(segment, (MAX, MAX))[not event_time] <= clock

    def note(self, segment: int, event_time: int, processing_time: int) -> None:
        """Note when the first timers of a segment are due, ``MAX`` for those that are never, or at the end of time."""
        self._changed |= self._times.get(segment) != (event_time, processing_time)
        self._times[segment] = event_time, processing_time

    def bring_forward(self, segment: int, event_time: int, processing_time: int) -> None:
        """Note when first timers of a segment are due, beside those that are known: the earlier counts."""
        known = self._times.get(segment, (MAX, MAX))
        self.note(segment, min(known[0], event_time), min(known[1], processing_time))

    def covers(self, present: Sequence[int], written: Sequence[int]) -> bool:
        """Whether these segments are those that are known, but for some that were just written."""
        return not (self._times.keys() ^ set(present)) - set(written)

    def clear(self) -> None:
        self._changed, self._times = True, {}

    def drop(self, segment: int) -> None:
        self._changed |= self._times.pop(segment, None) is not None

    @property
    def next_processing_time(self) -> int | None:
        """When the clock is first waited for, ``None`` for never."""
        return min((times[1] for times in self._times.values() if times[1] != MAX), default=None)

    def flush(self) -> None:
        """Write them if they changed; nothing leaves nothing."""
        if self._changed and not self._times:
            self._store.remove(_DUE)
        elif self._changed:
            flat = array("q", [number for at, times in sorted(self._times.items()) for number in (at, *times)])
            self._store.put(_DUE, frame(_DUE_KIND, flat.tobytes()))
