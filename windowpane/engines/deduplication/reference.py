"""The reference engine of deduplication: the reference operator on a bucket, for every program.

State, by name in the bucket's blob store: ``header``; pages ``s`` for the runs of keys, ``t`` for timers. Who may mutate: this
engine, once a batch. Recovery: read them back; the clocks are in the header.
"""

from __future__ import annotations

from typing import ClassVar

import pyarrow as pa

from windowpane.engines.batch.driver import Left
from windowpane.engines.deduplication.batch import DeduplicationBatch
from windowpane.engines.deduplication.program import DeduplicationProgram, Keep
from windowpane.engines.rows import python_keys, python_rows
from windowpane.engines.spec import BucketEngine
from windowpane.hidden_columns import TIME
from windowpane.operators.deduplication.operator import Deduplicator
from windowpane.operators.over.row_forms import RowForms
from windowpane.state.blob_store import BlobStore
from windowpane.state.codec import encode_key
from windowpane.state.keyed import KeyedState
from windowpane.state.sorted_pages import SortedPages
from windowpane.state.timers import TimerQueue
from windowpane.windowing.outputs import CHANGE_TYPE


class _Batch(DeduplicationBatch):
    def __init__(self, engine: BucketEngine[DeduplicationProgram], store: BlobStore) -> None:
        super().__init__(engine, store)
        self._pages = [SortedPages(store, name) for name in ("s", "t")]
        self._state = KeyedState(self._pages[0])
        program = self.program
        is_same = RowForms(program.columns, program.passed).same
        self._operator = Deduplicator(program.within, self._state, TimerQueue(self._pages[1]), is_same)

    def deduplicate(self, rows: pa.Table | None, forgotten: int) -> None:
        if rows is not None:
            self._take(rows)
        self._operator.forget(self.program.forgotten(self.program.horizon(self.watermark, self.now)))

    def _take(self, rows: pa.Table) -> None:
        program, operator = self.program, self._operator
        keys, values = python_keys(rows, program.keys), python_rows(rows.select(program.passed))
        out = []
        for key, row, time in zip(keys, values, rows[TIME].to_pylist(), strict=True):
            if program.keep is Keep.LAST:
                operator.take_last(key, encode_key(key), time, row)
            elif operator.take_first(key, encode_key(key), time):
                out.append(row)
            else:
                self.count("duplicates", 1)
        out += [{**row, CHANGE_TYPE: word} for change in operator.changes() for word, row in change.entries()]
        self.emit(pa.Table.from_pylist(out, schema=program.main_schema))

    def close(self) -> Left:
        self._state.flush()
        for pages in self._pages:
            pages.flush()
        return self.left(len(self._pages[1]), sum(pages.byte_size for pages in self._pages))


class DeduplicationReferenceEngine(BucketEngine[DeduplicationProgram]):
    name = "deduplication reference"
    reason = "the reference operator runs every program"
    state = "sorted pages: runs of near rows by key, and when each is forgotten"
    holds: ClassVar = {"s": "rows by key", "t": "timers"}
    batch = _Batch
