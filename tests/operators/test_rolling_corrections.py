"""Ticks that are emitted again for late rows: the others are untouched, and with corrections it is as if no row had been late."""

from __future__ import annotations

from random import Random
from typing import Any

import pyarrow as pa
import pytest

from tests.examples import seeds
from tests.operators.test_rolling import COLUMNS, KEY, Rows, table_of
from windowpane.aggregates import collect_list, count, max, sum
from windowpane.engines.program import LATE, MAIN
from windowpane.engines.protocol import Clock
from windowpane.engines.rolling.program import RollingProgram
from windowpane.engines.rolling.reference import RollingReferenceEngine
from windowpane.planning.engines import with_engine
from windowpane.state.memory import MemoryBlobStore
from windowpane.windowing.rolling import RollingCall, RollingEmit, RollingSpec, RollingWindow
from windowpane.windowing.times import MIN

Batches = list[tuple[int, Rows]]


def spec_of(corrects: bool, *calls: RollingCall, step: int = 5) -> RollingSpec:
    return RollingSpec(calls, step, RollingEmit.TICK, corrects=corrects)


def call(name: str, aggregate: Any, length: int, exact: bool = True) -> RollingCall:
    return RollingCall(name, aggregate, RollingWindow(length, 5, exact))


def run(spec: RollingSpec, batches: Batches) -> tuple[list[Rows], Rows]:
    """Return what each batch gives, and the late rows; the engine is made anew from bytes before each."""
    program = RollingProgram(spec, KEY, ("key",), COLUMNS, pa.int64(), pa.schema([*KEY, *COLUMNS]))
    store, position, results = MemoryBlobStore(), 0, []
    late: Rows = []
    for watermark, rows in batches:
        restored = MemoryBlobStore()
        restored.restore(store.snapshot())
        store = restored
        output = RollingReferenceEngine(program).run(store, [table_of(rows, position)], Clock(watermark, 0))
        position += len(rows)
        results.append([tuple(row.values()) for tag, table in output.tables if tag == MAIN for row in table.to_pylist()])
        late += [tuple(row.values()) for tag, table in output.tables if tag == LATE for row in table.to_pylist()]
    return results, late


def test_a_late_row_brings_the_ticks_that_it_changes_once_more() -> None:
    spec = spec_of(True, call("n", count(), 10))
    batches: Batches = [(MIN, [("a", 2, 1.0)]), (19, [("a", 5, 1.0), ("a", 7, 1.0)]), (19, [("a", 6, 1.0)]), (24, [])]
    assert run(spec, batches)[0] == [
        [],
        [("a", 4, 1, 0), ("a", 14, 0, 0), ("a", 9, 3, 1), ("a", 14, 2, 1), ("a", 19, 0, 1)],
        [("a", 9, 4, 2), ("a", 14, 3, 2)],
        [],
    ]


def test_the_tick_at_which_a_correction_ends_is_emitted_too() -> None:
    """The row of 12 counts at the ticks of 15 and 20; at that of 25 all is as in the last row in force."""
    spec = spec_of(True, call("top", max("v"), 10))
    batches: Batches = [(MIN, [("a", number, 1.0) for number in range(0, 60, 4)]), (19, [("a", 12, 9.0)]), (24, []), (29, [])]
    assert run(spec, batches)[0][1:] == [[("a", 4, 1.0, 0), ("a", 14, 9.0, 1)], [("a", 24, 1.0, 1)], []]


def test_a_key_of_late_rows_alone_is_emitted_as_corrections() -> None:
    spec = spec_of(True, call("n", count(), 10))
    batches: Batches = [(39, []), (39, [("a", 27, 1.0)]), (44, [])]
    assert run(spec, batches)[0] == [[], [("a", 29, 1, 1), ("a", 39, 0, 1)], []]


def stream(seed: int) -> Batches:
    """Return batches with disorder, of which some rows are behind the watermark and some behind every window."""
    random = Random(seed)
    batches: Batches = []
    watermark, now = MIN, random.randrange(-50, 50)
    for _ in range(random.randrange(2, 8)):
        times = [random.randint(now - random.choice([4, 20, 60]), now) for _ in range(random.randrange(6))]
        rows = [(random.choice("ab"), time, random.choice([None, 0.0, 1.0, 5.0])) for time in times]
        batches.append((watermark, rows))
        now += random.choice([0, 3, 11, 40])
        watermark = now - random.choice([0, 4, 9]) if watermark < now - 9 else watermark
    return [*batches, (now + 200, [])]


def readings(rows: Rows, keys: str, ticks: range) -> dict[tuple[str, int], tuple[Any, ...] | None]:
    """Return what a reader has of each key and tick: of the newest row up to it, the largest revision."""
    latest: dict[tuple[str, int], tuple[Any, ...]] = {}
    for key, as_of, *values, revision in rows:
        assert revision == (latest[key, as_of][-1] + 1 if (key, as_of) in latest else revision)
        latest[key, as_of] = (*values, revision)
    found: dict[tuple[str, int], tuple[Any, ...] | None] = {}
    for key in keys:
        newest = None
        for tick in ticks:
            newest = latest.get((key, tick), newest)
            found[key, tick] = None if newest is None else newest[:-1]
    return found


@pytest.mark.parametrize("seed", seeds(250))
def test_corrected_history_is_that_of_rows_in_time(seed: int) -> None:
    random = Random(seed)
    exact, step = random.random() < 0.5, random.choice([5, 5, 10])
    known = [call("n", count(), 5), call("top", max("v"), 15, exact), call("all", collect_list("v"), 20, exact)]
    known += [call("total", sum("v"), 40, exact)]
    calls = random.sample(known, random.randint(1, 4))
    batches = stream(seed)
    results, late = run(spec_of(True, *calls, step=step), batches)
    corrected = [row for rows in results for row in rows]
    plain, plain_late = run(spec_of(False, *calls, step=step), batches)
    assert [row[:-1] for row in corrected if row[-1] == 0] == [row for rows in plain for row in rows]
    assert late == plain_late
    reach = sorted(each.window.reach for each in calls)[-1]
    accepted = [row for watermark, rows in batches for row in rows if row[1] > watermark - reach]
    assert len(late) == len([row for _, rows in batches for row in rows]) - len(accepted)
    in_time, _ = run(spec_of(False, *calls, step=step), [(MIN, accepted), batches[-1]])
    times = [row[1] for row in accepted]
    if times:
        ticks = range(min(times) // step * step - 1, batches[-1][0] + 1, step)
        wanted = readings([(*row, 0) for rows in in_time for row in rows], "ab", ticks)
        assert readings(corrected, "ab", ticks) == wanted


def test_corrections_are_made_by_the_reference() -> None:
    program = RollingProgram(spec_of(True, call("n", count(), 10)), KEY, ("key",), COLUMNS, pa.int64())
    assert with_engine(program).engine == "rolling reference"
    assert "corrected" in with_engine(program).engine_reason
