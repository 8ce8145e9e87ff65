"""kill -9 in the first batch behind a change: either the old program or the new one is in the checkpoint, never between.

Programs of several kinds run on, are started again changed, and are killed: before the tasks of that batch, in them, between the
commit of their state and that of the batch, or behind it. Then they go on, or, where the batch is not committed, sometimes back.
What they gave in the end is what the old and the new program give that run alone, each what is its own.

A few kills here; the law at size:

    WINDOWPANE_KILLS=50 python -m pytest -q -s -m slow tests/spark/queries/test_changes_killed.py
"""

from __future__ import annotations

import json
import os
import random
import shutil
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import windowpane as wp
from tests.spark import changed_programs
from tests.spark.changed_programs import PROGRAMS
from tests.spark.helpers import instant
from tests.spark.queries.test_restart import Killable
from verify.fuzz.changes import as_one
from verify.fuzz.comparison import difference
from windowpane.spark.queries.continuing import programs_of
from windowpane.windowing.outputs import APPEARING, CHANGE_TYPE

pytestmark = [pytest.mark.spark, pytest.mark.slow]

PROGRAM = Path(changed_programs.__file__)
KILLS = int(os.environ.get("WINDOWPANE_KILLS", "3"))
SEED = int(os.environ.get("WINDOWPANE_KILL_SEED", "1"))
BEFORE, BEHIND = 2, 2
"""So many files are read before the change, and behind it; then comes a heartbeat far ahead."""
STALLED = ("computed", "written", "committed")
RUNNING = ("begun", "in tasks", "at random")
"""Where one of the programs is killed that do not stall, half of those in a process; the others of these are anywhere."""

Rows = list[dict[str, Any]]
Row = tuple[int, str | None, int | None, float, int | None, str | None, bool]


def _files() -> list[list[Row]]:
    """Return the rows of all files: around second 8 * number, up to 14 behind; some come again, five seconds later."""
    chance, files, number = random.Random(3), list[list[Row]](), 0
    for at in range(BEFORE + BEHIND):
        rows = list[Row]()
        for _ in range(25):
            number += 1
            second = 8 * at + 7 - chance.choice([0, 1, 2, 3, 5, 7, 14]) + number / 1000
            rows.append((number, f"k{chance.randrange(5)}", number, second, chance.randrange(100), "order", False))
        for of in chance.sample(rows, 8):
            number += 1
            rows.append((number, of[1], of[2], of[3] + 1, chance.randrange(100), "pay", False))
        if at == BEFORE:
            newest = max(row[3] for row in files[-1])
            again = [row for row in files[-1] if row[3] > newest - 2 and row[5] == "order"]
            rows += [(1000 + row[0], row[1], row[2], row[3] + 4.5, 1, "pay", False) for row in again]
            assert again
        files.append(rows)
    return [*files, [(0, None, None, 1000, None, None, True)]]


def _write(folder: Path, files: Sequence[Sequence[Row]], first: int) -> None:
    folder.mkdir(exist_ok=True)
    kinds = [pa.int64(), pa.string(), pa.int64(), pa.timestamp("us", "UTC"), pa.int64(), pa.string(), pa.bool_()]
    for number, rows in enumerate(files, first):
        ids, keys, once, times, *others = zip(*rows, strict=True)
        columns = [
            pa.array(each, kind) for each, kind in zip([ids, keys, once, map(instant, times), *others], kinds, strict=True)
        ]
        path = folder / f"{number:02}.parquet"
        pq.write_table(pa.table(columns, [each.split()[0] for each in changed_programs.SCHEMA.split(", ")]), path)
        os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))


def _results(work: Path) -> dict[int, Rows]:
    """Return the rows of each batch, instants as microseconds."""
    found = dict[int, Rows]()
    for folder in sorted((work / "main").iterdir()):
        tables = [pq.read_table(path, partitioning=None) for path in folder.glob("*.parquet")]
        found[int(folder.name.removeprefix("batch="))] = [row for table in map(_plain, tables) for row in table.to_pylist()]
    return found


