"""A task's folder: the task as it was given, the figures that a system leaves there."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from bench.programs import Task


def read_task() -> Task:
    """Return the task of the folder named on the command line."""
    return Task.from_json(json.loads((Path(sys.argv[1]) / "task.json").read_text()))


def write_figures(task: Task, **figures: Any) -> None:
    """Leave what was found out."""
    (Path(task.work) / "figures.json").write_text(json.dumps(figures))
