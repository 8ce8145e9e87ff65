"""Which parts of a windowed computation look into elements, and which only at their number and times.

A program of built-in aggregates needs no more of a row than their arguments, unless a part reads elements: a dynamic session gap,
a delta trigger, anything of a user's own, subclasses of built-in parts included.
"""

from __future__ import annotations

from windowpane.windowing.assigners import (
    CalendarWindows,
    CumulateEventTimeWindows,
    EventTimeSessionWindows,
    GlobalWindows,
    ProcessingTimeSessionWindows,
    SlidingEventTimeWindows,
    SlidingProcessingTimeWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
    WindowAssigner,
)
from windowpane.windowing.evictors import CountEvictor, Evictor, TimeEvictor
from windowpane.windowing.triggers import (
    ContinuousEventTimeTrigger,
    ContinuousProcessingTimeTrigger,
    CountTrigger,
    EachBatch,
    EndOfStreamTrigger,
    EventTimeTrigger,
    NeverTrigger,
    ProcessingTimeoutTrigger,
    ProcessingTimeTrigger,
    PurgingTrigger,
    Trigger,
)
from windowpane.windowing.triggers.composable.pane_trigger import PaneTrigger, all_flink_triggers

_ASSIGNERS = (
    CalendarWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
    SlidingEventTimeWindows,
    SlidingProcessingTimeWindows,
    CumulateEventTimeWindows,
    GlobalWindows,
    EventTimeSessionWindows,
    ProcessingTimeSessionWindows,
)
_TRIGGERS = (
    EventTimeTrigger,
    ProcessingTimeTrigger,
    ContinuousEventTimeTrigger,
    ContinuousProcessingTimeTrigger,
    CountTrigger,
    NeverTrigger,
    EndOfStreamTrigger,
    EachBatch,
)


def reads_elements(assigner: WindowAssigner, trigger: Trigger, evictor: Evictor | None) -> bool:
    """Return whether one of the parts looks into elements."""
    return _assigner_reads(assigner) or _trigger_reads(trigger) or type(evictor) not in (type(None), CountEvictor, TimeEvictor)


def _assigner_reads(assigner: WindowAssigner) -> bool:
    return type(assigner) not in _ASSIGNERS or callable(getattr(assigner, "gap", None))


def _trigger_reads(trigger: Trigger) -> bool:
    if isinstance(trigger, PurgingTrigger | ProcessingTimeoutTrigger):
        return _trigger_reads(trigger.inner)
    if isinstance(trigger, PaneTrigger):
        return any(map(_trigger_reads, all_flink_triggers(trigger.root)))
    return type(trigger) not in _TRIGGERS
