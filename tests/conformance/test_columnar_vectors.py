"""Every window operator vector within reach on the engine that the planner gives it: none differs, each skip has a reason."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.conformance.test_vectors import COPIED, RESTARTS, shared_files
from windowpane.testing.conformance.runner import replay_paths
from windowpane.testing.conformance.vectors import find_files, read_cases
from windowpane.testing.conformance.verdicts import Options

OPERATORS = ("window_operator", "window_operator_chain")
PARTS_ALONE = "is not understood by engine columnar"


def operator_files() -> list[Path]:
    files = [*find_files([COPIED]), *shared_files()]
    return [file for file in files if any(case.kind in OPERATORS for case in read_cases(file))]


@RESTARTS
@pytest.mark.parametrize("file", operator_files(), ids=lambda file: f"{file.parent.name}-{file.stem}")
def test_no_vector_differs(file: Path, restart: bool) -> None:
    failed, reasons = [], Counter[str]()
    for case, verdict in replay_paths([file], "columnar", Options(restart)):
        failed += [f"{case.id}: {each}" for each in verdict.differences if verdict.failed]
        reasons.update([verdict.skipped] if verdict.skipped and case.kind in OPERATORS else [])
    assert failed == []
    assert not [reason for reason in reasons if PARTS_ALONE in reason]
