"""A store of SQL views on Spark: DuckDB's file and Spark's folders, packed. Rows come as files, with a flush behind each.

Its views are groups of windows in a program below a Top-N, as windows close and as they change; joins, Top-N, OVER, groups and
DISTINCT by integers, times, short and long texts; a view of a view; and nodes by one key, which run in one operator.
"""

from __future__ import annotations

import json
import os
import tarfile
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from tests.golden.checkpoints import extract, plain, replace_words
from windowpane.sql import Session

FOLDER = Path(__file__).parent / "views_on_spark"
RESULTS, _PACKED = FOLDER / "results.json", FOLDER / "store.tar.xz"
"""The batches, and the rows of the views before and behind the later ones; the store between them."""
SPLIT = 2
"""So many files came before the store was packed."""
STORE = "views.duckdb"
_HERE, _STREAMS = "@FOLDER@", f"{STORE}.streams"
_TYPES = {"k": pa.int32(), "name": pa.string(), "v": pa.int32(), "at": pa.timestamp("us")}

Row = list[Any]
Views = dict[str, list[list[str | None]]]
"""The rows of every view, as PostgreSQL prints them, sorted."""


def random_batches(seed: int, count: int) -> list[list[Row]]:
    """Make batches of rows, the time in seconds: late rows, ties, NULLs, and rows without a time."""
    draw = Random(seed)
    return [[_random_row(draw, 180 * number) for _ in range(16)] for number in range(count)]


def _random_row(draw: Random, since: int) -> Row:
    at = draw.choice([None] + [since + draw.randrange(-180, 300) for _ in range(9)])
    return [draw.choice([None, 1, 2]), draw.choice([None, "a", "b", ""]), draw.choice([None, 0, 1, 2, 3, -4]), at]


def add(work: Path, number: int, rows: Sequence[Row]) -> None:
    """Add the file of a batch."""
    (work / "in").mkdir(exist_ok=True)
    *columns, seconds = zip(*rows, strict=True)
    times = [None if at is None else datetime(2024, 1, 1, 10) + timedelta(seconds=at) for at in seconds]
    arrays = [pa.array(column, kind) for column, kind in zip([*columns, times], _TYPES.values(), strict=True)]
    path = work / "in" / f"{number:04}.parquet"
    pq.write_table(pa.table(arrays, names=list(_TYPES)), path)
    os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))


def run(spark: Any, work: Path, batches: Mapping[int, Sequence[Row]]) -> Views:
    """Run the session of a folder, on Spark or without, over the files of further batches; return the rows of all views.

    Args:
        spark: the session of Spark, or ``None``.
        work: the folder of the store and of the files.
        batches: rows by the number of their file.
    """
    with Session(spark, str(work / STORE)) as session:
        for number, rows in batches.items():
            add(work, number, rows)
            if not session.relations():
                script = (FOLDER / "views.sql").read_text().replace(_HERE, str(work))
                session.run(script if spark is not None else script.replace(", maxFilesPerTrigger = '1'", ""))
            session.run("FLUSH")
        names = [row[0] for row in session.query("SHOW MATERIALIZED VIEWS").rows()]
        return {name: sorted(session.query(f"SELECT * FROM {name}").text_rows(), key=repr) for name in names}


def unpack(work: Path) -> None:
    """Unpack the store into a folder."""
    extract(_PACKED, work)
    _replace(work, _HERE, str(work))


def _pack(work: Path) -> None:
    """Pack the store of a folder that no session has open, with a word in place of where it stands."""
    _replace(work, str(work), _HERE)
    with tarfile.open(_PACKED, "w:xz") as archive:
        for name in (STORE, _STREAMS):
            archive.add(work / name, arcname=name, filter=plain)
    _replace(work, _HERE, str(work))


def write(spark: Any, work: Path) -> None:
    """Write the store after the first batches, with all batches and the results before and behind.

    Raises:
        SystemExit: a run that was never stopped, or one without Spark, gives other rows.
    """
    batches = dict(enumerate(random_batches(seed=77, count=4)))
    first = {number: rows for number, rows in batches.items() if number < SPLIT}
    later = {number: rows for number, rows in batches.items() if number >= SPLIT}
    stopped, undisturbed, embedded = (work / name for name in ("stopped", "undisturbed", "embedded"))
    for folder in (stopped, undisturbed, embedded):
        folder.mkdir()
    before = run(spark, stopped, first)
    _pack(stopped)
    after = run(spark, stopped, later)
    if run(None, embedded, first) != before or run(None, embedded, later) != after:
        raise SystemExit("without Spark the views have other rows")
    if run(spark, undisturbed, batches) != after:
        raise SystemExit("the store that was closed in the middle gives other rows than one that was not")
    lines = json.dumps({"batches": list(batches.values()), "before": before, "after": after}, ensure_ascii=False)
    RESULTS.write_text(lines.replace("]], ", "]],\n").replace("}, ", "},\n") + "\n")


def _replace(work: Path, old: str, new: str) -> None:
    """Replace a text in what the store and Spark's checkpoints write down of paths."""
    with duckdb.connect(str(work / STORE)) as store:
        store.execute("UPDATE windowpane.catalog SET text = replace(text, ?, ?)", [old, new])
    for checkpoint in (work / _STREAMS).glob("*/checkpoint"):
        replace_words(checkpoint, {old: new})
