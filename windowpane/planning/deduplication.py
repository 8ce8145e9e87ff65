"""Plans of deduplication: the arguments of ``deduplicate``, as a frozen value that checks and explains itself."""

from __future__ import annotations

from dataclasses import dataclass

from windowpane.engines.deduplication.program import Keep
from windowpane.errors import InvalidSpecError
from windowpane.planning.settings import DEFAULTS, Settings, plan_text
from windowpane.windowing.over.spec import OrderColumn
from windowpane.windowing.times import format_micros


@dataclass(frozen=True)
class DeduplicationPlan:
    within: int
    """Microseconds; rows of a key that are this far apart are no duplicates."""
    keep: Keep = Keep.FIRST
    is_event_time: bool = True
    """Whether times are those of the rows; else the clock's."""
    keys: tuple[str, ...] = ()
    event_time: str | None = None
    order_by: tuple[OrderColumn, ...] = ()
    settings: Settings = DEFAULTS

    def __post_init__(self) -> None:
        if self.within <= 0:
            raise InvalidSpecError(
                f"within={format_micros(self.within)}: rows of a key less apart than this are duplicates, so it must be longer "
                "than nothing, such as within='1 hour'."
            )
        if not self.is_event_time and (self.settings.late_tag is not None or self.settings.allowed_lateness):
            raise InvalidSpecError(
                "no row is late by the clock: leave out allowed_lateness and side_output_late_data, or use event time with "
                "by='event_time'."
            )

    @property
    def retracts(self) -> bool:
        return self.keep is Keep.LAST

    @property
    def held_back(self) -> int | None:
        """Microseconds by which results may stay behind the watermark; ``None`` by the clock, where nothing bounds it.

        A last row that a later one replaces is less than ``within`` before it.
        """
        if not self.is_event_time:
            return None
        return self.settings.allowed_lateness + (self.within if self.retracts else 0)

    @property
    def uses_processing_time(self) -> bool:
        return not self.is_event_time

    def explain(self, engine: str, reason: str, buckets: str) -> str:
        first = "first: a row is emitted if none of its key that was emitted is near"
        last = "last: the newest of rows of a key that are near each other, as a changelog"
        lines = {
            "key": ", ".join(self.keys),
            "keep": first if self.keep is Keep.FIRST else last,
            "within": format_micros(self.within),
            "time": f"event time {self.event_time}" if self.is_event_time else "the clock, at the batch of a row",
            "order": ", ".join(map(str, (*self.order_by, "arrival"))),
            "late rows": self.settings.late_text if self.is_event_time else "",
            "lateness": format_micros(self.settings.allowed_lateness) if self.is_event_time else "",
            "buckets": buckets,
            "engine": f"{engine}: {reason}",
        }
        return plan_text("Deduplication", lines)
