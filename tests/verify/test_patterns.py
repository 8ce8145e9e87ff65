"""Vectors of row patterns within reach, plain and with a restart after every step: none differs."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from tests.conformance_path import ABSENT, find_conformance_root
from tests.examples import first
from tests.verify.test_vectors import RESTARTS, number_of, replay
from verify.conformance.reading.vectors import find_files, read_cases
from verify.conformance.replay.verdicts import Options
from verify.conformance.runner import replay_paths
from verify.fuzz.patterns import random_program
from verify.fuzz.patterns_in_sql import differences

MOST = first(12)


def pattern_files() -> list[Path]:
    root = find_conformance_root()
    return find_files([root / "patterns"]) if root is not None and (root / "patterns").is_dir() else []


ONE_IN_EIGHT = [
    pytest.param(file, marks=pytest.mark.slow if number % 8 else (), id=file.stem) for number, file in enumerate(pattern_files())
]


@RESTARTS
@pytest.mark.parametrize("file", ONE_IN_EIGHT)
def test_no_match_differs(file: Path, restart: bool) -> None:
    passed, failed, skipped = replay(file, restart, "row", MOST)
    assert failed == []
    assert passed == number_of(file, MOST)
    assert not skipped


@RESTARTS
@pytest.mark.parametrize("file", ONE_IN_EIGHT)
def test_no_match_of_a_regular_expression_differs(file: Path, restart: bool) -> None:
    passed, failed, skipped = replay(file, restart, "columnar", MOST)
    assert failed == []
    assert passed > 5
    assert passed == number_of(file, MOST, skipped.total())


@RESTARTS
@pytest.mark.parametrize("file", ONE_IN_EIGHT)
def test_no_match_of_sql_differs(file: Path, restart: bool) -> None:
    """Each query as MATCH_RECOGNIZE, in a SELECT over all rows and in a view step by step; of a file that is not slow, a few."""
    some = 1 if file in pattern_files()[::8] else None
    verdicts = list(replay_paths([file], "local", Options(restart), limit=some, seed=1))
    assert [(case.id, verdict.differences) for case, verdict in verdicts if not verdict.passed] == []
    assert len(verdicts) >= (some or 3)


def test_the_vectors_are_all_there(conformance_root: Path) -> None:
    assert sum(len(list(read_cases(file))) for file in pattern_files()) >= 1200, ABSENT
    assert conformance_root.is_dir()


def test_a_query_that_finds_other_rows_than_the_matcher_of_random_programs_differs() -> None:
    rows = [("x", at, kind, at % 4) for at, kind in enumerate("abcdabcd")]
    assert any(list(differences(random_program(Random(seed)), rows, [])) for seed in range(20))
