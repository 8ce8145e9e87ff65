"""Every vector within reach, plain and with a restart after every step: what is replayed must pass, what is skipped is named."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.conformance_path import ABSENT, find_conformance_root
from verify.conformance.reading.vectors import find_files, read_cases
from verify.conformance.replay.verdicts import Options
from verify.conformance.runner import replay_paths

COPIED = Path(__file__).parent / "oracle"
RISINGWAVE = (
    "op_hop_window.json",
    "op_hop_window_watermark.json",
    "op_watermark_filter.json",
    "op_over_window.json",
    "op_eowc_over_window.json",
    "op_sort.json",
    "unit_frame_finder.json",
    "unit_rows_frame_bounds.json",
)
REASONS = {
    "Flink SQL folds cumulating windows into their first slice: slices here stay apart until the last window ends",
    "Flink SQL sets the timer of the next window: windows here are due as the watermark passes them",
    "windows here may slide by any part of their size",
    "window bounds that overflow int64 are refused instead of wrapping",
    "a null key is an ordinary key",
    "windowpane sets no parallelism for an operator, so there is none to refuse",
}
RESTARTS = pytest.mark.parametrize(
    "restart", [pytest.param(False, id="plain", marks=pytest.mark.slow), pytest.param(True, id="restart-every-step")]
)
"""``make test`` replays each vector once: with the restarts, which ask for more."""


def shared_files() -> list[Path]:
    root = find_conformance_root()
    if root is None:
        return []
    return [*find_files([root / "flink", root / "oracle"]), *(root / "risingwave" / name for name in RISINGWAVE)]


def number_of(file: Path, most: int | None, skipped: int = 0) -> int:
    """Return how many cases of a file are replayed, of those that are not skipped, under a limit."""
    cases = len(list(read_cases(file))) - skipped
    return cases if most is None else min(cases, most)


def replay(file: Path, restart: bool, engine: str = "row", limit: int | None = None) -> tuple[int, list[str], Counter[str]]:
    """Return how many passed, what failed and differed, and the reasons for skipping."""
    passed, failed, skipped = 0, [], Counter[str]()
    for case, verdict in replay_paths([file], engine, Options(restart), limit=limit):
        passed += verdict.passed
        failed += [f"{case.id}: {each}" for each in verdict.differences if verdict.failed]
        skipped.update([verdict.skipped] if verdict.skipped else [])
    return passed, failed, skipped


IF_ALONE = pytest.mark.slow if shared_files() else ()
"""Copies are of the same kinds: where the shared vectors are within reach, those are enough for ``make test``."""


@RESTARTS
@pytest.mark.parametrize("file", [pytest.param(file, marks=IF_ALONE, id=file.stem) for file in find_files([COPIED])])
def test_copied_vectors(file: Path, restart: bool) -> None:
    passed, failed, skipped = replay(file, restart)

    assert failed == []
    assert set(skipped) <= REASONS
    assert passed == len(list(read_cases(file))) - skipped.total()
    assert passed >= 8


@RESTARTS
@pytest.mark.parametrize("file", shared_files(), ids=lambda file: file.stem)
def test_shared_vectors(file: Path, restart: bool) -> None:
    passed, failed, skipped = replay(file, restart)

    assert failed == []
    assert set(skipped) <= REASONS
    assert skipped.total() <= 3
    assert passed == len(list(read_cases(file))) - skipped.total()


def test_the_shared_vectors_are_all_there(conformance_root: Path) -> None:
    counts = Counter(file.parent.name for file in shared_files())

    assert counts["flink"] >= 29, ABSENT
    assert counts["oracle"] >= 9, ABSENT
    assert sum(len(list(read_cases(file))) for file in shared_files()) >= 728
    assert conformance_root.is_dir()
