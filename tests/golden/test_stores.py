"""A store of SQL views that an earlier commit wrote: this one goes on from it with the same results."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.golden.stores import RESULTS, run, unpack

KEPT = json.loads(RESULTS.read_text())


@pytest.mark.parametrize(("scripts", "moment"), [((), "before"), (("after.sql",), "after")])
def test_a_kept_store_goes_on_with_the_results_that_were_kept(tmp_path: Path, scripts: tuple[str, ...], moment: str) -> None:
    unpack(tmp_path / "views.duckdb")
    assert run(tmp_path / "views.duckdb", *scripts) == KEPT[moment]


def test_every_view_of_the_store_changes_after_it_was_kept() -> None:
    assert [view for view, rows in KEPT["after"].items() if rows == KEPT["before"][view]] == []
