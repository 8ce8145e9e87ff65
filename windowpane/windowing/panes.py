"""Panes: the firings of one window, numbered and timed, and what happens to the contents between them.

Source of the rules: Apache Beam's PaneInfo and accumulation modes; retractions in the words of Delta's change feed.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Literal, NamedTuple

AccumulationMode = Literal["accumulating", "discarding", "retracting"]
PaneBehavior = Literal["fire_always", "fire_if_non_empty"]

PANE_INDEX = "pane_index"
PANE_NONSPECULATIVE_INDEX = "pane_nonspeculative_index"
PANE_TIMING = "pane_timing"
PANE_IS_FIRST = "pane_is_first"
PANE_IS_LAST = "pane_is_last"


class PaneTiming(Enum):
    EARLY = "EARLY"
    """Before the watermark reached the window's end."""
    ON_TIME = "ON_TIME"
    """As the watermark reached it: at most one pane of a window."""
    LATE = "LATE"
    """Behind it."""


@dataclass(frozen=True, slots=True)
class Pane:
    """What is known of one firing of a window.

    Args:
        index: 0, 1, ... over all panes of the window.
        nonspeculative_index: -1 for early panes, else 0, 1, ... over the others.
        timing: by the watermark.
        is_first: whether it is the first pane of the window.
        is_last: whether no other pane can follow; may be true of no pane.
    """

    index: int
    nonspeculative_index: int
    timing: PaneTiming
    is_first: bool
    is_last: bool


class Firing(NamedTuple):
    """What a trigger says of a firing besides that it fires."""

    # whether this is the firing of the window's end, ``ON_TIME`` if no other firing after the end was first
    is_on_time: bool = False
    is_last: bool = False  # whether no other can follow
    may_be_empty: bool = False  # whether it fires even where the window holds nothing


@dataclass(frozen=True)
class PaneOptions:
    """What a program says of its panes."""

    shows_info: bool = False  # whether results carry the columns ``pane_index`` to ``pane_is_last``
    retracts: bool = False  # whether a pane takes the rows of the one before it back: results are a changelog


NO_PANES = PaneOptions()
"""Results without a word of panes: what Flink gives."""
