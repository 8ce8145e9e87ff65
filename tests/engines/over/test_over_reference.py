"""The reference engine of OVER windows on a bucket: lateness, clocks, restarts, unsound input. Values: ``test_fuzz_over.py``."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from windowpane import aggregates as agg
from windowpane.engines.over.program import Emit, Inconsistent, OverProgram
from windowpane.engines.over.reference import OverReferenceEngine
from windowpane.engines.program import LATE, MAIN, Upstream
from windowpane.engines.protocol import BucketOutput, Clock
from windowpane.errors import ChangedPlanError, InconsistentChangeError, MissingOrderError
from windowpane.hidden_columns import FIRING_WATERMARK, PARTITION, POSITION, TIME
from windowpane.state.memory import MemoryBlobStore
from windowpane.windowing.frames import CURRENT_ROW, Frame, following
from windowpane.windowing.outputs import CHANGE_TYPE, DELETE, INSERT
from windowpane.windowing.over.spec import OrderColumn, OverCall, OverSpec
from windowpane.windowing.over.types import output_schema
from windowpane.windowing.times import MAX, MIN

COLUMNS = pa.schema([("part", pa.string()), ("ts", pa.int64()), ("id", pa.int64())])
SPEC = OverSpec(("part",), (OrderColumn("ts", nulls_first=False),), ("id",), (OverCall("lag", ("id",)),))
CLOSE = OverProgram(
    SPEC, COLUMNS, output_schema(SPEC, COLUMNS, ["before"]), Emit.CLOSE, "ts", append_only=True, has_late_output=True
)
UPDATE = replace(CLOSE, mode=Emit.UPDATE, append_only=False)


def table(
    rows: Iterable[tuple[int | None, int]], words: list[str] | None = None, fired_under: list[int] | None = None
) -> pa.Table:
    """Rows of partition p as (ts, id)."""
    times, ids = zip(*rows, strict=True)
    columns: dict[str, Any] = {"part": ["p"] * len(ids), "ts": times, "id": ids, TIME: times}
    columns |= {PARTITION: [0] * len(ids), POSITION: range(len(ids))}
    columns |= {CHANGE_TYPE: words} if words else {}
    columns |= {FIRING_WATERMARK: fired_under} if fired_under else {}
    types = {"part": pa.string(), CHANGE_TYPE: pa.string()}
    return pa.table({name: pa.array(values, types.get(name, pa.int64())) for name, values in columns.items()})


class Bucket:
    """An engine built anew for every batch, on one store."""

    def __init__(self, program: OverProgram) -> None:
        self.program = program
        self.store = MemoryBlobStore()

    def run(self, rows: pa.Table | None, watermark: int = MIN) -> BucketOutput:
        return OverReferenceEngine(self.program).run(self.store, [] if rows is None else [rows], Clock(watermark, 0))


def rows_of(output: BucketOutput, number: int = MAIN) -> list[dict[str, Any]]:
    tables = [each for at, each in output.tables if at == number]
    return tables[0].to_pylist() if tables else []


def ids(output: BucketOutput, number: int = MAIN) -> list[int]:
    return [row["id"] for row in rows_of(output, number)]


def test_rows_wait_for_the_watermark_and_are_emitted_in_order() -> None:
    bucket = Bucket(CLOSE)

    assert ids(bucket.run(table([(5, 1), (3, 2), (4, 3)]))) == []
    released = bucket.run(None, 4)
    assert [(row["id"], row["before"]) for row in rows_of(released)] == [(2, None), (3, 2)]
    assert released.counters.open_windows == 1
    assert not released.is_idle
    ended = bucket.run(None, MAX)
    assert [(row["id"], row["before"]) for row in rows_of(ended)] == [(1, 3)]
    assert ended.is_idle


def test_rows_behind_the_watermark_are_late() -> None:
    bucket = Bucket(CLOSE)

    output = bucket.run(table([(10, 1), (11, 2)]), 10)

    assert rows_of(output, LATE) == [
        {"part": "p", "ts": 10, "id": 1, "dropped": True, "watermark": datetime(1970, 1, 1, microsecond=11, tzinfo=UTC)}
        | {"late_by": 1, "watermark_delay": None, "led_by": None}
    ]
    assert (output.counters.late_elements, output.counters.late_dropped) == (1, 1)
    assert ids(bucket.run(None, 20)) == [2]


def test_allowed_lateness_holds_everything_back() -> None:
    bucket = Bucket(replace(CLOSE, allowed_lateness=5))

    assert ids(bucket.run(table([(6, 1), (5, 2)]), 10), LATE) == [2]
    assert ids(bucket.run(None, 10)) == []
    assert ids(bucket.run(None, 11)) == [1]


def test_late_rows_nobody_asked_for_are_counted() -> None:
    output = Bucket(replace(CLOSE, has_late_output=False)).run(table([(1, 1)]), 1)

    assert output.tables == []
    assert output.counters.late_dropped == 1


def test_the_watermark_never_goes_back() -> None:
    bucket = Bucket(CLOSE)
    bucket.run(None, 10)

    assert ids(bucket.run(table([(7, 1)]), 5), LATE) == [1]


def calling(program: OverProgram, *calls: OverCall) -> OverProgram:
    spec = replace(SPEC, calls=calls)
    return replace(program, spec=spec, outputs=output_schema(spec, COLUMNS, [f"c{number}" for number in range(len(calls))]))


@pytest.mark.parametrize(
    ("program", "fired_under"),
    [
        (CLOSE, 4),
        (replace(CLOSE, allowed_lateness=3), 1),
        (calling(CLOSE, OverCall.of(agg.count(), Frame.range_(CURRENT_ROW, following(2)))), 2),
        (calling(CLOSE, OverCall("lead", ("id",), offset=0), OverCall("lead", ("id",))), MIN),
        (calling(CLOSE, OverCall.of(agg.count(), Frame.session(1))), MIN),
    ],
    ids=["at once", "lateness", "range following", "rows following", "session"],
)
def test_results_carry_a_watermark_that_none_of_them_trails(program: OverProgram, fired_under: int) -> None:
    bucket = Bucket(program)
    bucket.run(table([(5, 1), (6, 2)]), 4)

    assert {row[FIRING_WATERMARK] for row in rows_of(bucket.run(None, 20))} == {fired_under}


def test_rows_of_a_window_are_late_by_the_watermark_they_fired_under() -> None:
    bucket = Bucket(replace(CLOSE, upstream=Upstream.WINDOW_WITH_WATERMARKS))

    output = bucket.run(table([(5, 1), (5, 2)], fired_under=[4, 5]), 9)

    assert ids(output) == [1]
    assert ids(output, LATE) == [2]


def test_rows_of_a_window_without_that_watermark_are_late_by_the_batch_before() -> None:
    bucket = Bucket(replace(CLOSE, upstream=Upstream.WINDOW))
    bucket.run(None, 4)

    output = bucket.run(table([(5, 1), (4, 2)]), 9)

    assert ids(output) == [1]
    assert ids(output, LATE) == [2]


def test_a_row_without_time_never_closes() -> None:
    with pytest.raises(MissingOrderError, match="'ts'"):
        Bucket(CLOSE).run(table([(None, 1)]))


def test_update_mode_waits_for_nothing() -> None:
    output = Bucket(UPDATE).run(table([(5, 1), (3, 2)]), 100)

    assert [(row["id"], row["before"], row[CHANGE_TYPE], row[TIME]) for row in rows_of(output)] == [
        (2, None, INSERT, 3),
        (1, 2, INSERT, 5),
    ]
    assert output.counters.late_elements == 0
    assert output.is_idle


@pytest.mark.parametrize(
    ("program", "late"),
    [
        (replace(UPDATE, append_only=True), [1, 2]),
        (replace(UPDATE, retain=5), [1]),
        (replace(UPDATE, append_only=True, time_column=None), []),
        (UPDATE, []),
    ],
    ids=["append-only", "retain", "no event time", "changes for ever"],
)
def test_update_mode_has_late_rows_where_state_may_have_been_dropped(program: OverProgram, late: list[int]) -> None:
    output = Bucket(program).run(table([(5, 1), (10, 2), (11, 3)]), 10)

    assert ids(output, LATE) == late
    assert sorted(ids(output)) == sorted({1, 2, 3} - set(late))


def test_changes_are_taken_in_order_of_arrival() -> None:
    """Positions, not the order of the rows in the table, decide which came first."""
    bucket = Bucket(UPDATE)
    rows = table([(1, 1), (1, 1)], [DELETE, INSERT])
    swapped = rows.set_column(rows.column_names.index(POSITION), POSITION, pa.array([1, 0], pa.int64()))

    assert bucket.run(swapped).tables == []


def test_unsound_changes_are_refused_or_counted() -> None:
    rows = table([(1, 1)], [DELETE])

    with pytest.raises(InconsistentChangeError, match="no such row"):
        Bucket(UPDATE).run(rows)
    output = Bucket(replace(UPDATE, on_inconsistent=Inconsistent.WARN)).run(rows)
    assert output.counters.inconsistent == 1
    assert output.tables == []


def test_state_of_another_program_is_refused() -> None:
    bucket = Bucket(replace(CLOSE, description={"row key": ["id"]}))
    bucket.run(table([(5, 1)]))
    bucket.program = replace(CLOSE, description={"row key": ["no"]})

    with pytest.raises(ChangedPlanError, match="row key: was id, is no"):
        bucket.run(None)


def test_a_refused_batch_leaves_the_state_as_it_was() -> None:
    bucket = Bucket(UPDATE)
    bucket.run(table([(1, 1)]))
    before = bucket.store.snapshot()

    with pytest.raises(InconsistentChangeError):
        bucket.run(table([(2, 2), (9, 9)], [INSERT, DELETE]))
    assert bucket.store.snapshot() == before


def test_no_rows_make_no_tables() -> None:
    assert Bucket(UPDATE).run(None).tables == []
    assert Bucket(CLOSE).run(None, 5).tables == []
