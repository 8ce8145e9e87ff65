"""Further programs run on Flink, with triggers, evictors and functions that keep state: none differs on any engine."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.verify.test_vectors import RESTARTS
from verify.conformance.reading.vectors import find_files
from verify.conformance.replay.verdicts import Options
from verify.conformance.runner import replay_paths

FOLDERS = ("oracle2", "oracle3")
LEFT_OUT = {
    "window bounds that overflow int64 are refused instead of wrapping",
    "a new session equal to a live merged one keeps what that holds, where Flink loses it",
    "engines: the watermark outlives a restart, as on Spark",
}
"""What the engines of rows skip."""
LIMITS = pytest.mark.parametrize("limit", [pytest.param(20, id="some"), pytest.param(None, id="all", marks=pytest.mark.slow)])


@LIMITS
@RESTARTS
@pytest.mark.parametrize("batches_steps", [False, True], ids=["elements", "steps"])
@pytest.mark.parametrize("engine", ["row", "columnar"])
def test_no_further_program_differs(
    engine: str, batches_steps: bool, restart: bool, limit: int | None, conformance_root: Path
) -> None:
    replayed, files = 0, find_files([conformance_root / folder for folder in FOLDERS])[:: 1 if limit is None else 16]
    for case, verdict in replay_paths(files, engine, Options(restart, batches_steps), limit=limit):
        assert not verdict.failed, (case.id, verdict.differences)
        assert verdict.skipped is None or engine == "columnar" or verdict.skipped in LEFT_OUT, (case.id, verdict.skipped)
        replayed += verdict.passed
    assert replayed >= 20
