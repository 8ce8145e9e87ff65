"""Vectors of composable triggers and panes within reach, plain and with a restart after every step: none differs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance_path import ABSENT, find_conformance_root
from tests.examples import first
from tests.verify.test_vectors import RESTARTS, number_of, replay
from verify.conformance.reading.vectors import find_files, read_cases
from verify.conformance.replay.verdicts import Options
from verify.conformance.runner import replay_paths

BUNDLES = "Beam asked the trigger once a bundle, windowpane once a row"


MOST = first(16)


def beam_files() -> list[Path]:
    root = find_conformance_root()
    return find_files([root / "beam"]) if root is not None and (root / "beam").is_dir() else []


@RESTARTS
@pytest.mark.parametrize("file", beam_files(), ids=lambda file: file.stem)
def test_no_transcript_differs(file: Path, restart: bool) -> None:
    passed, failed, skipped = replay(file, restart, limit=MOST)
    assert failed == []
    assert set(skipped) <= {BUNDLES}
    assert passed == number_of(file, MOST, skipped.total())


PLAIN, RESTARTED = Options(), Options(restart=True, batches_steps=True)


@pytest.mark.slow_but("beam_transcripts", "decided", "random_triggers_3")
@pytest.mark.parametrize("options", [pytest.param(PLAIN, marks=pytest.mark.slow), RESTARTED], ids=str)
@pytest.mark.parametrize("file", beam_files(), ids=lambda file: file.stem)
def test_no_transcript_differs_on_columns(file: Path, options: Options) -> None:
    verdicts = list(replay_paths([file], "columnar", options, limit=MOST))
    assert [(case.id, verdict.differences) for case, verdict in verdicts if verdict.failed] == []
    left = [case for case, verdict in verdicts if verdict.skipped is not None and case.kind == "trigger_transcript"]
    assert all(verdict.skipped == BUNDLES for case, verdict in verdicts if case in left)


def test_the_transcripts_are_all_there(conformance_root: Path) -> None:
    assert sum(len(list(read_cases(file))) for file in beam_files()) >= 870, ABSENT
    assert conformance_root.is_dir()
