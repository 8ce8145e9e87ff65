"""The plugin: a stream of lists is read batch by batch, a run ends and goes on, disorder is as bounded as it says."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import find, given
from hypothesis import strategies as st

import windowpane as wp
from windowpane.testing import WindowTestHarness
from windowpane.testing.strategies import disordered

SCHEMA = "k string, at timestamp"


def second(number: int) -> datetime:
    return datetime(2024, 1, 1, tzinfo=UTC) + timedelta(seconds=number)


def counts(stream: Any) -> wp.Result:
    late = wp.OutputTag("late")
    windowed = (
        wp.stream(stream, event_time="at", watermark="0 seconds").key_by("k").window(wp.TumblingEventTimeWindows.of("10 s"))
    )
    return windowed.side_output_late_data(late).aggregate(n=wp.count())


@pytest.mark.spark
def test_each_list_is_a_batch_and_a_run_gives_the_rows_of_its_outputs(
    stream_of: Callable[..., Any], run_stream: Callable[..., Any]
) -> None:
    stream = stream_of(
        [[("a", second(1)), ("a", second(2))], [("a", second(25))], [("a", second(3))], [("b", second(90))]], SCHEMA
    )
    assert stream.isStreaming
    ran = run_stream(counts(stream), "main", "late")
    assert [(row.k, row.window_start.second, row.n) for row in ran["main"]] == [("a", 0, 2), ("a", 20, 1)]
    assert [(row.k, row.dropped) for row in ran["late"]] == [("a", True)]


@pytest.mark.spark
def test_a_second_run_goes_on_from_the_checkpoint(
    stream_of: Callable[..., Any], run_stream: Callable[..., Any], tmp_path: Path
) -> None:
    batches = [[("a", second(1))], [("a", second(60))]]
    stream = stream_of(batches, SCHEMA)
    checkpoint = tmp_path / "kept"
    assert [row.n for row in run_stream(counts(stream), checkpoint=checkpoint)["main"]] == [1]
    assert run_stream(counts(stream), checkpoint=checkpoint)["main"] == [], "nothing is new"


@given(disordered(st.integers(), span=100, max_delay=10))
def test_no_row_is_late_under_a_watermark_that_stays_so_far_behind(batches: list[list[tuple[int, int]]]) -> None:
    harness = WindowTestHarness(wp.TumblingEventTimeWindows.of(7))
    highest = 0
    for batch in batches:
        for time, value in batch:
            assert time >= highest - 10
            highest = max(highest, time)
            harness.process_element(value, time)
        harness.process_watermark(highest - 11)
    assert harness.late == []
    harness.process_watermark(1000)
    assert sum(len(record.value) for record in harness.output) == sum(map(len, batches))


def test_late_rows_are_drawn_where_they_are_asked_for() -> None:
    def has_late(batches: list[list[tuple[int, int]]]) -> bool:
        times = [time for batch in batches for time, _ in batch]
        return any(time < max(times[:number], default=0) - 10 for number, time in enumerate(times))

    assert find(disordered(st.just(0), span=100, max_delay=10, late=True), has_late)
