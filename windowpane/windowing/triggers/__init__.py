"""Triggers: when a window's contents are handed to the function. One trigger a file; subclass ``Trigger`` for your own."""

from windowpane.windowing.triggers.base import (
    MergeContext,
    ReducingState,
    Trigger,
    TriggerContext,
    TriggerResult,
    ValueState,
)
from windowpane.windowing.triggers.continuous import ContinuousEventTimeTrigger, ContinuousProcessingTimeTrigger
from windowpane.windowing.triggers.count import CountTrigger
from windowpane.windowing.triggers.delta import DeltaTrigger
from windowpane.windowing.triggers.each_batch import EachBatch
from windowpane.windowing.triggers.end_of_stream import EndOfStreamTrigger
from windowpane.windowing.triggers.event_time import EventTimeTrigger
from windowpane.windowing.triggers.never import NeverTrigger
from windowpane.windowing.triggers.processing_time import ProcessingTimeTrigger
from windowpane.windowing.triggers.processing_timeout import ProcessingTimeoutTrigger
from windowpane.windowing.triggers.purging import PurgingTrigger

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
