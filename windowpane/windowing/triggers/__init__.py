"""Triggers: when a window's contents are handed to the function. One trigger a file; subclass ``Trigger`` for your own."""

from windowpane.windowing.triggers.around import ProcessingTimeoutTrigger, PurgingTrigger
from windowpane.windowing.triggers.at_end import EndOfStreamTrigger, EventTimeTrigger, NeverTrigger, ProcessingTimeTrigger
from windowpane.windowing.triggers.base import MergeContext, ReducingState, Trigger, TriggerContext, TriggerResult, ValueState
from windowpane.windowing.triggers.continuous import ContinuousEventTimeTrigger, ContinuousProcessingTimeTrigger
from windowpane.windowing.triggers.count import CountTrigger, DeltaTrigger
from windowpane.windowing.triggers.each_batch import EachBatch

__all__ = [
    "ContinuousEventTimeTrigger",
    "ContinuousProcessingTimeTrigger",
    "CountTrigger",
    "DeltaTrigger",
    "EachBatch",
    "EndOfStreamTrigger",
    "EventTimeTrigger",
    "MergeContext",
    "NeverTrigger",
    "ProcessingTimeTrigger",
    "ProcessingTimeoutTrigger",
    "PurgingTrigger",
    "ReducingState",
    "Trigger",
    "TriggerContext",
    "TriggerResult",
    "ValueState",
]
