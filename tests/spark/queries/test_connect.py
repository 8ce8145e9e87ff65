"""Spark Connect: the same programs through ``SparkSession.builder.remote``, in a process of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.spark.helpers import SPARK

pytestmark = [pytest.mark.spark, pytest.mark.skipif(SPARK < (4, 1), reason="transformWithState on Connect came with Spark 4.1")]

ROOT = Path(__file__).parents[3]


def said_by(part: str, folder: Path) -> dict[str, Any]:
    """Return what a part of the program says."""
    script = [sys.executable, "-m", "tests.spark.connect_program", str(folder), part]
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(script, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=500, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    assert not any(noise in done.stdout + done.stderr for noise in ("Received UDF from JVM", "readInArrow"))
    said: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return said


def test_static_and_streaming_programs(tmp_path: Path) -> None:
    said = said_by("start", tmp_path)
    assert said["static"] == [["a", 0, 10, 3, 108], ["a", 30, 40, 1, 2], ["b", 0, 10, 1, 5]]
    assert said["main"] == [["a", 0, 10, 8], ["b", 0, 10, 5]]
    assert said["late"] == [["a", 4, 100, [[0, 10]], True]]
    assert said["large"] == [["a", 8]]
    assert said["late_dropped"] == 1
    assert said["behind_main"] == [[0, 10, 13]]
    assert said["behind_late"] == [["a", 4, 100, [[0, 10]], True]]
    assert said["operators"] == 2
    assert "UnknownColumnError" in said["refused"]
    assert "write wp.col('name') in its place" in said["stands_first"]
    assert "windowpane.errors.UserFunctionError" in said["raised"]


@pytest.mark.slow
def test_over_windows_of_static_rows_and_of_a_stream(tmp_path: Path) -> None:
    said = said_by("over", tmp_path)
    assert said["ranked"] == [
        ["a", 1, 4, 6, "insert"],
        ["a", 100, 2, 98, "insert"],
        ["a", 2, 1, None, "insert"],
        ["a", 7, 3, 93, "insert"],
        ["b", 5, 1, None, "insert"],
    ]
    assert said["alone"] == [["a", 2], ["b", 5]]
    assert said["over_main"] == [["a", 1, 1, 1], ["a", 3, 7, 13], ["b", 2, 5, 6]]
    assert said["over_late"] == [["a", 4, 100, True]]


@pytest.mark.slow
def test_rows_that_python_makes_watermarks_of_the_operator_and_a_sink_of_spark(tmp_path: Path) -> None:
    said = said_by("other ways", tmp_path)
    assert said["df"] == [["a", 0, 10, 2, 8], ["b", 0, 10, 1, 5]]
    assert (said["made_main"], said["made_late"]) == ([["a", 2], ["b", 1]], [["a", 100]])
    assert (said["of_source"], said["of_key"]) == ([["a", 2], ["b", 1]], [["a", 2]])
    assert (said["generated"], said["counted"] + said["counted_late"]) == (100, 100)
    assert (said["listed"], said["listed_late"]) == (3, 1)


@pytest.mark.slow
def test_joins_of_static_rows_and_of_streams(tmp_path: Path) -> None:
    said = said_by("joins", tmp_path)
    assert said["as_of"] == [["a", 1, None], ["a", 100, 7], ["a", 2, 100], ["a", 7, 1], ["b", 5, None]]
    assert said["near"] == [["a", 1, 7], ["a", 7, None], ["b", 5, None]]


@pytest.mark.slow
def test_rolling_features_of_static_rows_labels_and_a_stream_with_a_history(tmp_path: Path) -> None:
    said = said_by("rolling", tmp_path)
    assert said["at"] == [["a", 1, 0, None], ["a", 3, 1, 1], ["a", 30, 0, None], ["a", 4, 2, 8], ["b", 2, 0, None]]
    assert said["each"] == [["a", 1, 1, 1], ["a", 3, 2, 8], ["a", 30, 1, 2], ["a", 4, 3, 108], ["b", 2, 1, 5]]
    assert ["a", 1, 2, 51] in said["online"]
    assert ["b", 2, 1, 5] in said["online"]
    assert not any(row[0] == "c" for row in said["online"])  # at the first tick its row has left


@pytest.mark.slow
def test_a_stream_that_ends_and_the_latest_of_its_results(tmp_path: Path) -> None:
    said = said_by("ending", tmp_path)
    assert said["latest"] == [["a", 0, 108, "LATE"], ["a", 30, 2, "ON_TIME"], ["b", 0, 5, "ON_TIME"]]
    assert ["a", 0, 8, "ON_TIME"] in said["all"]
    assert not said["still_runs"]
    assert "flush_at_end=True has ended" in said["again"]
    assert "origin" in said["refused"]


@pytest.mark.slow
def test_what_would_wait_for_ever_and_a_writer_without_a_query_are_refused(tmp_path: Path) -> None:
    said = said_by("refused", tmp_path)
    assert "nothing would ever be emitted" in said["second"]
    assert "one meaning before the union" in said["mixed"]
    assert said["delays"] == [15_000_000, 15_000_000]
    assert "does not know its query on Spark Connect" in said["writer"]
