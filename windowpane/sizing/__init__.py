"""Sizing: how long a batch will take and how large state will be, reckoned from measured costs.

``costs.json`` beside this file is data that ``python -m bench.scale --write`` measured and fitted: what a row, a key, a
bucket and an executor cost, for each kind of program, and how far measurements lay from what the costs say.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from windowpane.errors import InvalidSpecError

KINDS = ("tumbling", "sliding", "session", "over")
_SHARE_BUSY = 0.6
"""A batch may take so much of its interval: what is left absorbs a peak and catches up after a restart."""
_MOST_CORES = 4096


@dataclass(frozen=True)
class Load:
    """A query and what it runs on.

    Args:
        kind: one of ``KINDS``; ``over`` is a call such as LAG on window close.
        rows: rows of a batch.
        keys: keys that are alive at a time.
        cores: cores that work on it.
        executors: executors that have them.
        buckets: ``spark.sql.shuffle.partitions``.
        window: seconds of a window, or the gap of a session.
        slide: seconds from one window to the next; ``None`` for those that do not overlap.
        delay: seconds that the watermark stays behind, and allowed lateness.
        batch: seconds of event time in a batch: the interval of its trigger.

    Raises:
        InvalidSpecError: a kind that is not known, or a number that is not above zero.
    """

    kind: str
    rows: float
    keys: float
    cores: int
    executors: int
    buckets: int
    window: float = 60.0
    slide: float | None = None
    delay: float = 5.0
    batch: float = 40.0

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise InvalidSpecError(f"there are no costs of {self.kind!r}; say one of {', '.join(KINDS)}.")
        for name, value in asdict(self).items():
            if isinstance(value, int | float) and value <= 0 and name != "delay":
                raise InvalidSpecError(f"{name} is {value}; it must be above zero.")

    @property
    def pane(self) -> float:
        """Seconds of a part of a window that is aggregated once: all of it where windows do not overlap."""
        return self.window if self.slide is None else min(self.slide, self.window)


@dataclass(frozen=True)
class Work:
    """How much of each thing with a cost there is, for the seconds of a batch and for the bytes of state."""

    seconds: dict[str, float]
    state: dict[str, float]


@dataclass(frozen=True)
class Interval:
    """What nine measurements of ten would lie between, and the likely value."""

    low: float
    likely: float
    high: float


@dataclass(frozen=True)
class Estimate:
    """What a load takes.

    Args:
        load: the load.
        seconds: of a batch.
        state_bytes: of state.
        busy: the likely share of the batch's interval that it takes.
        beyond: which of the load's numbers lie beyond what was measured, and up to what was.
    """

    load: Load
    seconds: Interval
    state_bytes: Interval
    busy: float
    beyond: dict[str, float]


def work_of(load: Load) -> Work:
    """Return the work of a load.

    Rows and keys are shared by the cores that have buckets; Spark tells its executors of a batch by doublings.
    """
    workers = min(load.cores, load.buckets)
    held, touched = _over(load) if load.kind == "over" else _windows(load)
    shares = {"row": load.rows, "key": touched}
    spread = {name: number / workers for name, number in shares.items()}
    fixed = {"batch": 1.0, "executor": math.log2(load.executors), "bucket": load.buckets / workers}
    return Work({**fixed, **spread}, {"bucket": float(load.buckets), "entry": held})


def _windows(load: Load) -> tuple[float, float]:
    """Return how many partial aggregates are open, and how many a batch touches."""
    if load.kind == "session":
        return _distinct(load.keys, load.rows * load.window / load.batch), _distinct(load.keys, load.rows)
    open_panes = (load.window + load.delay) / load.pane
    per_pane = _distinct(load.keys, load.rows * load.pane / load.batch)
    return open_panes * per_pane, _distinct(load.keys * max(1.0, load.batch / load.pane), load.rows)


def _over(load: Load) -> tuple[float, float]:
    """Return how many rows are held, and how many keys a batch touches."""
    waiting = load.rows * load.delay / load.batch
    return load.keys + waiting, _distinct(load.keys, load.rows)


def _distinct(among: float, rows: float) -> float:
    """Return how many of so many, each as likely, come in so many rows."""
    return among * -math.expm1(-rows / among)


@cache
def costs() -> dict[str, Any]:
    """Return the measured costs, and up to where they were measured."""
    read: dict[str, Any] = json.loads(Path(__file__).with_name("costs.json").read_text())
    return read


def estimate(load: Load) -> Estimate:
    """Return what a load takes, with intervals.

    Example:
        >>> found = estimate(Load("tumbling", rows=500_000, keys=10_000, cores=2, executors=1, buckets=2, batch=10))
        >>> found.seconds.low <= found.seconds.likely <= found.seconds.high
        True
    """
    kind, work = costs()["kinds"][load.kind], work_of(load)
    seconds = _interval(work.seconds, kind["seconds"], kind["seconds_spread"])
    state = _interval(work.state, kind["state"], kind["state_spread"])
    beyond = {name: limit for name, limit in costs()["up_to"].items() if getattr(load, name) > limit}
    return Estimate(load, seconds, state, seconds.likely / load.batch, beyond)


def _interval(work: dict[str, float], cost: dict[str, float], spread: list[float]) -> Interval:
    likely = sum(cost.get(name, 0.0) * number for name, number in work.items())
    return Interval(likely * min(spread[0], 1.0), likely, likely * max(spread[1], 1.0))


def enough(load: Load, cores_each: int = 4) -> Estimate:
    """Return the estimate with the fewest cores, a bucket for each, that leave a batch time to spare.

    Args:
        load: its cores, executors and buckets are chosen.
        cores_each: cores of an executor.

    Raises:
        InvalidSpecError: no number of cores will do: the interval is shorter than the fixed cost of a batch.
    """
    cores = 1
    while cores <= _MOST_CORES:
        executors = math.ceil(cores / cores_each)
        found = estimate(replace(load, cores=cores, executors=executors, buckets=max(cores, 2)))
        if found.seconds.high <= _SHARE_BUSY * load.batch:
            return found
        cores = cores + 1 if cores < cores_each else cores + cores_each
    raise InvalidSpecError(
        f"a batch each {load.batch:g} s is too short for this load, whatever the cores: give it a longer interval."
    )