def _plain(table: pa.Table) -> pa.Table:
    for number, column in enumerate(table.schema):
        if pa.types.is_timestamp(column.type):
            table = table.set_column(number, column.name, table[number].cast(pa.timestamp("us")).cast(pa.int64()))
    return table


def _planned(checkpoint: Path) -> set[int]:
    """Return the last file of each batch.

    Spark's source notes a file before the batch is planned. Where the kill is between the two, the next run has one file more in
    that batch, so other rows are late: that is neither program alone.
    """
    logs = [each for each in (checkpoint / "offsets").iterdir() if each.name.isdecimal()]
    return {json.loads(each.read_text().splitlines()[-1])["logOffset"] for each in logs}


def _last(checkpoint: Path, log: str) -> int:
    return max((int(each.name) for each in (checkpoint / log).iterdir() if each.name.isdecimal()), default=-1)


@dataclass
class Case:
    """A program as it is before the change, and what each of the two gives alone."""

    name: str
    old: Path
    at: int  # the first batch behind the change
    verdict: str = ""
    alone: dict[bool, dict[int, Rows]] = field(default_factory=dict)

    def problem(self, spark: Any, work: Path, is_new: bool) -> str | None:
        """Return what is wrong with the results of a program that was changed, or, after a kill, was not."""
        got = _results(work)
        if not is_new:
            return difference(_all(self.alone[False]), _all(got))
        if self.name in ("windows", "assigner", "chain"):
            return self._problem_of_windows(spark, work, _all(got))
        if self.name == "over_update":
            return difference(_applied(self.alone[True]), _applied(got))
        names = list(_all(self.alone[True])[0])
        before = [{name: row.get(name) for name in names} for row in _all(self._part(False))]
        after = _all(self._part(True))
        return difference([*before, *after], [{name: row.get(name) for name in names} for row in _all(got)])

    def _part(self, is_new: bool) -> dict[int, Rows]:
        """Return the batches behind the change of the new program alone, or those before it of the old one."""
        return {number: rows for number, rows in self.alone[is_new].items() if (number >= self.at) == is_new}

    def _problem_of_windows(self, spark: Any, work: Path, got: Rows) -> str | None:
        """Windows of the chain are sessions, on whose results an OVER window reads those before them, of either program."""
        committed = _last(work / "checkpoint", "commits")
        programs = [each for each in programs_of(spark, f"{work}/checkpoint") if each["batch"] <= committed]
        operator = programs[-1]["operators"][0]
        alone = [_all(self.alone[number or len(operator) == 1]) for number in map(bool, range(len(operator)))]
        parts = [(was, begins, rows) for (was, begins), rows in zip(operator, alone, strict=True)]
        names = [name for name in _all(self.alone[True])[0] if name != "previous"]
        return difference(*as_one(parts, operator[-1][0], names, [{name: row.get(name) for name in names} for row in got]))


def _all(batches: dict[int, Rows]) -> Rows:
    return [row for number in sorted(batches) for row in batches[number]]


def _applied(batches: dict[int, Rows]) -> Rows:
    """Return the table that a changelog makes."""
    table = dict[Any, dict[str, Any]]()
    for row in _all({number: sorted(rows, key=_appears) for number, rows in batches.items()}):
        table.pop(row["id"], None)
        if _appears(row):
            table[row["id"]] = {name: value for name, value in row.items() if name != CHANGE_TYPE}
    return list(table.values())


def _appears(row: dict[str, Any]) -> bool:
    return row[CHANGE_TYPE] in APPEARING


def _run(spark: Any, names: Iterable[str], source: Path, work: Path, is_new: bool) -> None:
    """Run programs to the end of the input, all at once."""
    queries = [changed_programs.start(spark, name, str(source), work / name, is_new) for name in names]
    for query in queries:
        query.awaitTermination()


