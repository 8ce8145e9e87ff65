"""Tables that windowpane writes, read by the jars of Delta and Iceberg: the same rows, and a stream of them in windows."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from tests.connectors.conftest import jars
from tests.connectors.test_tables import catalog_in
from tests.spark.helpers import SPARK, instant
from windowpane.connectors import delta, iceberg

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.skipif(SPARK != (4, 1), reason="jars of Delta and Iceberg are there for Spark 4.1 alone"),
]

ARTIFACTS = ("io.delta:delta-spark_4.1_2.13:4.2.0", "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0")
NEEDED = ("delta-", "iceberg-", "unitycatalog-")


def test_tables_that_are_merged_are_read_by_the_jars_of_spark(tmp_path: Path) -> None:
    given = jars("delta-iceberg-4.1", *ARTIFACTS, beginning=NEEDED)
    made = pa.table({"k": ["a", "b", "a"], "v": [1, 2, 4], "t": [instant(1), instant(2), instant(12)]})
    changed = pa.table({"k": ["b"], "v": [8], "t": [instant(3)]})
    rows = made.set_column(2, "t", made["t"].cast(pa.timestamp("us", "UTC")))
    one, other = delta.Table(str(tmp_path / "delta")), iceberg.Table("db.t", catalog_in(tmp_path))
    for table in (one, other):
        table.prepared(rows.schema)
        table.merge(rows.to_batches(), ("k", "t"), "query", 0)
        table.merge(changed.cast(rows.schema).to_batches(), ("k", "t"), "query", 1)
    opened = other.opened()
    assert opened is not None
    program = Path(__file__).with_name("read_tables_by_jar_program.py")
    environment = {**os.environ, "PYTHONPATH": f"{program.parents[2]}:{os.environ.get('PYTHONPATH', '')}"}
    command = [sys.executable, str(program), given, str(tmp_path / "delta"), opened.metadata_location, str(tmp_path)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3_000:]
    by_delta, by_iceberg, windows = map(ast.literal_eval, done.stdout.strip().splitlines()[-3:])
    assert by_delta == by_iceberg == [("a", 1), ("a", 4), ("b", 2), ("b", 8)]
    assert windows == [("a", 0, 1, 1), ("a", 10, 1, 4), ("b", 0, 2, 10)]
