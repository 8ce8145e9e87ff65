"""What every engine answers: a bucket's rows and clocks in, tagged tables and counters out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from typing import ClassVar, Final, Protocol, runtime_checkable

import pyarrow as pa

from windowpane.state.blob_store import BlobStore


@dataclass(frozen=True)
class Clock:
    """The clocks of a batch, in microseconds; the watermark in Flink's meaning: nothing at or below it is still expected.

    ``delay`` is by how much it stays behind the rows, and ``led_by`` says in words which of them made it; ``None`` where that is
    not known.
    """

    watermark: int
    processing_time: int
    delay: int | None = None
    led_by: str | None = None


@dataclass(frozen=True)
class Counters:
    """What a bucket did in one batch; those of ``gauges`` are its state at the end of it."""

    gauges: ClassVar[tuple[str, ...]] = ("open_windows", "state_bytes")

    late_elements: int = 0
    late_dropped: int = 0
    firings: int = 0
    merges: int = 0
    open_windows: int = 0
    state_bytes: int = 0
    inconsistent: int = 0
    dropped_by_finished_trigger: int = 0
    duplicates: int = 0
    before_cut: int = 0


COUNTERS: Final = tuple(each.name for each in fields(Counters))
"""The counters of windows in a query's progress."""


@dataclass(frozen=True)
class BucketOutput:
    """Tables by output number, and what the bucket wants to be called for."""

    tables: Sequence[tuple[int, pa.Table]] = ()  # (output number, rows)
    counters: Counters = field(default_factory=Counters)  # what happened
    is_idle: bool = True  # whether nothing is left that a clock could change: no timer, no downstream that needs the watermark
    next_processing_time: int | None = None  # the earliest processing-time timer in microseconds, ``None`` if there is none

    def followed_by(self, later: BucketOutput) -> BucketOutput:
        """Return what two runs in one batch have emitted: the later one knows the state at its end."""
        one, other = self.counters, later.counters
        added = {each.name: getattr(one, each.name) + getattr(other, each.name) for each in fields(other)}
        state = {name: getattr(other, name) for name in other.gauges}
        return replace(later, tables=(*self.tables, *later.tables), counters=type(other)(**{**added, **state}))


class Engine(Protocol):
    """Runs one program on the buckets of one task."""

    name: str

    def run(self, store: BlobStore, rows: Sequence[pa.Table], clock: Clock) -> BucketOutput:
        """Run one batch of a bucket: advance the clocks, take the rows, and leave all state in ``store``."""


@runtime_checkable
class TakesCodes(Protocol):
    coded: Sequence[str]


def coded_columns(engine: Engine) -> Sequence[str]:
    return engine.coded if isinstance(engine, TakesCodes) else ()
