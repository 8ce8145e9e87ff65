"""kill -9 in ten batches of a row pattern, before or after their tasks; rows in disorder.

In the end it has found what DuckDB's anti join finds.
"""

from __future__ import annotations

import json
import os
import random
import signal
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.spark import pattern_restart_program
from tests.spark.helpers import instant
from tests.spark.queries.test_restart import Killable

pytestmark = pytest.mark.slow

PROGRAM = Path(pattern_restart_program.__file__)
KILLS = 10
EXPECTED = """
    SELECT k, v FROM rows AS placed WHERE kind = 'order' AND v >= 0 AND NOT EXISTS (
        FROM rows AS paid WHERE paid.kind = 'pay' AND paid.k = placed.k
        AND paid.t > placed.t AND paid.t < placed.t + INTERVAL 10 SECOND
    )
"""


def write(folder: Path) -> None:
    """Write a file a batch: 40 rows around second 8 * ``number``, up to 15 seconds behind, each at a time of its own."""
    folder.mkdir()
    for number in range(KILLS + 2):
        chance = random.Random(number)
        seconds = [8 * number - chance.randrange(16) + number / 100 + place / 10_000 for place in range(40)]
        rows = [
            (f"k{chance.randrange(9)}", at, chance.choice(["order", "pay"]), 100 * number + i) for i, at in enumerate(seconds)
        ]
        rows = rows if number <= KILLS else [("end", 10_000.0, "order", -1)]
        keys, times, kinds, values = zip(*rows, strict=True)
        stamps = pa.array(map(instant, times), pa.timestamp("us", "UTC"))
        path = folder / f"{number:02}.parquet"
        pq.write_table(pa.table([pa.array(keys), stamps, pa.array(kinds), pa.array(values)], names=["k", "t", "kind", "v"]), path)
        os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))


@pytest.mark.spark
def test_a_pattern_that_is_killed_ten_times_finds_what_an_anti_join_finds(tmp_path: Path) -> None:
    source, work = tmp_path / "input", tmp_path / "work"
    write(source)
    work.mkdir()
    for batch in range(1, KILLS + 1):
        marker = work / f"stalled.{batch}"
        run = Killable(source, work, str(batch), program=PROGRAM)
        run.kill_when(marker.exists)
        assert run.process.returncode == -signal.SIGKILL
        begun, done = (work / "checkpoint" / log / str(batch) for log in ("offsets", "commits"))
        assert (begun.exists(), done.exists()) == (True, False)
        assert (work / "main" / f"batch={batch}" / "_SUCCESS").exists() == (batch % 2 == 0)
    Killable(source, work, "--finish", program=PROGRAM).succeed()
    found = [tuple(row) for row in json.loads((work / "results.json").read_text())]
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE rows AS FROM '{source}/*.parquet'")
        expected = connection.execute(EXPECTED).fetchall()
    assert sorted(found) == sorted(expected)
    assert len(found) > 10
