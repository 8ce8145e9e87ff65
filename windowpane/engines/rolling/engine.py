"""The rolling engine: features of all keys of a batch at once, from pieces of partial aggregates.

Rows fold into pieces: one for each key and grain of time, the longest that no window cuts (a hop, or with exact edges an
instant). All windows of a key merge the pieces of their spans, so the state grows with the rows of the longest window, not with
the number of windows::

    pieces of a key      | 3 | 1 |   | 2 | 5 |
    window of 2 grains               [       ]
    window of 5 grains   [                   ]

State, by name in the bucket's blob store: ``header``, and pages ``p`` by a hash of the key, a row for each key with its pieces
(``pieces.py``). Features of silent keys decrease without a timer for each key: a page stores when its first key is due.

Who may mutate: this engine, once a batch. Recovery: read them back; the watermark is in the header.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from windowpane.arrays import Integers, Mask, Unsigned
from windowpane.engines.batch.driver import Left
from windowpane.engines.changes import ACCEPTED, Description
from windowpane.engines.common.arrival import ordered
from windowpane.engines.rolling.batch import BeginningEngine, RollingBatch
from windowpane.engines.rolling.growth import Growth, growth_of
from windowpane.engines.rolling.pieces import (
    FAR,
    LOOK,
    Keys,
    Pieces,
    due_ticks,
    held_table,
    new_keys,
    of_held_table,
    pieces_held,
    set_looks,
    single_pieces,
)
from windowpane.engines.rolling.program import AS_OF, RollingProgram
from windowpane.engines.rows import refuse_missing_times
from windowpane.errors import TimestampOverflowError, present
from windowpane.hidden_columns import ROWS, SLICE, TIME, hidden
from windowpane.kernels.keys.codes import is_nested, written_differently
from windowpane.kernels.keys.dense_codes import first_rows, numbered
from windowpane.kernels.keys.key_codes import key_codes, key_hashes, plain_key
from windowpane.kernels.packed_order import lexical_order
from windowpane.kernels.rolling import PieceFeatures, piece_refusal
from windowpane.kernels.segments import starts_of_runs
from windowpane.sizes import Size
from windowpane.state.blob_store import BlobStore
from windowpane.state.hash_pages import HashPages, PageSummary, stored_hashes
from windowpane.windowing.outputs import DELETE, INSERT, UPDATE_POSTIMAGE
from windowpane.windowing.rolling import RollingEmit
from windowpane.windowing.times import MAX, MIN

PAGE_KEYS = Size("keys of a page of rolling features", 1 << 10, (2, 4))
DENSE_KEYS = Size("keys of a page of rolling features among pages that are all replaced", 1 << 16, (4, 8))
STEP_PIECES = Size("pieces of rolling features in a step", 1 << 22, (5, 12))
"""About so many are worked on at once: bounds the memory of a batch, whatever is held."""

_WORTH = Size("pieces left of those that are put together", 0.9, (1.0,))
"""Pieces are put together where at most this share of them is left."""
_OWNER = hidden("owner")


def _goes_on(program: RollingProgram, was: Description) -> bool:
    growth = growth_of(program, was)
    return growth is not None and (not growth.lost or bool(program.description.get(ACCEPTED)))


@dataclass
class _Arrived:
    """The rows of a batch that are not late: their keys, and pieces whose owners are numbers of these."""

    keys: Keys
    pieces: Pieces


class _Batch(RollingBatch):
    def __init__(self, engine: RollingEngine, store: BlobStore) -> None:
        program = engine.program
        super().__init__(engine, store, accepts=lambda was: _goes_on(program, was))
        self._spec = program.spec
        self._features = engine.features
        self._pages = HashPages(store, "p", stored_hashes, _summary, PAGE_KEYS.value, DENSE_KEYS.value)
        self._out: list[pa.Table] = []
        if self.header.description != program.description:
            self._grow(present(growth_of(program, self.header.description), "the header was accepted"))

    def _grow(self, growth: Growth) -> None:

        def grown(page: pa.Table) -> pa.Table:
            keys, pieces = growth.of(*of_held_table(page.combine_chunks()))
            set_looks(self._spec, keys, pieces, np.ones(len(keys), np.bool_), self.before)
            return held_table(keys, pieces)

        self._pages.rewrite(grown)

    def begin(self, tables: Sequence[pa.Table], cut: int) -> None:
        self.begin_before(cut)
        rows = ordered(tables)
        if rows is not None:
            self._check_times(rows)
            rows = self.on_time(rows, None)
        arrived = None if rows is None else self._arrived(rows)
        if arrived is not None:
            self._each(arrived.keys.hashes, MIN, lambda _, numbers: self._history(arrived, numbers))
        self.write_header(self._pages.rows)

    def _history(self, arrived: _Arrived, numbers: Integers) -> pa.Table:
        keys, pieces = _chosen(arrived, numbers)
        if pieces.waiting is not None:
            pieces.waiting[:] = 0
        set_looks(self._spec, keys, pieces, np.ones(len(keys), np.bool_), self.watermark)
        pieces = self._coarser(keys, pieces)
        self.raw_rows += single_pieces(self._spec, keys, pieces)
        return held_table(keys, pieces)

    def work(self, tables: list[pa.Table]) -> None:
        rows = ordered(tables)
        if rows is not None:
            self._check_times(rows)
            rows = self.on_time(rows, self.program.late_schema)
        arrived = self._arrived(rows) if rows is not None and rows.num_rows else None
        hashes = np.zeros(0, np.uint64) if arrived is None else arrived.keys.hashes
        self._each(hashes, self.watermark, lambda held, numbers: self._step(held, arrived, numbers))
        for table in self._in_order():
            self.emit(table)
        self.count("emitted_by_row", self.counts.get("firings", 0) - self.counts.get("emitted_by_tick", 0))

    def _each(self, hashes: Unsigned, now: int, step: Callable[[pa.Table | None, Integers], pa.Table | None]) -> None:
        self._pages.each(len(hashes), lambda: hashes, now, STEP_PIECES.value, step)

    def close(self) -> Left:
        keys = self._pages.rows
        tiles = self._pages.live - self.raw_rows
        return Left(keys, self._pages.byte_size, gauges={"keys": keys, "tiles": tiles, "raw_rows": self.raw_rows})

    def _in_order(self) -> list[pa.Table]:
        if self._spec.emit is not RollingEmit.TICK or len(self._out) < 2:
            return self._out
        every = pa.concat_tables(self._out)
        return [every.take(pa.array(np.argsort(every[AS_OF].cast(pa.int64()).to_numpy(), kind="stable")))]

    # The rows.

    def _check_times(self, rows: pa.Table) -> None:
        refuse_missing_times(rows, self.program.key_columns, "rolling features go")
        times, reach = rows[TIME].to_numpy(), self._spec.reach + self._spec.step
        for time in (int(times.min()), int(times.max())):
            if not (MIN + reach < time < FAR - reach):
                raise TimestampOverflowError(time, time - reach, time + reach)

    def _arrived(self, rows: pa.Table) -> _Arrived:
        columns = [plain_key(rows[name]) for name in self.program.key_columns]
        owners = numbered(key_codes(columns, rows.num_rows))
        firsts = first_rows(owners)
        grain = self._spec.grain
        starts = pa.array(rows[TIME].to_numpy() // grain * grain)
        grouped = self._features.prepared(rows).append_column(_OWNER, pa.array(owners)).append_column(SLICE, starts)
        folded = self._features.fold.fold(grouped, [_OWNER, SLICE], ROWS, [(TIME, "max")])
        owners, times = folded[_OWNER].to_numpy(), folded[SLICE].to_numpy()
        order = lexical_order([owners, times])
        folded, owners, times = folded.take(pa.array(order)), owners[order], times[order]
        waiting = folded[ROWS].to_numpy().astype(np.int64) if self._spec.emit is RollingEmit.EACH else None
        pieces = Pieces(owners, times, folded.select(list(self._features.fold.columns)), waiting)
        newest = folded[TIME].to_numpy()[np.append(np.flatnonzero(np.diff(owners)), len(owners) - 1)]
        chosen = [column.take(pa.array(firsts)).combine_chunks() for column in columns]
        hashes = key_hashes([pa.chunked_array([column]) for column in chosen], len(firsts))
        return _Arrived(new_keys(hashes, chosen, np.array(newest), self._features.types), pieces)

    # Keys and their pieces.

    def _step(self, page: pa.Table | None, arrived: _Arrived | None, numbers: Integers) -> pa.Table | None:
        held = None if page is None else of_held_table(page)
        if held is not None:
            self.raw_rows -= single_pieces(self._spec, *held)
            if self.is_source:
                held = self._advanced(*held)
        if arrived is not None and len(numbers):
            held = self._joined(held, arrived, numbers)
        if held is not None and not self.is_source:
            held = self._advanced(*held)
        if held is None:
            return None
        pieces = self._coarser(*held)
        self.raw_rows += single_pieces(self._spec, held[0], pieces)
        return held_table(held[0], pieces)

    def _coarser(self, keys: Keys, pieces: Pieces) -> Pieces:
        """Return pieces of which those are put together that the windows of short hops and exact edges no longer see.

        Features will be computed as of the newest row of a key, or a later instant; at ticks only as of those to come.
        """
        if not self._spec.levels or not len(pieces.times):
            return pieces
        is_tick = self._spec.emit is RollingEmit.TICK
        newest = np.full(len(keys), self._spec.last_tick(min(self.watermark, FAR))) if is_tick else keys.newest
        if is_tick and self.watermark == MIN:
            return pieces
        times = pieces.times
        for width, finer in self._spec.levels:
            seen_from = np.min([window.start(newest) for window in finer], axis=0)[pieces.owners]
            tiles = times // width * width
            times = np.where(tiles + width <= seen_from, tiles, times)
        is_first = starts_of_runs(pieces.owners, times)
        if is_first.sum() > len(times) * _WORTH.value:
            return pieces
        return Pieces(pieces.owners, times, pieces.partials, pieces.waiting).together(self._features.fold)

    def _advanced(self, keys: Keys, pieces: Pieces) -> tuple[Keys, Pieces]:
        watermark = self.watermark
        due = keys.look <= watermark
        if watermark == MIN or not due.any():
            return keys, pieces
        emitted = len(self._out)
        if self._spec.emit is RollingEmit.CHANGED:
            instant = self._spec.last_tick(watermark)
            asked = np.flatnonzero(due & ((keys.newest < instant) | (keys.seen == MIN)))
            self._changed(keys, pieces, asked, np.maximum(keys.newest[asked], instant))
        elif self._spec.emit is RollingEmit.TICK:
            asked, ticks = due_ticks(self._spec, keys, pieces, self.before, watermark)
            self._changed(keys, pieces, asked, ticks)
        elif self._spec.emit is RollingEmit.EACH:
            self._emit_due(keys, pieces, watermark)
        if self._spec.emit is not RollingEmit.EACH:
            self.count("emitted_by_tick", sum(table.num_rows for table in self._out[emitted:]))
        stays = pieces.times >= self._spec.kept_from(min(watermark, FAR))
        pieces = pieces if stays.all() else pieces.take(stays)
        if self._spec.emit is not RollingEmit.BATCH or watermark == MAX:
            keys.forget(np.bincount(pieces.owners, minlength=len(keys)) == 0)
        set_looks(self._spec, keys, pieces, due, watermark)
        return keys, pieces

    def _joined(self, held: tuple[Keys, Pieces] | None, arrived: _Arrived, numbers: Integers) -> tuple[Keys, Pieces]:
        keys, pieces = _chosen(arrived, numbers)
        new = Pieces(pieces.owners, pieces.times, pieces.partials, pieces.waiting)
        asked = np.arange(len(keys))
        if held is not None:
            keys, asked = held[0].and_new(keys)
            new.owners = asked[new.owners]
            pieces = held[1].merged(new, self._features.fold)
        if self._spec.emit in (RollingEmit.CHANGED, RollingEmit.BATCH):
            asked = np.sort(asked)
            instants = np.where(keys.is_out[asked], np.maximum(keys.newest[asked], keys.as_of[asked]), keys.newest[asked])
            self._changed(keys, pieces, asked, instants)
        elif self._spec.emit is RollingEmit.TICK:
            is_behind = new.times <= self._spec.last_tick(self.late_under)
            keys.seen[new.owners[is_behind]] = MIN
        else:
            self._emit_due(keys, pieces, self.late_under)
        touched = np.zeros(len(keys), np.bool_)
        touched[asked] = True
        set_looks(self._spec, keys, pieces, touched, self.late_under)
        return keys, pieces

    # Emitting.

    def _changed(self, keys: Keys, pieces: Pieces, asked: Integers, instants: Integers) -> None:
        """Emit the features of questions, by key and instant, where they differ from the last ones of their key."""
        if not len(asked):
            return
        features, is_empty = self._features.values(pieces.partials, pieces.owners, pieces.times, asked, instants)
        follows = np.append(False, np.diff(asked) == 0)
        was_out = keys.is_out[asked]
        was_out[1:] = np.where(follows[1:], ~is_empty[:-1], was_out[1:])
        is_same = ~self._differ(keys, features, asked, follows)
        if self._spec.deletes_empty:
            is_same &= ~is_empty
        is_emitted = np.where(was_out, ~is_same, ~is_empty)
        self._emit(keys, asked, instants, features, is_emitted, is_empty, was_out)
        last = np.flatnonzero(~np.append(follows[1:], False))
        owners = asked[last]
        keys.seen[owners] = instants[last]
        shown = np.maximum.accumulate(np.where(is_emitted & ~is_empty, np.arange(len(asked)), -1))[last]
        is_new = shown >= np.flatnonzero(~follows)
        keys.as_of[owners[is_new]] = instants[shown[is_new]]
        keys.is_out[owners] = ~is_empty[last]
        keys.features = [
            _put(before, owners[is_new], after.take(pa.array(shown[is_new])))
            for before, after in zip(keys.features, features, strict=True)
        ]

    def _differ(self, keys: Keys, features: list[pa.Array], asked: Integers, follows: Mask) -> Mask:
        """Return which features differ from those of the question before, or from the last ones of the key."""
        differ = np.zeros(len(asked), np.bool_)
        before = np.where(follows, np.arange(len(asked)) - 1 + len(keys), asked)
        for held, found in zip(keys.features, features, strict=True):
            earlier = pa.concat_arrays([held, found]).take(pa.array(before))
            differ |= written_differently(earlier, found)
        return differ

    def _emit_due(self, keys: Keys, pieces: Pieces, watermark: int) -> None:
        waiting = present(pieces.waiting, "each row is emitted")
        due = np.flatnonzero((waiting > 0) & (pieces.times <= watermark))
        if not len(due):
            return
        asked, instants = pieces.owners[due], pieces.times[due]
        features, _ = self._features.values(pieces.partials, pieces.owners, pieces.times, asked, instants)
        times = np.repeat(np.arange(len(due)), waiting[due])
        repeated = [each.take(pa.array(times)) for each in features]
        every = np.ones(len(times), np.bool_)
        self._emit(keys, asked[times], instants[times], repeated, every, ~every, every)
        waiting[due] = 0

    def _emit(
        self,
        keys: Keys,
        asked: Integers,
        instants: Integers,
        features: list[pa.Array],
        is_emitted: Mask,
        is_empty: Mask,
        was_out: Mask,
    ) -> None:
        if not is_emitted.any():
            return
        program, chosen = self.program, np.flatnonzero(is_emitted)
        if self._spec.emit is RollingEmit.TICK:
            chosen = chosen[np.argsort(instants[chosen], kind="stable")]
        owners, taken = pa.array(asked[chosen]), pa.array(chosen)
        columns = [column.take(owners).cast(field.type) for column, field in zip(keys.columns, program.keys, strict=True)]
        columns.append(pa.array(instants[chosen]).cast(program.instant))
        columns += [each.take(taken) for each in features]
        if self._spec.deletes_empty:
            words = np.where(is_empty[chosen], DELETE, np.where(was_out[chosen], UPDATE_POSTIMAGE, INSERT))
            columns.append(pa.array(words.tolist(), pa.string()))
        self._out.append(pa.table(columns, schema=program.main_schema))


class RollingEngine(BeginningEngine):
    name = "rolling"
    reason = "windows of a key merge pieces of partial aggregates, all keys at once"
    state = "hash pages: by key its last row, and partial aggregates of the times that a window can still see"
    holds: ClassVar = {"p": "features"}
    batch = _Batch

    def __init__(self, program: RollingProgram) -> None:
        super().__init__(program)
        self.features = PieceFeatures(program.spec, program.columns)

    @classmethod
    def refusal(cls, program: RollingProgram) -> str | None:
        for key in program.keys:
            if is_nested(key.type):
                return f"key {key.name!r} is of type {key.type}"
        if program.spec.corrects:
            return "ticks that were emitted are corrected, key by key"
        return piece_refusal(program.spec, program.columns)


def _chosen(arrived: _Arrived, numbers: Integers) -> tuple[Keys, Pieces]:
    keys, pieces = arrived.keys, arrived.pieces
    if len(numbers) == len(keys):
        return keys, pieces
    places = np.full(len(keys), -1)
    places[numbers] = np.arange(len(numbers))
    pieces = pieces.take(places[pieces.owners] >= 0)
    pieces.owners = places[pieces.owners]
    return Keys.of_table(keys.to_table().take(pa.array(numbers))), pieces


def _put(column: pa.Array, places: Integers, values: pa.Array) -> pa.Array:
    numbers = np.arange(len(column))
    numbers[places] = len(column) + np.arange(len(places))
    return pa.concat_arrays([column, values]).take(pa.array(numbers))


def _summary(table: pa.Table) -> PageSummary:
    return PageSummary(int(table[LOOK].to_numpy().min()), pieces_held(table))
