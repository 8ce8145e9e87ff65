"""The generator: a strategy a row at a time, as Flink has it; what tests without Spark make watermarks by."""

from __future__ import annotations

from typing import Any

from windowpane.errors import InvalidSpecError
from windowpane.windowing.watermarks.strategy import Watermarks
from windowpane.windowing.watermarks.watermark_state import SourceName, WatermarkState, advance


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

    def on_event(self, row: Any, timestamp: int) -> None:
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


def _text(source: Any) -> SourceName:
    return None if source is None else str(source)
