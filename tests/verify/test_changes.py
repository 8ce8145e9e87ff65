"""Programs that change in the middle of a stream: random ones, and what open sessions become."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from tests.examples import seeds
from verify.fuzz import changes
from verify.fuzz.columns import COLUMNS
from verify.fuzz.comparison import difference
from verify.fuzz.windowed_programs import Distance, program_of
from verify.fuzz.windowed_streams import random_stream
from windowpane import aggregates as agg
from windowpane.engines.changes import Verdict
from windowpane.engines.program import MAIN, Program
from windowpane.engines.protocol import Clock
from windowpane.errors import WindowpaneError
from windowpane.hidden_columns import TIME
from windowpane.planning.changing import Held, continued
from windowpane.planning.engines import make_engine
from windowpane.state.memory import MemoryBlobStore
from windowpane.windowing.assigners import EventTimeSessionWindows, GlobalWindows, TumblingEventTimeWindows
from windowpane.windowing.evictors import CountEvictor, TimeEvictor
from windowpane.windowing.times import MAX, MIN
from windowpane.windowing.triggers import CountTrigger, DeltaTrigger, PurgingTrigger


@pytest.mark.parametrize("seed", seeds(60))
def test_a_changed_program_gives_what_both_give_alone(seed: int) -> None:
    outcome = changes.run(seed)
    assert outcome.differences == [], outcome.program


def test_sessions_under_a_count_of_another_size_count_on_in_both_engines() -> None:
    """The engine of sessions began counts anew, where the diff says that they go on."""
    outcome = changes.run(910218)
    assert outcome.differences == [], outcome.program


@pytest.mark.parametrize(("watermark", "live"), [(15, [0, 1]), (35, [1]), (40, [])])
def test_a_program_stays_until_rows_before_its_end_are_late_for_the_next_one_too(watermark: int, live: list[int]) -> None:
    """The second of three programs waits 20 longer than the first, whose last window ends at 10; its own last one ends at 20."""

    def tumbling(size: int, lateness: int) -> Program:
        assigner = TumblingEventTimeWindows.of(size)
        return program_of(assigner, {"rows": agg.count()}, ("k",), window_bound=pa.int64(), allowed_lateness=lateness)

    held = Held(((tumbling(10, 0).description, MIN), (tumbling(10, 20).description, 10)), watermark=watermark, latest=16)
    going_on, report = continued(tumbling(5, 0), held)
    assert isinstance(going_on, Program)
    assert (report.cut, going_on.generation) == (20, 2)
    assert [each.generation for each in going_on.earlier] == live


def sessions(gap: int, lateness: int, engine: str | None = None) -> Program:
    calls = {"n": agg.count(), "total": agg.sum("n"), "top": agg.max("d")}
    parts: dict[str, Any] = {} if engine is None else {"engine": engine}
    return program_of(EventTimeSessionWindows(gap), calls, ("k",), window_bound=pa.int64(), allowed_lateness=lateness, **parts)


class Bucket:
    def __init__(self, program: Program) -> None:
        self.program, self.store = program, MemoryBlobStore()

    def run(self, parts: Any, watermark: int) -> list[dict[str, Any]]:
        output = make_engine(self.program).run(self.store, list(parts), Clock(watermark, 0))
        return [row for number, table in output.tables if number == MAIN for row in table.to_pylist()]


@pytest.mark.parametrize("seed", seeds(60))
def test_open_sessions_keep_their_end_and_later_rows_have_the_new_gap_and_lateness(seed: int) -> None:
    """The reference operator, whose program is replaced between two elements, says what that means."""
    draw = Random(seed)
    gaps, lateness = draw.sample(range(1, 12), 2), draw.choice([0, 3])
    now = lateness + draw.choice([0, 0, 5])
    old, new = sessions(gaps[0], lateness), sessions(gaps[1], now)
    bucket = Bucket(old)
    oracle = Bucket(replace(sessions(gaps[0], lateness, "reference"), description={}))
    stream = random_stream(draw, old)
    if any(part[TIME].null_count for batch in stream for part in batch.parts):
        return  # such a row is an error
    point = draw.randint(1, max(1, len(stream) - 1))
    for number, batch in enumerate(stream):
        if number == point:
            blob = bucket.store.get("header")
            if blob is None:
                return
            held = Held.of([("header", blob)], batch.watermark, MAX - 1)
            assert held is not None
            going_on, report = continued(new, held)
            assert report.verdict is Verdict.SAFE
            assert report.cut is None
            assert isinstance(going_on, Program)
            bucket.program = going_on
            oracle.program = replace(sessions(gaps[1], now, "reference"), description={})
        try:
            expected = oracle.run(batch.parts, batch.watermark)
        except WindowpaneError:  # near the ends of time
            return
        got = bucket.run(batch.parts, batch.watermark)
        assert difference(expected, got) is None, f"batch {number}"


def counted(trigger: Any, evictor: Any, engine: str | None = None, assigner: Any = None) -> Program:
    calls = {"n": agg.count(), "total": agg.sum("n"), "names": agg.collect_list("s")}
    parts: dict[str, Any] = {} if engine is None else {"engine": engine}
    return program_of(
        assigner or GlobalWindows.create(),
        calls,
        ("k",),
        window_bound=pa.int64(),
        columns=COLUMNS,
        trigger=trigger,
        evictor=evictor,
        **parts,
    )


@pytest.mark.parametrize("engine", [None, "reference"])
@pytest.mark.parametrize("seed", seeds(60))
def test_sizes_of_counts_distances_and_evictors_count_from_the_next_row_on(seed: int, engine: str | None) -> None:
    """The reference operator, whose program is replaced between two elements, says what that means."""
    draw = Random(seed)
    one, other = draw.sample(range(1, 7), 2)
    kind, assigner = draw.choice(["count", "purging", "delta", "evictor", "session"]), None
    evictors: list[Any] = [None, None]
    triggers: list[Any]
    if kind == "delta":
        triggers = [DeltaTrigger.of(size, Distance()) for size in (one, other)]
    elif kind == "session":
        assigner, triggers = EventTimeSessionWindows(draw.randint(2, 9)), [None, None]
        evictors = [CountEvictor.of(size, draw.random() < 0.5) for size in (one, other)]
        evictors[1] = replace(evictors[1], do_evict_after=evictors[0].do_evict_after)
    elif kind == "evictor":
        every, by_time, after = draw.randint(1, 4), draw.random() < 0.5, draw.random() < 0.5
        triggers = [CountTrigger.of(every)] * 2
        sizes = draw.sample([one, other, 0], 2)
        evictors = [TimeEvictor.of(size, after) if by_time else CountEvictor.of(size, after) for size in sizes]
    else:
        triggers = [CountTrigger.of(size) for size in (one, other)]
        triggers = [PurgingTrigger.of(each) for each in triggers] if kind == "purging" else triggers
    old, new = (counted(*each, engine, assigner) for each in zip(triggers, evictors, strict=True))
    oracles = [replace(counted(*each, "reference", assigner), description={}) for each in zip(triggers, evictors, strict=True)]
    bucket, oracle = Bucket(old), Bucket(oracles[0])
    stream = random_stream(draw, old, COLUMNS)
    point = draw.randint(1, max(1, len(stream) - 1))
    for number, batch in enumerate(stream):
        if number == point:
            blob = bucket.store.get("header")
            held = None if blob is None else Held.of([("header", blob)], batch.watermark, MAX - 1)
            if held is None:
                return
            going_on, report = continued(new, held)
            if report.verdict is Verdict.REFUSED:  # pieces of counts with an evictor, of another length or of all elements
                assert kind == "evictor"
                return
            assert report.verdict is Verdict.ACCEPT
            assert isinstance(going_on, Program)
            bucket.program = going_on
            oracle.program = oracles[1]
        try:
            expected = oracle.run(batch.parts, batch.watermark)
        except WindowpaneError:
            return
        assert difference(expected, bucket.run(batch.parts, batch.watermark)) is None, f"batch {number}, {kind} {one} {other}"


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("sizes", [(0, 3), (3, 0)])
def test_panes_that_keep_no_rows_behind_a_firing_cannot_evict_some(sizes: tuple[int, int], after: bool) -> None:
    trigger = CountTrigger.of(2)
    for engine, verdict in ((None, Verdict.REFUSED), ("reference", Verdict.ACCEPT)):
        old, new = (counted(trigger, CountEvictor.of(size, after), engine) for size in sizes)
        assert old.engine == new.engine == (engine or "panes")
        assert continued(new, Held(((old.description, 0),)))[1].verdict is verdict


REFUSED = {
    "keys": {"keys": ("n",)},
    "kind of windows": {"assigner": EventTimeSessionWindows(5)},
}


@pytest.mark.parametrize("change", REFUSED.values(), ids=REFUSED)
def test_what_state_cannot_go_on_under_is_refused(change: dict[str, Any]) -> None:
    parts: dict[str, Any] = {"assigner": TumblingEventTimeWindows.of(10), "aggregates": {"rows": agg.count()}, "keys": ("k",)}
    old, new = (program_of(window_bound=pa.int64(), **each) for each in (parts, {**parts, **change}))
    _, report = continued(new, Held(((old.description, 0),), latest=7))
    assert report.verdict is Verdict.REFUSED
