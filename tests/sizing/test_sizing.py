"""Sizing: the work of a load is that of rows drawn at random; estimates keep their order; what cannot be is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from windowpane.cli import app
from windowpane.errors import InvalidSpecError
from windowpane.sizing import KINDS, Load, costs, enough, estimate, work_of

LOAD = Load("tumbling", rows=20_000, keys=5_000, cores=2, executors=1, buckets=2, window=60, delay=0, batch=60)


def drawn(load: Load, seconds: float) -> tuple[np.ndarray, np.ndarray]:
    """Return keys and times of rows that come in so many seconds."""
    draw = np.random.default_rng(11)
    count = int(load.rows * seconds / load.batch)
    return draw.integers(0, int(load.keys), count), draw.uniform(0, seconds, count)


def pairs(keys: np.ndarray, times: np.ndarray, pane: float) -> int:
    return len(np.unique(np.stack([keys, times // pane]), axis=1).T)


@pytest.mark.parametrize("slide", [None, 10])
def test_partials_that_a_batch_touches_are_those_of_random_rows(slide: float | None) -> None:
    load = replace(LOAD, slide=slide)
    keys, times = drawn(load, load.batch)
    touched = work_of(load).seconds["key"] * 2
    assert touched == pytest.approx(pairs(keys, times, load.pane), rel=0.03)


@pytest.mark.parametrize("slide", [None, 10])
def test_state_holds_the_partials_of_open_windows(slide: float | None) -> None:
    load = replace(LOAD, slide=slide)
    keys, times = drawn(load, load.window)
    assert work_of(load).state["entry"] == pytest.approx(pairs(keys, times, load.pane), rel=0.03)


def test_a_delay_keeps_more_partials_open() -> None:
    assert work_of(replace(LOAD, delay=60)).state["entry"] == 2 * work_of(LOAD).state["entry"]


def test_rows_are_shared_by_the_cores_that_have_buckets() -> None:
    assert work_of(replace(LOAD, cores=8, buckets=4)).seconds["row"] == LOAD.rows / 4
    assert work_of(replace(LOAD, cores=4, buckets=8)).seconds["bucket"] == 2


@pytest.mark.parametrize("kind", KINDS)
def test_more_rows_and_keys_take_no_less_and_intervals_hold_the_likely_value(kind: str) -> None:
    few, many = (estimate(replace(LOAD, kind=kind, rows=LOAD.rows * by, keys=LOAD.keys * by)) for by in (1, 10))
    for one, other in ((few.seconds, many.seconds), (few.state_bytes, many.state_bytes)):
        assert 0 < one.low <= one.likely <= one.high
        assert one.likely < other.likely


def test_what_lies_beyond_the_measurements_is_named() -> None:
    limit = costs()["up_to"]["rows"]
    assert estimate(LOAD).beyond == {}
    assert estimate(replace(LOAD, rows=limit + 1)).beyond == {"rows": limit}


def test_enough_cores_leave_time_and_fewer_do_not() -> None:
    load = replace(LOAD, rows=10_000_000, keys=1_000_000, batch=10)
    found = enough(load)
    assert found.seconds.high <= 0.6 * load.batch
    fewer = found.load.cores - 1
    less = estimate(replace(load, cores=fewer, executors=-(-fewer // 4), buckets=max(fewer, 2)))
    assert less.seconds.high > 0.6 * load.batch or found.load.cores % 4 == 0


def test_an_interval_shorter_than_a_batch_costs_is_refused() -> None:
    with pytest.raises(InvalidSpecError, match="give it a longer interval"):
        enough(replace(LOAD, batch=0.01))


@pytest.mark.parametrize(("change", "said"), [({"kind": "hourly"}, "no costs of 'hourly'"), ({"keys": 0}, "keys is 0")])
def test_a_load_that_cannot_be_is_refused(change: Any, said: str) -> None:
    with pytest.raises(InvalidSpecError, match=said):
        replace(LOAD, **change)


def test_the_command_prints_figures_with_their_interval() -> None:
    command = ["size", "--rate", "50000", "--keys", "200000", "--window", "1 hour", "--batch", "10 seconds", "--cores", "2"]
    shown = CliRunner().invoke(app, command)
    assert shown.exit_code == 0, shown.output
    assert "a batch takes" in shown.output
    assert "spark.sql.shuffle.partitions=2" in shown.output
    read = json.loads(CliRunner().invoke(app, [*command, "--json"]).output)
    assert read["load"]["rows"] == 500_000
    assert read["seconds"]["low"] <= read["seconds"]["high"]


def test_a_duration_that_is_none_is_told() -> None:
    shown = CliRunner().invoke(app, ["size", "--rate", "1", "--keys", "1", "--window", "soon"])
    assert shown.exit_code == 2
    assert "soon" in shown.output


@pytest.mark.parametrize(
    "more", [["--buckets", "8"], ["--executors", "2"], ["--session", "--over"], ["--session", "--slide", "1 s"]]
)
def test_options_that_would_not_count_are_refused(more: list[str]) -> None:
    shown = CliRunner().invoke(app, ["size", "--rate", "1000", "--keys", "10", *more])
    assert shown.exit_code == 2
    assert more[0] in shown.output
