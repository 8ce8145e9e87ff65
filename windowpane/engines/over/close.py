"""The engine of OVER windows that emit on window close: each row is emitted once, with its final values.

Rows wait in the sort buffer for the watermark; those it releases, in order, join the tails of their partitions: the rows that are
not complete yet, and those that later frames still need. Kernels compute tails and released rows together; complete rows are
emitted, rows that no frame needs any more are evicted.

State, by name in the bucket's blob store: ``header``, the sort buffer ``b``, and the tails ``t``, hash pages by partition, whose
rows are in the order of the window. A page of tails is due while rows of it wait to be emitted. Who may mutate: this engine, once
a batch. Recovery: read them back.

    partition   | kept for later frames | waiting | released now |
                ^ first row kept        ^ first row not emitted
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windowpane.arrays import Integers, Mask, Unsigned
from windowpane.arrays.columns import flat, padded, replaced
from windowpane.engines.batch.driver import Left
from windowpane.engines.over.batch import OverBatch, calls_in_words
from windowpane.engines.over.changed_calls import ChangedCalls
from windowpane.engines.over.changes import in_arrival_order, in_window_order, sorting_words
from windowpane.engines.over.program import Emit, OverProgram
from windowpane.engines.over.sort_buffer import SortBuffer
from windowpane.engines.rows import python_rows
from windowpane.engines.spec import BucketEngine
from windowpane.errors import MissingOrderError, present
from windowpane.hidden_columns import TIME, hidden
from windowpane.kernels.keys.coded_texts import are_coded, coded_alike, spelled
from windowpane.kernels.keys.key_codes import key_hashes, plain_key
from windowpane.kernels.over import window as over_window
from windowpane.kernels.over.complete_rows import complete, is_closed_by_watermark, kept_from
from windowpane.kernels.over.sorting import order_in_partitions, partition_numbers
from windowpane.kernels.over.window import OverWindow
from windowpane.kernels.packed_order import stable_order
from windowpane.sizes import Size
from windowpane.state.blob_store import BlobStore
from windowpane.state.compact import texts_repeat
from windowpane.state.hash_pages import HashPages, PageSummary
from windowpane.windowing.intervals import MICROS_PER_DAY
from windowpane.windowing.outputs import CHANGE_TYPE
from windowpane.windowing.times import MAX, MIN


class OverCloseEngine(BucketEngine[OverProgram]):
    name = "over close"
    state = "a sort buffer of rows that wait, tails of partitions, counters of running calls"
    holds: ClassVar = {"b": "rows that wait", "t": "tails"}

    def __init__(self, program: OverProgram) -> None:
        super().__init__(program)
        self.window = OverWindow(program.spec, program.columns)
        self.arriving = pa.schema([*program.columns, pa.field(TIME, pa.int64())])
        self.kept = pa.schema([*self.arriving, *self.window.carries, pa.field(EMITTED, pa.bool_())])
        changes = [] if program.append_only else [pa.field(CHANGE_TYPE, pa.string())]
        self.waiting = pa.schema([*self.arriving, *changes])
        self.waits = is_closed_by_watermark(self.window.calls)
        self.coded = self._coded()

    @classmethod
    def serves(cls, program: OverProgram) -> bool:
        return program.mode is Emit.CLOSE

    @classmethod
    def refusal(cls, program: OverProgram) -> str | None:
        kind = program.columns.field(program.spec.order_names[0]).type if program.spec.order_by else None
        if len(program.spec.order_by) != 1 or program.spec.order_by[0].descending or kind is None:
            return "it is not ordered by one column, ascending"
        if not (pa.types.is_integer(kind) or pa.types.is_date32(kind) or (pa.types.is_timestamp(kind) and kind.unit == "us")):
            return f"it is ordered by a column of type {kind}"
        return over_window.refusal(program.spec, program.columns)

    @classmethod
    def reason_for(cls, program: OverProgram) -> str:
        return f"a sort buffer, complete rows computed by kernels on sorted arrays: {calls_in_words(program)}"

    def open(self, store: BlobStore) -> _Batch:
        return _Batch(self, store)

    def _coded(self) -> tuple[str, ...]:
        """Return the columns whose texts are codes from arrival to result: only partitions are made of them."""
        spec = self.program.spec
        read = {*spec.key, *spec.order_names, *self.window.read}
        return tuple(
            name for name in spec.partition_by if pa.types.is_string(self.program.columns.field(name).type) and name not in read
        )


@dataclass(frozen=True)
class Joined:
    """Released rows together with tails."""

    pages: list[int]  # the pages that the tails are all rows of
    table: pa.Table  # the rows of the tails, then those released
    order: Integers  # sorts them by partition and, within each, into the order of the window
    starts_segment: Mask  # where in this order a partition begins
    held: int  # how many rows are of the tails
    has_repeats: bool  # whether two of the released rows have one place in one partition; known where they were sorted


class OverCloser:
    """The tails and the calls, without the sort buffer: released rows in, complete rows out."""

    def __init__(self, engine: OverCloseEngine, store: BlobStore) -> None:
        self._engine = engine
        self._window = engine.window
        self.tails = Tails(store, "t", engine.kept, engine.program.spec.partition_by)

    def take(self, released: pa.Table, closed: int) -> pa.Table | None:
        """Take rows in order, all up to ``closed`` having arrived, and return those that are complete, with the calls."""
        return self.completed(self.joined(self.tails_of(released, closed), released, ()), closed)

    def tails_of(self, released: pa.Table, closed: int) -> tuple[list[int], pa.Table]:
        """Return the pages, and their rows, of the tails that rows join, and of those that wait for a watermark."""
        awaited = self.tails.pages.due(MIN) if closed == MAX or (closed > MIN and self._engine.waits) else []
        pages = sorted({*self.tails.touched(released), *awaited})
        return pages, self.tails.read(pages)

    def joined(self, tails: tuple[list[int], pa.Table], released: pa.Table, words: Sequence[Integers]) -> Joined:
        """Return rows together with the tails of their partitions; columns of ``words`` sort them, none if they are in order."""
        pages, stored = tails
        fresh, before = released.select(self._engine.arriving.names), stored.num_rows
        parts = coded_alike([stored, fresh], self._engine.coded)
        table = pa.concat_tables(parts, promote_options="default").select(self._engine.kept.names)
        columns = [flat(table[name]) for name in self._engine.program.spec.partition_by]
        numbers, ties = partition_numbers(columns, table.num_rows), np.zeros(0, np.int64)
        if words and fresh.num_rows:  # rows of the tails stay in their order, and before the others
            is_fresh = np.append(np.zeros(before, np.int64), np.ones(fresh.num_rows, np.int64))
            behind = [np.append(np.full(before, each.min(), each.dtype), each) for each in words]
            order, ties = order_in_partitions(numbers, [is_fresh, *behind])
        else:
            order = stable_order(numbers)
        counts = np.bincount(numbers)
        starts = np.zeros(len(numbers), np.bool_)
        starts[np.cumsum(counts)[counts > 0] - counts[counts > 0]] = True
        return Joined(pages, table, order, starts, before, bool((order[ties] >= before).any()))

    def completed(self, joined: Joined, closed: int) -> pa.Table | None:
        if not len(joined.order):
            return None
        table = joined.table.take(pa.array(joined.order)).combine_chunks()
        seeded = (joined.order < joined.held)[joined.starts_segment] & (len(self._window.carries) > 0)
        emitted = table[EMITTED].fill_null(False).combine_chunks().to_numpy(zero_copy_only=False)
        rows = self._window.rows(table, joined.starts_segment, seeded)
        program, layout, at = self._engine.program, rows.layout, rows.layout.numbers
        blocked = np.where(emitted | complete(rows, self._window.calls, closed), layout.size, at)
        pending = np.minimum(np.minimum.reduceat(blocked, layout.segment_firsts), layout.segment_ends)  # the first not emitted
        is_passed = at < layout.spread(pending)
        rows.wanted = ~emitted & is_passed
        values = self._window.values(rows)
        columns = [*(table[name] for name in self._engine.arriving.names), *values.carries, pa.array(is_passed)]
        needed = pa.array(at >= layout.spread(kept_from(rows, self._window.calls, pending)))
        tails = pa.table(columns, self._engine.kept.names).filter(needed)
        self.tails.write(joined.pages, spelled(tails).cast(self._engine.kept))
        if not rows.wanted.any():
            return None
        results = dict(zip(program.outputs.names, values.outputs, strict=True))
        schema = program.result_schema
        columns = [results[name] if name in results else table[name] for name in schema.names]
        return spelled(pa.table(columns, schema.names).filter(pa.array(rows.wanted))).cast(schema)


class _Batch(OverBatch):
    def __init__(self, engine: OverCloseEngine, store: BlobStore) -> None:
        super().__init__(engine, store)
        self._engine = engine
        self._buffer = SortBuffer(store, "b", engine.program.spec.order_names[0], engine.coded, engine.waiting)
        self._closer = OverCloser(engine, store)
        was = self.header.description
        if was.get("calls") != engine.program.description.get("calls"):
            changed, window, kept = ChangedCalls.of(engine.program, was), engine.window, engine.kept
            self._closer.tails.pages.rewrite(lambda page: changed.recomputed(window, page, kept))
        elif self.header.added:
            self._closer.tails.widen()

    def work(self, tables: list[pa.Table]) -> None:
        if not tables:
            return
        for name in self._engine.coded:
            tables = [
                table
                if are_coded(table.schema.field(name).type) or not texts_repeat(texts := flat(table[name]))
                else replaced(table, name, texts.dictionary_encode())
                for table in tables
            ]
        rows = self.arrived(coded_alike(tables, self._engine.coded))
        if rows is None:
            return
        if rows[TIME].null_count:
            row = python_rows(rows.filter(rows[TIME].is_null()).select(self.program.columns.names).slice(0, 1))[0]
            raise MissingOrderError(self.program.spec.order_names[0], row)
        self._buffer.add(in_arrival_order(self.program, rows).select(self._engine.waiting.names))

    def on_watermark(self, before: int) -> None:
        if self.watermark == before:
            return
        closed = present(self.program.horizon(self.watermark), "mode close has a horizon")
        released, point = self._buffer.release(closed), closed
        if MIN < closed < MAX and pa.types.is_date32(self.program.columns.field(self.program.spec.order_names[0]).type):
            point = closed // MICROS_PER_DAY
        parts = coded_alike(released or [self._engine.waiting.empty_table()], self._engine.coded)
        rows = pa.concat_tables(parts).combine_chunks()
        done = self._closer.completed(self._joined(rows, point), point)
        if done is not None:
            self.emit(done)

    def _joined(self, rows: pa.Table, point: int) -> Joined:
        """Return released rows together with tails; changes of rows, and two rows of one place, are settled before."""
        words, has_changes = sorting_words(self.program, rows), CHANGE_TYPE in rows.column_names
        if has_changes:
            rows = in_window_order(self.program, rows, words, self.report)
        tails = self._closer.tails_of(rows, point)
        joined = self._closer.joined(tails, rows, () if has_changes else words)
        if not joined.has_repeats:
            return joined
        # The partitions stay the same, and so do the tails: of the rows of a place the last one is kept.
        rows = in_window_order(self.program, rows, words, self.report)
        return self._closer.joined(tails, rows, ())

    def close(self) -> Left:
        self._buffer.flush()
        tails = self._closer.tails
        return Left(self._buffer.rows + tails.pages.live, self._buffer.byte_size + tails.pages.byte_size)


EMITTED = hidden("emitted")
"""The column that says whether a row was emitted; the others wait to be."""
PAGE_ROWS = Size("rows of a page of tails", 1 << 15, (2, 8))


class Tails:
    """Rows by partition; the live ones of a page wait to be emitted."""

    def __init__(self, store: BlobStore, name: str, schema: pa.Schema, partition_by: Sequence[str]) -> None:
        self._schema = schema
        self._partition_by = partition_by
        self.pages = HashPages(store, name, self._hashes, _summary, PAGE_ROWS.value, PAGE_ROWS.value)

    def touched(self, rows: pa.Table) -> list[int]:
        if len(self.pages) < 2:
            return [0] if rows.num_rows else []
        pages: list[int] = np.unique(self.pages.locate(self._hashes(rows))).tolist()
        return pages

    def read(self, pages: Sequence[int]) -> pa.Table:
        self.pages.prefetch(pages)
        tables = [table for page in pages if (table := self.pages.read(page)) is not None]
        return pa.concat_tables(tables) if tables else self._schema.empty_table()

    def write(self, pages: Sequence[int], rows: pa.Table) -> None:
        if len(self.pages) < 2:
            self.pages.write(0, rows)
        else:
            self.pages.put(pages, rows, is_run=False)
        self.pages.commit()

    def widen(self) -> None:
        self.pages.rewrite(lambda page: padded(page, self._schema))

    def _hashes(self, rows: pa.Table) -> Unsigned:
        return key_hashes([plain_key(rows[name]) for name in self._partition_by], rows.num_rows)


def _summary(page: pa.Table) -> PageSummary:
    waiting = page.num_rows - (pc.sum(page[EMITTED]).as_py() or 0)
    return PageSummary(MIN if waiting else MAX, waiting)
