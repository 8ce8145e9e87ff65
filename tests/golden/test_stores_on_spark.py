"""A store of SQL views on Spark that ``python -m tests.golden.write`` made: a session goes on with the same results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.golden.stores_on_spark import RESULTS, SPLIT, add, run, unpack

GOLDEN = json.loads(RESULTS.read_text())


@pytest.mark.spark
@pytest.mark.slow
def test_a_golden_store_goes_on_on_spark_with_its_results(spark: Any, tmp_path: Path) -> None:
    unpack(tmp_path)
    for number, rows in enumerate(GOLDEN["batches"][:SPLIT]):
        add(tmp_path, number, rows)
    assert run(spark, tmp_path, {}) == GOLDEN["before"]
    assert run(spark, tmp_path, dict(enumerate(GOLDEN["batches"][SPLIT:], SPLIT))) == GOLDEN["after"]


def test_every_view_of_the_store_changes_after_it_was_made() -> None:
    assert [view for view, rows in GOLDEN["after"].items() if rows == GOLDEN["before"][view]] == []
