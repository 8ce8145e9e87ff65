"""Evictors: which elements leave a window before or after the function sees it.

With an evictor every element is kept, so pre-aggregation is off. Source of the rules: Flink's CountEvictor, TimeEvictor and
DeltaEvictor. An evictor is handed the elements in arrival order and returns those that stay.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from windowpane.arrays.values import Value
from windowpane.errors import EvictionTimeError
from windowpane.guidance import SpecType
from windowpane.windowing.times import MAX, MIN, Duration, to_micros
from windowpane.windowing.windows import Window

UNTIMED = "the first element of a window has an event time, and a later one has none"
NO_CUTOFF = "the newest element of a window lies within this time of the ends of int64 microseconds"
"""Why a time evictor cannot decide."""


@dataclass(frozen=True, slots=True)
class TimestampedValue:
    """An element in a window with its event time in microseconds (``MIN`` if it has none), as Flink's evictors see it.

    Example:
        >>> TimestampedValue("a", 5).has_timestamp
        True
    """

    value: Value
    timestamp: int

    def __reduce__(self) -> tuple[type[TimestampedValue], tuple[Value, int]]:
        return TimestampedValue, (self.value, self.timestamp)  # what the dataclass does by default takes five times as long

    @property
    def has_timestamp(self) -> bool:
        """Whether the element has an event time."""
        return self.timestamp != MIN


class EvictorContext(Protocol):
    """What an evictor may read."""

    @property
    def current_watermark(self) -> int:
        """The watermark in microseconds."""

    @property
    def current_processing_time(self) -> int:
        """The processing time in microseconds."""


Elements = Sequence[TimestampedValue]


class Evictor(metaclass=SpecType):
    """Decides which elements of a firing window stay. Subclass it and override one or both methods.

    Example:
        >>> class OnlyValid(Evictor):
        ...     def evict_before(self, elements, size, window, context):
        ...         return [e for e in elements if e.value["valid"]]
    """

    def evict_before(self, elements: Elements, size: int, window: Window, context: EvictorContext) -> Elements:
        """Return the elements that the function is to see and that stay in the window."""
        return elements

    def evict_after(self, elements: Elements, size: int, window: Window, context: EvictorContext) -> Elements:
        """Return, after the function, the elements that stay in the window."""
        return elements


@dataclass(frozen=True)
class _EvictOnce(Evictor, ABC):
    do_evict_after: bool = field(default=False, kw_only=True)

    def evict_before(self, elements: Elements, size: int, window: Window, context: EvictorContext) -> Elements:
        return elements if self.do_evict_after else self._survivors(elements)

    def evict_after(self, elements: Elements, size: int, window: Window, context: EvictorContext) -> Elements:
        return self._survivors(elements) if self.do_evict_after else elements

    @abstractmethod
    def _survivors(self, elements: Elements) -> Elements:
        """Return the elements that stay."""


@dataclass(frozen=True)
class CountEvictor(_EvictOnce):
    """Keeps the last ``max_count`` elements by arrival; none if that is not positive.

    Example:
        >>> CountEvictor.of(100)
        CountEvictor(do_evict_after=False, max_count=100)
    """

    reads_elements = False
    max_count: int

    @classmethod
    def of(cls, max_count: int, do_evict_after: bool = False) -> CountEvictor:
        """Return the evictor that keeps the last ``max_count`` elements."""
        return cls(max_count, do_evict_after=do_evict_after)

    def _survivors(self, elements: Elements) -> Elements:
        return elements[max(0, len(elements) - max(0, self.max_count)) :]


@dataclass(frozen=True)
class TimeEvictor(_EvictOnce):
    """Keeps the elements younger than ``window_size`` microseconds before the newest one in the window.

    An element leaves when its timestamp <= newest - window_size. If the first element has no timestamp, nothing is evicted; if
    only later ones have none, that is refused, as in Flink. A cutoff beyond int64 is refused, too, where Flink's wraps.

    Example:
        >>> TimeEvictor.of("10 seconds")
        TimeEvictor(do_evict_after=False, window_size=10000000)
    """

    reads_elements = False
    window_size: int

    @classmethod
    def of(cls, window_size: Duration, do_evict_after: bool = False) -> TimeEvictor:
        """Return the evictor that keeps the last ``window_size`` of event time."""
        return cls(to_micros(window_size), do_evict_after=do_evict_after)

    def _survivors(self, elements: Elements) -> Elements:
        if not elements or not elements[0].has_timestamp:
            return elements
        newest = max(element.timestamp for element in elements)
        if not all(element.has_timestamp for element in elements):
            raise EvictionTimeError(self.window_size, UNTIMED)
        cutoff = newest - self.window_size
        if not MIN <= cutoff <= MAX:
            raise EvictionTimeError(self.window_size, NO_CUTOFF)
        return [element for element in elements if element.timestamp > cutoff]


@dataclass(frozen=True)
class DeltaEvictor(_EvictOnce):
    """Removes the elements whose ``delta(element, last element) >= threshold``.

    Example:
        >>> DeltaEvictor.of(5.0, lambda old, last: last["price"] - old["price"])
    """

    threshold: float
    delta: Callable[[Value, Value], float]

    @classmethod
    def of(cls, threshold: float, delta: Callable[[Value, Value], float], do_evict_after: bool = False) -> DeltaEvictor:
        """Return the evictor that compares each element with the last one."""
        return cls(threshold, delta, do_evict_after=do_evict_after)

    def _survivors(self, elements: Elements) -> Elements:
        if not elements:
            return elements
        last = elements[-1].value
        return [element for element in elements if not self.delta(element.value, last) >= self.threshold]
