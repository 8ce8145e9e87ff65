"""OVER windows on close where each partition has a watermark of its own: the reference, with a restart after each batch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from windowpane.engines.over.program import Emit, OverProgram
from windowpane.engines.protocol import Clock
from windowpane.errors import InvalidSpecError
from windowpane.hidden_columns import PARTITION, POSITION, TIME
from windowpane.planning.description.programs import of_over, read_back
from windowpane.planning.engines import make_engine, with_engine
from windowpane.planning.over import OverPlan, WindowedCall
from windowpane.state.memory import MemoryBlobStore
from windowpane.windowing.frames import CURRENT_ROW, Frame, following
from windowpane.windowing.intervals import Interval
from windowpane.windowing.over.spec import OrderColumn, OverCall, OverSpec
from windowpane.windowing.times import MIN

COLUMNS = pa.schema([("k", pa.string()), ("id", pa.int64()), ("at", pa.timestamp("us", "UTC"))])
ORDER = (OrderColumn("at", nulls_first=True),)
SPEC = OverSpec(("k",), ORDER, ("id",), (OverCall("lag", ("id",)),))
PROGRAM = with_engine(
    OverProgram(
        SPEC, COLUMNS, pa.schema([("before", pa.int64())]), Emit.CLOSE, "at", append_only=True, has_late_output=True, key_delay=5
    )
)
Row = tuple[Any, int, int]


class Bucket:
    def __init__(self, program: OverProgram = PROGRAM) -> None:
        self.program, self.saved = program, MemoryBlobStore().snapshot()

    def run(self, rows: Sequence[Row]) -> dict[int, list[tuple[Any, ...]]]:
        store = MemoryBlobStore()
        store.restore(self.saved)
        keys, ids, times = (list(column) for column in zip(*rows, strict=True))
        table = pa.table([keys, ids, pa.array(times, COLUMNS.field("at").type)], schema=self.program.columns)
        for name, values in ((TIME, times), (PARTITION, [0] * len(rows)), (POSITION, range(len(rows)))):
            table = table.append_column(name, pa.array(values, pa.int64()))
        output = make_engine(self.program).run(store, [table], Clock(MIN, 0))
        self.saved = store.snapshot()
        found: dict[int, list[tuple[Any, ...]]] = {}
        for number, emitted in output.tables:
            names = [name for name in ("k", "id", "before") if name in emitted.column_names]
            found.setdefault(number, []).extend(tuple(row.values()) for row in emitted.select(names).to_pylist())
        return found


def test_a_partition_that_is_far_ahead_makes_no_other_late() -> None:
    bucket = Bucket()
    assert bucket.run([("a", 1, 0), ("a", 2, 5), ("b", 3, 1000)]) == {}
    # The watermark of a is now 10 - 5, less the microsecond at which a row may still come: rows at 0 and 3 are final.
    found = bucket.run([("a", 4, 3), ("a", 5, 10), ("b", 6, 10), ("a", 7, 7)])
    assert found == {0: [("a", 1, None), ("a", 4, 1)], 1: [("b", 6)]}
    found = bucket.run([("a", 8, 16), ("b", 9, 1006)])
    assert found == {0: [("a", 2, 4), ("a", 7, 2), ("a", 5, 7), ("b", 3, None)]}


def test_late_rows_are_late_under_the_watermark_of_the_batches_before_and_lateness_waits() -> None:
    bucket = Bucket(replace(PROGRAM, allowed_lateness=4))
    bucket.run([("a", 1, 10), (None, 2, 100)])  # that of a is 4, less the lateness 0
    assert bucket.run([("a", 3, 0), ("a", 4, 1), ("a", 5, 30)]) == {1: [("a", 3)], 0: [("a", 4, None), ("a", 1, 4)]}


@pytest.mark.parametrize(
    ("kind", "spellings"),
    [
        (pa.float64(), [math.nan, math.nan, -math.nan]),
        (pa.list_(pa.float64()), [[0.0], [-0.0], [0.0]]),
        (pa.map_(pa.string(), pa.int64()), [[("a", 1), ("b", None)], [("b", None), ("a", 1)], [("a", 1), ("b", None)]]),
    ],
)
def test_equal_values_are_one_partition_however_they_are_written(kind: pa.DataType, spellings: list[Any]) -> None:
    columns = COLUMNS.set(0, pa.field("k", kind))
    until_next = OverCall("count", (), Frame.range_(CURRENT_ROW, following(Interval(micros=3))))
    spec = OverSpec(("k",), ORDER, ("id",), (OverCall("lag", ("id",)), until_next))
    outputs = pa.schema([("before", pa.int64()), ("until", pa.int64())])
    bucket = Bucket(with_engine(replace(PROGRAM, spec=spec, columns=columns, outputs=outputs)))
    one, other, again = spellings
    bucket.run([(one, 1, 0), (other, 2, 1)])
    found = [(id, before) for _, id, before in bucket.run([(again, 3, 2), (one, 4, 20)])[0]]
    # The watermark is 20 - 5 - 1: rows up to it are final, and so are their frames, three microseconds ahead.
    assert found == [(1, None), (2, 1), (3, 2)]


def test_only_the_reference_keeps_the_watermarks_and_a_description_reads_back() -> None:
    assert (PROGRAM.engine, PROGRAM.engine_reason) == (
        "over reference",
        "each key has a watermark of its own, which only the reference operator keeps",
    )
    assert read_back(of_over(PROGRAM)) == replace(PROGRAM, engine_reason="", has_late_output=False)


@pytest.mark.parametrize(
    ("partitions", "mode", "reason"),
    [
        ([("k",)], Emit.UPDATE, "by one watermark for all"),
        ([("k",), ("id",)], Emit.CLOSE, "that of one partitioning"),
        ([()], Emit.CLOSE, "without partition_by"),
    ],
)
def test_a_watermark_of_each_key_needs_one_key(partitions: list[tuple[str, ...]], mode: Emit, reason: str) -> None:
    calls = [WindowedCall(f"n{number}", each, ORDER, OverCall("row_number")) for number, each in enumerate(partitions)]
    with pytest.raises(InvalidSpecError, match=reason):
        OverPlan(tuple(calls), ("id",), mode, "at", has_watermark=True, key_delay=5)
