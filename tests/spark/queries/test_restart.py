"""kill -9 between batches and in the middle of one, then restarts: the outputs are those of an undisturbed run."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.spark import restart_program
from tests.spark.helpers import instant

PROGRAM = Path(restart_program.__file__)
PATIENCE = 600.0
LAST = 8


def batch(number: int) -> list[tuple[Any, ...]]:
    """Return 40 rows around second 8 * ``number``, up to 25 seconds behind; those of batch 5 make a program stall."""
    chance = random.Random(number)
    behind = [0, 1, 2, 5, 14, 25]
    rows = [(f"k{chance.randrange(6)}", 8 * number - chance.choice(behind), chance.randrange(100)) for _ in range(40)]
    stalls = [("k0", 8 * number, restart_program.STALL)] if number == 5 else []
    return [(100 * number + i, key, time, value, False) for i, (key, time, value) in enumerate(rows + stalls)]


STAMP = pa.timestamp("us", "UTC")
COLUMNS = pa.schema([("id", pa.int64()), ("k", pa.string()), ("t", STAMP), ("v", pa.int64()), ("heartbeat", pa.bool_())])


def add(folder: Path, *numbers: int) -> None:
    """Add the files of some batches to the input, while nobody reads it; the last is a heartbeat far ahead."""
    folder.mkdir(exist_ok=True)
    for number in numbers:
        rows = batch(number) if number < LAST else [(None, None, 10_000, None, True)]
        ids, keys, times, values, heartbeats = zip(*rows, strict=True)
        columns = [ids, keys, [instant(time) for time in times], values, heartbeats]
        arrays = [pa.array(column, field.type) for column, field in zip(columns, COLUMNS, strict=True)]
        path = folder / f"{number:02}.parquet"
        pq.write_table(pa.table(arrays, schema=COLUMNS), path)
        os.utime(path, (number, number))


class Killable:
    """The program in a process group of its own, which takes the JVM and the Python workers along when it is killed."""

    def __init__(self, source: Path, work: Path, *options: object, program: Path = PROGRAM) -> None:
        command = [sys.executable, str(program), str(source), str(work), *map(str, options)]
        self.log = work / "log.txt"
        environment = {**os.environ, "PYTHONPATH": str(program.parents[2])}
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, env=environment, start_new_session=True)

    def kill_when(self, happened: Callable[[], bool], after: float = 0) -> None:
        """Kill it some seconds after something has happened."""
        deadline = time.monotonic() + PATIENCE
        try:
            while not happened():
                assert self.process.poll() is None, self.log.read_text()[-4000:]
                assert time.monotonic() < deadline, "the program did not get there: " + self.log.read_text()[-4000:]
                time.sleep(0.05)
            time.sleep(after)
        finally:
            self._kill()

    def _kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def succeed(self) -> None:
        """Wait for its end."""
        try:
            code = self.process.wait(PATIENCE)
        finally:
            self._kill()
        assert code == 0, self.log.read_text()[-4000:]


@pytest.mark.spark
def test_a_query_that_is_killed_in_a_batch_goes_on_in_another_process(spark: Any, tmp_path: Path) -> None:
    source, work, calm = tmp_path / "input", tmp_path / "work", tmp_path / "undisturbed"
    work.mkdir()
    calm.mkdir()
    add(source, 3, 4, 5)
    Killable(source, work, 2, "--only", "sessions", "--stall-in", 2).kill_when((work / "sessions.stalled").exists)
    commits = work / "sessions" / "checkpoint" / "commits"
    assert (commits / "1").exists()
    assert not (commits / "2").exists()
    add(source, 6, LAST)
    (calm / "sessions.stalled").touch()  # it does not wait to be killed
    names = [name for name in restart_program.OUTPUTS if name.startswith("sessions/")]
    for folder in (work, calm):
        restart_program.run_to_the_end(spark, str(source), folder, ["sessions"])
    found, expected = (restart_program.results(spark, folder, names) for folder in (work, calm))
    assert found == expected
    assert all(expected.values())


def committed(work: Path, number: int) -> bool:
    """Whether all programs have committed a batch."""
    return all((work / name / "checkpoint" / "commits" / str(number)).exists() for name in restart_program.STARTS)


def stalled(work: Path) -> bool:
    """Whether all programs are in the middle of a batch."""
    return all((work / f"{name}.stalled").exists() for name in restart_program.STARTS)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, list[str]]]:
    """The outputs of a run that was killed twice, and of one that was left alone."""
    folder = tmp_path_factory.mktemp("restart")
    work = folder / "work"
    work.mkdir()
    source = folder / "input"
    add(source, 0, 1, 2)
    Killable(source, work, 2).kill_when(lambda: committed(work, 2))
    add(source, 3, 4, 5, 6)
    Killable(source, work, 2).kill_when(lambda: stalled(work))
    add(source, 7, LAST)
    Killable(source, work, 4, "--finish").succeed()
    found: dict[str, dict[str, list[str]]] = json.loads((work / "results.json").read_text())
    return found


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("output", restart_program.OUTPUTS)
def test_outputs_are_those_of_an_undisturbed_run(results: dict[str, dict[str, list[str]]], output: str) -> None:
    assert results["killed"][output] == results["undisturbed"][output]
    assert results["killed"][output]


@pytest.mark.slow
@pytest.mark.spark
def test_the_programs_fire_again_for_early_and_late_rows(results: dict[str, dict[str, list[str]]]) -> None:
    rows = [json.loads(row) for row in results["killed"]["tumbling/main"]]
    assert max(row["firing"] for row in rows) > 2


@pytest.mark.slow
@pytest.mark.spark
def test_some_rows_are_too_late(results: dict[str, dict[str, list[str]]]) -> None:
    assert {json.loads(row)["dropped"] for row in results["killed"]["sessions/late"]} == {True}
