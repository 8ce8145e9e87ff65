"""The rolling engine's reference on small streams: what an own model of the spec gives, whatever the batches."""

from __future__ import annotations

from random import Random
from typing import Any

import pyarrow as pa
import pytest

from tests.examples import seeds
from windowpane.aggregates import collect_list, count, sum
from windowpane.engines.program import LATE, MAIN
from windowpane.engines.protocol import Clock
from windowpane.engines.rolling.point_in_time import PointInTimeReferenceEngine
from windowpane.engines.rolling.program import IS_LABEL, PointInTimeProgram, RollingProgram
from windowpane.engines.rolling.reference import RollingReferenceEngine
from windowpane.errors import MissingEventTimeError
from windowpane.hidden_columns import PARTITION, POSITION, TIME
from windowpane.state.memory import MemoryBlobStore
from windowpane.windowing.outputs import DELETE, INSERT, UPDATE_POSTIMAGE
from windowpane.windowing.rolling import RollingCall, RollingEmit, RollingSpec, RollingWindow
from windowpane.windowing.times import MAX, MIN

KEY = pa.schema([("key", pa.string())])
COLUMNS = pa.schema([("v", pa.float64()), ("big", pa.bool_())])
Rows = list[tuple[Any, ...]]


def spec_of(emit: str, deletes_empty: bool = False) -> RollingSpec:
    short, long = RollingWindow(5, 5, emit != "changed"), RollingWindow(20, 5, True)
    calls = (
        RollingCall("n", count(), long),
        RollingCall("big", count(), long, "big"),
        RollingCall("values", collect_list("v"), short),
        RollingCall("total", sum("v"), long),
    )
    return RollingSpec(calls, 5, RollingEmit(emit), deletes_empty=deletes_empty)


def table_of(rows: Rows, position: int = 0) -> pa.Table:
    keys, times, values = zip(*rows, strict=True) if rows else ((), (), ())
    columns = {
        "key": pa.array(keys, pa.string()),
        "v": pa.array(values, pa.float64()),
        "big": pa.array([None if value is None else value > 2 for value in values], pa.bool_()),
        TIME: pa.array(times, pa.int64()),
        PARTITION: pa.array([0] * len(rows), pa.int32()),
        POSITION: pa.array(range(position, position + len(rows)), pa.int64()),
    }
    return pa.table(columns)


def run(spec: RollingSpec, batches: list[tuple[int, Rows]], until: int | None = None) -> tuple[list[list[Any]], Rows]:
    program = RollingProgram(spec, KEY, ("key",), COLUMNS, pa.int64(), pa.schema([*KEY, *COLUMNS]), until)
    engine, store = RollingReferenceEngine(program), MemoryBlobStore()
    position, results = 0, []
    late: Rows = []
    for watermark, rows in batches:
        output = engine.run(store, [table_of(rows, position)], Clock(watermark, 0))
        position += len(rows)
        results.append([tuple(row.values()) for tag, table in output.tables if tag == MAIN for row in table.to_pylist()])
        late += [tuple(row.values())[:3] for tag, table in output.tables if tag == LATE for row in table.to_pylist()]
    return results, late


def test_features_go_down_when_rows_leave_and_the_key_goes_with_the_last() -> None:
    results, _ = run(spec_of("changed"), [(MIN, [("a", 1, 5.0)]), (4, []), (9, []), (24, []), (99, [])])
    assert results == [
        [("a", 1, 1, 1, [5.0], 5.0)],
        [],
        [("a", 9, 1, 1, [], 5.0)],
        [("a", 24, 0, 0, [], None)],
        [],
    ]


def test_a_batch_does_not_correct_silent_keys() -> None:
    results, _ = run(spec_of("batch"), [(MIN, [("a", 1, 5.0)]), (99, [])])
    assert results == [[("a", 1, 1, 1, [5.0], 5.0)], []]


def test_keys_without_rows_are_deleted_where_that_is_asked_for() -> None:
    batches: list[tuple[int, Rows]] = [(MIN, [("a", 1, 5.0)]), (3, [("a", 2, None)]), (99, [])]
    results, _ = run(spec_of("changed", deletes_empty=True), batches)
    assert [row[-1] for rows in results for row in rows] == [INSERT, UPDATE_POSTIMAGE, DELETE]


