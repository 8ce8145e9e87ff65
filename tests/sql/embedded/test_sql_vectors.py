"""RisingWave's SQL vectors on the embedded engine."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance_path import ABSENT, find_conformance_root
from tests.examples import first
from verify.conformance.runner import replay_paths


def sql_files() -> list[Path]:
    root = find_conformance_root()
    return [] if root is None else sorted((root / "risingwave").glob("sql_*.json"))


@pytest.mark.skipif(not sql_files(), reason=ABSENT)
@pytest.mark.parametrize("file", sql_files(), ids=lambda file: file.stem)
def test_shared_sql_vectors(file: Path) -> None:
    verdicts = [(case.id, verdict) for case, verdict in replay_paths([file], "local", limit=first(4))]

    assert verdicts
    assert [(name, verdict.differences) for name, verdict in verdicts if not verdict.passed] == []
