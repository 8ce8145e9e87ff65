"""Composable triggers: early, on-time and late panes by a tree of small conditions, as in Apache Beam."""

from windowpane.windowing.triggers.composable.after_watermark import AfterWatermark, EarlyAndFinal
from windowpane.windowing.triggers.composable.base import ComposableTrigger
from windowpane.windowing.triggers.composable.combined import AfterAll, AfterAny, AfterEach, OrFinally, Repeatedly
from windowpane.windowing.triggers.composable.leaves import AfterCount, AfterProcessingTime, Always, Default, Never

__all__ = [
    "AfterAll",
    "AfterAny",
    "AfterCount",
    "AfterEach",
    "AfterProcessingTime",
    "AfterWatermark",
    "Always",
    "ComposableTrigger",
    "Default",
    "EarlyAndFinal",
    "Never",
    "OrFinally",
    "Repeatedly",
]
