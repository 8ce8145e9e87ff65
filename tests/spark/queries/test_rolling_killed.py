"""kill -9 of rolling features in the batch that takes their history, and in a later one: in the end the answer is DuckDB's."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.spark import rolling_restart_program
from tests.spark.helpers import instant
from tests.spark.queries.test_restart import Killable

pytestmark = pytest.mark.slow

PROGRAM = Path(rolling_restart_program.__file__)
NAMES = ("each", "tick")
FILES = 6
LAST = 100

AS_OF = ", ".join(
    f"(SELECT {call} FROM rows r WHERE r.k = f.k AND r.moment > f.as_of - {micros} AND r.moment <= f.as_of)"
    for call in ("count(*)", "sum(v)")
    for micros in (5_000_000, 30_000_000)
)


def add(folder: Path, *numbers: int) -> None:
    """Add files: 30 rows around second 8 * ``number``, up to 15 seconds behind; the last is far ahead."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in numbers:
        chance = random.Random(number)
        rows = [(f"k{chance.randrange(4)}", 8 * number - chance.randrange(16), 100 * number + i) for i in range(30)]
        rows = rows if number < LAST else [("end", 10_000, -1)]
        keys, times, values = zip(*rows, strict=True)
        stamps = pa.array(map(instant, times), pa.timestamp("us", "UTC"))
        path = folder / f"{number + 100}.parquet"
        pq.write_table(pa.table([pa.array(keys), stamps, pa.array(values, pa.int64())], names=["k", "t", "v"]), path)
        os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, list[Any]]]:
    """The input, and what all runs together have written of each program."""
    folder = tmp_path_factory.mktemp("killed")
    source, work = folder / "input", folder / "work"
    work.mkdir()
    add(source / "past", *range(-5, 2))
    add(source / "live", *range(FILES))
    for batch in (0, 3):
        killable = Killable(source, work, batch, program=PROGRAM)
        killable.kill_when(lambda at=batch: all((work / f"{name}.{at}").exists() for name in NAMES))  # type: ignore[misc]
        assert all(not (work / name / "checkpoint" / "commits" / str(batch)).exists() for name in NAMES)
    add(source / "live", LAST)
    Killable(source, work, "--finish", program=PROGRAM).succeed()
    found: dict[str, list[Any]] = json.loads((work / "results.json").read_text())
    return source, found


@pytest.fixture
def rows(written: tuple[Path, dict[str, list[Any]]]) -> Any:
    """A database with the rows that count: those before the cut of the history, the others of the stream."""
    source, cut = written[0], int(instant(0).timestamp() * 1_000_000)
    with duckdb.connect() as connection:
        connection.execute(
            f"CREATE TABLE rows AS SELECT k, epoch_us(t) AS moment, v FROM '{source}/past/*.parquet' WHERE epoch_us(t) < {cut} "
            f"UNION ALL SELECT k, epoch_us(t), v FROM '{source}/live/*.parquet' WHERE epoch_us(t) >= {cut}"
        )
        yield connection, cut


@pytest.mark.spark
def test_each_row_of_a_killed_query_has_what_a_database_gives_it(written: tuple[Path, dict[str, list[Any]]], rows: Any) -> None:
    connection, cut = rows
    instants = f"SELECT k, moment AS as_of FROM rows WHERE moment >= {cut} AND k <> 'end'"
    query = f"SELECT k, as_of, {AS_OF} FROM ({instants}) AS f"
    expected = [list(row) for row in connection.execute(query).fetchall()]
    found = [row for row in written[1]["each"] if row[0] != "end"]
    assert sorted(found) == sorted(expected)
    assert len(found) > FILES * 20


@pytest.mark.spark
def test_each_tick_of_a_killed_query_has_what_a_database_gives_it(written: tuple[Path, dict[str, list[Any]]], rows: Any) -> None:
    connection, cut = rows
    found = [row for row in written[1]["tick"] if row[0] != "end"]
    assert len({(row[0], row[1]) for row in found}) == len(found) > 30
    keys, instants = zip(*((row[0], row[1]) for row in found), strict=True)
    connection.register("f", pa.table({"k": pa.array(keys), "as_of": pa.array(instants, pa.int64())}))
    expected = [list(row) for row in connection.execute(f"SELECT k, as_of, {AS_OF} FROM f").fetchall()]
    assert sorted(found, key=repr) == sorted(expected, key=repr)
    assert {row[0] for row in found if row[1] == cut + 5_000_000 - 1} == {"k0", "k1", "k2", "k3"}
