"""A store of SQL views on Spark that an earlier commit wrote, groups below a Top-N: this one goes on with the same results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb
import pytest

from tests.golden.stores_on_spark import RESULTS, SPLIT, STORE, add, run, unpack

KEPT = json.loads(RESULTS.read_text())


@pytest.mark.spark
@pytest.mark.slow
def test_a_kept_store_goes_on_on_spark_with_the_results_that_were_kept(spark: Any, tmp_path: Path) -> None:
    unpack(tmp_path)
    for number, rows in enumerate(KEPT["batches"][:SPLIT]):
        add(tmp_path, number, rows)
    assert run(spark, tmp_path, {}) == KEPT["before"]
    assert run(spark, tmp_path, dict(enumerate(KEPT["batches"][SPLIT:], SPLIT))) == KEPT["after"]


def test_its_views_have_a_program_below_and_change_after_it_was_kept(tmp_path: Path) -> None:
    unpack(tmp_path)
    with duckdb.connect(str(tmp_path / STORE), read_only=True) as store:
        plans = dict(store.execute("SELECT name, plan FROM windowpane.streams WHERE spread").fetchall())
    assert sorted(plans) == sorted(KEPT["before"]) == sorted(KEPT["after"])
    assert all(plan.splitlines()[1] == "Groups of windows in a program below" for plan in plans.values())
    assert [view for view, rows in KEPT["after"].items() if rows == KEPT["before"][view]] == []
