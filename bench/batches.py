"""Batches: a file each, which Spark takes in their order, and how long the later ones took."""

from __future__ import annotations

import os
import statistics
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

FIRST_FILE = 1_704_067_200
"""The time of the first file, in seconds since 1970; those that follow are a second apart."""


def put_in_place(path: Path, number: int) -> None:
    """Give a file a time by its number: Spark reads the oldest first."""
    os.utime(path, (FIRST_FILE + number, FIRST_FILE + number))


def seconds_of_batches(progress: Iterable[Any]) -> list[float]:
    """Return how long each batch with rows took, of a query's progress."""
    return [each["durationMs"]["triggerExecution"] / 1000 for each in progress if each["numInputRows"]]


def steady(seconds: Sequence[float]) -> float:
    """Return the median of the later half: before, the JVM compiles and workers start."""
    return statistics.median(seconds[len(seconds) // 2 :])
