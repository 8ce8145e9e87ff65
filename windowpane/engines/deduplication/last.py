"""Last rows: the rows of a batch meet the held runs of their keys, and what they change is emitted as a changelog.

State: pages ``p`` by a hash of the key. A row of a page is a run: the hash, the values of the key, where the run starts and ends,
and its newest row. A batch reads the pages of its keys, and of these compares only runs whose hash is in the batch.

A run that can be near to no later row changes no result, so it may stay a while: it is removed when its page is read for
something else, or when half of the runs of its page are such.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windowpane.arrays import Integers
from windowpane.arrays.columns import padded, replaced
from windowpane.engines.batch.driver import Left
from windowpane.engines.deduplication.batch import DeduplicationBatch, hashes_of, key_columns, key_names
from windowpane.engines.deduplication.program import DeduplicationProgram
from windowpane.engines.spec import BucketEngine
from windowpane.hidden_columns import END, HASH, START, TIME
from windowpane.kernels.deduplication import runs
from windowpane.kernels.keys.codes import rows_written_differently
from windowpane.kernels.keys.key_codes import key_codes
from windowpane.kernels.segments import concatenated
from windowpane.state.blob_store import BlobStore
from windowpane.state.hash_pages import DENSE_ROWS, PAGE_ROWS, STEP_ROWS, HashPages, PageSummary, stored_hashes
from windowpane.windowing.outputs import CHANGE_TYPE, DELETE, INSERT, UPDATE_POSTIMAGE, UPDATE_PREIMAGE


class LastRows(DeduplicationBatch):
    def __init__(self, engine: BucketEngine[DeduplicationProgram], store: BlobStore) -> None:
        super().__init__(engine, store)
        self._names = [HASH, *key_names(self.program), START, END, *self.program.passed]
        self._pages = HashPages(store, "p", stored_hashes, _summary, PAGE_ROWS.value, DENSE_ROWS.value)

    def deduplicate(self, rows: pa.Table | None, forgotten: int) -> None:
        """Emit how rows change the last ones; none is a duplicate, since every row is the last for a while."""
        spans = None if rows is None else self._spans(rows)

        def step(held: pa.Table | None, new: pa.Table | None) -> pa.Table | None:
            if held is not None:
                held = padded(held, self.program.columns, self._names).filter(pc.greater(held[END], forgotten))
            return held if new is None else self._met(held, new)

        self._pages.meet(spans, forgotten, STEP_ROWS.value, step)

    def close(self) -> Left:
        return self.left(self._pages.live, self._pages.byte_size)

    def _spans(self, rows: pa.Table) -> pa.Table:
        """Return rows as runs of one row each: hash, key, start and end, then the rows themselves."""
        keys = pa.table(key_columns(self.program, rows))
        passed = rows.select(self.program.passed).columns
        columns = [pa.array(hashes_of(keys)), *keys.columns, rows[TIME], rows[TIME], *passed]
        return pa.table(columns, names=self._names)

    def _met(self, held: pa.Table | None, spans: pa.Table) -> pa.Table:
        if held is None:
            return self._meet(None, spans)[0]
        asked = _of_same_hash(held, spans)
        newest, outdated = self._meet(held.take(pa.array(asked)), spans)
        if len(outdated):
            stays = np.ones(held.num_rows, np.bool_)
            stays[asked[outdated]] = False
            held = held.filter(pa.array(stays))
        return pa.concat_tables([held, newest.select(held.column_names)])

    def _meet(self, held: pa.Table | None, spans: pa.Table) -> tuple[pa.Table, Integers]:
        """Emit what changes; return the runs that are new, and the numbers of the held ones that they replace."""
        count = 0 if held is None else held.num_rows
        both = spans if held is None else pa.concat_tables([held.select(spans.column_names), spans])
        keys = [both[name] for name in both.column_names[1 : 1 + len(self.program.keys)]]
        codes = key_codes(keys, both.num_rows)
        met = Runs.of(codes, both[START].to_numpy(), both[END].to_numpy(), count, self.program.within)
        self.emit(changelog(met, both, self.program).cast(self.program.main_schema))
        return replaced(both.take(pa.array(met.newest)), START, pa.array(met.starts)), met.held


def _summary(held: pa.Table) -> PageSummary:
    ends = held[END].to_numpy()
    half = int(np.partition(ends, len(ends) // 2)[len(ends) // 2])
    return PageSummary(half, held.num_rows)


def _of_same_hash(held: pa.Table, rows: pa.Table) -> Integers:
    hashes = stored_hashes(held)
    order = np.argsort(hashes, kind="stable")
    asked, in_order = np.unique(stored_hashes(rows)), hashes[order]
    first, end = np.searchsorted(in_order, asked), np.searchsorted(in_order, asked, side="right")
    found: Integers = order[concatenated(first, end - first)]
    return found


@dataclass(frozen=True)
class Runs:
    """The runs that rows of a batch are in, by the numbers of their spans: held ones first, then rows in order of arrival."""

    newest: Integers  # for each run the span that holds its newest row
    starts: Integers  # where each run starts
    shown: Integers  # for each run the newest held span, -1 if it has none
    held: Integers  # the held spans that are in a run

    @classmethod
    def of(cls, codes: Integers, starts: Integers, ends: Integers, held: int, within: int) -> Runs:
        found = runs(codes, starts, ends, within)
        numbers, count = found.of, len(found.heads)
        has_rows = np.zeros(count, np.bool_)
        has_rows[numbers[held:]] = True
        in_order = np.argsort(ends, kind="stable")  # of spans with one end the held one is first, then as they arrived
        newest, shown = np.full(count, -1), np.full(count, -1)
        newest[numbers[in_order]] = in_order
        of_held = in_order[in_order < held]
        shown[numbers[of_held]] = of_held
        return cls(newest[has_rows], found.starts[has_rows], shown[has_rows], np.flatnonzero(has_rows[numbers[:held]]))


def changelog(runs: Runs, spans: pa.Table, program: DeduplicationProgram) -> pa.Table:
    """Return how the last rows changed: deleted rows, then updates, both images together, then new rows."""
    rows = spans.select(program.passed)
    deleted = np.setdiff1d(runs.held, runs.shown)
    is_new = runs.shown < 0
    before, after = runs.shown[~is_new], runs.newest[~is_new]
    changed = rows_written_differently(rows.take(pa.array(before)), rows.take(pa.array(after)))
    before, after = before[changed], after[changed]
    numbers = np.concatenate([deleted, np.stack([before, after], axis=1).ravel(), runs.newest[is_new]])
    images = np.tile([UPDATE_PREIMAGE, UPDATE_POSTIMAGE], len(before))
    words = [*[DELETE] * len(deleted), *images.tolist(), *[INSERT] * int(is_new.sum())]
    return rows.take(pa.array(numbers)).append_column(CHANGE_TYPE, pa.array(words, pa.string()))
