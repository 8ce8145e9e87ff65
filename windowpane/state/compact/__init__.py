"""Compact tables: as Arrow IPC streams, with integers, times and lists in as few bytes as their values need."""

from __future__ import annotations

from windowpane.state.compact.streams import SMALL, from_stream, to_stream

__all__ = ["SMALL", "from_stream", "to_stream"]
