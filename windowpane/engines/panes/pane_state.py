"""The panes of a bucket as they are stored: what their triggers know, their contents, and what was emitted of them.

A row of the pane store is a row of contents beside what the trigger program keeps of its pane (``TriggerProgram.beside``) and,
with ``pane_info``, how many panes there were. Where a pane may hold nothing, its one row says so in ``FILLED``. Where panes are
taken back that have not always shown all that they hold, the partials of the last one stand there, too.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from windowpane.arrays import Integers, Mask
from windowpane.arrays.columns import with_columns
from windowpane.engines.common.columnar import key_names
from windowpane.engines.common.pane_numbers import PaneNumbers
from windowpane.engines.panes.folded_contents import Contents, Held
from windowpane.engines.panes.pane_results import NONE, OF_CONTENTS, Shown
from windowpane.engines.panes.store import ALL_SHARDS, DueTimers, PaneStore, TouchedPanes
from windowpane.engines.panes.trigger_program import Opened, TriggerProgram
from windowpane.engines.panes.windows import GLOBAL_END, Elements
from windowpane.engines.program import Program
from windowpane.errors import present
from windowpane.hidden_columns import FILLED, SEGMENT, hidden
from windowpane.kernels.keys.dense_codes import dense_codes, distinct
from windowpane.state.blob_store import BlobStore
from windowpane.windowing.times import MAX

SHOWN = hidden("shown")
"""Which kind of pane was emitted last."""
_BEFORE = hidden("before_")
"""Before the name of a partial: that of the last pane."""


class Panes(NamedTuple):
    """Panes by code, and what is known of each."""

    keys: pa.Table  # keys and segment
    numbers: Integers  # what the trigger program knows of them
    contents: Held  # what they hold
    shown: Shown  # what they have emitted

    @property
    def filled(self) -> Mask:
        filled = np.zeros(len(self.numbers), bool)
        filled[self.contents.panes] = True
        return filled


class PaneState:
    """The panes of a bucket, and when their first timers are due."""

    def __init__(self, program: Program, triggers: TriggerProgram, contents: Contents, store: BlobStore, filled: int) -> None:
        self._keys, self._contents, self._triggers = list(key_names(program)), contents, triggers
        options, self._has_ends = program.spec.panes, program.spec.assigner.has_ends
        self._is_sharded = not self._has_ends and not triggers.appends
        self._shows_contents = program.spec.fires_each_batch and not program.spec.purges
        self._retracts = options.retracts
        self._keeps_shown = options.retracts and not self._shows_contents
        self._keeps_numbers = options.shows_info or self._keeps_shown
        self._store = store
        self.rows = PaneStore(store, self._keys, self._is_sharded)  # the rows of the panes
        self.due = DueTimers(store)  # when timers are due, by segment
        self.filled = filled  # how many panes hold something

    def begin_anew(self, number: int) -> None:
        """Give all panes of the global window the same number, whatever another trigger has kept of them; their contents stay.

        Under some triggers the window is one segment that rows are appended to, under others it is cut into shards.
        """
        old = PaneStore(self._store, self._keys, is_global=False)
        segments = old.segments()
        rows = old.read(segments)
        for segment in segments:
            old.drop(segment)
        old.flush()
        self.due.clear()
        self.rows = PaneStore(self._store, self._keys, self._is_sharded)
        if rows is None:
            return
        rows = rows.filter(rows[FILLED]) if FILLED in rows.column_names else rows
        codes, firsts = dense_codes([rows[name] for name in self._keys], rows.num_rows)
        count, keys = len(firsts), rows.select(self._keys).take(pa.array(firsts))
        at = self.rows.shards(keys) if self._is_sharded else np.full(count, GLOBAL_END)
        contents = self._contents.merged(Held(rows.select(self._contents.columns), codes))
        shown = Shown(PaneNumbers.none(count, self._triggers.has_timers), np.full(count, NONE), None, np.full(count, -1))
        panes = Panes(keys.append_column(SEGMENT, pa.array(at)), np.full(count, number), contents, shown)
        self.write(panes, panes, [], None, by_clock=True)

    def read(self, rows: pa.Table) -> Panes:
        """Return the panes of rows that were written: one row a pane, or more where some are appended."""
        if self._triggers.appends:
            return self.each(rows)
        return self._panes(rows.select([*self._keys, SEGMENT]), rows, np.arange(rows.num_rows))

    def each(self, rows: pa.Table) -> Panes:
        """Return the panes of rows, of which a pane may have several."""
        codes, firsts = dense_codes([rows[name] for name in self._keys], rows.num_rows, rows[SEGMENT].to_numpy())
        return self._panes(rows.select([*self._keys, SEGMENT]).take(pa.array(firsts)), rows, codes)

    def met(self, touched: TouchedPanes) -> Panes:
        """Return the panes that a batch touches, with their contents before it."""
        if touched.held is not None:
            return self._panes(touched.keys, touched.held, touched.held_panes)
        count, nothing = touched.keys.num_rows, np.zeros(0, np.int64)
        shown = Shown(PaneNumbers.none(count, self._triggers.has_timers), np.full(count, NONE), None, np.full(count, -1))
        return Panes(touched.keys, np.zeros(count, np.int64), Held(None, nothing), shown)

    def _panes(self, keys: pa.Table, rows: pa.Table, of: Integers) -> Panes:
        """Return the panes that have ``keys``, given rows and the pane that each is of."""
        count = keys.num_rows
        places, numbers = np.full(count, -1), np.zeros(count, np.int64)
        places[of] = np.arange(len(of))
        numbers[of[::-1]] = self._triggers.numbers(rows)[::-1]  # the first row of a pane counts
        contents = Held(rows.select(self._contents.columns), of)
        if self._triggers.keeps_empty:
            contents = contents.where(rows[FILLED].to_numpy())
        contents = self._contents.merged(contents) if self._triggers.appends else contents
        kinds, last = np.full(count, NONE), None
        if self._keeps_shown:
            names = self._contents.columns
            last = rows.select([_BEFORE + name for name in names]).rename_columns(names)
            kinds[of] = rows[SHOWN].to_numpy()
        elif self._retracts:
            last = rows.select(self._contents.columns)
            kinds[of] = OF_CONTENTS
        panes = PaneNumbers.none(count, self._triggers.has_timers)
        if self._keeps_numbers:
            panes = panes.replaced(of, PaneNumbers.kept(rows))
        return Panes(keys, numbers, contents, Shown(panes, kinds, last, places))

    def append(self, elements: Elements, opened: Opened) -> None:
        """Add elements to panes that are not read."""
        rows, contents = elements.columns(self._keys), self._contents.of(elements)
        numbers, ends = opened.numbers, elements.ends
        kinds, last_instants = opened.kinds, ends[opened.kinds] - self._has_ends
        both = (self._triggers.first_times(numbers[kinds], last_instants, event_time).tolist() for event_time in (True, False))
        for end, *times in zip(ends[kinds].tolist(), *both, strict=True):
            self.due.bring_forward(end, *times)
        if self._contents.prunes:
            codes, firsts = dense_codes(rows.columns, len(ends), ends)
            stays = self._contents.survivors(Held(contents, codes))
            if not stays.all():  # the first row of a pane counts for its trigger, whether it stays or not
                numbers, ends, wanted = numbers[firsts][codes][stays], ends[stays], pa.array(stays)
                rows, contents = rows.filter(wanted), contents.filter(wanted)
        rows = self._triggers.beside(rows, numbers).append_column(FILLED, pa.array(np.ones(len(ends), bool)))
        rows = _with_columns(rows, contents).append_column(SEGMENT, pa.array(ends))
        crowded = self.rows.append(rows)
        for segment in crowded if self._contents.prunes else ():
            panes = self.read(present(self.rows.read([segment]), "rows were added"))
            panes = panes._replace(contents=panes.contents.where(self._contents.survivors(panes.contents)))
            self.rows.write(present(self._rows(panes, panes.filled), "there are rows"), [segment])

    def write(self, panes: Panes, before: Panes, segments: list[int], others: pa.Table | None, by_clock: bool = False) -> None:
        """Put panes in place of what segments hold, with the rows of others as they were; panes without anything to keep go.

        ``by_clock``: a clock has called all triggers that were due.
        """
        filled = panes.filled
        self.filled += int(filled.sum()) - int(before.filled.sum())
        rows = self._rows(panes, filled)
        if self._triggers.has_timers:
            self._note_due(rows, panes, segments, by_clock)
        if rows is None and others is None:
            self.drop(segments)
        else:
            parts = [each for each in (rows, others) if each is not None]
            self.rows.write(pa.concat_tables([each.select(parts[0].column_names) for each in parts]), segments)
        left = self.rows.segments()
        for segment in [ALL_SHARDS] * (not left) if self._is_sharded else {*segments} - {*left}:
            self.due.drop(segment)

    def drop(self, segments: list[int]) -> None:
        for segment in segments:
            self.rows.drop(segment)
            self.due.drop(segment)

    def drop_ended(self, segment: int) -> None:
        """Forget the panes of a window that is over."""
        if self._contents.has_one_row and not self._triggers.keeps_empty:
            self.filled -= self.rows.row_count(segment)
        elif self.filled:
            rows = present(self.rows.read([segment]), "a segment holds something")
            rows = rows.filter(rows[FILLED]) if self._triggers.keeps_empty else rows
            self.filled -= len(dense_codes([rows[name] for name in self._keys], rows.num_rows).firsts)
        self.rows.drop(segment)

    def _rows(self, panes: Panes, filled: Mask) -> pa.Table | None:
        contents, of = panes.contents, panes.contents.panes
        if self._triggers.keeps_empty:
            is_known = ~self._triggers.are_nothing(panes.numbers) | (panes.shown.numbers.all > 0)
            of = np.append(of, np.flatnonzero(~filled & is_known))
        if not len(of) or contents.rows is None:
            return None
        rows = self._triggers.beside(panes.keys.take(pa.array(of)), panes.numbers[of])
        held = contents.rows
        if self._triggers.keeps_empty:
            places = np.arange(len(of))
            is_filled = places < len(contents.panes)
            rows = rows.append_column(FILLED, pa.array(is_filled))
            held = held if is_filled.all() else held.take(pa.array(places, mask=~is_filled))
        rows = _with_columns(rows, held)
        shown = panes.shown
        rows = shown.numbers.at(of).beside(rows) if self._keeps_numbers else rows
        if self._keeps_shown:
            rows = rows.append_column(SHOWN, pa.array(shown.kinds[of]))
            last = held.slice(0, 0) if shown.partials is None else shown.partials
            places = pa.array(shown.at[of], mask=shown.kinds[of] != OF_CONTENTS)
            rows = with_columns(rows, {_BEFORE + name: last[name].take(places) for name in self._contents.columns})
        return rows

    def _note_due(self, rows: pa.Table | None, panes: Panes, segments: list[int], by_clock: bool) -> None:
        """Note when the first timers are due: of the global window in one entry, for shards are cut anew.

        What rows alone have changed may wait for less than before: their segments are read for nothing once, and noted then.
        """
        for segment in segments if by_clock and not self._is_sharded else [ALL_SHARDS] * by_clock:
            self.due.drop(segment)
        ends = panes.keys[SEGMENT].to_numpy() if self._has_ends else np.full(len(panes.numbers), MAX)
        of = np.full(len(ends), ALL_SHARDS) if self._is_sharded else ends
        last_instants = ends - self._has_ends
        both = [self._triggers.first_times(panes.numbers, last_instants, event_time) for event_time in (True, False)]
        for segment in distinct(of):
            is_here = of == segment
            self.due.bring_forward(segment, *(int(times[is_here].min()) for times in both))

    def flush(self) -> None:
        self.rows.flush()
        self.due.flush()


def _with_columns(rows: pa.Table, held: pa.Table) -> pa.Table:
    for name in held.column_names:
        rows = rows if name in rows.column_names else rows.append_column(name, held[name])
    return rows
