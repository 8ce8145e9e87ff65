"""The layout of sorted rows: which of them share a segment, which are peers.

Rows are sorted by (partition, ORDER BY, key). A segment is a run of rows of one partition; a partition may be cut into several
segments, with rows missing between them. Peers are rows of a segment with equal ORDER BY values; a group is all peers of a row.
All positions are row numbers of the table, all spans half-open.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from windowpane.arrays import Integers, Mask


@dataclass(frozen=True)
class Layout:
    """Segments and peers of ``size`` sorted rows."""

    starts_segment: Mask  # where a row is the first of its segment
    starts_group: Mask  # where a row is the first of its peers; true wherever a segment starts

    @property
    def size(self) -> int:
        return len(self.starts_segment)

    @cached_property
    def numbers(self) -> Integers:
        return np.arange(self.size)

    @cached_property
    def segment_firsts(self) -> Integers:
        return np.flatnonzero(self.starts_segment)

    @cached_property
    def segment_ends(self) -> Integers:
        return np.append(self.segment_firsts[1:], self.size) if self.size else self.segment_firsts

    @cached_property
    def segment(self) -> Integers:
        return np.cumsum(self.starts_segment) - 1

    @cached_property
    def first(self) -> Integers:
        """The first row of each row's segment."""
        return np.repeat(self.segment_firsts, self.segment_ends - self.segment_firsts)

    @cached_property
    def end(self) -> Integers:
        """The end of each row's segment."""
        return np.repeat(self.segment_ends, self.segment_ends - self.segment_firsts)

    @cached_property
    def group_firsts(self) -> Integers:
        """The first row of each group, and the number of rows last."""
        return np.append(np.flatnonzero(self.starts_group), self.size)

    @cached_property
    def group(self) -> Integers:
        """The number of each row's group, counted through all segments."""
        return np.cumsum(self.starts_group) - 1

    @cached_property
    def peer_first(self) -> Integers:
        return self.group_firsts[self.group]

    @cached_property
    def peer_end(self) -> Integers:
        return self.group_firsts[self.group + 1]
