"""Arrivals and the open sessions they meet: intervals of keys, side by side, and the islands they make.

A table of sessions has the key columns, ``START`` and ``END``, ``FILLED`` where empty sessions are kept, ``HELD`` where the order
of elements matters, and the partials of what each session holds; in these, the arrival number of an element is its place in the
session. Rows come whole, or as pieces: sessions of a few rows, with their partials, folded before the shuffle.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windowpane.arrays import Integers, Mask
from windowpane.hidden_columns import END, HELD, START
from windowpane.kernels.keys.key_codes import key_codes, plain_key
from windowpane.kernels.segments import Segments
from windowpane.kernels.sessions.islands import Islands, find_islands
from windowpane.kernels.sessions.live_sessions import holding_order, join_in_order, offsets_of

ArrivalOrder = Callable[[Integers], Integers]
"""Sorts numbers of rows by their arrival."""


@dataclass(frozen=True)
class Arrivals:
    """What arrives, by key: rows and the windows they open, or pieces and their bounds."""

    table: pa.Table  # rows with the columns of the aggregates' arguments, or pieces with their partials; both with key columns
    starts: Integers  # start of each
    ends: Integers  # end of each
    is_folded: bool = False  # whether these are pieces
    has_order: bool = False  # whether rows have the numbers of their arrival

    def select(self, wanted: Mask) -> Arrivals:
        return self if wanted.all() else self.take(np.flatnonzero(wanted))

    def without(self, numbers: Integers) -> Arrivals:
        return self.select(~np.isin(np.arange(len(self.ends)), numbers)) if len(numbers) else self

    def take(self, numbers: Integers) -> Arrivals:
        taken = self.table.take(pa.array(numbers))
        return replace(self, table=taken, starts=self.starts[numbers], ends=self.ends[numbers])


@dataclass(frozen=True)
class SessionMerging:
    """Open sessions, then arrivals, as one sequence of intervals."""

    groups: Sequence[str]  # the key columns; empty if there are none
    sessions: pa.Table | None  # the open sessions; ``None`` for none
    arrivals: Sequence[Arrivals]  # rows, pieces or both

    @property
    def open(self) -> int:
        """How many sessions come before the arrivals."""
        return 0 if self.sessions is None else self.sessions.num_rows

    @cached_property
    def bounds(self) -> tuple[Integers, Integers]:
        """Start and end of each interval."""
        starts, ends = [part.starts for part in self.arrivals], [part.ends for part in self.arrivals]
        if self.sessions is not None:
            starts, ends = [self.sessions[START].to_numpy(), *starts], [self.sessions[END].to_numpy(), *ends]
        return np.concatenate(starts), np.concatenate(ends)

    @cached_property
    def codes(self) -> Integers:
        """A number for the key of each interval."""
        return key_codes([plain_key(self.key_column(name)) for name in self.groups], len(self.bounds[0]))

    @cached_property
    def islands(self) -> Islands:
        """The sessions that all of them make together."""
        return find_islands(self.codes, *self.bounds)

    def key_column(self, name: str) -> pa.ChunkedArray:
        """Return a key column of all intervals."""
        tables = [*([] if self.sessions is None else [self.sessions]), *(part.table for part in self.arrivals)]
        return pa.chunked_array([chunk for table in tables for chunk in table[name].chunks])

    def members(self, number: int) -> tuple[Integers, Segments]:
        """Return the islands that have members among arrivals ``number``, and the rows of those arrivals in each."""
        return self.islands.members(*self._places[number])

    def of_part(self, number: int) -> Integers:
        """Return the number of the island of each of the arrivals ``number``."""
        low, high = self._places[number]
        return self.islands.of[low:high]

    def part(self, column: Integers, number: int) -> Integers:
        """Return of a column of all intervals what belongs to the arrivals ``number``."""
        low, high = self._places[number]
        return column[low:high]

    def offsets(self) -> Integers:
        """Return how many elements the session of each interval holds before those of the interval; rows come as they arrived."""
        of = self.islands.of
        return offsets_of(of, holding_order(of, *self.bounds), self._sizes)

    def totals(self) -> Integers:
        """Return the number of elements of each island."""
        totals: Integers = np.add.reduceat(self._sizes[self.islands.order], self.islands.heads)
        return totals

    @cached_property
    def _sizes(self) -> Integers:
        sizes = np.ones(len(self.bounds[0]), np.int64)
        if self.sessions is not None:
            sizes[: self.open] = self.sessions[HELD].to_numpy()
        return sizes

    def touched_sessions(self) -> tuple[Integers, Integers]:
        """Return the numbers of the sessions that are on an island with arrivals, and of these islands."""
        islands, sessions = self.islands.members(0, self.open)
        counts = np.diff(sessions.offsets)
        is_touched = self.islands.sizes[islands] > counts
        return sessions.order[np.repeat(is_touched, counts)], np.repeat(islands[is_touched], counts[is_touched])

    @cached_property
    def _places(self) -> list[tuple[int, int]]:
        cuts = np.cumsum([self.open, *(len(part.ends) for part in self.arrivals)])
        return list(pairwise(cuts.tolist()))

    def of_same_keys(self) -> Integers:
        """Return the numbers of the sessions whose key has arrivals."""
        if 4 * (len(self.codes) - self.open) >= self.open:
            return np.arange(self.open)  # to find them would cost more than it saves
        arrived = pa.array(np.unique(self.codes[self.open :]))
        return np.flatnonzero(pc.is_in(pa.array(self.codes[: self.open]), value_set=arrived).to_numpy(zero_copy_only=False))

    def unjoined(self, is_late: Sequence[Mask], order: ArrivalOrder | None) -> list[Integers]:
        """Return, for each of the arrivals, the numbers of those that are late by themselves and join no live session.

        The order of arrival decides where late rows and others meet; where it is ``None``, late rows are taken after what they
        touch.
        """
        late = np.concatenate([np.zeros(self.open, bool), *is_late])
        has_anchor = np.zeros(len(self.islands.starts), bool)
        has_anchor[self.islands.of[~late]] = True
        lost = late & ~has_anchor[self.islands.of]
        if order is not None and (late & ~lost).any():
            lost |= self._unjoined_in_order(late & ~lost, order)
        return [np.flatnonzero(lost[low:high]) for low, high in self._places]

    def in_order(self, numbers: Integers, order: ArrivalOrder) -> Integers:
        is_open = numbers < self.open
        return np.concatenate([numbers[is_open], order(numbers[~is_open] - self.open) + self.open])

    def _unjoined_in_order(self, late: Mask, order: ArrivalOrder) -> Mask:
        """Return which late rows, of islands that hold others, too, arrive before the rows they touch."""
        unsettled = np.zeros(len(self.islands.starts), bool)
        unsettled[self.islands.of[late]] = True
        asked = np.flatnonzero(unsettled[self.islands.of])
        in_order = self.in_order(asked, order)
        kept = join_in_order(*(column[in_order].tolist() for column in (self.islands.of, *self.bounds, late)))
        lost = np.zeros(len(late), bool)
        lost[in_order[~kept]] = True
        return lost
