"""What every window assigner answers: the windows of an element, the default trigger, its time domain.

An assigner is a stateless spec. Source of the contract: Flink's WindowAssigner and MergingWindowAssigner.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from windowpane.errors import MissingTimestampError
from windowpane.guidance import SpecType
from windowpane.windowing.times import MIN
from windowpane.windowing.windows import TimeWindow, Window, merge_overlapping

if TYPE_CHECKING:
    from windowpane.windowing.triggers.base import Trigger


class AssignerContext(Protocol):
    """What an assigner may read while it assigns."""

    @property
    def current_processing_time(self) -> int:
        """The processing time, in microseconds."""

    @property
    def current_key(self) -> Any:
        """The key of the element (``None`` for ``window_all``)."""

    def remember(self, name: str, make: Callable[[], int]) -> int:
        """Return the number kept under ``name`` for this parallel instance, made by ``make`` at the first call."""


class WindowAssigner(metaclass=SpecType):
    """Assigns each element to zero or more windows.

    Example:
        >>> class EveryMonth(WindowAssigner):
        ...     def assign_windows(self, element, timestamp, context): ...
        ...     def default_trigger(self): return EventTimeTrigger()
    """

    is_event_time: bool = True
    """Whether windows end by watermark (and elements can be late) rather than by the clock."""

    has_ends: bool = True
    """Whether windows end at all: a global one does not."""

    @property
    def ends_by_clock(self) -> bool:
        """Whether windows end by the clock of the machine."""
        return self.has_ends and not self.is_event_time

    @abstractmethod
    def assign_windows(self, element: Any, timestamp: int, context: AssignerContext) -> Sequence[Window]:
        """Return the windows of ``element``.

        Args:
            element: the element, for Spark a row as a dict.
            timestamp: its event time in microseconds, ``MIN`` if it has none.
            context: clock and key.
        """

    @abstractmethod
    def default_trigger(self) -> Trigger:
        """Return the trigger that is used where none is set."""


class MergingWindowAssigner(WindowAssigner):
    """An assigner whose windows of one key merge when they meet (sessions)."""

    def merge_windows(self, windows: Iterable[Any]) -> list[tuple[Window, list[Window]]]:
        """Return ``(result, merged windows)`` for each group of windows to be merged; time windows that overlap or touch do."""
        return list(_as_windows(merge_overlapping(windows)))


def _as_windows(groups: list[tuple[TimeWindow, list[TimeWindow]]]) -> Iterable[tuple[Window, list[Window]]]:
    for cover, members in groups:
        yield cover, list(members)


def require_timestamp(assigner: WindowAssigner, element: Any, timestamp: int, context: AssignerContext) -> None:
    """Refuse an element that has no timestamp, as Flink's tumbling and sliding event-time assigners do."""
    if timestamp == MIN:
        raise MissingTimestampError(assigner, context.current_key, element)
