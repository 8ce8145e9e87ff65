"""Between the times of a case, which have no unit, and those of a query on Spark.

One unit is a millisecond. Flink's watermark t (nothing at or below it is expected) is Spark's t + 1 ms (nothing below it). All
times are moved forward by a multiple of every period in the program, since Spark takes a watermark of 0 for none. A stream has
no end, so ``MAX`` is a heartbeat behind every window.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from verify.conformance.reading.fields import Json
from windowpane.windowing.times import MAX, MIN

MICROS = 1_000
LARGEST = 10**12
"""Times and durations from here on mean "never"."""
PERIODS = frozenset({"size_ms", "slide_ms", "max_size_ms", "step_ms", "interval_ms"})


def times_of(steps: Iterable[Json]) -> Iterator[int]:
    """Yield the times of elements and watermarks, without ``MAX``."""
    for step in steps:
        if step.get("element", {}).get("ts") is not None:
            yield step["element"]["ts"]
        if step.get("watermark", MAX) != MAX:
            yield step["watermark"]


@dataclass(frozen=True)
class Scale:
    """Between the units of a case and microseconds on Spark.

    Args:
        shift: units by which all times are moved forward, a multiple of every period.
        end: the unit that means ``MAX``, behind every window.
    """

    shift: int
    end: int

    @classmethod
    def of(cls, stages: Sequence[Json], steps: Sequence[Json]) -> Scale:
        """Choose the shift and the end for a case."""
        named = [pair for stage in stages for pair in _durations(stage)]
        durations = [abs(duration) for _, duration in named if abs(duration) < LARGEST]
        period = math.lcm(*[duration for name, duration in named if name in PERIODS and duration > 0])
        times = [0, *times_of(steps)]
        shift = period * (1 + math.ceil((1 + sum(durations) - min(times)) / period))
        return cls(shift, max(times) + 10 * (1 + sum(durations)))

    def program(self, node: Any) -> Any:
        """Return a program with its durations in microseconds."""
        if isinstance(node, list):
            return [self.program(child) for child in node]
        if not isinstance(node, dict):
            return node
        return {
            name: _in_micros(name, child) if _is_duration(name, child) else self.program(child) for name, child in node.items()
        }

    def event_time(self, units: int) -> int:
        """Return the event time of an element."""
        return (units + self.shift) * MICROS

    def heartbeat(self, watermark: int) -> int:
        """Return the event time of the heartbeat that makes a watermark."""
        return self.event_time(self.end if watermark == MAX else watermark) + MICROS

    def units(self, micros: int | None) -> int | None:
        """Return a time as the case writes it."""
        if micros is None or micros in (MIN, MAX):
            return micros
        units = micros // MICROS - self.shift
        return MAX if units == self.end else units

    def window(self, window: Any) -> Any:
        """Return a window as the case writes it."""
        return window if window == "GLOBAL" else [self.units(bound) for bound in window]


def _is_duration(name: str, value: Any) -> bool:
    return name == "gap_rule" or (name.endswith("_ms") and isinstance(value, int))


def _in_micros(name: str, value: Any) -> Any:
    if name != "gap_rule":
        return MAX if value == MAX else value * MICROS
    words, _, gap = str(value).rpartition(" ")
    return f"{words} {int(gap) * MICROS}" if gap.isdigit() else value


def _durations(node: Any) -> Iterator[tuple[str, int]]:
    """Yield the durations of a program by name."""
    if isinstance(node, dict):
        for name, child in node.items():
            if _is_duration(name, child) and isinstance(child, int):
                yield name, child
            else:
                yield from _durations(child)
    elif isinstance(node, list):
        for child in node:
            yield from _durations(child)
