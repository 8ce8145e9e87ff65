"""Functions that change in place what they are given, and what they have emitted: state and results stay as they were.

Source: Flink's rules of object reuse. Unless that is enabled, a function may change the objects that it is given, and emit one
object again after it has changed it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import windowpane as wp
from windowpane.testing import WindowTestHarness
from windowpane.windowing.functions import WindowFunctionSpec

TEN = wp.TumblingEventTimeWindows.of(10)
OVERLAPPING = wp.SlidingEventTimeWindows.of(10, 5)


class Total(wp.AggregateFunction[dict[str, Any], dict[str, Any]]):
    """Changes its accumulator, which is its result, too."""

    def create_accumulator(self) -> dict[str, Any]:
        return {"total": 0, "of": []}

    def add(self, value: dict[str, Any], accumulator: dict[str, Any]) -> dict[str, Any]:
        accumulator["total"] += value["n"]
        accumulator["of"].append(value["n"])
        return accumulator

    def get_result(self, accumulator: dict[str, Any]) -> dict[str, Any]:
        return accumulator

    def merge(self, left: dict[str, Any], right: dict[str, Any]) -> dict[str, Any]:
        return {"total": left["total"] + right["total"], "of": left["of"] + right["of"]}


def left_changed(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    one["n"] += other["n"]
    return one


def right_changed(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    other["n"] += one["n"]
    return other


def shares(key: Any, window: wp.Window, rows: Any) -> Iterator[dict[str, Any]]:
    """Yield the rows, changed."""
    total = sum(row["n"] for row in rows)
    for row in rows:
        row["n"] /= total
        yield row


def one_row(key: Any, window: wp.Window, rows: Any) -> Iterator[dict[str, Any]]:
    """Yield one dict several times."""
    row: dict[str, Any] = {}
    for each in rows:
        row["n"] = each["n"]
        yield row


def results(harness: WindowTestHarness, *elements: tuple[int, int]) -> list[Any]:
    """Return the results of elements (number, time), and of the end of their windows."""
    for number, time in elements:
        harness.process_element({"n": number}, time, "k")
    harness.process_watermark(100)
    return [record.value for record in harness.output]


def test_an_accumulator_that_was_emitted_grows_on() -> None:
    harness = WindowTestHarness(TEN, wp.CountTrigger.of(1), function=WindowFunctionSpec.aggregate(Total()))
    assert results(harness, (1, 0), (2, 1)) == [{"total": 1, "of": [1]}, {"total": 3, "of": [1, 2]}]


def test_a_pane_takes_back_what_was_emitted() -> None:
    function, early = WindowFunctionSpec.aggregate(Total()), wp.Repeatedly(wp.AfterCount(1))
    harness = WindowTestHarness(TEN, early, function=function, accumulation="retracting")
    assert [value["total"] for value in results(harness, (1, 0), (2, 1))] == [1, 1, 3]


@pytest.mark.parametrize("reduce", [left_changed, right_changed])
def test_a_reduce_changes_the_row_of_its_window_alone(reduce: Any) -> None:
    harness = WindowTestHarness(OVERLAPPING, function=WindowFunctionSpec.reduce(reduce))
    assert results(harness, (1, 5), (2, 6), (4, 11)) == [{"n": 3}, {"n": 7}, {"n": 4}]


@pytest.mark.parametrize("reduce", [left_changed, right_changed])
def test_a_trigger_keeps_the_row_as_it_was(reduce: Any) -> None:
    trigger = wp.DeltaTrigger.of(2, lambda old, new: new["n"] - old["n"])
    harness = WindowTestHarness(TEN, trigger, function=WindowFunctionSpec.reduce(reduce))
    assert results(harness, (1, 0), (2, 1), (4, 2)) == [{"n": 7}]


def test_rows_of_a_window_are_changed_for_one_firing() -> None:
    harness = WindowTestHarness(TEN, wp.CountTrigger.of(1), function=WindowFunctionSpec.apply(shares))
    assert results(harness, (1, 0), (3, 1)) == [{"n": 1}, {"n": 0.25}, {"n": 0.75}]


def test_a_row_that_several_windows_have_is_changed_for_one() -> None:
    harness = WindowTestHarness(OVERLAPPING, function=WindowFunctionSpec.apply(shares))
    assert results(harness, (1, 3), (3, 7)) == [{"n": 1}, {"n": 0.25}, {"n": 0.75}, {"n": 1}]


def test_a_row_that_is_emitted_again_is_another() -> None:
    harness = WindowTestHarness(TEN, function=WindowFunctionSpec.apply(one_row))
    assert results(harness, (1, 0), (2, 1)) == [{"n": 1}, {"n": 2}]


def test_a_process_function_changes_the_result_before_it_not_the_accumulator() -> None:
    class Doubled(wp.ProcessWindowFunction):
        def process(self, key: Any, context: Any, elements: Any) -> Any:
            (result,) = elements
            result["total"] *= 2
            context.output(wp.OutputTag("side"), result)
            result["of"].append(0)
            yield result

    function = WindowFunctionSpec.aggregate(Total(), Doubled())
    harness = WindowTestHarness(TEN, wp.CountTrigger.of(1), function=function)
    assert results(harness, (1, 0), (2, 1)) == [{"total": 2, "of": [1, 0]}, {"total": 6, "of": [1, 2, 0]}]
    assert [record.value["of"] for record in harness.side_output("side")] == [[1], [1, 2]]
