"""Last rows: the rows of a batch meet the held runs of their keys, and what they change is emitted as a changelog.

State: pages ``p`` by a hash of the key. A row of a page is a run: the hash, the values of the key, where the run starts and ends,
and its newest row. A batch reads the pages of its keys, and of these compares only runs whose hash is in the batch.

A run that can be near to no later row changes no result, so it may stay a while: it is removed when its page is read for
something else, or when half of the runs of its page are such.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windowpane.arrays import Integers
from windowpane.arrays.columns import padded
from windowpane.engines.deduplication.changes import Runs, changelog
from windowpane.engines.deduplication.keys import hashes_of, key_columns, key_names
from windowpane.engines.deduplication.program import DeduplicationProgram
from windowpane.hidden_columns import END, HASH, START, TIME
from windowpane.kernels.keys.key_codes import key_codes
from windowpane.state.blob_store import BlobStore
from windowpane.state.hash_pages import DENSE_ROWS, PAGE_ROWS, STEP_ROWS, HashPages, PageSummary, stored_hashes


class LastRows:
    """One batch of a program that keeps the last row."""

    def __init__(self, program: DeduplicationProgram, store: BlobStore) -> None:
        """Open the state."""
        self._program = program
        self._names = [HASH, *key_names(program), START, END, *program.passed]
        self._pages = HashPages(store, "p", stored_hashes, _summary, PAGE_ROWS.value, DENSE_ROWS.value)

    @property
    def held(self) -> int:
        """The number of runs in state."""
        return self._pages.live

    @property
    def byte_size(self) -> int:
        """The size of the state in bytes."""
        return self._pages.byte_size

    def take(self, rows: pa.Table | None, forgotten: int) -> tuple[list[pa.Table], int]:
        """Return how rows, in order of arrival, change the last ones, and 0: every row is the last for a while."""
        spans = None if rows is None else self._spans(rows)
        hashes = np.zeros(0, np.uint64) if spans is None else stored_hashes(spans)
        out: list[pa.Table] = []
        for positions, numbers, is_run in self._pages.steps(hashes, forgotten, STEP_ROWS.value):
            self._step(positions, spans, numbers, is_run, forgotten, out)
        self._pages.commit()
        return out, 0

    def _spans(self, rows: pa.Table) -> pa.Table:
        """Return rows as runs of one row each: hash, key, start and end, then the rows themselves."""
        keys = pa.table(key_columns(self._program, rows))
        passed = rows.select(self._program.passed).columns
        columns = [pa.array(hashes_of(keys)), *keys.columns, rows[TIME], rows[TIME], *passed]
        return pa.table(columns, names=self._names)

    def _step(
        self,
        positions: Sequence[int],
        arriving: pa.Table | None,
        numbers: Integers,
        is_run: bool,
        forgotten: int,
        out: list[pa.Table],
    ) -> None:
        """Let rows meet what some pages hold, and write what these hold then."""
        self._pages.prefetch(positions)
        read = (self._pages.read(position) for position in positions)
        pages = [padded(page, self._program.columns, self._names) for page in read if page is not None]
        held = pa.concat_tables(pages).combine_chunks() if pages else None
        if held is not None:
            held = held.filter(pc.greater(held[END], forgotten))
        if arriving is not None and len(numbers):
            spans = arriving if len(numbers) == arriving.num_rows else arriving.take(pa.array(numbers))
            asked = _of_same_hash(held, spans) if held is not None else np.zeros(0, np.int64)
            newest, replaced = self._meet(None if held is None else held.take(pa.array(asked)), spans, out)
            if held is not None and len(replaced):
                stays = np.ones(held.num_rows, np.bool_)
                stays[asked[replaced]] = False
                held = held.filter(pa.array(stays))
            held = newest if held is None else pa.concat_tables([held, newest.select(held.column_names)])
        if held is not None:
            self._pages.put(positions, held, is_run)

    def _meet(self, held: pa.Table | None, spans: pa.Table, out: list[pa.Table]) -> tuple[pa.Table, Integers]:
        """Return the runs that are new, and the numbers of the held ones that they replace."""
        count = 0 if held is None else held.num_rows
        both = spans if held is None else pa.concat_tables([held.select(spans.column_names), spans])
        keys = [both[name] for name in both.column_names[1 : 1 + len(self._program.keys)]]
        codes = key_codes(keys, both.num_rows)
        runs = Runs.of(codes, both[START].to_numpy(), both[END].to_numpy(), count, self._program.within)
        out.append(changelog(runs, both, self._program))
        newest = both.take(pa.array(runs.newest))
        return newest.set_column(newest.column_names.index(START), START, pa.array(runs.starts)), runs.held


def _summary(held: pa.Table) -> PageSummary:
    ends = held[END].to_numpy()
    half = int(np.partition(ends, len(ends) // 2)[len(ends) // 2])
    return PageSummary(half, held.num_rows)


def _of_same_hash(held: pa.Table, rows: pa.Table) -> Integers:
    """Return the numbers of the held runs whose hash some row has."""
    hashes = stored_hashes(held)
    order = np.argsort(hashes, kind="stable")
    asked, in_order = np.unique(stored_hashes(rows)), hashes[order]
    first, end = np.searchsorted(in_order, asked), np.searchsorted(in_order, asked, side="right")
    counts = end - first
    places = np.repeat(first - np.cumsum(counts) + counts, counts) + np.arange(int(counts.sum()))
    found: Integers = order[places]
    return found
