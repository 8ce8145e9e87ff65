"""Vectors of rolling features within reach, plain and with a restart after every step: none differs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance_path import ABSENT, find_conformance_root
from tests.examples import first
from tests.verify.test_vectors import RESTARTS, number_of, replay
from verify.conformance.reading.vectors import find_files, read_cases

MOST = first(3)


def rolling_files() -> list[Path]:
    root = find_conformance_root()
    return find_files([root / "rolling"]) if root is not None and (root / "rolling").is_dir() else []


@RESTARTS
@pytest.mark.parametrize("engine", ["row", "columnar"])
@pytest.mark.parametrize("file", rolling_files(), ids=lambda file: file.stem)
def test_no_features_differ(file: Path, engine: str, restart: bool) -> None:
    passed, failed, skipped = replay(file, restart, engine, MOST)
    assert failed == []
    assert passed == number_of(file, MOST)
    assert not skipped


def test_the_vectors_are_all_there(conformance_root: Path) -> None:
    assert sum(len(list(read_cases(file))) for file in rolling_files()) >= 80, ABSENT
    assert conformance_root.is_dir()
