"""The keys of first rows that were emitted: runs in order of hash. A batch appends a run, and rewrites none.

Keys of events seldom arrive twice, so nearly all held keys are never read by value. A run therefore has two parts: the
hash of the key and the time of each row, which every batch compares with its own hashes, and the values of the key, which are
read only where a hash is found.

Key layout::

    r          the index: for each run in order of age its number, and the middle and the last of its times
    h.<run>.0  hash and time of its rows, in order of hash, in a ``SegmentLog``
    k.<run>.0  the values of their keys, in the same order, in another

A run is removed as a whole once its last row is forgotten, and is rewritten once half of its rows are. The newest runs are merged
where there are ``RUNS`` of about one size, so there are few of them, and a row is rewritten once for each size at most. Runs of
``RUN_ROWS`` rows are left alone: memory is bounded by one of them, however many rows are held.

Who may mutate: one ``KeptKeys`` object at a time. Runs are written at once, the index by ``commit``. Recovery reads the index.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from windowpane.arrays import Integers, Unsigned
from windowpane.hidden_columns import HASH, TIME
from windowpane.kernels.segments import concatenated
from windowpane.sizes import Size
from windowpane.state.blob_store import BlobStore, note_layout
from windowpane.state.codec import frame, unframe
from windowpane.state.hash_pages import stored_hashes
from windowpane.state.segment_log import SegmentLog

RUNS = Size("runs of kept keys of about one size", 8, (2, 3))
RUN_ROWS = Size("rows of a run of kept keys that is not merged any more", 1 << 20, (4, 16))

_INDEX, _KIND = "r", "kept-keys-runs"


@dataclass(frozen=True)
class _Run:
    """A run: its number in both logs, the middle of its times, and the last of them."""

    number: int
    middle: int
    last: int


class KeptKeys:
    def __init__(self, store: BlobStore) -> None:
        self._store = store
        self._times, self._keys = SegmentLog(store, "h"), SegmentLog(store, "k")
        blob = store.get(_INDEX)
        index = [] if blob is None else np.frombuffer(unframe(_KIND, blob), np.int64).reshape(-1, 3).tolist()
        self._runs = [_Run(*row) for row in index]
        self._next_number = max((run.number for run in self._runs), default=-1) + 1
        note_layout(store, _INDEX, self)

    def runs(self) -> Iterator[tuple[Unsigned, Integers, pa.Table]]:
        """Yield the hashes of each run, which ascend, their times, and their keys."""
        for run in self._runs:
            (times,), (keys,) = self._times.read(run.number), self._keys.read(run.number)
            yield stored_hashes(times), times[TIME].to_numpy(), keys

    @property
    def rows(self) -> int:
        """The number of rows, those among them that are forgotten."""
        return self._times.row_count

    @property
    def byte_size(self) -> int:
        return self._times.byte_size + self._keys.byte_size

    def forget(self, time: int) -> None:
        """Let rows at or below a time go, where that is worth the while."""
        kept: list[_Run] = []
        for run in self._runs:
            if run.middle > time:
                kept.append(run)
                continue
            if run.last > time:
                kept.append(self._merged([run], time))
            self._drop(run)
        self._runs = kept

    def with_hashes(self, asked: Unsigned) -> Iterator[tuple[Integers, Integers, pa.Table]]:
        """Yield by run the rows that have one of some hashes, which ascend: the numbers of the hashes, times, and keys."""
        for run in self._runs:
            (held,) = self._times.read(run.number)
            hashes = stored_hashes(held)
            numbers = np.searchsorted(hashes, asked)
            found = np.flatnonzero(hashes[np.minimum(numbers, len(hashes) - 1)] == asked)
            if not len(found):
                continue
            firsts = numbers[found]
            counts = np.searchsorted(hashes, asked[found], side="right") - firsts
            places = concatenated(firsts, counts)
            (keys,) = self._keys.read(run.number)
            yield found, held[TIME].to_numpy()[places], keys.take(pa.array(places))

    def add(self, hashes: Unsigned, times: Integers, keys: pa.Table) -> None:
        if len(hashes):
            self._runs.append(self._written(hashes, times, keys))

    def commit(self, forgotten: int) -> None:
        while len(newest := self._newest_of_one_size()) >= RUNS.value:
            merged = self._merged(newest, forgotten)
            for run in newest:
                self._drop(run)
            self._runs = [*self._runs[: -len(newest)], merged]
        self._times.flush()
        self._keys.flush()
        if not self._runs:
            self._store.remove(_INDEX)
            return
        numbers = np.array([(run.number, run.middle, run.last) for run in self._runs], np.int64)
        self._store.put(_INDEX, frame(_KIND, numbers.tobytes()))

    def _newest_of_one_size(self) -> list[_Run]:
        """Return the newest runs that are no larger than the last of them is by the size of its class."""
        newest: list[_Run] = []
        size, rows = 0, 0
        for run in reversed(self._runs):
            count = self._times.row_count_of(run.number)
            size, rows = (size or _size_class(count)), rows + count
            if _size_class(count) > size or rows > RUN_ROWS.value:
                break
            newest.append(run)
        return newest[::-1]

    def _merged(self, runs: list[_Run], forgotten: int) -> _Run:
        times = pa.concat_tables([table for run in runs for table in self._times.read(run.number)])
        keys = pa.concat_tables([table for run in runs for table in self._keys.read(run.number)])
        hashes, at = stored_hashes(times), times[TIME].to_numpy()
        stays = np.flatnonzero(at > forgotten)
        stays = stays[np.argsort(hashes[stays])]
        return self._written(hashes[stays], at[stays], keys.take(pa.array(stays)))

    def _written(self, hashes: Unsigned, times: Integers, keys: pa.Table) -> _Run:
        number, self._next_number = self._next_number, self._next_number + 1
        self._times.append(number, pa.table({HASH: hashes, TIME: times}))
        self._keys.append(number, keys.combine_chunks())
        middle = int(np.partition(times, len(times) // 2)[len(times) // 2])
        return _Run(number, middle, int(times.max()))

    def _drop(self, run: _Run) -> None:
        self._times.drop(run.number)
        self._keys.drop(run.number)


def _size_class(rows: int) -> int:
    """Return the power of ``RUNS`` that a number of rows has, from 1 on."""
    return 1 + int(math.log(rows, RUNS.value))
