"""Checkpoints are copied, verified and rescaled, and go on with the same results; the old one stays as it was."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import windowpane as wp
from tests.golden import stores_on_spark
from tests.golden.checkpoints import INPUT, go_on, read_results, unpack
from tests.golden.programs import CHANGES, PROGRAMS, SCHEMA
from tests.spark.helpers import Feed, rows
from windowpane import TumblingEventTimeWindows
from windowpane.cli import app
from windowpane.errors import InvalidSpecError, UncommittedBatchError, UnmovableStateError

pytestmark = pytest.mark.spark

BY_SPARK = ("sessions", "windows_of_windows", "over_changelog", "row_process", "join_interval", "rolling_tick", "match_text")
"""Queries that Spark sees otherwise: two operators, changelogs, side outputs, two sides, ticks of the clock. State as such is
moved without it (``tests.golden.test_moved``)."""


def contents(folder: Path) -> dict[str, str]:
    files = [each for each in sorted(folder.rglob("*")) if each.is_file()]
    return {str(each.relative_to(folder)): hashlib.sha256(each.read_bytes()).hexdigest() for each in files}


def __getattr__(name: str) -> Any:
    """Return a golden program as the command line imports it; its rows are of no matter."""
    if name not in PROGRAMS:
        raise AttributeError(name)
    schema = CHANGES if name == "over_changelog" else SCHEMA
    return lambda spark: PROGRAMS[name](spark.readStream.schema(schema).parquet(str(INPUT.parent)))


def said(*arguments: object) -> tuple[int, str]:
    """Return the exit status of ``windowpane checkpoint``, and all that it prints, in one line."""
    shown = CliRunner().invoke(app, ["checkpoint", *map(str, arguments)])
    return shown.exit_code, " ".join(shown.output.replace("starting Spark, which takes some seconds ...", "").split())


@pytest.mark.slow_ids(*(name for name in BY_SPARK if name != "over_changelog"))
@pytest.mark.parametrize("name", BY_SPARK)
def test_a_checkpoint_is_compared_verified_rescaled_and_copied_and_goes_on_with_its_results(
    spark: Any, tmp_path: Path, name: str
) -> None:
    old, wide, moved = (tmp_path / each for each in ("old", "wide", "moved"))
    unpack(name, old, tmp_path / "in")
    before = contents(old)
    assert said("verify", old) == (0, "")
    status, words = said("diff", old, f"{__name__}:{name}")
    assert (status, words[:10]) == (0, "changes: s"), words  # the delay of a watermark was not described then
    assert said("rescale", old, wide, "--buckets", 3) == (0, "")
    assert said("verify", wide) == (0, "")
    status, words = said("forget", wide, tmp_path / "less", "--key", "nobody")
    if "no operator" not in words:
        assert "rows of all keys together" in words
    assert status == 1
    assert not (tmp_path / "less").exists()
    assert said("copy", wide, moved) == (0, "")
    assert said("copy", old, moved)[1].endswith("name a new folder, and nothing is written over.")
    assert contents(old) == before
    wide.rename(tmp_path / "elsewhere")
    after = go_on(spark, name, json.loads(INPUT.read_text()), tmp_path / "in", moved)
    assert {output: sorted(rows) for output, rows in after.items()} == read_results(name)
    newest = max((each for each in (moved / "offsets").iterdir() if each.name.isdecimal()), key=lambda each: int(each.name))
    assert json.loads(newest.read_text().split("\n")[1])["conf"]["spark.sql.shuffle.partitions"] == "3"


@pytest.mark.slow
def test_a_copy_goes_on_after_the_checkpoint_it_is_of_is_gone(spark: Any, tmp_path: Path) -> None:
    unpack("counts", tmp_path / "old", tmp_path / "in")
    wp.checkpoints.copy(str(tmp_path / "old"), str(tmp_path / "new"), spark=spark)
    assert json.loads((tmp_path / "new" / "metadata").read_text()) != json.loads((tmp_path / "old" / "metadata").read_text())
    (tmp_path / "old").rename(tmp_path / "elsewhere")
    after = go_on(spark, "counts", json.loads(INPUT.read_text()), tmp_path / "in", tmp_path / "new")
    assert {output: sorted(rows) for output, rows in after.items()} == read_results("counts")
    with pytest.raises(InvalidSpecError, match="is there already"):
        wp.checkpoints.copy(str(tmp_path / "elsewhere"), str(tmp_path / "new"), spark=spark)


@pytest.mark.slow
def test_a_program_with_a_function_that_has_no_name_is_refused_before_anything_is_written(spark: Any, tmp_path: Path) -> None:
    feed, old, new = Feed(tmp_path / "in").add([("a", 1, 5), ("b", 2, 9)]), str(tmp_path / "old"), tmp_path / "new"
    sessions = wp.EventTimeSessionWindows.with_dynamic_gap(lambda row: row["v"] * 1_000_000)
    windowed = wp.stream(feed.stream(spark), "t", watermark=0).key_by("k").window(sessions)
    result = windowed.aggregate(n=wp.count())
    result.start(main=str(tmp_path / "out"), checkpoint=old, trigger={"availableNow": True}).awaitTermination()
    with pytest.raises(UnmovableStateError, match="it is not there under this name"):
        wp.checkpoints.rescale(old, str(new), 3, spark=spark)
    with pytest.raises(UnmovableStateError, match="it is not there under this name"):
        wp.checkpoints.forget(old, str(new), "a", spark=spark)
    assert not new.exists()


@pytest.mark.slow
def test_a_bucket_that_has_had_no_rows_is_rescaled_with_the_others(spark: Any, tmp_path: Path) -> None:
    """One of the two behind ``window_all`` is called for the watermark, and holds the number of buckets alone."""
    feed, path = Feed(tmp_path / "in"), str(tmp_path / "out")

    def run(checkpoint: str) -> None:
        tens = wp.stream(feed.stream(spark), "t", watermark=0).key_by("k").window(TumblingEventTimeWindows.of("10 seconds"))
        thirties = tens.aggregate(n=wp.count()).window_all(TumblingEventTimeWindows.of("30 seconds"))
        result = thirties.aggregate(n=wp.sum("n"), of=wp.count())
        result.start(main=path, checkpoint=str(tmp_path / checkpoint), trigger={"availableNow": True}).awaitTermination()

    feed.add([("a", 1, 1), ("b", 4, 2), ("a", 2, 3)], [("a", 12, 4)])
    run("old")
    wp.checkpoints.rescale(str(tmp_path / "old"), str(tmp_path / "new"), 3, spark=spark)
    feed.add([("a", 14, 5), ("c", 29, 6)], [("a", 40, 7)])
    run("new")
    assert rows(spark.read.parquet(path).select("window_start", "n", "of")) == [(0, 6, 4)]


def test_a_folder_that_sparks_reader_of_state_cannot_find_is_said(spark: Any, tmp_path: Path) -> None:
    unpack("counts", tmp_path / "with space", tmp_path / "in")
    with pytest.raises(InvalidSpecError, match="Spark's reader of state finds no folder whose path a URI escapes"):
        wp.checkpoints.verify(str(tmp_path / "with space"), spark=spark)


def test_a_batch_that_is_not_committed_is_copied_for_the_same_query_alone(spark: Any, tmp_path: Path) -> None:
    unpack("counts", tmp_path / "old", tmp_path / "in")
    commits = tmp_path / "old" / "commits"
    max((each for each in commits.iterdir() if each.name.isdecimal()), key=lambda each: int(each.name)).unlink()
    with pytest.raises(UncommittedBatchError, match="is not committed"):
        wp.checkpoints.copy(str(tmp_path / "old"), str(tmp_path / "branch"), spark=spark)
    wp.checkpoints.copy(str(tmp_path / "old"), str(tmp_path / "moved"), same_query=True, spark=spark)
    assert (tmp_path / "moved" / "metadata").read_text() == (tmp_path / "old" / "metadata").read_text()


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["row_process", "slices_tumbling", "sessions", "over_update", "over_close", "rolling_tick", "match_text"]
)
def test_a_key_is_taken_out_of_a_checkpoint(spark: Any, tmp_path: Path, name: str) -> None:
    unpack(name, tmp_path / "old", tmp_path / "in")
    assert said("forget", tmp_path / "old", tmp_path / "new", "--key", "blue") == (0, "")
    assert said("verify", tmp_path / "new") == (0, "")
    assert said("forget", tmp_path / "new", tmp_path / "third", "--key", "blue")[1].startswith(
        f"{tmp_path / 'new'}: UnknownKeyError: no operator of the checkpoint has state of key 'blue'"
    )
    after = go_on(spark, name, json.loads(INPUT.read_text()), tmp_path / "in", tmp_path / "new")
    others = [row for row in read_results(name)["main"] if "'blue'" not in row]
    assert sorted(row for row in after["main"] if "'blue'" not in row) == others


@pytest.mark.slow
def test_checkpoints_of_views_are_verified_copied_and_rescaled_and_their_views_go_on(spark: Any, tmp_path: Path) -> None:
    """The new checkpoint is written into the place of the old one, of which there is a copy."""
    stores_on_spark.unpack(tmp_path)
    checkpoints = sorted((tmp_path / f"{stores_on_spark.STORE}.streams").glob("*/checkpoint"))
    assert checkpoints
    status, words = said("forget", checkpoints[0], tmp_path / "less", "--key", "1")
    assert (status, "Delete the rows where the view has them from" in words) == (1, True), words
    for number, checkpoint in enumerate(checkpoints):
        copied = tmp_path / f"copied-{number}"
        assert said("verify", checkpoint) == (0, ""), checkpoint
        assert said("copy", checkpoint, copied, "--same-query") == (0, "")
        checkpoint.rename(tmp_path / f"old-{number}")
        assert said("rescale", copied, checkpoint, "--buckets", 3) == (0, ""), checkpoint
        assert said("verify", checkpoint) == (0, ""), checkpoint
    golden = json.loads(stores_on_spark.RESULTS.read_text())
    first, later = golden["batches"][: stores_on_spark.SPLIT], golden["batches"][stores_on_spark.SPLIT :]
    for number, batch in enumerate(first):
        stores_on_spark.add(tmp_path, number, batch)
    assert stores_on_spark.run(spark, tmp_path, dict(enumerate(later, len(first)))) == golden["after"]
