"""What every window assigner answers: the windows of an element, the default trigger, its time domain.

An assigner is a stateless spec. Source of the contract: Flink's WindowAssigner and MergingWindowAssigner.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from windowpane.arrays.values import Value
from windowpane.errors import MissingTimestampError
from windowpane.guidance import SpecType
from windowpane.windowing.times import MIN
from windowpane.windowing.triggers import EventTimeTrigger, ProcessingTimeTrigger, Trigger
from windowpane.windowing.windows import Window, merge_overlapping


class AssignerContext(Protocol):
    """What an assigner may read while it assigns."""

    @property
    def current_processing_time(self) -> int:
        """The processing time, in microseconds."""

    @property
    def current_key(self) -> Value:
        """The key of the element (``None`` for ``window_all``)."""

    def remember(self, name: str, make: Callable[[], int]) -> int:
        """Return the number kept under ``name`` for this parallel instance, made by ``make`` at the first call."""


class WindowAssigner(metaclass=SpecType):
    """Assigns each element to zero or more windows.

    Example:
        >>> class EveryMonth(WindowAssigner):
        ...     def assign_windows(self, element, timestamp, context): ...
    """

    is_event_time: bool = True
    """Whether windows end by watermark (and elements can be late) rather than by the clock."""

    has_ends: bool = True
    """Whether windows end at all: a global one does not."""

    columns: tuple[str, ...] = ()
    """The columns that rows carry for it."""

    @property
    def ends_by_clock(self) -> bool:
        """Whether windows end by the clock of the machine."""
        return self.has_ends and not self.is_event_time

    @abstractmethod
    def assign_windows(self, element: Value, timestamp: int, context: AssignerContext) -> Sequence[Window]:
        """Return the windows of ``element``.

        Args:
            element: the element, for Spark a row as a dict.
            timestamp: its event time in microseconds, ``MIN`` if it has none.
            context: clock and key.
        """

    def default_trigger(self) -> Trigger:
        """Return the trigger that is used where none is set: by default, the one that fires at the end of windows."""
        return EventTimeTrigger() if self.is_event_time else ProcessingTimeTrigger()

    def instant_of(self, element: Value, timestamp: int, context: AssignerContext) -> int:
        """Return the time by which an element is assigned: its timestamp, or that of the clock.

        Raises:
            MissingTimestampError: it has none, and windows are of event time; as in Flink's tumbling and sliding windows.
        """
        if not self.is_event_time:
            return context.current_processing_time
        if timestamp == MIN:
            raise MissingTimestampError(self, context.current_key, element)
        return timestamp


class MergingWindowAssigner(WindowAssigner):
    """An assigner whose windows of one key merge when they meet (sessions)."""

    def merge_windows(self, windows: Iterable[Value]) -> list[tuple[Window, list[Window]]]:
        """Return ``(result, merged windows)`` for each group of windows to be merged; time windows that overlap or touch do."""
        return [(cover, list(members)) for cover, members in merge_overlapping(windows)]
