"""Filling of gaps on a bucket: both engines beside the definition, in random batches, with a restart after each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from tests.examples import seeds
from verify.sizes import drawn_sizes
from windowpane.engines.filling.engine import FillingEngine
from windowpane.engines.filling.program import FillingProgram
from windowpane.engines.filling.reference import FillingReferenceEngine
from windowpane.engines.program import WINDOW_END, WINDOW_START
from windowpane.engines.protocol import BucketOutput, Clock
from windowpane.errors import ChangedPlanError, GapTooLongError
from windowpane.hidden_columns import FIRING_WATERMARK, PARTITION, POSITION, TIME
from windowpane.state.memory import MemoryBlobStore
from windowpane.windowing.times import MAX, MIN

SECOND = 1_000_000
MAIN_SCHEMA = pa.schema(
    [
        ("k", pa.string()),
        (WINDOW_START, pa.timestamp("us", "UTC")),
        (WINDOW_END, pa.timestamp("us", "UTC")),
        ("n", pa.int64()),
        ("v", pa.float64()),
        (TIME, pa.int64()),
        (FIRING_WATERMARK, pa.int64()),
    ]
)
FIVE = FillingProgram(("k",), MAIN_SCHEMA, size=10, step=10, limit=5, previous=("v",), constants=(("n", 0),))
NULL = replace(FIVE, previous=(), constants=())
ENGINES = [FillingReferenceEngine, FillingEngine]

Result = tuple[str | None, int, int, float | None, int]
"""Key, start, n, v, and the watermark under which the window emitted it."""


class Bucket:
    """An engine built anew for every batch, on bytes that a store was saved as."""

    def __init__(self, engine: Callable[[FillingProgram], Any], program: FillingProgram) -> None:
        self.engine, self.program = engine, program
        self.saved = MemoryBlobStore().snapshot()

    def run(self, results: Sequence[Result], watermark: int) -> BucketOutput:
        store = MemoryBlobStore()
        store.restore(self.saved)
        rows = [
            {
                "k": k,
                WINDOW_START: start,
                WINDOW_END: start + self.program.size,
                "n": n,
                "v": v,
                TIME: start + self.program.size - 1,
                FIRING_WATERMARK: under,
                PARTITION: 0,
                POSITION: number,
            }
            for number, (k, start, n, v, under) in enumerate(results)
        ]
        plain = [(each.name, each.type if each.name in ("k", "v") else pa.int64()) for each in MAIN_SCHEMA]
        table = pa.Table.from_pylist(rows, schema=pa.schema([*plain, (PARTITION, pa.int32()), (POSITION, pa.int64())]))
        output: BucketOutput = self.engine(self.program).run(store, [table] if rows else [], Clock(watermark, 0))
        self.saved = store.snapshot()
        return output


def shown(output: BucketOutput) -> list[tuple[Any, ...]]:
    """Return key, start, n and v of what was emitted."""
    tables = [table for _, table in output.tables]
    starts = [table.set_column(1, WINDOW_START, table[WINDOW_START].cast(pa.int64())) for table in tables]
    return [tuple(row.values()) for table in starts for row in table.select(["k", WINDOW_START, "n", "v"]).to_pylist()]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_silent_key_has_a_result_for_each_window_up_to_the_limit(engine: Any) -> None:
    bucket = Bucket(engine, replace(FIVE, limit=2))
    assert shown(bucket.run([("a", 0, 3, 1.5, MIN), (None, 0, 1, None, MIN)], 9)) == [("a", 0, 3, 1.5), (None, 0, 1, None)]
    assert shown(bucket.run([], 18)) == []
    assert sorted(shown(bucket.run([], 19)), key=repr) == [("a", 10, 0, 1.5), (None, 10, 0, None)]
    output = bucket.run([("a", 20, 1, 2.0, 19)], 29)
    assert sorted(shown(output), key=repr) == [("a", 20, 1, 2.0), (None, 20, 0, None)]
    assert shown(bucket.run([], 1000)) == [("a", 30, 0, 2.0), ("a", 40, 0, 2.0)]
    assert bucket.run([], 1001).counters.open_windows == 0


@pytest.mark.parametrize("engine", ENGINES)
def test_a_late_result_refines_a_filled_window_and_those_behind_it(engine: Any) -> None:
    bucket = Bucket(engine, replace(FIVE, allowed_lateness=100))
    bucket.run([("a", 0, 3, 1.0, MIN)], 9)
    assert shown(bucket.run([], 39)) == [("a", 10, 0, 1.0), ("a", 20, 0, 1.0), ("a", 30, 0, 1.0)]
    assert shown(bucket.run([("a", 10, 1, 7.0, 39)], 39)) == [("a", 10, 1, 7.0), ("a", 20, 0, 7.0), ("a", 30, 0, 7.0)]
    assert shown(bucket.run([("a", 0, 4, 2.0, 39)], 49)) == [("a", 0, 4, 2.0), ("a", 40, 0, 7.0)]
    nulls = Bucket(engine, replace(NULL, allowed_lateness=100))
    nulls.run([("a", 0, 3, 1.0, MIN)], 59)
    assert shown(nulls.run([], 79)) == []
    assert shown(nulls.run([("a", 20, 1, 7.0, 79)], 79)) == [("a", 20, 1, 7.0), ("a", 60, None, None), ("a", 70, None, None)]


@pytest.mark.parametrize("engine", ENGINES)
def test_forever_ends_with_the_stream(engine: Any) -> None:
    bucket = Bucket(engine, replace(FIVE, limit=None))
    bucket.run([("a", 0, 3, 1.0, MIN)], 9)
    assert len(shown(bucket.run([], 1009))) == 100
    assert shown(bucket.run([("a", 1030, 1, 2.0, 1009)], MAX)) == [("a", 1030, 1, 2.0), ("a", 1010, 0, 1.0), ("a", 1020, 0, 1.0)]


def test_a_gap_that_nobody_means_is_refused() -> None:
    bucket = Bucket(FillingEngine, replace(FIVE, limit=None))
    bucket.run([("a", 0, 3, 1.0, MIN)], 9)
    with pytest.raises(GapTooLongError, match="fill 20000000 windows of key 'a' at once, from that of 1970-01-01"):
        bucket.run([], 200_000_009)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_changed_fill_is_named(engine: Any) -> None:
    bucket = Bucket(engine, replace(FIVE, description={"kind": "filling", "until": 5}))
    bucket.run([("a", 0, 3, 1.0, MIN)], 9)
    bucket.program = replace(FIVE, limit=6, description={"kind": "filling", "until": 6})
    with pytest.raises(ChangedPlanError, match="until"):
        bucket.run([], 19)


@pytest.mark.parametrize("seed", seeds(150))
def test_random_batches(seed: int) -> None:
    """Both engines emit the same, and what holds at the end is what the definition gives for all results at once."""
    draw = Random(seed)
    step = draw.choice([5, 10, 15])
    program = replace(
        draw.choice([FIVE, NULL]), step=step, limit=draw.choice([1, 2, 7, None]), allowed_lateness=draw.choice([0, 20, 60])
    )
    buckets = [Bucket(engine, program) for engine in ENGINES]
    final: dict[tuple[str | None, int], tuple[Any, ...]] = {}
    seen: dict[str | None, dict[int, tuple[int, float | None]]] = defaultdict(dict)
    watermark = draw.choice([MIN, 0])
    with drawn_sizes(seed):
        for _ in range(draw.randint(2, 8)):
            before, watermark = watermark, max(watermark, 0) + draw.choice([0, 3, 10, 40, 120])
            oldest = before - program.allowed_lateness - program.size + 2 if before > MIN else 0
            starts = [start for start in range(0, watermark, step) if oldest <= start <= watermark - program.size + 1]
            results: list[Result] = []
            for start in draw.sample(starts, min(len(starts), draw.randint(0, 3))):
                for key in draw.sample(["a", "b", None], draw.randint(1, 3)):
                    value = (draw.randint(1, 9), draw.choice([None, 1.5, 2.5]))
                    results.append((key, start, *value, before))
                    seen[key][start] = value
            outputs = [shown(bucket.run(results, watermark)) for bucket in buckets]
            assert sorted(outputs[0], key=repr) == sorted(outputs[1], key=repr)
            final |= {(key, start): values for key, start, *values in map(tuple, outputs[1])}
    assert {at: tuple(values) for at, values in final.items()} == expected(program, seen, watermark)


def expected(program: FillingProgram, seen: Any, watermark: int) -> dict[Any, tuple[Any, ...]]:
    """Return the last result of each key and window, window by window."""
    found: dict[Any, tuple[Any, ...]] = {}
    for key, results in seen.items():
        for start in range(min(results), watermark - program.size + 2, program.step):
            last = max(each for each in results if each <= start)
            if start == last:
                found[key, start] = results[start]
            elif program.limit is None or start - last <= program.limit * program.step:
                found[key, start] = (0, results[last][1]) if program.previous else (None, None)
    return found
