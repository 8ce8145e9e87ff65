"""The hop window table function: each row becomes one row for each hopping window it is in.

Rows are dicts; a change is ``(op, row)`` with op ``+`` insert, ``-`` delete, ``U-`` / ``U+`` the two halves of an update. The
operator keeps nothing: rows come out beside each other, in order of ``window_start``, and the halves of an update come out as
deletes and inserts, since the two may lie in different windows. Rows whose time is ``None`` are in no window.

A watermark w on the time column means that no row before w is still to come, so the earliest window that can still appear is the
first one that contains w: its bounds are the watermarks of ``window_start`` and ``window_end``. Source of the rules:
RisingWave's hop window executor; Flink's HOP.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from windowpane.errors import InvalidSpecError
from windowpane.windowing.times import Duration, to_micros
from windowpane.windowing.windows import TimeWindow, time_window, window_start

WINDOW_START, WINDOW_END = "window_start", "window_end"

Row = dict[str, Any]
Change = tuple[str, Row]

_AS_SINGLE = {"+": "+", "-": "-", "U+": "+", "U-": "-"}


@dataclass(frozen=True)
class HopWindow:
    """Assigns rows to windows of ``size``, one starting every ``slide``, shifted by ``offset`` (microseconds).

    Args:
        time_column: the column with the row's time, an integer of microseconds or ``None``.
        slide: distance between two window starts.
        size: length of a window, a multiple of the slide. Equal to it, the windows tumble.
        offset: shift of all starts from the epoch; it may be negative and of any length.
        columns: the output columns, ``window_start`` and ``window_end`` among them as wanted; ``None`` means all of the row
            and then both.

    Raises:
        InvalidSpecError: slide or size not positive, or a size that is no multiple of the slide.

    Example:
        >>> hop = HopWindow.of("at", slide=10, size=20)
        >>> list(hop.explode({"at": 12}))
        [{'at': 12, 'window_start': 0, 'window_end': 20}, {'at': 12, 'window_start': 10, 'window_end': 30}]
    """

    time_column: str
    slide: int
    size: int
    offset: int = 0
    columns: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        """Refuse windows that are no whole number of slides."""
        if self.slide <= 0 or self.size <= 0 or self.size % self.slide:
            raise InvalidSpecError(
                f"hop windows need a slide and a size greater than zero and a size that is a multiple of the slide, but slide is "
                f"{self.slide} µs and size {self.size} µs."
            )

    @classmethod
    def of(
        cls,
        time_column: str,
        slide: Duration,
        size: Duration,
        offset: Duration = 0,
        columns: Sequence[str] | None = None,
    ) -> HopWindow:
        """Return the table function, with durations as text, timedelta or integers of microseconds."""
        chosen = None if columns is None else tuple(columns)
        return cls(time_column, to_micros(slide), to_micros(size), to_micros(offset), chosen)

    def windows(self, instant: int) -> list[TimeWindow]:
        """Return the windows that contain ``instant``, earliest first.

        Raises:
            TimestampOverflowError: a bound does not fit into int64.
        """
        last = window_start(instant, self.offset, self.slide)
        starts = range(last - self.size + self.slide, last + 1, self.slide)
        return [time_window(start, start + self.size, instant) for start in starts]

    def explode(self, row: Mapping[str, Any]) -> Iterator[Row]:
        """Yield ``row`` once for each of its windows, with ``window_start`` and ``window_end``."""
        instant = row[self.time_column]
        for window in [] if instant is None else self.windows(instant):
            wide = {**row, WINDOW_START: window.start, WINDOW_END: window.end}
            yield wide if self.columns is None else {name: wide[name] for name in self.columns}

    def process(self, changes: Iterable[Change]) -> Iterator[Change]:
        """Yield the changes of the output."""
        for op, row in changes:
            for exploded in self.explode(row):
                yield _AS_SINGLE[op], exploded

    def watermark(self, column: str, value: Any) -> list[tuple[str, Any]]:
        """Return what a watermark on an input column says about output columns, as ``(column, value)``.

        That of the time column becomes those of the window bounds; others pass if their column does.
        """
        if column != self.time_column:
            return [(column, value)] if self._has(column) else []
        first = self.windows(value)[0]
        bounds = [(WINDOW_START, first.start), (WINDOW_END, first.end)]
        return [(name, bound) for name, bound in bounds if self._has(name)]

    def _has(self, column: str) -> bool:
        return self.columns is None or column in self.columns
