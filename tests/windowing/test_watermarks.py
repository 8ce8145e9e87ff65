"""Watermark strategies: what a value says, the rules by hand, and on random streams the definition over all rows there were."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowpane.errors import InvalidDurationError, InvalidSpecError
from windowpane.windowing.times import MIN
from windowpane.windowing.watermarks import SourceMark, WatermarkGenerator, Watermarks, WatermarkState, advance

BOUNDED = Watermarks.bounded(5)
SECOND = 1_000_000

# What a value says.


def test_strategies_print_as_they_are_written() -> None:
    whole = Watermarks.bounded("5 minutes").per_source("partition").with_idleness("1 minute").not_behind_now("1 hour")
    text = "Watermarks.bounded('5 minutes').per_source('partition').with_idleness('1 minute').not_behind_now('1 hour')"
    assert repr(whole) == text
    assert eval(text) == whole
    assert repr(Watermarks.monotonous()) == "Watermarks.monotonous()"
    assert repr(BOUNDED.per_source("s").at_once()) == "Watermarks.bounded('5 microseconds').per_source('s').at_once()"
    assert repr(BOUNDED.per_key()) == "Watermarks.bounded('5 microseconds').per_key()"
    assert repr(Watermarks.punctuated("mark")) == "Watermarks.punctuated('mark')"


def test_strategies_compare_hash_and_travel() -> None:
    assert Watermarks.bounded(0) == Watermarks.monotonous()
    assert Watermarks.of("5 minutes") == Watermarks.bounded("5 minutes")
    assert hash(BOUNDED.per_source("s")) == hash(Watermarks.bounded(5).per_source("s"))
    assert pickle.loads(pickle.dumps(BOUNDED.not_behind_now(7))) == BOUNDED.not_behind_now(7)


def test_spark_makes_what_is_the_latest_of_a_column() -> None:
    assert [BOUNDED.is_sparks, Watermarks.monotonous().is_sparks, Watermarks.punctuated("p").is_sparks] == [True] * 3
    assert not BOUNDED.per_source("s").is_sparks
    assert not BOUNDED.not_behind_now("1 hour").is_sparks
    assert not BOUNDED.at_once().is_sparks


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Watermarks.bounded(-1), r"bounded\(-1\): it cannot be negative"),
        (lambda: Watermarks.of("-1 minute"), "cannot be negative"),
        (lambda: BOUNDED.with_idleness(0), r"with_idleness\(0\): it must be longer than nothing"),
        (lambda: BOUNDED.not_behind_now("-1 hour"), "cannot be negative"),
        (lambda: BOUNDED.per_source(""), "expected the name of a column"),
        (lambda: Watermarks.punctuated(3), "expected the name of a column"),  # type: ignore[arg-type]
        (lambda: Watermarks.of(BOUNDED.with_idleness("1 minute")), "with_idleness alone changes nothing"),
        (lambda: Watermarks.of(BOUNDED.per_key().per_source("s")), "made of the key's rows alone"),
        (lambda: Watermarks.of(BOUNDED.per_key().with_idleness("1 minute")), "made of the key's rows alone"),
        (lambda: Watermarks.of(BOUNDED.per_key().at_once()), "made of the key's rows alone"),
        (lambda: Watermarks.of(Watermarks.punctuated("p").at_once()), "go with bounded and monotonous"),
        (lambda: Watermarks.of(Watermarks.punctuated("p").per_key()), "made of the key's rows alone"),
        (lambda: WatermarkGenerator(BOUNDED.per_key()), "there is none for the whole stream"),
        (lambda: Watermarks.of(Watermarks.punctuated("p").per_source("s")), "go with bounded and monotonous"),
        (lambda: Watermarks.of(Watermarks.punctuated("p").not_behind_now("1 hour")), "go with bounded and monotonous"),
    ],
)
def test_what_cannot_work_is_refused_by_name(make: object, message: str) -> None:
    with pytest.raises(InvalidSpecError, match=message):
        make()  # type: ignore[operator]


def test_what_is_no_duration_is_refused() -> None:
    with pytest.raises(InvalidDurationError):
        Watermarks.bounded("soon")


# The rules by hand: times are microseconds, batches are (latest time by source, clock, run).


def state_after(strategy: Watermarks, *batches: tuple[Mapping[Any, int], int, str]) -> WatermarkState:
    reached = WatermarkState()
    for latest, now, run in batches:
        reached = advance(strategy, reached, latest, now, run)
    return reached


def test_bounded_is_the_latest_less_the_delay_and_does_not_go_back() -> None:
    assert state_after(BOUNDED, ({None: 100}, 0, "r")).watermark == 94
    assert state_after(BOUNDED, ({None: 100}, 0, "r"), ({None: 50}, 1, "r")).watermark == 94
    assert state_after(BOUNDED, ({}, 0, "r")).watermark == MIN


SOURCES = Watermarks.monotonous().per_source("s").with_idleness(10)


def test_the_slowest_source_holds_the_watermark() -> None:
    reached = state_after(SOURCES, ({"a": 100, "b": 40}, 0, "r"), ({"a": 200, "b": 41}, 1, "r"))
    assert (reached.watermark, reached.held_by) == (40, "s b, whose latest row is at 1970-01-01T00:00:00.000041Z")


def test_an_idle_source_is_not_waited_for_until_it_comes_back() -> None:
    busy = [({"a": 100 + clock}, clock, "r") for clock in (5, 9, 10)]
    assert state_after(SOURCES, ({"a": 100, "b": 40}, 0, "r"), *busy[:2]).watermark == 39
    assert state_after(SOURCES, ({"a": 100, "b": 40}, 0, "r"), *busy).watermark == 109
    back = state_after(SOURCES, ({"a": 100, "b": 40}, 0, "r"), *busy, ({"a": 120, "b": 50}, 11, "r"))
    assert back.watermark == 109
    assert back.sources["b"] == SourceMark(50, 0)
    caught_up = advance(SOURCES, back, {"b": 119}, 12, "r")
    assert caught_up.watermark == 118


def test_where_all_sources_are_idle_nothing_is_waited_for() -> None:
    silence: list[tuple[dict[str, int], int, str]] = [({}, clock, "r") for clock in (5, 10, 15)]
    reached = state_after(SOURCES, ({"a": 100, "b": 40}, 0, "r"), *silence)
    assert (reached.watermark, reached.held_by) == (99, "nothing: each s is idle")


def test_time_in_which_the_query_was_stopped_makes_nothing_idle() -> None:
    runs = [({"a": 100 + run}, 1000 * run, f"run {run}") for run in range(1, 5)]
    assert state_after(SOURCES, ({"a": 100, "b": 40}, 0, "run 0"), *runs).watermark == 39


def test_one_long_batch_makes_nothing_idle() -> None:
    first = ({"a": 100, "b": 40}, 0, "r")
    assert state_after(SOURCES, first, ({"a": 101}, 1000, "r")).watermark == 39
    assert state_after(SOURCES, first, ({"a": 101}, 1000, "r"), ({"a": 102}, 2000, "r")).watermark == 101


def test_a_new_source_does_not_move_the_watermark_back() -> None:
    assert state_after(SOURCES, ({"a": 100}, 0, "r"), ({"a": 101, "b": 3}, 1, "r")).watermark == 99


CLOCK = Watermarks.bounded(5).not_behind_now(50)


def test_the_clock_moves_the_watermark_where_rows_do_not() -> None:
    first = ({None: 1000}, 1000, "r")
    assert state_after(CLOCK, first).watermark == 994
    assert state_after(CLOCK, first, ({}, 1044, "r")).watermark == 994
    moved = state_after(CLOCK, first, ({}, 1100, "r"))
    assert (moved.watermark, moved.held_by) == (1049, "the clock, less 50 microseconds")
    assert advance(CLOCK, moved, {None: 1200}, 1201, "r").watermark == 1194


def test_the_clock_waits_until_a_run_has_caught_up() -> None:
    stopped = state_after(CLOCK, ({None: 1000}, 1000, "first"))
    behind = advance(CLOCK, stopped, {None: 1010}, 9000, "second")
    assert behind.watermark == 1004
    assert behind.held_by.endswith("the clock waits until this run has caught up")
    assert advance(CLOCK, behind, {}, 9001, "second").watermark == 8950  # it has read all there was
    assert advance(CLOCK, behind, {None: 8960}, 9001, "second").watermark == 8954  # it has come near
    assert advance(CLOCK, behind, {None: 1020}, 9001, "second").watermark == 1014  # it has not


def test_a_clock_that_is_set_back_moves_nothing_back() -> None:
    moved = state_after(CLOCK, ({None: 1000}, 1000, "r"), ({}, 1100, "r"))
    assert advance(CLOCK, moved, {}, 500, "r").watermark == 1049


# A row at a time.


def test_a_generator_reads_sources_from_rows_and_goes_on_from_a_standing() -> None:
    generator = WatermarkGenerator(Watermarks.monotonous().per_source("s"))
    generator.on_event({"s": 1}, 100)
    generator.on_event({"s": 2}, 60)
    generator.on_event({"s": 1}, 90)
    assert generator.on_periodic_emit(now=0) == 59
    again = WatermarkGenerator(generator.strategy, generator.state, run="second")
    again.on_event({"s": 2}, 80)
    assert again.on_periodic_emit(now=1) == 79


def test_punctuations_are_instants_or_the_rows_own_time() -> None:
    generator = WatermarkGenerator(Watermarks.punctuated("p"))
    for said, timestamp in ((None, 500), (False, 400), (80, 300), (True, 90)):
        generator.on_event({"p": said}, timestamp)
    assert generator.on_periodic_emit(now=0) == 89


# On random streams: the definition, over the whole history.


@dataclass(frozen=True)
class Batch:
    rows: tuple[tuple[str, int], ...]
    passed: int
    restarts: bool


batches = st.lists(
    st.builds(
        Batch,
        st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 200)), max_size=4).map(tuple),
        st.integers(0, 30),
        st.booleans(),
    ),
    max_size=12,
)


def run_through(strategy: Watermarks, history: list[Batch]) -> list[int]:
    reached, now, run = [], 0, 0
    generator = WatermarkGenerator(strategy)
    for batch in history:
        now += batch.passed
        if batch.restarts:
            run += 1
            generator = WatermarkGenerator(strategy, generator.state, f"{run}")
        for source, time in batch.rows:
            generator.on_event({"s": source}, time)
        reached.append(generator.on_periodic_emit(now))
    return reached


strategies = st.builds(
    Watermarks,
    delay=st.integers(0, 20),
    source=st.just("s"),
    idleness=st.none() | st.integers(1, 40),
    behind_now=st.none() | st.integers(0, 60),
)


@given(strategies, batches)
def test_no_watermark_goes_back(strategy: Watermarks, history: list[Batch]) -> None:
    reached = run_through(strategy, history)
    assert reached == sorted(reached)


@given(st.integers(0, 20), batches)
def test_sources_that_are_never_idle_give_the_least_of_their_latest(delay: int, history: list[Batch]) -> None:
    reached = run_through(Watermarks.bounded(delay).per_source("s"), history)
    rows = [row for batch in history for row in batch.rows]
    least = min((max(time for name, time in rows if name == source) for source, _ in rows), default=None)
    assert not reached or reached[-1] >= (MIN if least is None else least - delay - 1)
    seen: list[tuple[str, int]] = []
    expected, floor = [], MIN
    for batch in history:
        seen += batch.rows
        by_source = [max(time for name, time in seen if name == source) for source in {name for name, _ in seen}]
        floor = max(floor, min(by_source) - delay - 1) if by_source else floor
        expected.append(floor)
    assert reached == expected


@given(st.integers(1, 40), batches)
def test_idleness_waits_for_exactly_the_sources_that_were_not_silent_so_long(idleness: int, history: list[Batch]) -> None:
    reached = run_through(Watermarks.monotonous().per_source("s").with_idleness(idleness), history)
    floor, expected = MIN, []
    for number in range(len(history)):
        until = history[: number + 1]
        latest = {source: max(t for b in until for s, t in b.rows if s == source) for b in until for source, _ in b.rows}
        last = {source: max(i for i, b in enumerate(until) if source in dict(b.rows)) for source in latest}
        counted = [0 if b.restarts or i == 0 else min(b.passed, -(-idleness // 2)) for i, b in enumerate(until)]
        awake = [time for source, time in latest.items() if sum(counted[last[source] + 1 :]) < idleness]
        made = min(awake) if awake else max(latest.values(), default=MIN + 1)
        floor = max(floor, made - 1)
        expected.append(floor)
    assert reached == expected


@given(st.integers(0, 20), st.integers(0, 60), batches)
def test_the_clock_is_a_floor_once_a_run_has_caught_up(delay: int, bound: int, history: list[Batch]) -> None:
    reached = run_through(Watermarks.bounded(delay).not_behind_now(bound), history)
    now, floor, near, expected, times = 0, MIN, False, [], []
    for batch in history:
        now += batch.passed
        new = [time for _, time in batch.rows]
        times += new
        near = (near and not batch.restarts) or not new or max(new) >= now - bound
        floor = max([floor, *(time - delay - 1 for time in times), *([now - bound - 1] if near else [])])
        expected.append(floor)
    assert reached == expected