@pytest.fixture(scope="module")
def cases(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Case]]:
    """The input, and the programs that are killed; the others are left out where there are few kills."""
    folder = tmp_path_factory.mktemp("changed")
    source, files = folder / "in", _files()
    names = random.Random(SEED).sample(sorted(PROGRAMS), min(KILLS, len(PROGRAMS)))
    _write(source, files[:BEFORE], 0)
    for is_new in (False, True):
        _run(spark, names, source, folder / f"alone-{is_new}", is_new)
    shutil.copytree(folder / "alone-False", folder / "old")
    _write(source, files[BEFORE:], BEFORE)
    for is_new in (False, True):
        _run(spark, names, source, folder / f"alone-{is_new}", is_new)
    found = {
        name: Case(name, folder / "old" / name, 1 + _last(folder / "old" / name / "checkpoint", "offsets")) for name in names
    }
    for name, case in found.items():
        case.alone = {is_new: _results(folder / f"alone-{is_new}" / name) for is_new in (False, True)}
        changes = wp.changes(PROGRAMS[name](spark, str(source), True), f"{case.old}/checkpoint")
        case.verdict = changes.verdict
        assert changes.verdict in ("safe", "accept")
    return source, found


def test_a_kill_in_the_first_batch_behind_a_change_leaves_one_of_the_two_programs(
    spark: Any, cases: tuple[Path, dict[str, Case]], tmp_path: Path
) -> None:
    (source, found), chance, seen, kills = cases, random.Random(SEED), Counter[str](), 0
    while kills < KILLS:
        work = tmp_path / str(kills)
        names = chance.sample(sorted(found), min(len(found), KILLS - kills))
        running = (len(names) + 1) // 2
        places = {name: (found[name].at, chance.choice(STALLED)) for name in names[running:]}
        places |= {name: (found[name].at, "none") for name in names[:running]}
        for name in names:
            shutil.copytree(found[name].old, work / name)
        _kill(source, work, places, chance.choice(RUNNING), chance)
        kills += len(names)
        goes_back = _looked_at(spark, source, work, [found[name] for name in names], chance, seen)
        for is_new in (False, True):
            _run(spark, [name for name in names if (name in goes_back) != is_new], source, work, is_new)
        for name in names:
            if _planned(work / name / "checkpoint") != set(range(BEFORE + BEHIND + 1)):
                seen["two files in a batch"] += 1
                continue
            problem = found[name].problem(spark, work / name, is_new=name not in goes_back)
            assert problem is None, f"{name}, {places[name]}, {goes_back}: {problem}"
        print(f"{kills} kills: {dict(seen)}", flush=True)


def _kill(source: Path, work: Path, places: dict[str, tuple[int, str]], moment: str, chance: random.Random) -> None:
    """Run the changed programs, and kill them when one of those that do not stall gets to a moment."""
    name, at = next((name, at) for name, (at, place) in places.items() if place == "none")
    checkpoint, delay = work / name / "checkpoint", chance.random() * 2 if moment == "at random" else 0

    def got_there() -> bool:
        if not (checkpoint / "offsets" / str(at)).exists():
            return False
        return moment != "in tasks" or any((checkpoint / "state").glob(f"*/*/{at + 1}.*"))

    Killable(source, work, json.dumps(places), program=PROGRAM).kill_when(got_there, delay)
    time.sleep(0.2)  # workers see that their JVM is gone


def _looked_at(
    spark: Any, source: Path, work: Path, cases: Sequence[Case], chance: random.Random, seen: Counter[str]
) -> set[str]:
    """Check that each checkpoint has one of the two programs, count where it was killed, and choose those that go back."""
    goes_back = set[str]()
    for case in cases:
        checkpoint = work / case.name / "checkpoint"
        is_begun, is_committed = ((checkpoint / log / str(case.at)).exists() for log in ("offsets", "commits"))
        has_state = any((checkpoint / "state").glob(f"*/*/{case.at + 1}.*"))
        verdict = wp.changes(PROGRAMS[case.name](spark, str(source), True), str(checkpoint)).verdict
        assert verdict == ("same" if is_committed else case.verdict), case.name
        where = "state committed" if has_state else "in the tasks, or before them"
        seen["behind" if is_committed else where if is_begun else "not begun"] += 1
        if not is_committed and chance.random() < 0.25:
            goes_back.add(case.name)
            seen["went back"] += 1
    return goes_back
