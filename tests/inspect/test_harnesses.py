"""Inspections of harnesses: every figure is what the harness itself says of its operator."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import windowpane as wp
from windowpane.errors import InvalidSpecError
from windowpane.inspect.tables import TABLES
from windowpane.operators.window.contents import CONTENTS
from windowpane.state.codec import encode_key
from windowpane.testing import WindowTestHarness
from windowpane.windowing.windows import TimeWindow

SECOND = 1_000_000
TEN = wp.TumblingEventTimeWindows.of("10 seconds")
SLIDING = wp.SlidingEventTimeWindows.of("10 seconds", "5 seconds")
SESSIONS = wp.EventTimeSessionWindows.with_gap("3 seconds")
SUM = wp.WindowFunctionSpec.reduce(lambda one, other: one + other)
HARNESSES: dict[str, dict[str, Any]] = {
    "tumbling": {"assigner": TEN},
    "sliding": {"assigner": SLIDING},
    "sessions": {"assigner": SESSIONS},
    "reduced": {"assigner": TEN, "function": SUM},
    "reduced sessions": {"assigner": SESSIONS, "function": SUM},
    "kept on": {"assigner": TEN, "allowed_lateness": "20 seconds"},
    "counting": {"assigner": TEN, "trigger": wp.CountTrigger.of(3)},
    "global": {"assigner": wp.GlobalWindows.create(), "trigger": wp.CountTrigger.of(4)},
    "evicting": {"assigner": TEN, "evictor": wp.CountEvictor.of(2)},
    "by the clock": {"assigner": wp.TumblingProcessingTimeWindows.of("10 seconds")},
}


@pytest.fixture(params=HARNESSES)
def harness(request: pytest.FixtureRequest) -> WindowTestHarness:
    made = WindowTestHarness(**HARNESSES[request.param])
    for number in range(24):
        if number == 12:
            made.process_watermark(8 * SECOND)
            made.set_processing_time(7 * SECOND)
        made.process_element(number, number * SECOND, ("JFK", "EWR", "LGA")[number % 3])
    made.process_watermark(14 * SECOND)
    return made


def _panes(harness: WindowTestHarness) -> list[tuple[str, Any]]:
    """Return the keys and windows that hold something, as the harness says."""
    found = set[tuple[str, Any]]()
    for key, window, name in harness.state_entries():
        if name == CONTENTS:
            live = harness.operator.live_windows(key, encode_key(key)) if harness.spec.merges else None
            found |= {(key, window)} if live is None else {(key, each) for each, of in live.items() if of == window}
    return sorted(found, key=repr)


def _bounds(window: Any) -> tuple[Any, Any]:
    return (window.start, window.end) if isinstance(window, TimeWindow) else (None, None)


def _micros(column: pa.ChunkedArray) -> list[int | None]:
    values: list[int | None] = column.cast(pa.int64()).to_pylist()
    return values


def test_windows_and_keys_are_those_that_hold_something(harness: WindowTestHarness) -> None:
    panes, found = _panes(harness), wp.inspect(harness)
    counts: dict[Any, int] = {}
    for _, window in panes:
        counts[_bounds(window)] = counts.get(_bounds(window), 0) + 1
    starts, ends = (_micros(found.windows[name]) for name in ("start", "end"))
    assert dict(zip(zip(starts, ends, strict=True), found.windows["keys"].to_pylist(), strict=True)) == counts
    of_keys = {row["key"]: row["windows"] for row in found.keys.to_pylist()}
    assert of_keys == {key: sum(each == key for each, _ in panes) for key in {each for each, _ in panes}}


def test_contents_are_those_of_the_harness(harness: WindowTestHarness) -> None:
    shown = wp.inspect(harness).contents()
    bounds = zip(*(_micros(shown[name]) for name in ("window_start", "window_end")), strict=True)
    found = dict(zip(zip(shown["key"].to_pylist(), bounds, strict=True), shown.to_pylist(), strict=True))
    panes = _panes(harness)
    assert set(found) == {(key, _bounds(window)) for key, window in panes}
    for key, window in panes:
        held, row = harness.window_contents(key, window), found[key, _bounds(window)]
        if harness.spec.function.accumulate is not None:
            assert (row["partials"], row["result"]) == (1, repr(held[0]))
        else:
            kept = held[-2:] if harness.spec.evictor is not None else held
            assert (row["elements"], row["result"]) == (len(held), repr(kept))
        alone = wp.inspect(harness).contents(key=key)
        assert set(alone["key"].to_pylist()) == {key}


def test_timers_and_clocks_are_those_of_the_harness(harness: WindowTestHarness) -> None:
    found = wp.inspect(harness)
    (mark,) = found.watermarks.to_pylist()
    assert (mark["holds_back"], mark["watermark"].timestamp()) == (True, pytest.approx((harness.watermark + 1) / SECOND))
    own = [timer.time for timer in [*harness.event_time_timers, *harness.processing_time_timers]]
    shown = {at for at in _micros(found.timers["time"]) if at is not None}
    assert {at for at in own if at < 1 << 60} <= shown


def test_looking_changes_nothing(harness: WindowTestHarness) -> None:
    before = harness.snapshot(), harness.emitted, harness.counters
    found = wp.inspect(harness)
    assert {name: found.table(name).schema.names for name in TABLES} == {name: of.columns.names for name, of in TABLES.items()}
    found.contents()
    assert (harness.snapshot(), harness.emitted, harness.counters) == before


def test_late_elements_are_counted_as_an_engine_counts_them() -> None:
    harness = WindowTestHarness(TEN, allowed_lateness="5 seconds")
    harness.process_element(1, 3 * SECOND, "JFK")
    harness.process_watermark(12 * SECOND)
    harness.process_element(2, 4 * SECOND, "JFK")
    harness.process_watermark(30 * SECOND)
    harness.process_element(3, 5 * SECOND, "EWR")
    (row,) = wp.inspect(harness).late.to_pylist()
    assert (row["rows"], row["dropped"], row["refined"], row["example_key"]) == (1, 1, 0, "EWR")
    assert row["at_least"] <= (30 * SECOND - (10 * SECOND - 1)) // SECOND < row["less_than"]


def test_the_source_that_is_behind_holds_the_watermark_back() -> None:
    strategy = wp.Watermarks.bounded("2 seconds").per_source("airline").with_idleness("1 minute")
    harness = WindowTestHarness(TEN, watermarks=strategy)
    for airline, at in (("AA", 50), ("UA", 20), ("DL", 20), (None, 90)):
        harness.process_element({"airline": airline}, at * SECOND, "JFK")
    harness.finish_batch()
    rows = wp.inspect(harness).watermarks.to_pylist()
    assert {row["name"]: row["holds_back"] for row in rows} == {"AA": False, "UA": True, "DL": True, "NULL": False}
    assert {row["name"]: row["event_time_seen"].timestamp() for row in rows} == {"AA": 50, "UA": 20, "DL": 20, "NULL": 90}
    assert {row["watermark"].timestamp() for row in rows} == {18.0}
    assert harness.watermark == 18 * SECOND - 1


def test_where_no_source_holds_it_back_it_says_what_does() -> None:
    strategy = wp.Watermarks.bounded("2 seconds").per_source("airline").with_idleness("1 minute")
    harness = WindowTestHarness(TEN, watermarks=strategy)
    harness.process_element({"airline": "AA"}, 50 * SECOND, "JFK")
    harness.finish_batch()
    for minute in range(1, 5):
        harness.set_processing_time(minute * 60 * SECOND)
    idle, said = wp.inspect(harness).watermarks.to_pylist()
    assert (idle["name"], idle["holds_back"], idle["idle_since"] is not None) == ("AA", False, True)
    assert (said["name"], said["holds_back"]) == ("nothing: each airline is idle", True)


def test_keys_of_several_columns_and_of_none() -> None:
    harness = WindowTestHarness(TEN)
    harness.process_element(1, SECOND, ("JFK", 7))
    harness.process_element(2, SECOND, ("JFK", None))
    shown = wp.inspect(harness).contents()
    assert shown.select(["key_1", "key_2"]).to_pylist() == [{"key_1": "JFK", "key_2": None}, {"key_1": "JFK", "key_2": 7}]
    alone = WindowTestHarness(TEN)
    alone.process_element(1, SECOND)
    assert wp.inspect(alone).windows["keys"].to_pylist() == [1]
    mixed = WindowTestHarness(TEN)
    mixed.process_element(1, SECOND, "JFK")
    mixed.process_element(1, SECOND, 7)
    with pytest.raises(InvalidSpecError, match="several types, int, str"):
        wp.inspect(mixed)


def test_a_side_output_and_an_error_of_a_firing_that_is_only_looked_at() -> None:
    class Sided(wp.ProcessWindowFunction):
        def process(self, key: Any, context: wp.ProcessContext, elements: Any) -> Any:
            context.output(wp.OutputTag("seen"), key)
            return [100 // (len(elements) - 1)]

    harness = WindowTestHarness(TEN, function=wp.WindowFunctionSpec.full(Sided()))
    harness.process_element(1, SECOND, "JFK")
    assert "a firing now would fail" in wp.inspect(harness).contents()["in_words"][0].as_py()
    harness.process_element(1, SECOND, "JFK")
    assert wp.inspect(harness).contents()["result"].to_pylist() == ["100"]
    assert harness.emitted == []
