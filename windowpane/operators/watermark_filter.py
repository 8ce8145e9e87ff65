"""The watermark filter: makes the watermark of a table from its rows, and drops the rows behind it.

A chunk's rows are judged by the watermark held *before* the chunk, then the chunk raises it: a row that only its own chunk has
overtaken is kept. Rows without a time pass until there is a watermark, and are dropped from then on. The watermark is the
operator's only state; a recovery hands it back and sends it again before anything else. Source of the rules: RisingWave's
watermark filter executor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from windowpane.windowing.times import Duration, to_micros

Row = dict[str, Any]
Change = tuple[str, Row]


class WatermarkFilter:
    """Filters chunks of changes ``(op, row)`` by the watermark that their rows make.

    Args:
        column: the time column, an integer of microseconds or ``None``.
        expression: from a row to the watermark it stands for, ``None`` for none.
        watermark: the watermark at the last checkpoint, ``None`` for none.

    Example:
        >>> late_by_5 = WatermarkFilter.bounded("at", delay=5)
        >>> late_by_5.process([("+", {"at": 10}), ("+", {"at": 3})]), late_by_5.watermark
        ([('+', {'at': 10}), ('+', {'at': 3})], 5)
        >>> late_by_5.process([("+", {"at": 4})])
        []
    """

    def __init__(self, column: str, expression: Callable[[Row], int | None], watermark: int | None = None) -> None:
        """Start with the watermark of the last checkpoint."""
        self.column = column
        self.watermark = watermark
        self._expression = expression

    @classmethod
    def bounded(cls, column: str, delay: Duration, watermark: int | None = None) -> WatermarkFilter:
        """Return the filter of ``WATERMARK FOR column AS column - delay``."""
        micros = to_micros(delay)

        def behind(row: Row) -> int | None:
            time = row[column]
            return None if time is None else int(time) - micros

        return cls(column, behind, watermark)

    def process(self, chunk: Iterable[Change]) -> list[Change]:
        """Return the changes that are not late, and raise ``watermark``. It never falls."""
        changes = list(chunk)
        kept = _without_halves([(op, row) for op, row in changes if self._is_on_time(row)])
        raised = [made for _, row in changes if (made := self._expression(row)) is not None]
        if self.watermark is not None:
            raised.append(self.watermark)
        self.watermark = max(raised, default=None)
        return kept

    def _is_on_time(self, row: Row) -> bool:
        if self.watermark is None:
            return True
        time = row[self.column]
        return time is not None and time >= self.watermark


def _without_halves(changes: list[Change]) -> list[Change]:
    """Turn an update that lost one half into the delete or insert that remains."""
    whole: list[Change] = []
    for index, (op, row) in enumerate(changes):
        follows = index > 0 and changes[index - 1][0] == "U-"
        precedes = index + 1 < len(changes) and changes[index + 1][0] == "U+"
        if (op == "U+" and not follows) or (op == "U-" and not precedes):
            op = op[1]
        whole.append((op, row))
    return whole
