"""The deduplication engine: rows of a batch meet earlier ones of their keys, on Arrow tables.

State, by name in the bucket's blob store: ``header``, and what ``first`` and ``last`` say of theirs. Who may mutate: this engine,
once a batch. Recovery: read them back; the clocks are in the header.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from windowpane.engines.batch.header import BucketHeader
from windowpane.engines.deduplication.arriving import arriving, clocks, refuse_null_times
from windowpane.engines.deduplication.first import FirstRows
from windowpane.engines.deduplication.last import LastRows
from windowpane.engines.deduplication.program import LATE, DeduplicationProgram, Keep
from windowpane.engines.program import MAIN, Upstream
from windowpane.engines.protocol import BucketOutput, Clock, Counters
from windowpane.hidden_columns import TIME
from windowpane.state.blob_store import BlobStore


class DeduplicationEngine:
    """Runs every program."""

    name = "deduplication"

    def __init__(self, program: DeduplicationProgram) -> None:
        """Run ``program``."""
        self.program = program

    def run(self, store: BlobStore, rows: Sequence[pa.Table], clock: Clock) -> BucketOutput:
        """Run one batch of a bucket."""
        program = self.program
        header = BucketHeader.read(store, program.description, growing=program.growing)
        watermark, now, late_under = clocks(program, header, clock)
        limit = program.horizon(late_under, now)
        punctual, late = _by_lateness(program, arriving(program, rows, now), limit)
        state = FirstRows(program, store) if program.keep is Keep.FIRST else LastRows(program, store)
        tables, duplicates = state.take(punctual, program.forgotten(limit))
        BucketHeader(program.description, watermark, now, state.held).write(store)
        outputs = [(MAIN, table.cast(program.main_schema)) for table in tables if table.num_rows]
        shown, dropped = sum(table.num_rows for _, table in outputs), 0 if late is None else late.num_rows
        if late is not None and program.has_late_output:
            outputs.append((LATE, late.select(program.passed)))
        counters = Counters(dropped, dropped, shown, 0, state.held, state.byte_size, duplicates=duplicates)
        is_idle = not (state.held and program.is_event_time) and program.upstream is Upstream.SOURCE
        return BucketOutput(outputs, counters, is_idle)


def _by_lateness(program: DeduplicationProgram, rows: pa.Table | None, limit: int) -> tuple[pa.Table | None, pa.Table | None]:
    """Return the rows above the horizon, and those that are late; ``None`` for none."""
    if rows is None:
        return None, None
    refuse_null_times(program, rows)
    is_late = rows[TIME].to_numpy() <= limit
    if not is_late.any():
        return rows, None
    late, punctual = rows.filter(pa.array(is_late)), rows.filter(pa.array(~is_late)).combine_chunks()
    return (punctual if punctual.num_rows else None), late
