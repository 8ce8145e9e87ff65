"""Watermarks: how far a stream is believed to be complete, and what that is made of.

``strategy`` says how, as a frozen value. ``standing`` makes the watermark of the next batch from what is known after this one: it
is pure, and all it needs to know of earlier batches is a ``Standing``. ``generator`` is the same a row at a time, with the method
names of Flink's generators.
"""

from windowpane.windowing.watermarks.generator import WatermarkGenerator
from windowpane.windowing.watermarks.standing import SourceMark, SourceName, Standing, advance
from windowpane.windowing.watermarks.strategy import Watermarks

__all__ = ["SourceMark", "SourceName", "Standing", "WatermarkGenerator", "Watermarks", "advance"]
