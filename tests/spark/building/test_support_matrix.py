"""Each line of the support matrix, on the Spark that is installed; the document lists the same features and engines."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.docs.documents import ROOT
from tests.spark.support_matrix import FEATURES


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("name", FEATURES)
def test_a_feature_gives_the_results_found_by_hand(name: str, spark: Any, tmp_path: Path) -> None:
    feature = FEATURES[name]
    assert set(feature.program(spark, tmp_path)) == feature.expected


def test_the_document_lists_every_feature_with_its_engine() -> None:
    page = (ROOT / "docs" / "support.md").read_text()
    lines = re.findall(r"^\| ([^|]+) \| ([^|]+) \| (?:yes|no|not run)\b", page, re.MULTILINE)
    assert lines == [(name, feature.engine) for name, feature in FEATURES.items()]
