"""The closed sessions engine: sessions that rows, sums and lengths end, of built-in aggregates, on Arrow tables.

Rows wait in a sort buffer. Those that the watermark has passed are final, and so is the order of all before them: they join the
open sessions of their keys, are cut, and folded. A key has one open session at most. State, by name in the bucket's blob store:
``header``; the sort buffer ``b``; pages ``p`` of open sessions by a hash of their key, each with::

    START, LAST     the event times of its first and last row
    ROWS, WEIGHT    how many rows it has, and the sum of what limits its size
    partials

A page is due at the first end of a session in it. Who may mutate: this engine, once a batch. Recovery: read them back.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

import numpy as np
import pyarrow as pa

from windowpane.arrays import Integers, Mask
from windowpane.arrays.columns import with_columns
from windowpane.engines.batch.driver import Left, OrderedBatch
from windowpane.engines.common.arrival import in_order, numbered
from windowpane.engines.common.columnar import (
    common_refusal,
    fold_of,
    group_columns,
    refuse_null_times,
    with_encoded_keys,
    with_plain_keys,
)
from windowpane.engines.common.columnar_batch import ColumnarBatch
from windowpane.engines.common.held_panes import PaneTables, Wanted, WindowsEngine
from windowpane.engines.common.missed_windows import MissedWindows
from windowpane.engines.messages import Message, Positions, Rows, tables_of
from windowpane.engines.over.sort_buffer import SortBuffer
from windowpane.engines.program import Program
from windowpane.engines.rows import python_keys
from windowpane.errors import MistakeError, NegativeSizeError, TimestampOverflowError, present
from windowpane.hidden_columns import END, HASH, ROWS, START, TIME, hidden
from windowpane.kernels.keys.key_codes import key_codes, key_hashes, plain_key
from windowpane.kernels.packed_order import stable_order
from windowpane.kernels.segments import Runs, Segments, starts_of_runs
from windowpane.kernels.sessions.cuts import Limit, cuts
from windowpane.state.blob_store import BlobStore
from windowpane.state.hash_pages import DENSE_ROWS, PAGE_ROWS, STEP_ROWS, HashPages, PageSummary, stored_hashes
from windowpane.windowing.assigners.closed_sessions import CLOSES, WEIGHT, ClosedSessionWindows
from windowpane.windowing.times import MAX

LAST = hidden("last")


def rule_of(program: Program) -> ClosedSessionWindows:
    if not isinstance(program.spec.assigner, ClosedSessionWindows):
        raise MistakeError("the planner checked")
    return program.spec.assigner


def punctual_rows(batch: OrderedBatch[Program], missed: MissedWindows, rows: pa.Table) -> pa.Table:
    """Return the rows that are not late; note the others.

    Raises:
        MissingTimestampError: a row has no event time.
        NegativeSizeError: a row takes something from the size of its session.
        TimestampOverflowError: a session would end beyond int64.
    """
    program = batch.program
    refuse_null_times(program, rows)
    rule, times = rule_of(program), rows[TIME].to_numpy()
    if (times > MAX - rule.gap).any():
        row = rows.slice(int(times.argmax()), 1)
        start = int(times.max())
        raise TimestampOverflowError(start, start, start + rule.gap).located(key=python_keys(row, program.key_columns)[0])
    if rule.size is not None:
        weights = rows[WEIGHT].fill_null(0).to_numpy()
        if (weights < 0).any():
            key = python_keys(rows.slice(int(weights.argmin()), 1), program.key_columns)[0]
            raise NegativeSizeError(str(rule.size[0]), int(weights.min())).located(key=key)
    is_late = times <= batch.watermark
    if is_late.any():
        late, ones = times[is_late], np.ones(is_late.sum(), np.int64)
        batch.late_counts.note(late, late, batch.watermark, ones, ones)
        missed.drop(rows.filter(pa.array(is_late)), late, late + rule.gap)
    return rows.filter(pa.array(~is_late))


class _Batch(ColumnarBatch):
    def __init__(self, engine: ClosedSessionsEngine, store: BlobStore) -> None:
        super().__init__(engine, engine.fold, store)
        program = self.program
        self._rule, self._groups = rule_of(program), group_columns(program)
        kept = dict.fromkeys([*program.key_columns, *program.values, *self._rule.columns, TIME])
        self._kept = list(kept)
        self._buffer = SortBuffer(store, "b", None, (), self._columns())
        self._pages = HashPages(store, "p", stored_hashes, self._summary, PAGE_ROWS.value, DENSE_ROWS.value)
        self._fired: list[pa.Table] = []
        self.widen(self._pages)

    def _columns(self) -> pa.Schema:
        """Return the columns of rows that wait: also what an earlier rule asked of them, and this one does not."""
        program, own = self.program, {CLOSES: pa.bool_(), WEIGHT: pa.int64(), TIME: pa.int64()}
        keys = dict(zip(program.key_columns, program.keys.types, strict=True))
        types = {**keys, **{field.name: field.type for field in program.value_types}, **own}
        return pa.schema([pa.field(name, types[name]) for name in dict.fromkeys([*self._kept, *own])])

    def take(self, messages: Sequence[Message]) -> None:
        rows = in_order(self.program, tables_of(messages, Positions, Rows))
        if rows is None:
            return
        self._buffer.add(punctual_rows(self, self.missed, rows).select(self._kept).combine_chunks())

    def on_watermark(self, before: int) -> None:
        if self.watermark == before:
            return
        self._pages.meet(self._released(), self.watermark, STEP_ROWS.value, self._cut)
        if self._fired:
            fired = pa.concat_tables(self._fired)
            fired = fired.take(pa.array(np.argsort(fired[END].to_numpy(), kind="stable")))
            self.results.emit_panes(fired[START].to_numpy(), fired[END].to_numpy(), fired, before)
            self._fired = []

    def close(self) -> Left:
        self._buffer.flush()
        buffer, pages = self._buffer, self._pages
        return self.left(pages.live, pages.byte_size + buffer.byte_size, not len(pages) and not buffer.rows, None)

    def held(self, wanted: Wanted) -> Iterator[pa.Table]:
        """List open sessions, up to the watermark, a page at a time."""
        tables = PaneTables(self.program, self.results.fold, wanted, self.watermark)
        for position in self._pages.in_order_of_due():
            page = self._pages.read(position)
            if page is not None:
                ends = self._ends(page[START].to_numpy(), page[LAST].to_numpy())
                asked = wanted.take_windows(page[START].to_numpy(), ends)
                page, size = page.filter(pa.array(asked)), self._pages.size_of(position)
                yield tables.of(page, page[START].to_numpy(), ends[asked], size)

    # A step.

    def _released(self) -> pa.Table | None:
        """Return the rows that the watermark makes final, in order, with the hashes of their keys."""
        parts = self._buffer.release(self.watermark)
        if not parts:
            return None
        rows = pa.concat_tables(parts)
        rows = rows.take(pa.array(stable_order(rows[TIME].to_numpy()))).combine_chunks()
        rows = with_plain_keys(self.program, with_encoded_keys(self.program, rows))
        if self.fold.is_ordered:
            rows, self.arrivals = numbered(rows, self.arrivals), self.arrivals + rows.num_rows
        count = rows.num_rows
        columns = {
            HASH: pa.array(key_hashes([plain_key(rows[name]) for name in self._groups], count)),
            START: rows[TIME],
            LAST: rows[TIME],
            ROWS: pa.array(np.ones(count, np.int64)),
            WEIGHT: rows[WEIGHT].fill_null(0),
            CLOSES: rows[CLOSES].fill_null(False),
        }
        return with_columns(rows, columns)

    def _cut(self, held: pa.Table | None, rows: pa.Table | None) -> pa.Table | None:
        """Cut open sessions and the rows behind them, let those fire that have ended, and return those that are open."""
        names = [HASH, *self._groups, START, LAST, ROWS, WEIGHT]
        tables = [each.select(names) for each in (held, rows) if each is not None]
        if not tables:
            return None
        both, count = pa.concat_tables(tables).combine_chunks(), 0 if held is None else held.num_rows
        codes = key_codes([plain_key(both[name]) for name in self._groups], both.num_rows)
        order = np.argsort(codes, kind="stable")
        times, lasts, counted, weights = (both[name].to_numpy()[order] for name in (START, LAST, ROWS, WEIGHT))
        sums, is_held = {ROWS: counted, WEIGHT: weights}, order < count
        closing = np.zeros(0, bool) if rows is None else rows[CLOSES].to_numpy()
        closes = np.append(np.zeros(count, bool), closing)[order]
        breaks = starts_of_runs(codes[order])
        found = cuts(breaks, times, lasts + self._rule.gap, closes, self._limits(sums, is_held), self._rule.duration)
        starts, ended = times[found.firsts], lasts[found.lasts]
        ends = np.where(found.are_closed, ended + 1, self._ends(starts, ended))
        of = np.repeat(np.arange(len(found.firsts)), found.lasts - found.firsts + 1)
        keys, partials = both.take(pa.array(order[found.firsts])), self._partials(held, rows, of, order)
        columns = {name: keys[name] for name in (HASH, *self._groups)} | {START: starts, LAST: ended, END: ends}
        columns |= {name: np.add.reduceat(each, found.firsts) for name, each in sums.items()}
        sessions = pa.table(columns | {name: partials[name] for name in self.fold.columns})
        is_over = found.are_closed | (ends - 1 <= self.watermark)
        if is_over.any():
            self._fired.append(sessions.filter(pa.array(is_over)))
        return sessions.filter(pa.array(~is_over)).drop_columns([END])

    def _limits(self, sums: dict[str, Integers], is_held: Mask) -> list[Limit]:
        """Return the sums that close sessions; one that is open is never closed by what it had under an earlier program."""
        asked = [(ROWS, self._rule.count), (WEIGHT, self._rule.size and self._rule.size[1])]
        return [
            Limit(np.where(is_held, np.minimum(sums[name], most - 1), sums[name]), most)
            for name, most in asked
            if most is not None
        ]

    def _ends(self, starts: Integers, lasts: Integers) -> Integers:
        """Return when sessions end that no row closes."""
        ends, duration = lasts + self._rule.gap, self._rule.duration
        return ends if duration is None else np.where(lasts - starts > duration - self._rule.gap, starts + duration, ends)

    def _partials(self, held: pa.Table | None, rows: pa.Table | None, of: Integers, order: Integers) -> pa.Table:
        """Return the partials of sessions, given the session of each held one and row in their order."""
        count = 0 if held is None else held.num_rows
        tables, sessions = [], []
        if held is not None:
            places = np.flatnonzero(order < count)
            tables.append(held.select(self.fold.columns).take(pa.array(order[places])))
            sessions.append(of[places])
        if rows is not None:
            places = np.flatnonzero(order >= count)
            firsts = np.flatnonzero(starts_of_runs(of[places]))
            segments = Segments(order[places] - count, np.append(firsts, len(places)))
            tables.append(self.fold.fold_segments(rows, segments).select(self.fold.columns))
            sessions.append(of[places][firsts])
        if len(tables) == 1:
            return tables[0]
        ids = np.concatenate(sessions)
        both = stable_order(ids)
        partials = pa.concat_tables(tables).take(pa.array(both)).combine_chunks()
        return self.fold.merge_segments(partials, Runs.at(np.append(np.flatnonzero(starts_of_runs(ids[both])), len(ids))))

    def _summary(self, held: pa.Table) -> PageSummary:
        return PageSummary(int(self._ends(held[START].to_numpy(), held[LAST].to_numpy()).min()) - 1, held.num_rows)


class ClosedSessionsEngine(WindowsEngine):
    name = "closed sessions"
    reason = "rows that the watermark has passed are cut into sessions, all keys at once"
    state = "a sort buffer, and hash pages: open sessions with their partial aggregates, by a hash of the key"
    holds: ClassVar = {"b": "rows that wait", "p": "open sessions"}
    batch = _Batch

    def __init__(self, program: Program) -> None:
        super().__init__(program)
        self.fold = present(fold_of(program), "the planner checked")

    @classmethod
    def serves(cls, program: Program) -> bool:
        return isinstance(program.spec.assigner, ClosedSessionWindows)

    @classmethod
    def refusal(cls, program: Program) -> str | None:
        return common_refusal(program)
