"""A deploy as people do it: killed, rescaled, changed, killed again; the results are those of the two programs run alone."""

from __future__ import annotations

import json
import os
import random
import shutil
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import windowpane as wp
from tests.spark import deploy_program
from tests.spark.helpers import ORIGIN, instant
from tests.spark.queries.test_restart import Killable

PROGRAM = Path(deploy_program.__file__)
Row = tuple[Any, ...]
OLD: list[list[Row]] = [
    [("a", 1, 1), ("b", 2, 2), ("a", 4, 4)],
    [("a", 12, 8), ("b", 14, 16), ("c", 15, 32)],
    [("b", 16, 64), ("a", -30, 128), ("c", 24, 256)],  # the second is late by far
    [("a", 26, 512), ("b", 27, 1024), ("c", 26, 2048)],
]
NEW: list[list[Row]] = [
    [("a", 29, 1), ("b", 30, 2)],  # they join sessions that are open
    [("d", 40, 4), ("a", 41, 8)],
    [("e", 28, 16), ("c", 1, 32)],  # the session of e has ended at 33; under a watermark of 39 it is taken for eight seconds now
    [("a", 60, 64), ("b", 61, 128)],
    [(None, 1000, None)],
]
LATEST = 27
"""The second of the newest row before the change."""


def write(folder: Path, batches: list[list[Row]], first: int) -> None:
    folder.mkdir(exist_ok=True)
    for number, rows in enumerate(batches, first):
        keys, times, values = zip(*rows, strict=True)
        stamps = pa.array(map(instant, times), pa.timestamp("us", "UTC"))
        columns = [pa.array(keys, pa.string()), stamps, pa.array(values, pa.int64()), pa.array([key is None for key in keys])]
        path = folder / f"{number:02}.parquet"
        pq.write_table(pa.table(columns, ["k", "t", "v", "heartbeat"]), path)
        os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))


def results(work: Path) -> list[dict[str, Any]]:
    """Return the rows of the main output."""
    files = sorted((work / "main").glob("batch=*/*.json"))
    return [json.loads(line) for path in files for line in path.read_text().splitlines()]


def late(spark: Any, work: Path) -> list[Row]:
    rows = spark.read.parquet(f"{work}/late").collect()
    return sorted((row["k"], row["t"].timestamp() - ORIGIN.timestamp(), row["v"]) for row in rows)


@pytest.mark.slow
@pytest.mark.spark
def test_a_deploy_gives_what_the_two_programs_give_alone(spark: Any, tmp_path: Path) -> None:
    source, work = tmp_path / "in", tmp_path / "work"
    work.mkdir()
    write(source, OLD, 0)
    Killable(source, work, "old", 2, "checkpoint", program=PROGRAM).kill_when((work / "stalled.2").exists)
    deploy_program.run(spark, str(source), work, is_new=False)
    wp.checkpoints.rescale(f"{work}/checkpoint", f"{work}/five", 5, spark=spark)
    assert wp.checkpoints.verify(f"{work}/five", spark=spark) == []
    found = wp.changes(deploy_program.program(spark, str(source), is_new=True), f"{work}/five")
    assert {each["part"]: each["verdict"] for each in found.parts} == {
        "allowed lateness": "safe",
        "call top": "accept",
        "columns": "accept",  # OVER has one more to pass on; how its outputs are named is none of its state's concern
    }
    write(source, NEW, len(OLD))
    at = last_batch(work / "five") + 1
    Killable(source, work, "new", at, "five", program=PROGRAM).kill_when((work / f"stalled.{at}").exists)
    deploy_program.run(spark, str(source), work, is_new=True, checkpoint="five")
    alone = {is_new: tmp_path / f"alone-{is_new}" for is_new in (False, True)}
    for is_new, folder in alone.items():
        deploy_program.run(spark, str(source), folder, is_new=is_new)
    got, after = results(work), results(alone[True])
    starts = [{row["window_start"] for row in rows} for rows in (results(alone[False]), got)]
    assert starts[0] < starts[1]  # the session of e is late for the old program
    assert sorted(map(as_new, got), key=str) == sorted(map(as_new, after), key=str)
    assert late(spark, work) == [("a", -30, 128), ("c", 1, 32)]


def as_new(row: dict[str, Any]) -> dict[str, Any]:
    """Return a result as the new program has it; the greatest value is not known of sessions that began by second 27."""
    start = datetime.fromisoformat(row["window_start"]).timestamp() - ORIGIN.timestamp()
    names = ("k", "window_start", "window_end", "n", "total")
    top = row.get("top") if start > LATEST else None
    return {**{name: row[name] for name in names}, "top": top, "previous": row.get("previous", row.get("before"))}


KILLS = int(os.environ.get("WINDOWPANE_KILLS", "2"))


@pytest.mark.slow
@pytest.mark.spark
def test_a_kill_in_the_batch_that_changes_state_leaves_the_old_program_or_the_new_one(spark: Any, tmp_path: Path) -> None:
    source, work, chance = tmp_path / "in", tmp_path / "work", random.Random(7)
    write(source, OLD, 0)
    deploy_program.run(spark, str(source), work, is_new=False)
    write(source, NEW, len(OLD))
    calm = tmp_path / "calm"
    shutil.copytree(work, calm)
    deploy_program.run(spark, str(source), calm, is_new=True)
    expected, at = sorted(map(str, results(calm))), 1 + last_batch(work / "checkpoint")
    for number in range(KILLS):
        folder = tmp_path / f"killed-{number}"
        shutil.copytree(work, folder)
        begun, after = folder / "checkpoint" / "offsets" / str(at), chance.choice([0, 0.3, 1, 2, 3])
        program = Killable(source, folder, "new", -1, "checkpoint", program=PROGRAM)
        program.kill_when(begun.exists, after)
        verdict = wp.changes(deploy_program.program(spark, str(source), is_new=True), f"{folder}/checkpoint").verdict
        is_committed = (folder / "checkpoint" / "commits" / str(at)).exists()
        assert verdict == ("same" if is_committed else "accept")
        deploy_program.run(spark, str(source), folder, is_new=True)
        assert sorted(map(str, results(folder))) == expected, f"kill {number}, {after} seconds into the batch"


def last_batch(checkpoint: Path) -> int:
    return max(int(each.name) for each in (checkpoint / "offsets").iterdir() if each.name.isdecimal())
