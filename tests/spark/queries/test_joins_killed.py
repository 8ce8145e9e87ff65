"""kill -9 in the middle of a batch of a join of each kind, both sides in disorder: in the end the answer is DuckDB's."""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.spark import join_restart_program
from tests.spark.helpers import instant
from tests.spark.queries.test_restart import Killable
from windowpane.windowing.outputs import APPEARING

pytestmark = pytest.mark.slow

PROGRAM = Path(join_restart_program.__file__)
KINDS = ("interval", "window", "as_of", "on_update")
FILES = 6

ON = {
    "interval": "SELECT v, w FROM l FULL JOIN r ON l.k = r.k AND r.t - l.t BETWEEN INTERVAL '-5 s' AND INTERVAL '3 s'",
    "window": "SELECT v, w FROM l LEFT JOIN r ON l.k = r.k AND epoch(l.t)::bigint // 10 = epoch(r.t)::bigint // 10",
    "as_of": "SELECT v, w FROM l ASOF LEFT JOIN r ON l.k = r.k AND l.t >= r.t",
}

ON["on_update"] = ON["as_of"]


def add(folder: Path, *numbers: int) -> None:
    """Add files to both sides: 30 rows around second 8 * ``number``, up to 15 seconds behind; the last is far ahead."""
    for side, value in (("left", "v"), ("right", "w")):
        (folder / side).mkdir(parents=True, exist_ok=True)
        for number in numbers:
            chance = random.Random(f"{side} {number}")
            # No two right rows of a key have one time, so there is one answer as of an instant.
            seconds = sorted({8 * number - chance.randrange(16) + number / 100 + chance.randrange(4) / 1000 for _ in range(30)})
            chance.shuffle(seconds)
            rows = [(f"k{chance.randrange(4)}", second, 100 * number + i) for i, second in enumerate(seconds)]
            rows = rows if number < FILES else [("end", 10_000.0, -1)]
            keys, times, values = zip(*rows, strict=True)
            stamps = pa.array(map(instant, times), pa.timestamp("us", "UTC"))
            path = folder / side / f"{number}.parquet"
            pq.write_table(pa.table([pa.array(keys), stamps, pa.array(values, pa.int64())], names=["k", "t", value]), path)
            os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, list[list[int | None]]]]:
    """The input, and what all runs together have written of each kind."""
    folder = tmp_path_factory.mktemp("killed")
    source, work = folder / "input", folder / "work"
    work.mkdir()
    add(source, *range(FILES))
    Killable(source, work, program=PROGRAM).kill_when(lambda: all((work / f"{kind}.stalled").exists() for kind in KINDS))
    assert all(not (work / kind / "checkpoint" / "commits" / str(join_restart_program.STALLS_IN)).exists() for kind in KINDS)
    add(source, FILES)
    Killable(source, work, "--finish", program=PROGRAM).succeed()
    found: dict[str, list[list[int | None]]] = json.loads((work / "results.json").read_text())
    return source, found


@pytest.mark.spark
@pytest.mark.parametrize("kind", KINDS)
def test_a_killed_join_gives_the_answer_of_a_database(written: tuple[Path, dict[str, list[list[int | None]]]], kind: str) -> None:
    source, found = written
    with duckdb.connect() as connection:
        for name, side in (("l", "left"), ("r", "right")):
            connection.execute(f"CREATE TABLE {name} AS FROM '{source}/{side}/*.parquet'")
        expected = connection.execute(ON[kind]).fetchall()
    # What the last row, far ahead, would make final at its own end is not there yet.
    wrote, wanted = ([tuple(row) for row in rows if -1 not in row] for rows in (found[kind], expected))
    if kind == "on_update":
        net = Counter[tuple[Any, ...]]()
        for *row, word in wrote:
            net[tuple(row)] += 1 if word in APPEARING else -1
        assert min(net.values()) >= 0
        assert len(wrote) > net.total(), "no row was corrected"
        wrote = list(net.elements())
    assert sorted(wrote, key=repr) == sorted(wanted, key=repr)
    assert len(wrote) > FILES * 20
