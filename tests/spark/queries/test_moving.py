"""Checkpoints are copied, verified and rescaled, and go on with the same results; the old one stays as it was."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

import windowpane as wp
from tests.golden.checkpoints import INPUT, go_on, read_results, unpack
from tests.golden.programs import PROGRAMS
from windowpane.errors import InvalidSpecError, UncommittedBatchError, UnknownKeyError

pytestmark = pytest.mark.spark


def contents(folder: Path) -> dict[str, str]:
    files = [each for each in sorted(folder.rglob("*")) if each.is_file()]
    return {str(each.relative_to(folder)): hashlib.sha256(each.read_bytes()).hexdigest() for each in files}


@pytest.mark.slow_ids(*(name for name in PROGRAMS if name != "windows_of_windows"))
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_rescaled_checkpoint_goes_on_with_its_results(spark: Any, tmp_path: Path, name: str) -> None:
    unpack(name, tmp_path / "one", tmp_path / "in")
    before = contents(tmp_path / "one")
    wp.checkpoints.rescale(str(tmp_path / "one"), str(tmp_path / "three"), 3, spark=spark)
    assert contents(tmp_path / "one") == before
    assert wp.checkpoints.verify(str(tmp_path / "three"), spark=spark) == []
    batches = json.loads(INPUT.read_text())
    after = go_on(spark, name, batches, tmp_path / "in", tmp_path / "three")
    assert {output: sorted(rows) for output, rows in after.items()} == read_results(name)
    offsets = (tmp_path / "three" / "offsets").iterdir()
    newest = max((each for each in offsets if each.name.isdecimal()), key=lambda each: int(each.name))
    assert json.loads(newest.read_text().split("\n")[1])["conf"]["spark.sql.shuffle.partitions"] == "3"


def test_a_copy_goes_on_after_the_checkpoint_it_is_of_is_gone(spark: Any, tmp_path: Path) -> None:
    unpack("counts", tmp_path / "old", tmp_path / "in")
    wp.checkpoints.copy(str(tmp_path / "old"), str(tmp_path / "new"), spark=spark)
    assert json.loads((tmp_path / "new" / "metadata").read_text()) != json.loads((tmp_path / "old" / "metadata").read_text())
    (tmp_path / "old").rename(tmp_path / "elsewhere")
    after = go_on(spark, "counts", json.loads(INPUT.read_text()), tmp_path / "in", tmp_path / "new")
    assert {output: sorted(rows) for output, rows in after.items()} == read_results("counts")
    with pytest.raises(InvalidSpecError, match="is there already"):
        wp.checkpoints.copy(str(tmp_path / "elsewhere"), str(tmp_path / "new"), spark=spark)


def test_a_batch_that_is_not_committed_is_copied_for_the_same_query_alone(spark: Any, tmp_path: Path) -> None:
    unpack("counts", tmp_path / "old", tmp_path / "in")
    commits = tmp_path / "old" / "commits"
    max((each for each in commits.iterdir() if each.name.isdecimal()), key=lambda each: int(each.name)).unlink()
    with pytest.raises(UncommittedBatchError, match="is not committed"):
        wp.checkpoints.copy(str(tmp_path / "old"), str(tmp_path / "branch"), spark=spark)
    wp.checkpoints.copy(str(tmp_path / "old"), str(tmp_path / "moved"), same_query=True, spark=spark)
    assert (tmp_path / "moved" / "metadata").read_text() == (tmp_path / "old" / "metadata").read_text()


@pytest.mark.slow
def test_a_key_is_taken_out_of_a_checkpoint(spark: Any, tmp_path: Path) -> None:
    unpack("sessions", tmp_path / "old", tmp_path / "in")
    wp.checkpoints.forget(str(tmp_path / "old"), str(tmp_path / "new"), "blue", spark=spark)
    assert wp.checkpoints.verify(str(tmp_path / "new"), spark=spark) == []
    with pytest.raises(UnknownKeyError, match="no operator of the checkpoint"):
        wp.checkpoints.forget(str(tmp_path / "new"), str(tmp_path / "third"), "blue", spark=spark)
    after = go_on(spark, "sessions", json.loads(INPUT.read_text()), tmp_path / "in", tmp_path / "new")
    others = [row for row in read_results("sessions")["main"] if "'blue'" not in row]
    assert sorted(row for row in after["main"] if "'blue'" not in row) == others
