"""Session windows that also end at a row, at a number of rows, at a sum, or at a length: ``EventTimeSessionWindows.closed_by``.

Where such a session ends depends on every row before, in order of event time. So rows are not assigned one by one as they arrive:
those that the watermark has passed are cut into sessions, which are final then.

    login   click   logout           click                a row closes: the next one opens a session of its own
    [---------------]                [------- gap ------)
                    ^ window_end: a microsecond later
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from windowpane.arrays.values import Value
from windowpane.errors import InvalidSpecError
from windowpane.hidden_columns import hidden
from windowpane.windowing.assigners.base import AssignerContext, WindowAssigner
from windowpane.windowing.expressions import ColumnLike
from windowpane.windowing.times import MAX
from windowpane.windowing.windows import TimeWindow

CLOSES: Final = hidden("closes")
"""The column that says whether a row closes its session."""
WEIGHT: Final = hidden("weight")
"""The column that a session of a size adds up."""


@dataclass(frozen=True)
class ClosedSessionWindows(WindowAssigner):
    """Sessions by event time that more than a pause ends; see ``EventTimeSessionWindows.closed_by``.

    Args:
        gap: the pause that ends a session, in microseconds.
        condition: true for the row that closes; a text of Spark SQL or a Column, as text once the program is built.
        count: how many rows a session has at most.
        size: a column of whole numbers, and the sum of it that closes a session.
        duration: how long a session is at most, in microseconds.
    """

    gap: int
    condition: ColumnLike | None = None
    count: int | None = None
    size: tuple[ColumnLike, int] | None = None
    duration: int | None = None

    def __post_init__(self) -> None:
        if self.condition is None and self.count is None and self.size is None and self.duration is None:
            raise InvalidSpecError("closed_by needs what closes a session: a condition, count=, size= or duration=.")
        if self.size is not None and (not isinstance(self.size, tuple | list) or len(self.size) != 2):
            raise InvalidSpecError(
                f"closed_by(size={self.size!r}): it takes a column and the sum of it, size=('bytes', 1_000_000)."
            )
        for name, most in (("count", self.count), ("size", self.size and self.size[1]), ("duration", self.duration)):
            if most is not None and (not isinstance(most, int) or isinstance(most, bool) or not 0 < most <= MAX):
                raise InvalidSpecError(
                    f"closed_by({name}=...): the limit must be a whole number greater than zero, but is {most!r}."
                )

    @property
    def columns(self) -> tuple[str, ...]:  # type: ignore[override]
        """The hidden columns that rows carry for it."""
        asked = ((CLOSES, self.condition), (WEIGHT, self.size))
        return tuple(name for name, given in asked if given is not None)

    def assign_windows(self, element: Value, timestamp: int, context: AssignerContext) -> Sequence[TimeWindow]:
        """Refuse to: which session a row is in depends on the rows before it."""
        raise InvalidSpecError(
            f"{self!r} cannot assign a row by itself: sessions that rows close are cut in the order of event time, by the "
            "engines of key_by(...).window(...)."
        )
