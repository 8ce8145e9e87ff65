"""The contents of panes that a clock fires, window by window.

Key layout: a segment log ``c`` with one segment a window, named by its end. A row of ``AppendedPartials`` is partials of a key,
of ``AppendedElements`` one element; elements are in arrival order. A batch appends its rows; a firing that evicts or purges
writes those that remain.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import Protocol

import numpy as np
import pyarrow as pa

from windowpane.arrays import Integers, Mask
from windowpane.engines.common.evicting import kept_columns, timed
from windowpane.engines.program import Program
from windowpane.hidden_columns import TIME
from windowpane.kernels.eviction import NEVER, Firings, LastSurvive, Survivors
from windowpane.kernels.grouping.grouped_fold import GroupedFold
from windowpane.kernels.grouping.range_merge import fold_groups
from windowpane.kernels.grouping.running_positions import Grouped, grouped, run_ends, run_starts
from windowpane.kernels.keys.dense_codes import combined, dense_codes, first_rows
from windowpane.state.blob_store import BlobStore
from windowpane.state.segment_log import SegmentLog


class EvaluatedPanes(Protocol):
    """The panes of one window as they would fire."""

    results: pa.Table
    """Keys and partials, one row a pane."""

    @property
    def again(self) -> pa.Table:
        """The same as panes fire that have just fired: of what that has left."""

    def refined(self, count: int) -> pa.Table:
        """The same as panes have fired for each of the last ``count`` rows that were added: the last of these firings."""

    def left(self, has_fired: Mask, purges: bool) -> pa.Table | None:
        """Return the rows that stay when these panes have fired, ``None`` for all."""


class TimedContents(ABC):
    """The contents of the panes of a bucket."""

    columns: list[str]
    """The columns of a row besides the key."""

    def __init__(self, store: BlobStore, keys: list[str]) -> None:
        """Read the index."""
        self._log = SegmentLog(store, "c")
        self._keys = keys

    @abstractmethod
    def reduced(self, rows: pa.Table, starts: Integers) -> tuple[pa.Table, Integers]:
        """Return rows of a batch as they are kept, and their slices; equal numbers in ``starts`` are in the same windows."""

    @abstractmethod
    def _evaluated(self, rows: list[pa.Table]) -> EvaluatedPanes:
        """Return the panes made of chunks of one window, at least one."""

    def ends(self) -> list[int]:
        """Return the ends of the windows that hold something."""
        return self._log.segments()

    def append(self, end: int, rows: pa.Table) -> None:
        """Add rows to a window."""
        self._log.append(end, rows)

    def evaluate(self, end: int) -> EvaluatedPanes | None:
        """Return the panes of a window, ``None`` if it is empty."""
        chunks = self._log.read(end)
        return self._evaluated(chunks) if chunks else None

    def keep(self, end: int, rows: pa.Table | None) -> None:
        """Put rows in place of those of a window; ``None`` leaves it as it is."""
        if rows is not None and rows.num_rows:
            self._log.replace(end, rows)
        elif rows is not None:
            self._log.drop(end)

    def rewrite(self, change: Callable[[pa.Table], pa.Table]) -> None:
        """Put what a function makes of each chunk in its place."""
        self._log.rewrite(change)

    def drop(self, end: int) -> None:
        """Forget a window."""
        self._log.drop(end)

    @property
    def byte_size(self) -> int:
        """The size of the state in bytes."""
        return self._log.byte_size

    def flush(self) -> None:
        """Write the index."""
        self._log.flush()


class AppendedPartials(TimedContents):
    """Partials by key."""

    def __init__(self, store: BlobStore, keys: list[str], fold: GroupedFold) -> None:
        """Fold with ``fold``."""
        super().__init__(store, keys)
        self._fold = fold
        self.columns = list(fold.columns)

    def reduced(self, rows: pa.Table, starts: Integers) -> tuple[pa.Table, Integers]:
        """Return partials by slice and key, each with the time of its first row: rows of one slice are in the same windows."""
        keys = dense_codes([rows[name] for name in self._keys], rows.num_rows).codes
        codes = combined(keys, dense_codes([pa.chunked_array([pa.array(starts)])], len(starts)).codes)
        firsts = first_rows(codes)
        partials = fold_groups(self._fold, rows, codes)
        named = rows.select([*self._keys, TIME]).take(pa.array(firsts))
        for name in self.columns:
            named = named.append_column(name, partials[name])
        return named, starts[firsts]

    def evaluate(self, end: int) -> EvaluatedPanes | None:
        panes = super().evaluate(end)
        if panes is not None and self._log.wants_compaction(end):
            self._log.replace(end, panes.results)
        return panes

    def _evaluated(self, rows: list[pa.Table]) -> EvaluatedPanes:
        return _FoldedPanes(self._fold.merge(rows, self._keys))


class _FoldedPanes:
    def __init__(self, results: pa.Table) -> None:
        self.results = self.again = results

    def refined(self, count: int) -> pa.Table:
        return self.results

    def left(self, has_fired: Mask, purges: bool) -> pa.Table | None:
        return self.results.filter(pa.array(~has_fired)) if purges else None


class AppendedElements(TimedContents):
    """All elements that evictions have left."""

    def __init__(self, store: BlobStore, keys: list[str], program: Program, fold: GroupedFold, survivors: Survivors) -> None:
        """Evict by ``survivors`` at each firing, then fold with ``fold``."""
        super().__init__(store, keys)
        self._program = program
        self._fold = fold
        self._survivors = survivors
        self._evicts_after = program.spec.evicts_after
        self.columns = kept_columns(program, fold)

    def reduced(self, rows: pa.Table, starts: Integers) -> tuple[pa.Table, Integers]:
        return rows, starts

    def append(self, end: int, rows: pa.Table) -> None:
        super().append(end, self._pruned(timed(self._program, rows)))
        if self._log.wants_compaction(end):
            self._log.replace(end, self._pruned(pa.concat_tables(self._log.read(end))))

    def _pruned(self, rows: pa.Table) -> pa.Table:
        """Return the rows that a firing may still see: what an evictor would take from fewer elements, it takes from more.

        Not so where elements without a time may be first, which keep a time evictor from evicting; and the first firing sees
        all elements where the evictor runs after it.
        """
        if self._evicts_after or not (isinstance(self._survivors, LastSurvive) or self._program.spec.assigner.is_event_time):
            return rows
        by_key = grouped(dense_codes([rows[name] for name in self._keys], rows.num_rows).codes)
        lasts = run_ends(by_key.groups)
        times = rows[TIME].to_numpy()[by_key.order] if TIME in rows.column_names else by_key.positions
        kept = self._survivors.kept(times, Firings(run_starts(by_key.groups)[lasts], lasts), fires=False)
        return rows if kept.all() else rows.take(pa.array(by_key.order[kept]))

    def _evaluated(self, rows: list[pa.Table]) -> EvaluatedPanes:
        table = pa.concat_tables(rows)
        by_key = grouped(dense_codes([table[name] for name in self._keys], table.num_rows).codes)
        rows_by_key = table.take(pa.array(by_key.order))
        return _EvictedPanes(rows_by_key, by_key, self._keys, self._fold, self._survivors, self._evicts_after)


class _EvictedPanes:
    """Elements put together by key, one firing a key at its last."""

    def __init__(
        self, rows: pa.Table, by_key: Grouped, names: list[str], fold: GroupedFold, survivors: Survivors, evicts_after: bool
    ) -> None:
        keys = by_key.groups
        self._rows = rows
        self._keys = keys
        self._places = by_key.order
        self._names = names
        self._fold = fold
        self._survivors = survivors
        self._evicts_after = evicts_after
        self._times = rows[TIME].to_numpy() if TIME in rows.column_names else np.zeros(len(keys), np.int64)
        lasts = run_ends(keys)
        self._firings = Firings(run_starts(keys)[lasts], lasts)
        self.results = self._with_keys(fold_groups(fold, rows, keys)) if evicts_after else self.again

    @cached_property
    def again(self) -> pa.Table:
        return self._with_keys(self._survivors.fold(self._fold, self._rows, self._times, self._firings))

    def refined(self, count: int) -> pa.Table:
        if not self._evicts_after:
            return self.results  # what one firing evicts, the last one would
        lasts = self._firings.lasts
        added = np.bincount(self._keys[self._places >= len(self._places) - count], minlength=len(lasts))
        previous = np.where(added > 1, lasts - 1, NEVER)  # a firing has seen the elements held before
        return self._with_keys(self._survivors.fold_before_eviction(self._fold, self._rows, self._times, self._firings, previous))

    def _with_keys(self, partials: pa.Table) -> pa.Table:
        results = self._rows.select(self._names).take(pa.array(self._firings.lasts))
        for name in self._fold.columns:
            results = results.append_column(name, partials[name])
        return results

    def left(self, has_fired: Mask, purges: bool) -> pa.Table | None:
        stays = ~has_fired[self._keys]
        if not purges or self._evicts_after:  # the evictor reads purged elements, too, and may refuse them
            fired = Firings(self._firings.firsts[has_fired], self._firings.lasts[has_fired])
            kept = self._survivors.kept(self._times, fired)
            stays |= kept & (not purges)
        return self._rows.filter(pa.array(stays))
