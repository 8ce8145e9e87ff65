"""A task's folder: the task as it was given, the figures that a system leaves there."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from bench.programs import Task

_FIGURES = "figures.json"


def read_task() -> Task:
    """Return the task of the folder named on the command line."""
    return Task.from_json(json.loads((Path(sys.argv[1]) / "task.json").read_text()))


def write_figures(task: Task, **figures: Any) -> None:
    """Leave what was found out."""
    leave_figures(Path(task.work), **figures)


def leave_figures(work: Path, **figures: Any) -> None:
    """Leave what was found out in a folder."""
    (work / _FIGURES).write_text(json.dumps(figures))


def left_figures(work: Path) -> dict[str, Any]:
    """Return what a system has left in a folder."""
    found: dict[str, Any] = json.loads((work / _FIGURES).read_text())
    return found
