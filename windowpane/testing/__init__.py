"""Harnesses for programs of windows, without Spark and in milliseconds.

``WindowTestHarness`` runs a whole windowed computation, ``TriggerTestHarness`` one trigger alone, ``PatternTestHarness`` a row
pattern. ``batches`` makes a stream of lists of rows for programs on Spark.

Example:
    >>> from windowpane.testing import WindowTestHarness
    >>> from windowpane import CountTrigger, TumblingEventTimeWindows
    >>> harness = WindowTestHarness(TumblingEventTimeWindows.of(10), trigger=CountTrigger.of(1))
    >>> harness.process_element({"marker": True}, timestamp=3, key="JFK")
    >>> [record.value for record in harness.take_output()]
    [[{'marker': True}]]
"""

from windowpane.testing.drawing import draw
from windowpane.testing.harness import StateEntry, WindowTestHarness
from windowpane.testing.pattern_harness import PatternTestHarness
from windowpane.testing.records import LateRecord, OutputRecord, SideRecord, WatermarkRecord
from windowpane.testing.streams import batches
from windowpane.testing.trigger_harness import Firing, TriggerTestHarness

__all__ = [
    "Firing",
    "LateRecord",
    "OutputRecord",
    "PatternTestHarness",
    "SideRecord",
    "StateEntry",
    "TriggerTestHarness",
    "WatermarkRecord",
    "WindowTestHarness",
    "batches",
    "draw",
]
