"""``python -m tests.golden.write [NAME ...]``: make the golden checkpoints and stores, and the results of going on from them.

What exists is left alone: to make it anew, delete its files first. Until 0.1.0 is released a format of state may change, and what
has it is made anew in the same commit; the checkpoints of 0.1.0 are opened by every later version.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.conftest import SETTINGS
from tests.golden import stores, stores_on_spark
from tests.golden.checkpoints import FOLDER, INPUT, SPLIT, go_on, pack, random_batches, unpack, write_results
from tests.golden.programs import PROGRAMS

SEED, BATCHES = 20_241, 6
STORES = {"views": stores.RESULTS, "views_on_spark": stores_on_spark.RESULTS}
"""Stores of SQL, each with the file that says it exists."""


def write(spark: Any, name: str) -> str:
    """Write the checkpoint of a program after half of its rows, and its results; return what was done."""
    batches = json.loads(INPUT.read_text())
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        before = go_on(spark, name, batches[:SPLIT], work / "in", work / "checkpoint")
        pack(name, work / "checkpoint", work / "in")
        unpack(name, work / "unpacked", work / "in")
        after = go_on(spark, name, batches, work / "in", work / "unpacked")
        whole = go_on(spark, name, batches, work / "in", work / "undisturbed")
    parts = {output: sorted(rows + after[output]) for output, rows in before.items()}
    if parts != {output: sorted(rows) for output, rows in whole.items()}:
        raise SystemExit(f"{name}: the restarted run gives other rows than one that was never stopped")
    write_results(name, {output: sorted(rows) for output, rows in after.items()})
    return f"{name}: " + ", ".join(f"{len(rows)} + {len(after[output])} rows {output}" for output, rows in before.items())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="programs and stores; all that do not exist if left out")
    names = parser.parse_args().names or [*PROGRAMS, *STORES]
    FOLDER.mkdir(exist_ok=True)
    if not INPUT.exists():
        INPUT.write_text(json.dumps(random_batches(SEED, BATCHES), ensure_ascii=False).replace("]], [[", "]],\n[[") + "\n")
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    settings = SETTINGS | {"spark.sql.shuffle.partitions": "1"}
    spark = SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    for name in names:
        if (STORES.get(name) or FOLDER / f"{name}.json").exists():
            print(f"{name}: is there already")
        elif name in PROGRAMS:
            print(write(spark, name), flush=True)
        else:
            with tempfile.TemporaryDirectory() as folder:
                stores.write(Path(folder)) if name == "views" else stores_on_spark.write(spark, Path(folder))
            print(f"{name}: written", flush=True)


if __name__ == "__main__":
    main()
