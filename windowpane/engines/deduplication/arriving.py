"""What both engines of deduplication do with a batch before its rows are compared: clocks, order, times."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from windowpane.engines.batch.header import BucketHeader
from windowpane.engines.common.arrival import ordered
from windowpane.engines.common.rows import python_keys
from windowpane.engines.deduplication.program import DeduplicationProgram
from windowpane.engines.program import Upstream
from windowpane.engines.protocol import Clock
from windowpane.errors import MissingEventTimeError
from windowpane.hidden_columns import TIME


def clocks(program: DeduplicationProgram, header: BucketHeader, clock: Clock) -> tuple[int, int, int]:
    """Return the watermark and the time after a batch, and the watermark that its rows are late under.

    For rows of a source it is the watermark of their own batch, which earlier rows made; for rows of an earlier operator that of
    the batch before.
    """
    watermark = max(header.watermark, clock.watermark)
    now = max(header.processing_time, clock.processing_time)
    return watermark, now, watermark if program.upstream is Upstream.SOURCE else header.watermark


def arriving(program: DeduplicationProgram, tables: Sequence[pa.Table], now: int) -> pa.Table | None:
    """Return the rows of a batch in order of arrival, with their times, ``None`` if there are none."""
    rows = ordered(tables, program.order_by)
    if rows is None or program.is_event_time:
        return rows
    return rows.set_column(rows.column_names.index(TIME), TIME, pa.array(np.full(rows.num_rows, now, np.int64)))


def refuse_null_times(program: DeduplicationProgram, rows: pa.Table) -> None:
    """Refuse a row without an event time, by name.

    Raises:
        MissingEventTimeError: there is one.
    """
    if rows[TIME].null_count:
        row = rows.slice(rows[TIME].is_null().to_pylist().index(True), 1)
        raise MissingEventTimeError(python_keys(row, program.keys)[0], "deduplication goes")
