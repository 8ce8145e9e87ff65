"""Stores of SQL views on Spark that an earlier commit wrote: this one goes on with the same results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb
import pytest

from tests.golden.stores_on_spark import BELOW, BY_VALUE, SPLIT, STORE, STORES, TEXT_HASHES, TOGETHER, KeptStore, add

KEPT = {store.name: json.loads(store.results.read_text()) for store in STORES}


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("store", STORES, ids=lambda store: store.name)
def test_a_kept_store_goes_on_on_spark_with_the_results_that_were_kept(spark: Any, tmp_path: Path, store: KeptStore) -> None:
    kept = KEPT[store.name]
    store.unpack(tmp_path)
    for number, rows in enumerate(kept["batches"][:SPLIT]):
        add(tmp_path, number, rows)
    assert store.run(spark, tmp_path, {}) == kept["before"]
    assert store.run(spark, tmp_path, dict(enumerate(kept["batches"][SPLIT:], SPLIT))) == kept["after"]


def plans_of(store: KeptStore, work: Path) -> dict[str, str]:
    """Return the kept plans of the views that Spark runs, after the check that all of them change after they were kept."""
    store.unpack(work)
    with duckdb.connect(str(work / STORE), read_only=True) as opened:
        plans = dict(opened.execute("SELECT name, plan FROM windowpane.streams WHERE spread").fetchall())
    before, after = KEPT[store.name]["before"], KEPT[store.name]["after"]
    assert sorted(plans) == sorted(before) == sorted(after)
    assert [view for view, rows in after.items() if rows == before[view]] == []
    return plans


def test_views_of_windows_have_a_program_below(tmp_path: Path) -> None:
    plans = plans_of(BELOW, tmp_path)
    assert all(plan.splitlines()[1] == "Groups of windows in a program below" for plan in plans.values())


def test_views_by_value_keep_rows_so_and_values_of_distinct(tmp_path: Path) -> None:
    plans = plans_of(BY_VALUE, tmp_path)
    assert all("\nRows by the value of a key\n" in f"\n{plan}" for plan in plans.values())
    values = {name for name, plan in plans.items() if "\nDistinct values in place of rows\n" in plan}
    assert values == {"different", "different_of_minutes", "different_counts"}


def test_views_of_nodes_with_equal_keys_run_them_together(tmp_path: Path) -> None:
    plans = plans_of(TOGETHER, tmp_path)
    line = "Rows by the value of a key, hashes of numbers, and nodes with equal keys together\n"
    assert all(f"\n{line}" in f"\n{plan}" for plan in plans.values())


def test_views_by_text_lie_by_its_hash(tmp_path: Path) -> None:
    plans = plans_of(TEXT_HASHES, tmp_path)
    line = "Rows by the value of a key, hashes of numbers and of texts, and nodes with equal keys together\n"
    assert all(f"\n{line}" in f"\n{plan}" for plan in plans.values())
