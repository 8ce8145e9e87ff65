"""What a bucket holds of keys, as arrays: a row for each key, and its pieces; and the table that pages keep of both.

A row of a page is a key: its hash, the values of the key, when its last row was of and the features of that (``AS_OF``,
``IS_OUT`` where such a row exists), as of when features were last computed (``SEEN``), the time of its newest row, when to look
at it again (``LOOK``), and its pieces in order of time as a list of structs. A piece is the start of its grain of time, partial
aggregates, and for ``each`` how many of its rows have not been emitted yet.

There is no timer a key. Each key has the first instant after all that is done at which it is to be looked at, since a row may
enter or leave a window at a tick, or is forgotten; and a page has the first of its keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from windowpane.arrays import Integers, Mask, Unsigned
from windowpane.arrays.columns import flat
from windowpane.hidden_columns import HASH, ROWS, TIME, hidden
from windowpane.kernels.grouping.grouped_fold import GroupedFold
from windowpane.kernels.keys.dense_codes import numbered
from windowpane.kernels.keys.key_codes import key_codes
from windowpane.kernels.packed_order import lexical_order, stable_order
from windowpane.kernels.segments import Runs, interleaved, starts_of_runs
from windowpane.sizes import Size
from windowpane.windowing.rolling import RollingEmit, RollingSpec, RollingWindow
from windowpane.windowing.times import MAX, MIN

_BITS = Size("bits of a key and a time of pieces as one integer", 61, (3, 12))

LOOK = hidden("look")
_AS_OF, _IS_OUT, _SEEN, _NEWEST = hidden("as_of"), hidden("is_out"), hidden("seen"), hidden("newest")
_PIECES = hidden("pieces")


@dataclass
class Pieces:
    """Pieces, sorted by key and time, no two of one key and time."""

    owners: Integers  # the number of the key of each
    times: Integers  # where each begins
    partials: pa.Table  # the partial aggregates
    waiting: Integers | None = None  # how many of its rows have not been emitted, ``None`` unless each does

    def take(self, numbers: Integers | Mask) -> Pieces:
        numbers = np.flatnonzero(numbers) if numbers.dtype == np.bool_ else numbers
        waiting = None if self.waiting is None else self.waiting[numbers]
        return Pieces(self.owners[numbers], self.times[numbers], self.partials.take(pa.array(numbers)), waiting)

    def merged(self, other: Pieces, fold: GroupedFold) -> Pieces:
        """Return these and other pieces together; those of one key and time become one."""
        owners, times = np.concatenate([self.owners, other.owners]), np.concatenate([self.times, other.times])
        partials = pa.concat_tables([self.partials, other.partials.select(self.partials.column_names)])
        waiting = None
        if self.waiting is not None and other.waiting is not None:
            waiting = np.concatenate([self.waiting, other.waiting])
        both = Pieces(owners, times, partials, waiting).take(_merged_order(owners, times, len(self.owners)))
        return both.together(fold)

    def together(self, fold: GroupedFold) -> Pieces:
        """Return these pieces, sorted, with those of one key and time as one."""
        is_first = starts_of_runs(self.owners, self.times)
        if is_first.all():
            return self
        starts = np.flatnonzero(is_first)
        runs = Runs.at(np.append(starts, len(self.owners)))
        partials = fold.merge_segments(self.partials, runs).select(self.partials.column_names)
        waiting = None if self.waiting is None else runs.total(self.waiting)
        return Pieces(self.owners[starts], self.times[starts], partials, waiting)


def _merged_order(owners: Integers, times: Integers, held: int) -> Integers:
    """Return the positions that sort pieces by key and time, of which the first ``held`` are sorted so.

    The others are sorted and put among them, which costs a search for each; nothing that is held is sorted again.
    """
    first, last = int(times.min()), int(times.max())
    if int(owners.max()).bit_length() + (last - first).bit_length() > _BITS.value:
        return lexical_order([owners, times])
    words = owners * (last - first + 1) + (times - first)
    added = held + stable_order(words[held:])
    order = interleaved(held, np.searchsorted(words[:held], words[added], side="right"))
    order[order >= held] = added
    return order


@dataclass
class Keys:
    hashes: Unsigned  # a hash of each
    columns: list[pa.Array]  # their values
    as_of: Integers  # when the last row was of
    is_out: Mask  # whether there is one
    seen: Integers  # as of when features were last computed, ``MIN`` if that was never, or does not hold any more
    newest: Integers  # the time of the newest row
    look: Integers  # when to look at each again
    features: list[pa.Array]  # the features of the last row

    def __len__(self) -> int:
        return len(self.hashes)

    def and_new(self, other: Keys) -> tuple[Keys, Integers]:
        """Return these keys followed by those of ``other`` that are not among them, and the number of each of ``other``."""
        count, total = len(self), len(self) + len(other)
        both = [pa.chunked_array(pair) for pair in zip(self.columns, other.columns, strict=True)]
        numbers = numbered(key_codes(both, total))
        is_new = numbers[count:] >= count
        joined = Keys.of_table(pa.concat_tables([self.to_table(), other.to_table().filter(pa.array(is_new))]))
        found = numbers[count:]
        joined.newest[found] = np.maximum(joined.newest[found], other.newest)
        return joined, found

    def forget(self, which: Mask) -> None:
        self.is_out[which] = False
        for instants in (self.as_of, self.seen, self.newest):
            instants[which] = MIN

    def to_table(self) -> pa.Table:
        columns = [pa.array(self.hashes), *self.columns, pa.array(self.as_of), pa.array(self.is_out), pa.array(self.seen)]
        columns += [pa.array(self.newest), pa.array(self.look), *self.features]
        keys = [hidden(f"key_{number}") for number in range(len(self.columns))]
        features = [hidden(f"feature_{number}") for number in range(len(self.features))]
        return pa.table(columns, names=[HASH, *keys, _AS_OF, _IS_OUT, _SEEN, _NEWEST, LOOK, *features])

    @classmethod
    def of_table(cls, table: pa.Table) -> Keys:
        named = {name: flat(table[name]) for name in table.column_names if name != _PIECES}
        numbers = [
            np.array(named.pop(name).to_numpy(zero_copy_only=False)) for name in (HASH, _AS_OF, _IS_OUT, _SEEN, _NEWEST, LOOK)
        ]
        hashes, as_of, is_out, seen, newest, look = numbers
        keys = [column for name, column in named.items() if name.startswith(hidden("key_"))]
        return cls(hashes, keys, as_of, is_out, seen, newest, look, list(named.values())[len(keys) :])


def held_table(keys: Keys, pieces: Pieces) -> pa.Table:
    """Return keys that have pieces, with these, or whose last row is still theirs, as pages keep them."""
    counts = np.bincount(pieces.owners, minlength=len(keys))
    columns = [pa.array(pieces.times), *map(flat, pieces.partials.columns)]
    names = [TIME, *pieces.partials.column_names]
    if pieces.waiting is not None:
        columns, names = [*columns, pa.array(pieces.waiting)], [*names, ROWS]
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    lists = pa.ListArray.from_arrays(pa.array(offsets), pa.StructArray.from_arrays(columns, names))
    table = keys.to_table().append_column(_PIECES, lists)
    is_held = (counts > 0) | keys.is_out
    return table if is_held.all() else table.filter(pa.array(is_held))


def of_held_table(table: pa.Table) -> tuple[Keys, Pieces]:
    lists = flat(table[_PIECES])
    structs = lists.flatten()
    columns = dict(zip([field.name for field in structs.type], structs.flatten(), strict=True))
    owners = np.repeat(np.arange(table.num_rows), np.diff(lists.offsets.to_numpy()))
    times = np.array(columns.pop(TIME).to_numpy())
    waiting = columns.pop(ROWS, None)
    return Keys.of_table(table), Pieces(owners, times, pa.table(columns), None if waiting is None else np.array(waiting))


def pieces_held(table: pa.Table) -> int:
    return sum(int(lists.offsets[-1].as_py() - lists.offsets[0].as_py()) for lists in table[_PIECES].chunks)


def single_pieces(spec: RollingSpec, keys: Keys, pieces: Pieces) -> int:
    """Return how many pieces are of one instant, as exact edges need them."""
    exact = [window for window in spec.windows if window.is_exact]
    if not exact or spec.emit is RollingEmit.TICK:
        return 0
    if spec.windows[-1].is_exact:
        return len(pieces.times)
    seen_from = np.min([window.start(keys.newest) for window in exact], axis=0)
    return int(np.count_nonzero(pieces.times >= seen_from[pieces.owners]))


def new_keys(hashes: Unsigned, columns: Sequence[pa.Array], newest: Integers, features: Sequence[pa.DataType]) -> Keys:
    count = len(hashes)
    none = np.full(count, MIN)
    values = [pa.nulls(count, kind) for kind in features]
    return Keys(hashes, list(columns), none, np.zeros(count, np.bool_), none.copy(), newest, none.copy(), values)


FAR = MAX // 2
"""Later than any watermark at which something is held."""


def set_looks(spec: RollingSpec, keys: Keys, pieces: Pieces, which: Mask, now: int) -> None:
    """Set when to look at some keys again, all up to the watermark ``now`` being done."""
    now = min(now, FAR)
    if not which.all():
        pieces = _of_keys(pieces, which)
    looks = np.full(len(keys), FAR)
    starts = np.flatnonzero(np.diff(pieces.owners, prepend=-1))
    owners = pieces.owners[starts]
    looks[owners] = spec.forgotten(pieces.times[starts])

    def sooner(moments: Integers) -> None:
        if len(starts):
            looks[owners] = np.minimum(looks[owners], np.minimum.reduceat(moments, starts))

    if spec.emit is RollingEmit.EACH and pieces.waiting is not None:
        sooner(np.where(pieces.waiting > 0, pieces.times, FAR))
    if spec.emit is RollingEmit.TICK:
        for moments in _tick_moments(spec, pieces.times):
            sooner(np.where(moments > now, moments, FAR))
    if spec.emit is RollingEmit.CHANGED or (spec.emit is RollingEmit.TICK and now > MIN):
        is_stale = keys.seen[owners] == MIN
        looks[owners[is_stale]] = np.minimum(looks[owners[is_stale]], spec.tick_from(now + 1))
    if spec.emit is RollingEmit.CHANGED:
        for window in spec.windows:
            firsts, leaves = _first_to_leave(window, pieces, starts, keys.seen[owners])
            moments = spec.tick_from(np.maximum(window.leaving(pieces.times[firsts]), now + 1 if now > MIN else MIN))
            looks[owners[leaves]] = np.minimum(looks[owners[leaves]], moments)
    keys.look[which] = looks[which]


def _first_to_leave(window: RollingWindow, pieces: Pieces, starts: Integers, seen: Integers) -> tuple[Integers, Mask]:
    """Return the first piece of each key that leaves a window after an instant, and which keys have one.

    These are the pieces that the window as of that instant takes, or will take; a key's pieces are in order of time.
    """
    bounds = np.where(seen == MIN, MIN, window.start(np.maximum(seen, MIN // 2)))
    sizes = np.diff(starts, append=len(pieces.times))
    is_past = pieces.times < np.repeat(bounds, sizes)
    past = np.add.reduceat(is_past, starts, dtype=np.int64) if len(starts) else sizes
    leaves = past < sizes
    return (starts + past)[leaves], leaves


def due_ticks(spec: RollingSpec, keys: Keys, pieces: Pieces, before: int, watermark: int) -> tuple[Integers, Integers]:
    """Return the (key, tick) pairs after ``before`` and up to ``watermark`` at which features may change, in order."""
    due = keys.look <= watermark
    asked, ticks = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    pieces = _of_keys(pieces, due)
    for moments in _tick_moments(spec, pieces.times):
        is_due = (moments > before) & (moments <= watermark)
        asked.append(pieces.owners[is_due])
        ticks.append(moments[is_due])
    if before > MIN and (following := spec.tick_from(before + 1)) <= watermark:
        stale = np.flatnonzero(due & (keys.seen == MIN))
        asked.append(stale)
        ticks.append(np.full(len(stale), following))
    pairs = np.unique(np.stack([np.concatenate(asked), np.concatenate(ticks)]), axis=1)
    return pairs[0], pairs[1]


def _tick_moments(spec: RollingSpec, times: Integers) -> list[Integers]:
    """Return the ticks at which pieces enter windows, and for each window those at which they leave it."""
    return [spec.tick_from(times), *(spec.tick_from(window.leaving(times)) for window in spec.windows)]


def _of_keys(pieces: Pieces, which: Mask) -> Pieces:
    """Return the pieces of some keys, without their partials."""
    chosen = which[pieces.owners]
    waiting = None if pieces.waiting is None else pieces.waiting[chosen]
    return Pieces(pieces.owners[chosen], pieces.times[chosen], pieces.partials.slice(0, 0), waiting)
