"""One batch of one bucket of sessions whose trigger is called: state opened, run, written back.

A walk finds what happens to sessions and which pieces of rows each firing sees (``walk``); here pieces are folded, and
those that a firing sees are merged, on Arrow tables.

State, by name: ``header``; a pane store ``p`` of open sessions by shards of keys: bounds, standing, partials, with ``pane_info``
how many panes there were; where panes are taken back a pane store ``w`` of the rows that each session has emitted, and those
that were merged into it; ``d``, when the first timers of each shard are due. Who may mutate: this batch. Recovery: read them
back.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from windowpane.arrays import Integers
from windowpane.arrays.columns import replaced, side_by_side, with_columns
from windowpane.arrays.values import Value
from windowpane.engines.batch.driver import Left
from windowpane.engines.common.columnar import key_arrays, key_names, keyed, with_plain_keys
from windowpane.engines.common.columnar_batch import ColumnarBatch
from windowpane.engines.common.held_panes import KNOWN, NEXT, PaneTables, Wanted
from windowpane.engines.common.pane_numbers import PaneNumbers
from windowpane.engines.messages import Message
from windowpane.engines.panes.called import standings_with_columns_of_now
from windowpane.engines.panes.pane_results import OF_NOTHING
from windowpane.engines.panes.pane_state import SHOWN
from windowpane.engines.panes.standings import Standings
from windowpane.engines.panes.store import STANDING, BatchKeys, DueTimers, PaneStore
from windowpane.engines.program import Program
from windowpane.engines.row.reference import ColumnsOfNow
from windowpane.engines.rows import python_keys
from windowpane.engines.sessions.carrying import in_panes, taken_out
from windowpane.engines.sessions.walk import Entry, Numbers, Row, Session, SessionWalk
from windowpane.engines.sessions.windows import row_windows
from windowpane.engines.spec import BucketEngine
from windowpane.errors import present
from windowpane.hidden_columns import ARRIVAL, END, FILLED, HELD, SEGMENT, START, TIME, hidden
from windowpane.kernels.grouping.grouped_fold import GroupedFold
from windowpane.kernels.grouping.range_merge import Ranges, fold_groups, merge_ranges
from windowpane.kernels.keys.dense_codes import distinct, places_in
from windowpane.state.blob_store import BlobStore
from windowpane.windowing.panes import NO_PANES
from windowpane.windowing.times import MAX

_OWNER = hidden("owner")


class _Met(NamedTuple):
    """Sessions that a step works on."""

    keys: pa.Table  # the keys that sessions are numbered by
    sessions: list[Session]  # what they are
    held: pa.Table  # the partials of their pieces, one row a piece
    counts: Integers  # how many rows these were given
    entries: pa.Table | None  # the partials of the entries that they have


class CalledSessions(ColumnarBatch):
    """Moves clocks and takes rows."""

    def __init__(self, engine: BucketEngine[Program], fold: GroupedFold, store: BlobStore) -> None:
        super().__init__(engine, fold, store)
        program = self.program
        self._keys, self._names = list(key_names(program)), list(fold.columns)
        self._standings = Standings(program.spec)
        self._options = program.spec.panes
        carried = taken_out(store, self._keys, self.header.description, program.description)
        self._panes = PaneStore(store, self._keys, is_global=True)
        self._due = DueTimers(store)
        self._is_carried = carried is not None  # under a shorter lateness, some may be over
        self._open = self.header.open_windows
        if carried is not None:
            self._standings.set_clocks(self.watermark, self.now)
            rows = in_panes(carried, self._keys, self._standings, self.header.description["allowed lateness"])
            self._panes.write(rows.append_column(SEGMENT, pa.array(self._panes.shards(rows))), [])
            self._note_due(self._panes.segments())
            self._open = int(np.count_nonzero(rows[FILLED].to_numpy()))
        self.widen(self._panes)
        if self.header.added:
            self._panes.rewrite(partial(standings_with_columns_of_now, ColumnsOfNow(self.header.columns, program.values)))
        self._put_out = PaneStore(store, self._keys, is_global=True, name="w") if self._options.retracts else None
        self._merges = 0
        self._owners: Collection[tuple[int, int]] = ()

    # The clocks.

    def on_watermark(self, before: int) -> None:
        if self.watermark != before or self._is_carried:
            self._advance(event_time=True, fired_under=before)

    def on_processing_time(self, before: int) -> None:
        self._advance(event_time=False, fired_under=self.watermark)

    def _advance(self, event_time: bool, fired_under: int) -> None:
        clock = self.watermark if event_time else self.now
        segments = self._due.segments(clock, event_time)
        held = self._panes.read(segments) if segments else None
        if held is None:
            return
        self._standings.set_clocks(self.watermark, self.now)
        numbers = self._standings.of(held[STANDING])
        is_due = self._standings.first_times(numbers, held[END].to_numpy() - 1, event_time) <= clock
        keys, places = BatchKeys.of(held.filter(pa.array(is_due)), self._keys), np.full(len(numbers), -1)
        places[is_due] = keys.codes
        met = self._met(held, numbers, keys.distinct, places)
        walk = self._walk(met)
        walk.advance(met.sessions, event_time)
        self._settle(walk, met, None, fired_under)
        self._write(walk, met, held.filter(pa.array(~is_due)), segments)

    # Looking.

    def held(self, wanted: Wanted) -> Iterator[pa.Table]:
        tables = PaneTables(self.program, self.fold, wanted, self.watermark)
        for segment in self._panes.segments():
            rows = present(self._panes.read([segment]), "the segment holds something")
            rows = rows.filter(rows[FILLED])
            starts, ends = rows[START].to_numpy(), rows[END].to_numpy()
            is_wanted = wanted.take_windows(starts, ends)
            numbers = self._standings.of(rows[STANDING])
            due = np.minimum(*(self._standings.first_times(numbers, ends - 1, each) for each in (True, False)))
            known: dict[str, Integers | pa.Array] = {
                NEXT: pa.array(due, pa.int64(), mask=due == MAX),
                KNOWN: pa.array(self._standings.in_words(numbers), pa.string()),
            }
            keys = wanted.of(key_arrays(self.program, rows), rows.num_rows)
            yield tables.of(rows, starts, ends, self._panes.size_of(segment), known).filter(pa.array(is_wanted[keys]))

    # The rows.

    def take(self, messages: Sequence[Message]) -> None:
        tables = [message.table for message in messages]
        whole = keyed(self.program, self.arrived(tables, always_in_order=True))
        starts, ends = row_windows(self.program, whole, self.now)
        rows = with_plain_keys(self.program, whole)
        keys = BatchKeys.of(rows, self._keys)
        segments = distinct(self._panes.shards(keys.distinct))
        self._standings.set_clocks(self.watermark, self.now)
        held, self._owners = self._panes.read(segments), ()
        if held is None:
            others, met = None, _Met(keys.distinct, [], self._no_partials(rows), np.zeros(0, np.int64), None)
        else:
            places = places_in(held.select(self._keys), keys.distinct)
            met = self._met(held, self._standings.of(held[STANDING]), keys.distinct, places)
            others = held.filter(pa.array(places < 0))
        walk = self._walk(met)
        walk.take(self._rows(rows, keys.codes, starts, ends))
        self._merges += walk.merges
        self._report(whole, walk)
        self._settle(walk, met, rows, self.watermark)
        self._write(walk, met, others, segments)

    def _rows(self, rows: pa.Table, codes: Integers, starts: Integers, ends: Integers) -> list[Row]:
        times = rows[TIME].fill_null(0).to_numpy()
        columns = (range(rows.num_rows), codes.tolist(), starts.tolist(), ends.tolist(), times.tolist())
        return [Row(*each) for each in zip(*columns, strict=True)]

    def _no_partials(self, rows: pa.Table) -> pa.Table:
        """Return no rows of partials, of the types that rows fold to."""
        return fold_groups(self.fold, rows.slice(0, 1), np.zeros(1, np.int64)).select(self._names).slice(0, 0)

    def _report(self, rows: pa.Table, walk: SessionWalk) -> None:
        if walk.late:
            numbers, starts, ends = (np.array(column) for column in zip(*walk.late, strict=True))
            each = np.ones(len(starts), np.int64)
            self.late_counts.note(starts, ends - 1, self.watermark, each, each)
            self.missed.drop(rows.take(pa.array(numbers)), starts, ends)
        if walk.finished:
            finished = np.array([number for number, _ in walk.finished])
            self.missed.finish(rows, finished, [window for _, window in walk.finished])

    # Sessions from what is kept, and back.

    def _met(self, held: pa.Table, numbers: Integers, keys: pa.Table, places: Integers) -> _Met:
        """Return the sessions of rows that were kept, each with the number of its key; -1 leaves it out."""
        at = np.flatnonzero(places >= 0)
        filled = held[FILLED].to_numpy()[at]
        pieces = np.where(filled, np.cumsum(filled) - 1, -1)
        bounds = (held[name].to_numpy()[at].tolist() for name in (START, END))
        sessions = [
            Session(key, start, end, number, [piece] if piece >= 0 else [])
            for key, start, end, number, piece in zip(
                places[at].tolist(), *bounds, numbers[at].tolist(), pieces.tolist(), strict=True
            )
        ]
        if self._options != NO_PANES:
            for session, panes in zip(sessions, _numbers_of(held.take(pa.array(at))), strict=True):
                session.numbers = panes
        partials = held.take(pa.array(at[filled]))
        counts = partials[HELD].to_numpy() if self.fold.is_ordered else np.zeros(partials.num_rows, np.int64)
        return _Met(keys, sessions, partials.select(self._names), counts, self._with_entries(keys, sessions))

    def _with_entries(self, keys: pa.Table, sessions: list[Session]) -> pa.Table | None:
        """Give sessions the rows that they have emitted, and return the partials of these."""
        if self._put_out is None:
            return None
        owners = {(session.key, session.start): session for session in sessions}
        self._owners, kept = owners.keys(), self._put_out.read(distinct(self._put_out.shards(keys)))
        if kept is None:
            return None
        of = places_in(kept.select(self._keys), keys).tolist()
        columns = (kept[name].to_pylist() for name in (_OWNER, START, END, SHOWN))
        for at, (key, owner, start, end, kind, panes) in enumerate(zip(of, *columns, _numbers_of(kept), strict=True)):
            session = owners.get((key, owner))
            if session is not None:
                session.entries.append(Entry(start, end, -1 - at, kind, panes))
        return kept.select(self._names)

    def _walk(self, met: _Met) -> SessionWalk:
        def key_of(number: int) -> Value:
            keys = pa.table(key_arrays(self.program, met.keys.slice(number, 1)), self.program.keys)
            return python_keys(keys, keys.column_names)[0] if keys.column_names else None

        clocks = self.watermark, self.now
        return SessionWalk(self._standings, self._options, clocks, met.sessions, met.held.num_rows, key_of)

    def _settle(self, walk: SessionWalk, met: _Met, rows: pa.Table | None, fired_under: int) -> None:
        """Fold the pieces of a walk, emit the firings, and note the partials that stay."""
        runs = walk.order()
        flat = np.array([piece for run in runs for piece in run], np.int64)
        lengths = np.array([len(run) for run in runs], np.int64)
        places = np.empty(walk.pieces, np.int64)
        places[flat] = np.arange(len(flat))
        atoms = self._atoms(walk, met, rows, flat, lengths)
        self._live = [session for live in walk.by_key.values() for session in live.values]
        spans = [*walk.seen, *((each.pieces[0], each.pieces[-1]) for each in self._live if each.pieces)]
        firsts, lasts = (places[np.array([span[side] for span in spans], np.int64)] for side in (0, 1))
        self._merged = merge_ranges(self.fold, atoms, Ranges(firsts, lasts)) if spans else met.held.slice(0, 0)
        self._emit(walk, met, fired_under)

    def _atoms(self, walk: SessionWalk, met: _Met, rows: pa.Table | None, flat: Integers, lengths: Integers) -> pa.Table:
        held, pieces = met.held, np.array(walk.piece_of, np.int64)
        offsets = np.zeros(0, np.int64)
        if self.fold.is_ordered:
            offsets = self._offsets(walk, met, flat, lengths, pieces)
            held = self.fold.renumbered(held, offsets[: held.num_rows])
        parts = [held.select(self._names)]
        if rows is not None and len(pieces):
            taken = rows.take(pa.array(walk.rows))
            if self.fold.is_ordered:
                of = np.argsort(pieces, kind="stable")
                runs = np.searchsorted(pieces[of], pieces)
                among = np.empty(len(of), np.int64)
                among[of] = np.arange(len(of))
                taken = replaced(taken, ARRIVAL, pa.array(offsets[pieces] + among - runs))
            parts.append(fold_groups(self.fold, taken, pieces - held.num_rows).select(self._names))
        return pa.concat_tables(parts).take(pa.array(flat))

    def _offsets(self, walk: SessionWalk, met: _Met, flat: Integers, lengths: Integers, pieces: Integers) -> Integers:
        """Return how many rows are before each piece in the contents that it is part of, and note the totals of these."""
        counts = np.append(met.counts, np.bincount(pieces - len(met.counts), minlength=walk.pieces - len(met.counts)))
        in_order = counts[flat]
        before = np.cumsum(in_order) - in_order
        begins = np.cumsum(lengths) - lengths
        offsets = np.empty(walk.pieces, np.int64)
        offsets[flat] = before - np.repeat(before[begins], lengths) if len(flat) else before
        self._counts = counts
        return offsets

    # Emitting, and what stays.

    def _emit(self, walk: SessionWalk, met: _Met, fired_under: int) -> None:
        outputs = walk.outputs
        if not outputs:
            return
        entries = [each.entry for each in outputs]
        named = met.keys.select(self._keys).take(pa.array([each.key for each in outputs]))
        named = side_by_side(named, self._partials(met, entries))
        columns = _pane_numbers([entry.numbers for entry in entries]).last_panes() if self._options.shows_info else []
        columns += [pa.array([each.word for each in outputs], pa.string())] if self._options.retracts else []
        starts, ends = (np.array([entry[side] for entry in entries], np.int64) for side in (0, 1))
        is_empty = np.array([entry.kind == OF_NOTHING for entry in entries], bool)
        self.results.emit_firings(starts, ends, named, fired_under, columns, is_empty, walk.firings)

    def _partials(self, met: _Met, entries: Sequence[Entry]) -> pa.Table:
        """Return the partials of entries; any, or none, where they are of nothing."""
        count = self._merged.num_rows
        places: list[int | None] = []
        for each in entries:
            kept_at = each.source if each.source >= 0 else count - 1 - each.source
            places.append(None if each.kind == OF_NOTHING else kept_at)
        kept = self._merged if met.entries is None else pa.concat_tables([self._merged, met.entries])
        return kept.select(self._names).take(pa.array(places, pa.int64()))

    def _write(self, walk: SessionWalk, met: _Met, others: pa.Table | None, segments: list[int]) -> None:
        """Put the sessions there are in place of those that were, beside others of the same segments."""
        live, places, at = self._live, list[int | None](), len(walk.seen)
        for session in live:
            places.append(at if session.pieces else None)
            at += bool(session.pieces)
        kept = met.keys.select(self._keys).take(pa.array([session.key for session in live], pa.int64()))
        numbers = np.array([session.standing for session in live], np.int64)
        columns = {
            START: pa.array([session.start for session in live], pa.int64()),
            END: pa.array([session.end for session in live], pa.int64()),
            STANDING: self._standings.column(numbers),
            FILLED: pa.array([place is not None for place in places], pa.bool_()),
        }
        kept = side_by_side(with_columns(kept, columns), self._merged.select(self._names).take(pa.array(places, pa.int64())))
        if self.fold.is_ordered:
            held = [int(self._counts[session.pieces].sum()) if session.pieces else 0 for session in live]
            kept = kept.append_column(HELD, pa.array(held, pa.int64()))
        if self._options != NO_PANES:
            kept = _pane_numbers([session.numbers for session in live]).beside(kept)
        self._open += at - len(walk.seen) - met.held.num_rows
        kept = kept.append_column(SEGMENT, pa.array(self._panes.shards(kept)))
        parts = [kept] if others is None else [others.select(kept.column_names), kept]
        self._panes.write(pa.concat_tables(parts), segments)
        self._note_due(segments)
        if self._put_out is not None:
            self._write_entries(self._put_out, met)

    def _write_entries(self, store: PaneStore, met: _Met) -> None:
        pairs = [(session, entry) for session in self._live for entry in session.entries]
        entries = [entry for _, entry in pairs]
        kept = met.keys.select(self._keys).take(pa.array([session.key for session, _ in pairs], pa.int64()))
        columns = {
            _OWNER: [session.start for session, _ in pairs],
            START: [entry.start for entry in entries],
            END: [entry.end for entry in entries],
            SHOWN: [entry.kind for entry in entries],
        }
        kept = with_columns(kept, {name: pa.array(values, pa.int64()) for name, values in columns.items()})
        kept = side_by_side(_pane_numbers([entry.numbers for entry in entries]).beside(kept), self._partials(met, entries))
        kept = kept.append_column(SEGMENT, pa.array(store.shards(kept)))
        segments = distinct(store.shards(met.keys))
        before = store.read(segments)
        if before is not None:
            is_other = self._are_others(before, met)
            kept = pa.concat_tables([before.filter(pa.array(is_other)).select(kept.column_names), kept])
        store.write(kept, segments)

    def _are_others(self, entries: pa.Table, met: _Met) -> list[bool]:
        of = places_in(entries.select(self._keys), met.keys).tolist()
        return [(key, owner) not in self._owners for key, owner in zip(of, entries[_OWNER].to_pylist(), strict=True)]

    def _note_due(self, segments: list[int]) -> None:
        """Note when the first timers of shards are due, of those that were cut from them, too."""
        cut = [segment for segment in self._panes.segments() if segment not in self._due]
        for segment in {*segments, *cut}:
            kept = self._panes.read([segment])
            if kept is None:
                self._due.drop(segment)
                continue
            numbers, last_instants = self._standings.of(kept[STANDING]), kept[END].to_numpy() - 1
            firsts = (self._standings.first_times(numbers, last_instants, event_time) for event_time in (True, False))
            self._due.note(segment, *(int(times.min()) for times in firsts))

    def close(self) -> Left:
        self._panes.flush()
        self._due.flush()
        size = self._panes.byte_size
        if self._put_out is not None:
            self._put_out.flush()
            size += self._put_out.byte_size
        is_idle = not self._panes.segments()
        return self.left(self._open, size, is_idle, self._due.next_processing_time, self._merges)


def _numbers_of(table: pa.Table) -> list[Numbers]:
    numbers = PaneNumbers.kept(table)
    columns = (numbers.all, numbers.others, numbers.first_on_time(), numbers.last_ones())
    return [Numbers(*each) for each in zip(*(column.tolist() for column in columns), strict=True)]


def _pane_numbers(numbers: Sequence[Numbers]) -> PaneNumbers:
    columns = list(zip(*numbers, strict=True)) or [()] * 4
    kinds = (np.int64, np.int64, np.bool_, np.bool_)
    return PaneNumbers(*(np.array(column, kind) for column, kind in zip(columns, kinds, strict=True)))
