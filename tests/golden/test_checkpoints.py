"""Checkpoints that an earlier commit wrote: this one goes on from them with the same results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.golden.checkpoints import INPUT, Golden, go_on, unpack
from tests.golden.programs import PROGRAMS

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_kept_checkpoint_goes_on_with_the_results_that_were_kept(spark: Any, tmp_path: Path, name: str) -> None:
    kept = Golden.read(name)
    unpack(name, tmp_path / "checkpoint", tmp_path / "in")
    after = go_on(spark, name, json.loads(INPUT.read_text()), tmp_path / "in", tmp_path / "checkpoint")
    assert {name: sorted(rows) for name, rows in after.items()} == {name: sorted(rows) for name, rows in kept.after.items()}
