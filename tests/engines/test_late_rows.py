"""What a late row says: the same columns for every kind of program, and values by hand."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pytest

import windowpane as wp
from tests.engines.columnar_programs import program_of
from tests.engines.over.test_over_reference import CLOSE
from tests.engines.test_deduplication import FIRST
from windowpane.engines.batch.late_rows import late_schema, late_table
from windowpane.engines.join.program import JoinProgram, JoinSide
from windowpane.engines.program import LATE
from windowpane.engines.protocol import Clock
from windowpane.errors import InvalidSpecError
from windowpane.hidden_columns import PARTITION, POSITION, TIME
from windowpane.planning.engines import make_engine
from windowpane.state.memory import MemoryBlobStore
from windowpane.windowing.joins import IntervalMatch, WindowMatch
from windowpane.windowing.times import MAX, MIN

OWN = pa.schema([("k", pa.string())])
WHY = ["dropped", "watermark", "late_by", "watermark_delay", "led_by"]


def at(micros: int) -> datetime:
    return datetime(1970, 1, 1, microsecond=micros, tzinfo=UTC)


def rows(*times: int | None) -> pa.Table:
    return pa.table({"k": pa.array(["a"] * len(times)), TIME: pa.array(times, pa.int64())})


def test_late_by_is_the_delay_that_was_missing_and_the_watermark_is_sparks() -> None:
    late = late_table(late_schema(OWN), rows(60, 99), 99, Clock(99, 0, 5, "partition 3, whose latest row is at 105"))
    expected = {"k": "a", "dropped": True, "watermark": at(100), "watermark_delay": 5}
    led = {"led_by": "partition 3, whose latest row is at 105"}
    assert late.to_pylist() == [{**expected, "late_by": 40, **led}, {**expected, "late_by": 1, **led}]


def test_what_is_not_known_is_null() -> None:
    under = np.array([MAX, 9, 9, 10**18])
    late = late_table(late_schema(OWN), rows(60, None, 80, 0), under, Clock(9, 0))
    assert late["watermark"].to_pylist() == [None, at(10), at(10), None]  # the last one is beyond the year 9999
    assert late["late_by"].to_pylist() == [None, None, None, 10**18 + 1]
    assert late["watermark_delay"].to_pylist() == late["led_by"].to_pylist() == [None] * 4


def test_a_column_of_such_a_name_is_refused() -> None:
    with pytest.raises(InvalidSpecError, match=r"the input has late_by, led_by already.*withColumnRenamed\('late_by'"):
        late_schema(pa.schema([("led_by", pa.string()), ("late_by", pa.int64())]))


def test_every_kind_of_program_has_the_same_columns() -> None:
    side = JoinSide(("k",), OWN, ("k",), has_late_output=True)
    windows = program_of(wp.TumblingEventTimeWindows.of(10))
    interval, window = IntervalMatch(0, 5), WindowMatch(wp.TumblingEventTimeWindows.of(10))
    schemas = [
        CLOSE.late_schema,
        FIRST.late_schema,
        JoinProgram(interval, "inner", side, side).late_schema("left"),
        JoinProgram(window, "inner", side, side).late_schema("right"),
        windows.side_outputs[0].schema,
    ]
    assert [schema.names[-5:] for schema in schemas] == [WHY] * 5
    assert [schema.names[-6] for schema in schemas[3:]] == ["windows_missed"] * 2


@pytest.mark.parametrize("engine", [None, "reference"])
def test_a_row_of_windows_says_the_watermark_that_it_missed_them_under(engine: str | None) -> None:
    program = program_of(wp.TumblingEventTimeWindows.of(10), engine=engine)
    store, clock = MemoryBlobStore(), Clock(29, 0, 3, "rows")
    table = pa.table(
        {
            "k": ["a", "a"],
            "v": pa.array([1, 2], pa.int64()),
            "w": pa.array([1, 2], pa.int32()),
            TIME: pa.array([12, 31], pa.int64()),
            PARTITION: pa.array([0, 0], pa.int32()),
            POSITION: pa.array([0, 1], pa.int64()),
        }
    )
    output = make_engine(program).run(store, [table], clock)
    (late,) = (each for number, each in output.tables if number == LATE)
    why = {"dropped": True, "watermark": at(30), "late_by": 18, "watermark_delay": 3, "led_by": "rows"}
    assert late.to_pylist() == [{"k": "a", "v": 1, "w": 1, "windows_missed": [{"start": at(10), "end": at(20)}], **why}]
    assert clock.watermark > MIN
