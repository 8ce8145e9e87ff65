"""Vectors of joins within reach, on the reference and on the engines, plain and with a restart after every step: none differs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance_path import ABSENT, find_conformance_root
from tests.examples import first
from tests.verify.test_vectors import RESTARTS, number_of
from verify.conformance.reading.vectors import find_files, read_cases
from verify.conformance.replay.verdicts import Options
from verify.conformance.runner import replay_paths

MOST = first(12)


def join_files() -> list[Path]:
    root = find_conformance_root()
    return find_files([root / "joins"]) if root is not None and (root / "joins").is_dir() else []


@pytest.mark.slow_ids("join-1", "join-2")
@RESTARTS
@pytest.mark.parametrize("engine", ["row", "columnar"])
@pytest.mark.parametrize("file", join_files(), ids=lambda file: file.stem)
def test_no_join_differs(file: Path, engine: str, restart: bool) -> None:
    verdicts = list(replay_paths([file], engine, Options(restart), limit=MOST))
    assert [(case.id, verdict) for case, verdict in verdicts if not verdict.passed] == []
    assert len(verdicts) == number_of(file, MOST)


def test_the_joins_are_all_there(conformance_root: Path) -> None:
    assert sum(len(list(read_cases(file))) for file in join_files()) >= 860, ABSENT
    assert conformance_root.is_dir()
