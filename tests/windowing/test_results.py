"""Expressions over aggregates: which calls they are split into, and the steps behind results."""

from __future__ import annotations

from typing import Any, cast

import pytest

import windowpane as wp
from windowpane.errors import InvalidSpecError, UnknownColumnError
from windowpane.windowing.aggregates import Aggregate
from windowpane.windowing.aggregates.results import select_step, split, texts, where_step


def parts(**given: Any) -> tuple[dict[str, Aggregate], list[str]]:
    calls, results = split(given, lambda _, call: cast("Aggregate", call), lambda call: call)
    return calls, texts(results, calls)


def test_calls_alone_have_no_results_beside_them() -> None:
    assert parts(n=wp.count(), total=wp.sum("a")) == ({"n": wp.count(), "total": wp.sum("a")}, [])


def test_what_is_the_same_call_is_one_column() -> None:
    calls, results = parts(mean=wp.sum("a") / wp.count(), n=wp.count(), twice=wp.sum("a") * 2)
    assert list(calls.values()) == [wp.count(), wp.sum("a")]
    assert next(iter(calls)) == "n"
    assert results == ["mean = (sum('a') / col('n'))", "twice = (sum('a') * 2)"]


def test_a_result_may_name_one_before_it() -> None:
    _, results = parts(mean=wp.sum("a") / wp.count(), half=wp.col("mean") / 2)
    assert results[1] == "half = ((sum('a') / count()) / 2)"


def test_without_a_call_there_is_nothing_to_compute() -> None:
    with pytest.raises(InvalidSpecError, match="no aggregate among them"):
        parts(half=wp.col("a") / 2)


def test_steps_know_the_columns_that_are_there() -> None:
    step = select_step(("*",), {"half": wp.col("n") / 2}, ("k", "n"))
    assert [name for name, _ in step.columns] == ["k", "n", "half"]
    assert str(where_step(wp.col("N") > 1, ("k", "n"))) == "where (col('N') > 1)"
    with pytest.raises(UnknownColumnError, match="'m'"):
        where_step(wp.col("m") > 1, ("k", "n"))
    with pytest.raises(InvalidSpecError, match="expected a condition"):
        where_step("n > 1", ("k", "n"))
