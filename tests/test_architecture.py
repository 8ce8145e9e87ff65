"""The contracts of import-linter can fail: a forbidden import planted in a skeleton of the rooms is reported.

`make lint` checks the package itself; this keeps the contracts from being so loose that nothing breaks them.
"""

import subprocess
import sys
from pathlib import Path

import pytest

PYPROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"
UPPER_ROOMS = [
    "cli",
    "demo",
    "testing",
    "sql",
    "over",
    "rolling",
    "matching",
    "stream",
    "checkpoints",
    "result",
    "sinks",
    "sources",
    "spark",
    "planning",
]
LOWER_ROOMS = ["engines", "kernels", "operators", "state", "windowing", "errors"]

ALLOWED = {
    "cli": "import windowpane.sql, windowpane.stream, windowpane.testing",
    "demo": "import windowpane.stream",
    "engines": "import windowpane.kernels, windowpane.operators, windowpane.state, windowpane.windowing",
    "kernels": "import duckdb, pyarrow, windowpane.windowing",
    "over": "import windowpane.planning, windowpane.result, windowpane.spark",
    "matching": "import windowpane.planning, windowpane.result, windowpane.spark",
    "rolling": "import windowpane.planning, windowpane.result, windowpane.spark",
    "operators": "import windowpane.state, windowpane.windowing, windowpane.errors",
    "planning": "import windowpane.engines",
    "checkpoints": "import windowpane.spark, windowpane.state",
    "result": "import windowpane.planning, windowpane.spark",
    "sinks": "import windowpane.planning, windowpane.spark",
    "sources": "import windowpane.connectors, windowpane.spark",
    "spark": "import pyspark.sql, pandas, windowpane.planning, windowpane.engines",
    "sql": "import sqlglot, windowpane.stream, windowpane.over",
    "stream": "import windowpane.planning, windowpane.spark",
}

FORBIDDEN = [
    ("Imports run downward", "windowing", "import windowpane.operators"),
    ("Imports run downward", "windowing", "import windowpane.state"),
    ("Imports run downward", "state", "import windowpane.operators"),
    ("Imports run downward", "operators", "import windowpane.kernels"),
    ("Imports run downward", "kernels", "import windowpane.engines"),
    ("Imports run downward", "engines", "import windowpane.planning"),
    ("Imports run downward", "planning", "import windowpane.spark"),
    ("Imports run downward", "spark", "import windowpane.stream"),
    ("Imports run downward", "stream", "import windowpane.sql"),
    ("Imports run downward", "sql", "import windowpane.cli"),
    ("Imports run downward", "errors", "import windowpane.windowing"),
    ("Kernels know nothing of state", "kernels", "import windowpane.state"),
    ("Only spark/ imports pyspark", "stream", "def later():\n    from pyspark.sql import DataFrame"),
    ("Only spark/ imports pyspark", "engines", "import pandas"),
    ("Only the APIs enter spark/", "demo", "import windowpane.spark"),
    ("Only the APIs enter spark/", "testing", "def later():\n    from windowpane.spark import build"),
    ("Only sql/ imports sqlglot", "over", "import sqlglot"),
]


@pytest.fixture
def skeleton(tmp_path: Path) -> Path:
    """A package with every room, each importing what it may."""
    package = tmp_path / "windowpane"
    for room in UPPER_ROOMS + LOWER_ROOMS:
        (package / room).mkdir(parents=True)
        (package / room / "__init__.py").write_text(ALLOWED.get(room, "") + "\n")
    (package / "__init__.py").write_text("")
    return package


def lint(package: Path) -> "subprocess.CompletedProcess[str]":
    script = "from importlinter.cli import lint_imports_command as run; run()"
    command = [sys.executable, "-c", script, "--no-logo", "--no-cache", "--config", str(PYPROJECT)]
    return subprocess.run(command, cwd=package.parent, capture_output=True, text=True, timeout=60)


def test_allowed_imports_are_kept(skeleton: Path) -> None:
    result = lint(skeleton)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "BROKEN" not in result.stdout


@pytest.mark.parametrize(("contract", "room", "code"), FORBIDDEN)
def test_forbidden_import_is_reported(skeleton: Path, contract: str, room: str, code: str) -> None:
    (skeleton / room / "planted.py").write_text(code + "\n")
    result = lint(skeleton)
    assert result.returncode == 1, result.stdout + result.stderr
    assert f"{contract} BROKEN" in result.stdout


def room(package: Path, name: str, code: str) -> None:
    (package / name).mkdir(parents=True)
    (package / name / "__init__.py").write_text(code + "\n")


def test_a_room_of_spark_that_enters_one_above_is_reported(skeleton: Path) -> None:
    room(skeleton, "spark/queries", "")
    room(skeleton, "spark/stages", "import windowpane.spark.queries")
    result = lint(skeleton)
    assert result.returncode == 1, result.stdout + result.stderr
    assert "Rooms of spark/ are entered from above BROKEN" in result.stdout


def test_rooms_that_import_each_other_are_reported(skeleton: Path) -> None:
    room(skeleton, "engines/one", "import windowpane.engines.other")
    room(skeleton, "engines/other", "import windowpane.engines.one")
    result = lint(skeleton)
    assert result.returncode == 1, result.stdout + result.stderr
    assert "No two rooms import each other BROKEN" in result.stdout


def test_a_module_without_a_layer_is_reported(skeleton: Path) -> None:
    (skeleton / "helpers.py").write_text("")
    result = lint(skeleton)
    assert result.returncode == 1, result.stdout + result.stderr
    assert "Imports run downward BROKEN" in result.stdout
    assert "helpers" in result.stdout
