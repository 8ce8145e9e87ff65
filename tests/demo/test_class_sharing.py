"""``windowpane share-classes``: a session maps the classes of the archive that it has written, in place of reading them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from windowpane.cli import app

_SESSION = """
import sys
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[1]").config("spark.driver.extraJavaOptions", sys.argv[1]).getOrCreate()
print(spark.range(3).count())
spark.stop()
"""


@pytest.mark.slow
@pytest.mark.spark
def test_a_session_takes_the_classes_of_the_archive(tmp_path: Path) -> None:
    archive, loaded = tmp_path / "of spark.jsa", tmp_path / "loaded.txt"
    command = [sys.executable, "-m", "windowpane", "share-classes", str(archive)]

    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout

    setting, _, option = said.strip().partition(" ")
    assert (setting, option) == ("spark.driver.extraJavaOptions", f'"-XX:SharedArchiveFile={archive}"')
    option += f" -Xlog:class+load:file={loaded}"
    done = subprocess.run([sys.executable, "-c", _SESSION, option], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("3\n")
    sources = [line.rpartition("source: ")[2] for line in loaded.read_text().splitlines() if " org.apache.spark." in line]
    mapped = sum(source.startswith("shared objects file (top)") for source in sources)
    assert mapped > len(sources) / 2  # the others are those that it makes as it runs


@pytest.mark.parametrize(
    ("name", "why"), [("absent/spark.jsa", "there is no folder"), ("rows.parquet", "such archives end with .jsa")]
)
def test_an_archive_goes_into_a_folder_that_is_there_and_over_nothing_else(tmp_path: Path, name: str, why: str) -> None:
    (tmp_path / "rows.parquet").write_bytes(b"rows")

    done = CliRunner().invoke(app, ["share-classes", str(tmp_path / name)], env={"COLUMNS": "300", "NO_COLOR": "1"})

    assert done.exit_code == 2
    assert why in done.output
    assert (tmp_path / "rows.parquet").read_bytes() == b"rows"
