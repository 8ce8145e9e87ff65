"""A store of SQL views that ``python -m tests.golden.write`` made: a session goes on from it with the same results."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.golden.stores import RESULTS, run, unpack

GOLDEN = json.loads(RESULTS.read_text())


@pytest.mark.parametrize(("scripts", "moment"), [pytest.param((), "before", marks=pytest.mark.slow), (("after.sql",), "after")])
def test_a_golden_store_goes_on_with_its_results(tmp_path: Path, scripts: tuple[str, ...], moment: str) -> None:
    unpack(tmp_path / "views.duckdb")
    assert run(tmp_path / "views.duckdb", *scripts) == GOLDEN[moment]


def test_every_view_of_the_store_changes_after_it_was_made() -> None:
    assert [view for view, rows in GOLDEN["after"].items() if rows == GOLDEN["before"][view]] == []
