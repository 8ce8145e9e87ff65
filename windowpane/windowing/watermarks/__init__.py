"""Watermarks: how far a stream is believed to be complete, and what that is made of.

``strategy`` says how, as a frozen value. ``watermark_state`` makes the watermark of the next batch from what is known after this
one: it is pure, and all it needs to know of earlier batches is a ``WatermarkState``; its generator is the same a row at a time,
with the method names of Flink's generators.
"""

from windowpane.windowing.watermarks.strategy import Watermarks
from windowpane.windowing.watermarks.watermark_state import SourceMark, SourceName, WatermarkGenerator, WatermarkState, advance

__all__ = ["SourceMark", "SourceName", "WatermarkGenerator", "WatermarkState", "Watermarks", "advance"]
