"""The sqllogictest files of this folder, each on a session of its own; a rule of SQL is a record there."""

from __future__ import annotations

from pathlib import Path

import pytest

from verify.slt.runner import Kind, run_file
from windowpane.sql import Session

FILES = sorted((Path(__file__).parents[1] / "slt").glob("*.slt"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_file(file: Path) -> None:
    outcomes = list(run_file(file, lambda: Session(store=":memory:"), match_errors=True))

    assert outcomes
    assert [outcome for outcome in outcomes if outcome.kind != Kind.PASSED] == []
