"""The Python of Spark's workers, in local mode: one without windowpane is named before a query starts."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from windowpane.errors import WorkerPythonError
from windowpane.spark.session.worker_python import check_worker_python


def session(executable: str, master: str = "local[2]", includes: tuple[str, ...] = ()) -> Any:
    """Stands in for a classic session whose workers run an executable."""
    context = SimpleNamespace(pythonExec=executable, _python_includes=list(includes))
    return SimpleNamespace(conf={"spark.master": master}, sparkContext=context, _jsparkSession=None)


def script(path: Path, body: str) -> str:
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def bare(tmp_path: Path) -> str:
    """This Python without the packages that are installed, as a virtual environment that is not activated leaves it."""
    return script(tmp_path / "python3", f'cd /; unset PYTHONPATH; exec {sys.executable} -S "$@"')


def test_the_python_of_this_program_is_fine(tmp_path: Path) -> None:
    check_worker_python(session(sys.executable))
    check_worker_python(session(script(tmp_path / "wrapped", f'cd {os.getcwd()}; exec {sys.executable} "$@"')))


def test_a_python_without_windowpane_is_named_with_the_way_out(bare: str) -> None:
    with pytest.raises(WorkerPythonError) as caught:
        check_worker_python(session(bare))
    assert f"{bare!r}, but it has no windowpane, pyarrow, pandas" in str(caught.value)
    assert f"os.environ['PYSPARK_PYTHON'] = sys.executable (here {sys.executable!r})" in str(caught.value)


@pytest.mark.parametrize(
    ("body", "reason"),
    [("echo 2.7", "it is Python 2.7, and this program runs in"), ("exit 3", "it does not run")],
)
def test_another_version_and_what_does_not_run_are_refused(tmp_path: Path, body: str, reason: str) -> None:
    with pytest.raises(WorkerPythonError, match=reason):
        check_worker_python(session(script(tmp_path / "other", body)))
    with pytest.raises(WorkerPythonError, match="there is no such program"):
        check_worker_python(session(str(tmp_path / "absent")))


def test_workers_elsewhere_and_those_that_are_sent_files_are_not_asked(bare: str) -> None:
    check_worker_python(session(bare, master="spark://host:7077"))
    check_worker_python(session(bare, includes=("windowpane.zip",)))
