"""``python -m tests.golden.write [NAME ...]``: keep checkpoints and stores, and the results of going on from them.

A checkpoint that is kept is a promise: later versions go on from it with the same results, or refuse it by name. So a name is
written once; to write it again, delete its files first, and say in the changelog why the promise is broken.
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
from tests.golden.checkpoints import FOLDER, INPUT, SPLIT, Golden, go_on, pack, random_batches, unpack
from tests.golden.programs import PROGRAMS

SEED, BATCHES = 20_241, 6


def write(spark: Any, name: str) -> str:
    """Keep the checkpoint of a program after half of its rows, and its results; return what was done."""
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
    Golden(before, after).write(name)
    return f"{name}: " + ", ".join(f"{len(rows)} + {len(after[output])} rows {output}" for output, rows in before.items())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="programs; all that have no checkpoint if left out")
    given = parser.parse_args()
    FOLDER.mkdir(exist_ok=True)
    if not INPUT.exists():
        INPUT.write_text(json.dumps(random_batches(SEED, BATCHES), ensure_ascii=False).replace("]], [[", "]],\n[[") + "\n")
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    settings = SETTINGS | {"spark.sql.shuffle.partitions": "1"}
    spark = SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    if not stores.RESULTS.exists():
        with tempfile.TemporaryDirectory() as folder:
            stores.write(Path(folder))
        print("views: kept", flush=True)
    for store in stores_on_spark.STORES:
        if not store.results.exists():
            with tempfile.TemporaryDirectory() as folder:
                store.write(spark, Path(folder))
            print(f"views on Spark, {store.name}: kept", flush=True)
    for name in given.names or PROGRAMS:
        if (FOLDER / f"{name}.json").exists():
            print(f"{name}: kept already")
        else:
            print(write(spark, name), flush=True)


if __name__ == "__main__":
    main()
