"""A watermark of each key: a bucket of many keys is as many buckets of one, each under the watermark of its own rows."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from random import Random
from typing import Any

import pytest
from hypothesis import assume, given, note, settings
from hypothesis import strategies as st

from tests.examples import examples
from verify.fuzz.functions import late_of, program_of, random_spec, results_of, run_batch
from verify.fuzz.windowed_programs import time_unit
from verify.fuzz.windowed_streams import SmallBatch as Batch
from verify.fuzz.windowed_streams import small_stream
from windowpane.engines.program import Program
from windowpane.engines.protocol import BucketOutput
from windowpane.errors import WindowpaneError
from windowpane.state.memory import MemoryBlobStore
from windowpane.windowing.assigners import EventTimeSessionWindows, TumblingEventTimeWindows, WindowStagger
from windowpane.windowing.functions import WindowFunctionSpec
from windowpane.windowing.spec import WindowSpec
from windowpane.windowing.times import MIN
from windowpane.windowing.triggers import EventTimeTrigger

AS_ROW = WindowFunctionSpec.apply(lambda key, window, rows: [{"value": str([row["n"] for row in rows])}])
TEN = WindowSpec(TumblingEventTimeWindows(10), AS_ROW, EventTimeTrigger())
ALIGNED = WindowStagger.ALIGNED
Seen = tuple[list[Any], list[Any]]


def by_key(spec: WindowSpec, delay: int = 0) -> Program:
    return dataclasses.replace(program_of(spec), key_delay=delay)


def run_through(program: Program, *batches: Sequence[tuple[str, int, int]]) -> list[Seen]:
    store = MemoryBlobStore()
    return [seen(run_batch(program, store, Batch(MIN, 0, tuple(batch)))) for batch in batches]


def seen(*outputs: BucketOutput) -> Seen:
    results = [each for output in outputs for each in results_of(output)]
    return sorted(results, key=repr), sorted((each for output in outputs for each in late_of(output)), key=repr)


def test_a_key_that_is_ahead_makes_no_other_late() -> None:
    batches = run_through(by_key(TEN), [("a", 1, 35), ("b", 2, 3)], [("b", 3, 4), ("a", 4, 5)])
    assert batches == [([], []), ([], [("a", 4, True, [(0, 10)])])]


def test_the_windows_of_a_key_fire_in_the_batch_that_completes_them() -> None:
    batches = run_through(by_key(TEN, delay=2), [("a", 1, 3), ("b", 2, 3)], [("a", 3, 11)], [("a", 4, 9), ("a", 5, 12)])
    assert [results for results, _ in batches] == [[], [], [("a", 0, 10, "[1, 4]")]]


def test_sessions_merge_by_the_clock_of_their_key() -> None:
    sessions = WindowSpec(EventTimeSessionWindows(5), AS_ROW, EventTimeTrigger())
    batches = run_through(by_key(sessions), [("a", 1, 0), ("b", 2, 0)], [("b", 3, 100)], [("a", 4, 4)], [("a", 5, 20)])
    assert [results for results, _ in batches] == [[], [("b", 0, 5, "[2]")], [], [("a", 0, 9, "[1, 4]")]]


def test_clocks_survive_and_the_header_has_none() -> None:
    store, program = MemoryBlobStore(), by_key(TEN)
    run_batch(program, store, Batch(MIN, 0, (("a", 1, 35),)))
    late = run_batch(program, store, Batch(MIN, 0, (("a", 2, 5), ("b", 3, 5))))
    assert late_of(late) == [("a", 2, True, [(0, 10)])]
    assert '"watermark": -9223372036854775808' in str(store.get("header"))


class OneKey:
    """A bucket of one key, under the watermark of its rows."""

    def __init__(self, spec: WindowSpec, delay: int) -> None:
        self._program, self._delay = program_of(spec), delay
        self._store, self._watermark = MemoryBlobStore(), MIN

    def run(self, batch: Batch, key: str | None) -> list[BucketOutput]:
        """Take the key's rows under the watermark of the batches before, then move it; the clock moves once."""
        rows = tuple(row for row in batch.rows if row[0] == key)
        taken = run_batch(self._program, self._store, Batch(self._watermark, batch.processing_time, rows))
        times = [time for _, _, time in rows if time is not None]
        self._watermark = max([self._watermark, *(time - self._delay - 1 for time in times)])
        moved = run_batch(self._program, self._store, Batch(self._watermark, MIN, ()))
        return [taken, moved]


@settings(max_examples=examples(120), deadline=None, print_blob=True)
@given(st.randoms(use_true_random=False))
def test_a_bucket_of_many_keys_is_many_buckets_of_one(draw: Random) -> None:
    spec = random_spec(draw)
    assume(getattr(spec.assigner, "stagger", ALIGNED) is ALIGNED)  # a stagger is of a bucket, not of a key
    unit = time_unit(spec.assigner)
    stream, delay = small_stream(draw, unit=unit), draw.choice([0, 2, 10]) * unit
    note(f"{spec!r}, delay {delay}: {stream!r}")
    keys = list(dict.fromkeys(row[0] for batch in stream for row in batch.rows))
    alone, store, program = {key: OneKey(spec, delay) for key in keys}, MemoryBlobStore(), by_key(spec, delay)
    for batch in stream:
        failed: list[type[WindowpaneError]] = []
        outputs: list[BucketOutput] = []
        for key in keys:
            try:
                outputs += alone[key].run(batch, key)
            except WindowpaneError as error:
                failed.append(type(error))
        together = Batch(MIN, batch.processing_time, batch.rows)
        if failed:
            with pytest.raises(tuple(failed)):
                run_batch(program, store, together)
            return
        assert seen(run_batch(program, store, together)) == seen(*outputs)
