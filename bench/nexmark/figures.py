"""What the process of one system gets, and the figures that it leaves."""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any


def given() -> tuple[Path, Path, str]:
    """Return the folder with the events, the folder to work in, and the name of the query."""
    folder, work, query = sys.argv[1:]
    return Path(folder), Path(work), query


def batches(progress: Iterable[Any]) -> dict[str, float]:
    """Return the median of the seconds of a batch, of the later half: before, the JVM compiles and workers start."""
    seconds = [each.durationMs["triggerExecution"] / 1000 for each in progress if each.numInputRows]
    return {"batch_s": statistics.median(seconds[len(seconds) // 2 :])}


def write(work: Path, **figures: float) -> None:
    """Leave the figures."""
    (work / "figures.json").write_text(json.dumps(figures))
