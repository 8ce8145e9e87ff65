"""Window assigners: which windows an element belongs to. One family a file; subclass ``WindowAssigner`` for your own."""

from windowpane.windowing.assigners.base import AssignerContext, MergingWindowAssigner, WindowAssigner
from windowpane.windowing.assigners.calendar import CalendarWindows
from windowpane.windowing.assigners.closed_sessions import ClosedSessionWindows
from windowpane.windowing.assigners.global_windows import GlobalWindows
from windowpane.windowing.assigners.session import EventTimeSessionWindows, ProcessingTimeSessionWindows
from windowpane.windowing.assigners.sliding import CumulateEventTimeWindows, SlidingEventTimeWindows, SlidingProcessingTimeWindows
from windowpane.windowing.assigners.tumbling import TumblingEventTimeWindows, TumblingProcessingTimeWindows, WindowStagger

__all__ = [
    "AssignerContext",
    "CalendarWindows",
    "ClosedSessionWindows",
    "CumulateEventTimeWindows",
    "EventTimeSessionWindows",
    "GlobalWindows",
    "MergingWindowAssigner",
    "ProcessingTimeSessionWindows",
    "SlidingEventTimeWindows",
    "SlidingProcessingTimeWindows",
    "TumblingEventTimeWindows",
    "TumblingProcessingTimeWindows",
    "WindowAssigner",
    "WindowStagger",
]
