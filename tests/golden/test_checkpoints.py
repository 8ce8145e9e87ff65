"""Checkpoints that ``python -m tests.golden.write`` made: each program goes on from its own with the same results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.golden.checkpoints import INPUT, go_on, read_results, unpack
from tests.golden.programs import PROGRAMS

pytestmark = pytest.mark.spark


@pytest.mark.slow_but_one_in(2)
@pytest.mark.slow_ids(
    "counts",
    "first_rows",
    "join_as_of",
    "join_by_arrival",
    "join_interval",
    "last_rows",
    "match_reference",
    "match_text",
    "over_close",
    "over_reference",
    "over_session",
    "over_update",
    "panes_early",
    "panes_evicted",
    "rolling_pieces",
    "rolling_tick",
    "row_function",
    "row_reduce",
    "row_reference",
    "row_sessions",
    "sessions_evicted",
    "slices_cumulate",
    "slices_folded",
    "slices_in_arrow",
    "slices_quantiles",
    "slices_sliding",
    "over_of_each_key",
    "windows_filled",
    "windows_of_windows",
    "windows_settled",
)
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_golden_checkpoint_goes_on_with_its_results(spark: Any, tmp_path: Path, name: str) -> None:
    unpack(name, tmp_path / "checkpoint", tmp_path / "in")
    after = go_on(spark, name, json.loads(INPUT.read_text()), tmp_path / "in", tmp_path / "checkpoint")
    assert {output: sorted(rows) for output, rows in after.items()} == read_results(name)
