"""Counters of late rows: their spans and bounds; and of each engine, that they add up to what it counted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import windowpane as wp
from tests.engines.columnar_programs import COLUMNS, program_of
from windowpane.engines.batch.header import HEADER, BucketHeader
from windowpane.engines.batch.late_counts import MOST_CELLS, LateCounts, span_of
from windowpane.engines.protocol import Clock
from windowpane.hidden_columns import PARTITION, POSITION, TIME
from windowpane.planning.engines import make_engine, with_engine
from windowpane.state.memory import MemoryBlobStore

HOUR, SECOND = 3_600_000_000, 1_000_000


def note(counts: LateCounts, time: int, last: int, watermark: int, dropped: int, key: Any = None) -> None:
    one = np.ones(1, np.int64)
    counts.note(one * time, one * last, watermark, one, one * dropped, key)


def test_spans_double() -> None:
    counts = LateCounts()
    for late in (0, 0.5, 1, 1.5, 2, 3.9, 4, 100):
        note(counts, 5 * SECOND, 0, int(late * SECOND), 1)
    spans = {span_of(cell[1]): cell[2] for cell in counts.cells()}
    assert spans == {(0.0, 1.0): 2, (1.0, 2.0): 2, (2.0, 4.0): 2, (4.0, 8.0): 1, (64.0, 128.0): 1}


def test_few_hours_are_kept_and_no_row_is_lost() -> None:
    counts, most = LateCounts(), MOST_CELLS.value
    for hour in range(3 * most):
        note(counts, hour * HOUR, hour * HOUR, hour * HOUR + 3 * SECOND, hour % 2, key=f"key {hour}")
    cells = LateCounts(counts.cells()).cells()
    assert most // 2 <= len(cells) <= most
    assert (sum(cell[2] for cell in cells), sum(cell[3] for cell in cells)) == (3 * most, 3 * most // 2)
    assert cells[-1] == [(3 * most - 1) * HOUR, 2, 1, 1, f"key {3 * most - 1}"]


def test_many_hours_at_once_are_counted_together() -> None:
    counts, hours = LateCounts(), np.arange(5000) * HOUR
    each = np.ones(5000, np.int64)
    counts.note(hours, hours, 5000 * HOUR, each, each * 0)
    assert sum(cell[2] for cell in counts.cells()) == 5000
    assert len(counts.cells()) <= MOST_CELLS.value


@pytest.mark.parametrize("engine", ["slices", "panes", "row", "reference"])
def test_windows_count_the_same_drops_whatever_the_engine(engine: str) -> None:
    """Windows of ten seconds, kept for 21 more, under the watermark 60 s: [20, 30) is over, [30, 40) and [40, 50) refine.

    A row of [20, 30) is 30 s too late, those of [30, 40) 20 s, that of [40, 50) 10 s; the last one is on time.
    """
    assigner = wp.TumblingEventTimeWindows.of("10 seconds")
    program = with_engine(program_of(assigner, lateness=21 * SECOND), engine)
    store, clock = MemoryBlobStore(), Clock(60 * SECOND - 1, 0)
    output = make_engine(program).run(store, [rows_at([25, 33, 35, 45, 61])], clock)
    header = BucketHeader.of(store.get(HEADER) or b"")
    assert output.counters.late_dropped == header.totals["late_dropped"] == 1
    dropped = [(span_of(cell[1]), cell[3], cell[4]) for cell in header.late if cell[3]]
    assert dropped == [((16.0, 32.0), 1, "a")]
    if engine in ("slices", "panes"):
        assert [(span_of(cell[1]), cell[2]) for cell in header.late] == [((8.0, 16.0), 1), ((16.0, 32.0), 3)]


def test_sessions_count_rows_that_are_late_by_themselves() -> None:
    program = with_engine(program_of(wp.EventTimeSessionWindows.with_gap("10 seconds")), "sessions")
    store = MemoryBlobStore()
    engine = make_engine(program)
    engine.run(store, [rows_at([55])], Clock(20 * SECOND, 0))
    output = engine.run(store, [rows_at([47, 20])], Clock(60 * SECOND - 1, 0))
    header = BucketHeader.of(store.get(HEADER) or b"")
    assert output.counters.late_dropped == header.totals["late_dropped"] == 1
    assert [(span_of(cell[1]), cell[2], cell[3]) for cell in header.late] == [((2.0, 4.0), 1, 0), ((16.0, 32.0), 1, 1)]


def rows_at(seconds: list[int]) -> pa.Table:
    """Rows of one key, as they reach an engine."""
    count = len(seconds)
    columns = {name: pa.array([1] * count, COLUMNS.field(name).type) for name in ("v", "w", "u")}
    hidden = {PARTITION: pa.array([0] * count, pa.int32()), POSITION: pa.array(range(count), pa.int64())}
    return pa.table({"k": ["a"] * count, **columns, TIME: [second * SECOND for second in seconds], **hidden})
