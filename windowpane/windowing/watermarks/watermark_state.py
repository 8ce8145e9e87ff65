"""The state of a watermark: the knowledge of a stream after a batch, and the watermark that it makes for the next one.

Rules, for a watermark that windowpane makes itself (Spark makes the others):

- It never becomes smaller. It has Flink's meaning: no row at or below it is still expected.
- The watermark of a batch is made from the batches before it. So rows are late only if they arrived after rows, or a clock, that
  an earlier batch has seen: a batch that takes long makes no row late by that.
- *Sources*: each has a watermark, its latest time less the delay. The stream's is the least of those that are not idle. Where all
  are idle it is the greatest of all: there is none to wait for (Flink's CombinedWatermarkStatus and StatusWatermarkValve).
- A source is *idle* when it brought no row for so long. That time is counted from batch to batch of one run, so a stopped query
  counts none, and no single batch counts for more than half of it. A row ends the idleness of its source.
- *Not behind now*: the clock of the machine, less a bound, moves the watermark where rows do not. A run that begins is behind,
  perhaps by the time it was stopped: the clock counts from the first batch on that brings no row, or one as late as the clock
  less the bound.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from windowpane.arrays.instants import format_instant
from windowpane.arrays.values import Row
from windowpane.errors import InvalidSpecError
from windowpane.windowing.times import MIN, add_clamped, format_micros
from windowpane.windowing.watermarks.strategy import Watermarks

SourceName = str | None
"""A source as text; ``None`` for rows whose source is NULL, and for all rows where sources are not distinguished."""


@dataclass(frozen=True)
class SourceMark:
    """What is known of one source: its latest event time, and for how long it has brought no row. Microseconds."""

    latest: int
    silent: int = 0


@dataclass(frozen=True)
class WatermarkState:
    """What is known after a batch, for the batches to come: ``watermark`` is that of the next one."""

    watermark: int = MIN
    held_by: str = "no row has come"
    """What holds it back, in words."""
    sources: Mapping[SourceName, SourceMark] = field(default_factory=dict)
    now: int | None = None
    """The clock of the batch, ``None`` before the first one."""
    run: str = ""
    caught_up: bool = False
    """Whether this run of the query has taken the rows that were waiting when it began."""
    holders: tuple[SourceName, ...] = ()
    """The sources that hold it back: the least of those that are not idle. None where it is not of rows."""


def advance(
    strategy: Watermarks, before: WatermarkState, latest: Mapping[SourceName, int], now: int, run: str = ""
) -> WatermarkState:
    """Return what is known after a batch.

    Args:
        strategy: how the watermark is made.
        before: what was known before it.
        latest: the latest event time of each source that has rows in the batch.
        now: the clock of the machine, microseconds, as it was when the batch was planned.
        run: which run of the query it is; between runs the query was stopped.
    """
    same_run = before.run == run and before.now is not None
    sources = _seen(strategy, before, latest, max(0, now - (before.now or 0)) if same_run else 0)
    bound = strategy.behind_now
    is_near = bound is not None and any(time >= now - bound for time in latest.values())
    caught_up = (same_run and before.caught_up) or not latest or is_near
    watermark, held_by, holders = _of_rows(strategy, sources)
    if bound is not None and now - bound - 1 > watermark:
        if caught_up:
            watermark, held_by, holders = now - bound - 1, f"the clock, less {format_micros(bound)}", ()
        else:
            held_by += "; the clock waits until this run has caught up"
    if before.watermark > watermark:
        watermark, held_by = before.watermark, f"an earlier batch; {held_by}"
    return WatermarkState(watermark, held_by, sources, now, run, caught_up, holders)


def _seen(
    strategy: Watermarks, before: WatermarkState, latest: Mapping[SourceName, int], passed: int
) -> dict[SourceName, SourceMark]:
    """Return what is known of each source after ``passed`` microseconds and rows that reach to ``latest``."""
    if strategy.idleness is not None:
        passed = min(passed, (strategy.idleness + 1) // 2)
    sources = {name: SourceMark(mark.latest, mark.silent + passed) for name, mark in before.sources.items()}
    for name, time in latest.items():
        known = sources.get(name)
        sources[name] = SourceMark(time if known is None else max(known.latest, time))
    return sources


def _of_rows(strategy: Watermarks, sources: Mapping[SourceName, SourceMark]) -> tuple[int, str, tuple[SourceName, ...]]:
    if not sources:
        return MIN, "no row has come", ()
    idleness = strategy.idleness
    waited_for = {name: mark for name, mark in sources.items() if idleness is None or mark.silent < idleness}
    holders: tuple[SourceName, ...] = ()
    if waited_for:
        name = min(waited_for, key=lambda each: (waited_for[each].latest, str(each)))
        latest = waited_for[name].latest
        holders = tuple(each for each in waited_for if waited_for[each].latest == latest)
        held_by = f"rows, the latest at {format_instant(latest)}"
        if strategy.source is not None:
            held_by = f"{strategy.source} {name}, whose latest row is at {format_instant(latest)}"
    else:
        latest = max(mark.latest for mark in sources.values())
        held_by = f"nothing: each {strategy.source} is idle"
    return add_clamped(latest, -strategy.delay - 1), held_by, holders


class WatermarkGenerator:
    """A strategy a row at a time: takes rows, and returns the watermark when it is called for.

    Args:
        strategy: how the watermark is made.
        state: what an earlier generator knew, for one that continues from it.
        run: the run of the query; another one than the state's means that the query was stopped between.

    Raises:
        InvalidSpecError: parts of the strategy do not go together, or it is one of each key: there is no watermark of all.

    Source: Flink's ``WatermarkGenerator``.

    Example:
        >>> generator = WatermarkGenerator(Watermarks.bounded(5))
        >>> generator.on_event({}, timestamp=100)
        >>> generator.on_periodic_emit(now=0)
        94
    """

    def __init__(self, strategy: Watermarks, state: WatermarkState | None = None, run: str = "") -> None:
        self.strategy = Watermarks.of(strategy)
        if strategy.of_each_key:
            raise InvalidSpecError(f"{strategy!r} gives each key a watermark of its own: there is none for the whole stream.")
        self.state = state or WatermarkState()
        self._run = run
        self._latest: dict[SourceName, int] = {}

    def on_event(self, row: Row, timestamp: int) -> None:
        """Take a row; the columns that the strategy names are read from it."""
        time: int | None = timestamp
        if self.strategy.punctuation is not None:
            mark = row[self.strategy.punctuation]
            time = (timestamp if mark else None) if isinstance(mark, bool) else mark
        if time is None:
            return
        source = None if self.strategy.source is None else _text(row[self.strategy.source])
        self._latest[source] = max(self._latest.get(source, time), time)

    def on_periodic_emit(self, now: int) -> int:
        """Return the watermark that the rows so far and the clock make, and end the batch."""
        latest, self._latest = self._latest, {}
        self.state = advance(self.strategy, self.state, latest, now, self._run)
        return self.state.watermark


def _text(source: object) -> SourceName:
    return None if source is None else str(source)
