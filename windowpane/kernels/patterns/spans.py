"""The rows of many matches at once: of each part of a pattern, where its rows begin and end."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from windowpane.arrays import Integers

ABSENT = -1
"""The number of a row that there is not."""


@dataclass(frozen=True)
class Spans:
    """Matches, a row each, whose parts follow one another, a column each."""

    starts: Integers  # the first row of each part
    ends: Integers  # the row behind its last one
    variables: tuple[str | None, ...]  # the variable that takes the rows of each part, ``None`` for rows that are passed over

    def parts_of(self, names: Collection[str] | None) -> list[int]:
        """Return the parts of some variables, of all where ``names`` is ``None``."""
        return [part for part, name in enumerate(self.variables) if name is not None and (names is None or name in names)]

    def rows(self, is_first: bool, names: Collection[str] | None, offset: int) -> Integers:
        """Return the row of some variables that is ``offset`` such rows behind the first one, or before the last one."""
        found = np.full(len(self.starts), ABSENT)
        left = np.full(len(self.starts), offset)
        parts = self.parts_of(names)
        for part in parts if is_first else reversed(parts):
            starts, ends = self.starts[:, part], self.ends[:, part]
            is_here = (found == ABSENT) & (left < ends - starts)
            found = np.where(is_here, starts + left if is_first else ends - 1 - left, found)
            left = left - (ends - starts)
            left = np.where(found != ABSENT, np.iinfo(np.int64).max // 2, left)
        return found

    def last_parts(self, names: Collection[str] | None) -> Integers:
        """Return the part that took the last row of some variables in each match; ``ABSENT`` where there is no such row."""
        found = np.full(len(self.starts), ABSENT)
        for part in self.parts_of(names):
            found = np.where(self.ends[:, part] > self.starts[:, part], part, found)
        return found
