"""EarlyAndFinal: early results and the one at the window's end, in one word."""

from __future__ import annotations

from windowpane.errors import InvalidSpecError
from windowpane.windowing.times import Duration
from windowpane.windowing.triggers.composable.after_watermark import AfterWatermark
from windowpane.windowing.triggers.composable.base import ComposableTrigger
from windowpane.windowing.triggers.composable.combined import AfterAny
from windowpane.windowing.triggers.composable.leaves import AfterCount, AfterProcessingTime


class EarlyAndFinal(AfterWatermark):
    """Early results while a window fills, one at its end, and one for each late row that is allowed.

    ``.trigger(EarlyAndFinal(count=100))`` says in short
    ``.trigger(AfterWatermark(early=AfterCount(100), late=AfterCount(1))).accumulation("accumulating").pane_info()``: each result
    has all rows so far, and the column ``pane_timing`` says whether it is ``EARLY``, ``ON_TIME`` or ``LATE``. An
    ``.accumulation(...)`` of your own holds instead.

    Args:
        count: an early result after so many rows, again and again.
        delay: an early result so long, by the clock, after the first row since the last result. With ``count``, whichever is
            first.

    Raises:
        InvalidSpecError: neither is given, or the count is below 1.

    Example:
        >>> EarlyAndFinal(count=100).early
        Repeatedly(trigger=AfterCount(count=100))
    """

    def __init__(self, count: int | None = None, delay: Duration | None = None) -> None:
        parts: list[ComposableTrigger] = [] if count is None else [AfterCount(count)]
        parts += [] if delay is None else [AfterProcessingTime(delay)]
        if not parts:
            raise InvalidSpecError(
                "EarlyAndFinal needs to know when results are early: EarlyAndFinal(count=100), or delay='1 minute'. Without "
                "early results it is EventTimeTrigger, the default."
            )
        super().__init__(early=parts[0] if len(parts) == 1 else AfterAny(*parts), late=AfterCount(1))
