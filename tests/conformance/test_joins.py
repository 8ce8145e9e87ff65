"""Vectors of joins within reach, plain and with a restart after every step: none differs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance.test_vectors import RESTARTS, replay
from tests.conformance_path import ABSENT, find_conformance_root
from windowpane.testing.conformance.reading.vectors import find_files, read_cases


def join_files() -> list[Path]:
    root = find_conformance_root()
    return find_files([root / "joins"]) if root is not None and (root / "joins").is_dir() else []


@RESTARTS
@pytest.mark.parametrize("file", join_files(), ids=lambda file: file.stem)
def test_no_join_differs(file: Path, restart: bool) -> None:
    passed, failed, skipped = replay(file, restart)
    assert failed == []
    assert passed == len(list(read_cases(file))) - skipped.total()


def test_the_joins_are_all_there(conformance_root: Path) -> None:
    assert sum(len(list(read_cases(file))) for file in join_files()) >= 860, ABSENT
    assert conformance_root.is_dir()