def test_a_row_that_no_window_sees_is_late() -> None:
    results, late = run(spec_of("changed"), [(100, [("a", 75, 1.0), ("a", 76, 2.0)])])
    assert late == [("a", 1.0, False)]
    assert [row[1] for row in results[0]] == [76]


def test_a_row_behind_the_watermark_counts_from_the_next_tick_on() -> None:
    batches = [(MIN, [("a", 12, 1.0)]), (19, [("a", 11, 2.0)]), (24, []), (34, [])]
    results, _ = run(spec_of("tick"), batches)
    assert [(row[1], row[2]) for rows in results for row in rows] == [(14, 1), (19, 1), (24, 2), (34, 0)]


def test_rows_of_equal_time_stand_in_order_of_arrival() -> None:
    results, _ = run(spec_of("each"), [(MIN, [("a", 3, 2.0), ("a", 3, 1.0), ("a", 1, 9.0)]), (9, [])])
    assert [row[4] for row in results[1]] == [[9.0], [9.0, 2.0, 1.0], [9.0, 2.0, 1.0]]


def test_a_row_without_a_time_is_refused() -> None:
    with pytest.raises(MissingEventTimeError, match="'a'"):
        run(spec_of("changed"), [(MIN, [("a", None, 1.0)])])


def test_the_end_of_a_static_input_is_where_it_says() -> None:
    results, _ = run(spec_of("tick"), [(MIN, [("a", 1, 5.0)]), (MAX, [])], until=9)
    assert [row[1] for row in results[1]] == [4, 9]


def stream(seed: int) -> list[tuple[int, Rows]]:
    """Return batches with disorder, of which no row is behind the watermark."""
    random = Random(seed)
    batches, watermark, now = [], MIN, random.randrange(-50, 50)
    for _ in range(random.randrange(2, 8)):
        low = now - 8 if watermark == MIN else max(now - 8, watermark + 1)
        times = [random.randint(low, max(now, low)) for _ in range(random.randrange(6))]
        values = [random.choice([None, 0.0, 1.0, 5.0]) for _ in times]
        batches.append((watermark, [(random.choice("ab"), time, value) for time, value in zip(times, values, strict=True)]))
        now += random.choice([0, 3, 11, 40])
        watermark = max(watermark, now - random.choice([4, 9]))
    return [*batches, (now + 100, [])]


def at(spec: RollingSpec, rows: Rows, labels: Rows) -> Rows:
    """Return the features of labels (key, time), rows at that time included."""
    program = PointInTimeProgram(spec, KEY, COLUMNS, pa.schema([*KEY, (TIME, pa.int64())]), ("key", "time"), is_inclusive=True)
    table = pa.concat_tables([table_of(rows), table_of([(*label, None) for label in labels], len(rows))])
    table = table.append_column(IS_LABEL, pa.array([False] * len(rows) + [True] * len(labels)))
    output = PointInTimeReferenceEngine(program).run(MemoryBlobStore(), [table], Clock(MIN, 0))
    return [tuple(row.values()) for _, found in output.tables for row in found.to_pylist()]


@pytest.mark.parametrize("seed", seeds(60))
@pytest.mark.parametrize("emit", ["each", "tick"])
def test_what_was_emitted_is_what_labels_of_its_instant_are_given(emit: str, seed: int) -> None:
    """The law that keeps serving and training together."""
    spec, batches = spec_of(emit), stream(seed)
    results = [row for rows in run(spec, batches)[0] for row in rows]
    rows = [row for _, rows in batches for row in rows]
    assert len(results) >= (len(rows) if emit == "each" else len({row[0] for row in rows}))
    assert at(spec, rows, [row[:2] for row in results]) == results


@pytest.mark.parametrize("seed", seeds(60))
def test_ticks_do_not_depend_on_batches(seed: int) -> None:
    batches = stream(seed)
    rows = [row for _, rows in batches for row in rows]
    several = [row for rows in run(spec_of("tick"), batches)[0] for row in rows]
    at_once = [row for rows in run(spec_of("tick"), [(MIN, rows), batches[-1]])[0] for row in rows]
    assert sorted(several, key=str) == sorted(at_once, key=str)
