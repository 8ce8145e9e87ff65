"""Every window operator vector within reach on the engine that the planner gives it: none differs, each skip has a reason."""

from __future__ import annotations

from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from tests.examples import first
from tests.verify.test_vectors import COPIED, RESTARTS, shared_files
from verify.conformance.reading.built_in import has_built_in_parts
from verify.conformance.reading.vectors import Case, find_files, read_cases
from verify.conformance.replay.verdicts import Options, Verdict
from verify.conformance.runner import replay_paths
from verify.sizes import given_sizes
from windowpane.engines.row.engine import FEWEST_ROWS

MOST = first(12)
SHARE = 0.8
OPERATORS = ("window_operator", "window_operator_chain")
PARTS_ALONE = "is not understood by engine columnar"


def operator_files() -> list[Path]:
    files = shared_files() or find_files([COPIED])
    return [file for file in files if any(case.kind in OPERATORS for case in read_cases(file))]


@cache
def replayed(file: Path, restart: bool) -> list[tuple[Case, Verdict]]:
    """Return the cases of a file and what came of them, replayed once for all that is asked about them."""
    return list(replay_paths([file], "columnar", Options(restart), limit=MOST))


@RESTARTS
@pytest.mark.parametrize("file", operator_files(), ids=lambda file: f"{file.parent.name}-{file.stem}")
def test_no_vector_differs(file: Path, restart: bool) -> None:
    failed, reasons = [], Counter[str]()
    for case, verdict in replayed(file, restart):
        failed += [f"{case.id}: {each}" for each in verdict.differences if verdict.failed]
        reasons.update([verdict.skipped] if verdict.skipped and case.kind in OPERATORS else [])
    assert failed == []
    assert not [reason for reason in reasons if PARTS_ALONE in reason]


BATCHED = [file for file in operator_files() if file.stem not in ("refused", "chained")]


@pytest.mark.parametrize("engine", ["row", "columnar"])
@pytest.mark.parametrize("file", BATCHED, ids=lambda file: f"{file.parent.name}-{file.stem}")
def test_no_vector_differs_where_all_elements_between_two_clock_steps_are_a_batch(file: Path, engine: str) -> None:
    with given_sizes({FEWEST_ROWS: 1}):  # the row engine takes few rows one by one
        for case, verdict in replay_paths([file], engine, Options(restart=True, batches_steps=True), limit=first(6)):
            assert not verdict.failed, (case.id, verdict.differences)


def test_most_programs_of_built_in_parts_run_on_columns(conformance_root: Path) -> None:
    ran = Counter[bool]()
    for file in find_files([conformance_root / "flink", conformance_root / "oracle"]):
        for case, verdict in replayed(file, True):
            if case.kind == "window_operator" and has_built_in_parts(case):
                ran[verdict.skipped is None] += 1
    assert ran.total() > (300 if MOST is None else 100)
    assert ran[True] >= SHARE * ran.total(), ran
