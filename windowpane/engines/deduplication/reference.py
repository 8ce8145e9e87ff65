"""The reference engine of deduplication: the reference operator on a bucket, for every program.

State, by name in the bucket's blob store: ``header``; pages ``s`` for the runs of keys, ``t`` for timers. Who may mutate: this
engine, once a batch. Recovery: read them back; the clocks are in the header.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from windowpane.engines.batch.header import BucketHeader
from windowpane.engines.common.rows import python_keys, python_rows
from windowpane.engines.deduplication.arriving import arriving, clocks, refuse_null_times
from windowpane.engines.deduplication.program import LATE, DeduplicationProgram, Keep
from windowpane.engines.program import MAIN, Upstream
from windowpane.engines.protocol import BucketOutput, Clock, Counters
from windowpane.hidden_columns import TIME
from windowpane.operators.deduplication.operator import Deduplicator
from windowpane.operators.over.row_forms import RowForms
from windowpane.state.blob_store import BlobStore
from windowpane.state.codec import encode_key
from windowpane.state.keyed import KeyedState
from windowpane.state.sorted_pages import SortedPages
from windowpane.state.timers import TimerQueue
from windowpane.windowing.changes import CHANGE_TYPE, Row


class DeduplicationReferenceEngine:
    """Runs any deduplication, one row at a time."""

    name = "deduplication reference"

    def __init__(self, program: DeduplicationProgram) -> None:
        """Run ``program``."""
        self._program = program
        self._is_same = RowForms(program.columns, program.passed).same

    def run(self, store: BlobStore, rows: Sequence[pa.Table], clock: Clock) -> BucketOutput:
        """Run one batch of a bucket."""
        program = self._program
        header = BucketHeader.read(store, program.description, growing=program.growing)
        watermark, now, late_under = clocks(program, header, clock)
        pages = [SortedPages(store, name) for name in ("s", "t")]
        state = KeyedState(pages[0])
        operator = Deduplicator(program.within, state, TimerQueue(pages[1]), self._is_same)
        arrived = arriving(program, rows, now)
        late: list[int] = []
        out: list[tuple[str, Row]] = []
        if arrived is not None:
            out = self._take(operator, arrived, program.horizon(late_under, now), late)
        operator.forget(program.forgotten(program.horizon(watermark, now)))
        state.flush()
        for each in pages:
            each.flush()
        held = len(pages[1])
        BucketHeader(program.description, watermark, now, held).write(store)
        duplicates = 0 if arrived is None or program.keep is Keep.LAST else arrived.num_rows - len(late) - len(out)
        size = sum(each.byte_size for each in pages)
        counters = Counters(len(late), len(late), len(out), 0, held, size, duplicates=duplicates)
        is_idle = not (held and program.is_event_time) and program.upstream is Upstream.SOURCE
        return BucketOutput(list(self._tables(out, arrived, late)), counters, is_idle)

    def _take(self, operator: Deduplicator, rows: pa.Table, limit: int, late: list[int]) -> list[tuple[str, Row]]:
        """Take the rows that are not late, and return what is emitted."""
        refuse_null_times(self._program, rows)
        keys, values = python_keys(rows, self._program.keys), python_rows(rows.select(self._program.passed))
        out: list[tuple[str, Row]] = []
        for number, (key, row, time) in enumerate(zip(keys, values, rows[TIME].to_pylist(), strict=True)):
            if time <= limit:
                late.append(number)
            elif self._program.keep is Keep.LAST:
                operator.take_last(key, encode_key(key), time, row)
            elif operator.take_first(key, encode_key(key), time):
                out.append(("", row))
        return out + [entry for change in operator.changes() for entry in change.entries()]

    def _tables(
        self, out: Sequence[tuple[str, Row]], arrived: pa.Table | None, late: Sequence[int]
    ) -> Iterator[tuple[int, pa.Table]]:
        program = self._program
        if out:
            rows = [row | {CHANGE_TYPE: word} for word, row in out]
            yield MAIN, pa.Table.from_pylist(rows, schema=program.main_schema)
        if late and program.has_late_output and arrived is not None:
            yield LATE, arrived.take(pa.array(late)).select(program.passed)
