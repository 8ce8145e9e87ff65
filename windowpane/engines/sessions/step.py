"""One step of sessions on tables: the clock advances and sessions fire; then rows arrive, sessions grow, merge and fire again.

Invariant, as in Flink's merging window set: two open sessions of one key neither overlap nor touch.

Rows that are late by themselves are taken or dropped in their order of arrival. Where rows may be folded this order is not known;
then each late row comes after the rows it touches, so that the result of a micro-batch is that of one possible order of its rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa

from windowpane.arrays import Integers, Mask
from windowpane.arrays.columns import replaced
from windowpane.engines.common.columnar import group_columns, key_arrays, with_plain_keys
from windowpane.engines.common.pane_numbers import PaneNumbers
from windowpane.engines.program import Program
from windowpane.engines.rows import python_keys
from windowpane.engines.sessions.evictions import Evictions
from windowpane.engines.sessions.merging import ArrivalOrder, Arrivals, SessionMerging
from windowpane.engines.sessions.windows import SessionRule
from windowpane.errors import MergeBehindWatermarkError
from windowpane.hidden_columns import ARRIVAL, END, FILLED, HELD, ROWS, START, hidden
from windowpane.kernels.grouping.group_folds import counted
from windowpane.kernels.grouping.grouped_fold import GroupedFold
from windowpane.kernels.keys.key_codes import plain_key
from windowpane.kernels.segments import Runs
from windowpane.kernels.sessions.islands import find_islands, sorted_by
from windowpane.kernels.sessions.live_sessions import merges_in_order
from windowpane.sizes import Size
from windowpane.windowing.lateness import Lateness
from windowpane.windowing.panes import NO_PANES
from windowpane.windowing.times import MAX, MIN
from windowpane.windowing.windows import TimeWindow

_SAMPLED = Size("keys to each that is sampled before folding sessions", 16, (1, 2))
"""One key in so many is looked at to decide whether rows are worth folding; all keys of fewer than ``_FEW`` rows."""
_FEW = Size("rows of sessions all of whose keys are sampled", 10_000, (1, 8))


IS_SAME: Final = hidden("is_same")
"""Whether a session before is also one of now, with the same bounds, and the other way round."""


class Joined(NamedTuple):
    """Partials, each with the number of its island."""

    numbers: Integers
    partials: pa.Table


@dataclass(frozen=True)
class Grown:
    """What rows made of sessions."""

    added: pa.Table | None  # the sessions rows are part of; ``None`` if no session took any
    joined: Integers  # the numbers of the sessions before that are part of those now
    refired: pa.Table | None  # the added sessions that had fired before, or late, and fire for these rows
    dropped: list[Integers]  # for each of the arrivals, the numbers of those that no session took
    merges: int  # how many sessions grew or met, as if rows had arrived in order of time
    before: pa.Table | None = None  # where results show panes, the sessions before that are part of those now


class SessionStep:
    """The steps of one program.

    Args:
        program: the program.
        rule: when sessions fire and are over.
        fold: the aggregates.
        evictions: what an evictor does to them, ``None`` without one.
    """

    def __init__(self, program: Program, rule: SessionRule, fold: GroupedFold, evictions: Evictions | None = None) -> None:
        self.rule = rule
        self._evictions = evictions if rule.outlives_firing and not rule.purges else None
        self._program = program
        self._fold = fold
        self._groups = group_columns(program)

    # The clock.

    def advance(self, sessions: pa.Table, before: int, now: int) -> tuple[pa.Table, pa.Table, Mask]:
        """Return what fires as the clock moves from ``before`` to ``now``, the sessions after that, and which are open still."""
        ends = sessions[END].to_numpy()
        fires = self.rule.fires(ends, before, now)
        fired = sessions.filter(pa.array(fires & _is_filled(sessions)))
        if FILLED in sessions.column_names and fires.any():
            filled = pa.array(_is_filled(sessions) & ~fires)
            sessions = replaced(sessions, FILLED, filled)
        if self._evictions is not None:
            sessions = self._evictions.left(sessions, fires)
        return fired, sessions, ~self.rule.is_over(ends, now)

    # Rows.

    def merging(self, rows: Arrivals) -> SessionMerging:
        """Return rows among themselves, for the two methods below."""
        return SessionMerging(self._groups, None, [rows])

    def rows_a_piece(self, merging: SessionMerging) -> float:
        """Return how many rows a piece would have on average, by the pieces of some of the keys."""
        codes, (starts, ends) = merging.codes, merging.bounds
        sampled = np.flatnonzero(codes * 0x9E3779B1 >> 7 & (_SAMPLED.value - 1) == 0)
        if _SAMPLED.value * _SAMPLED.value * len(sampled) < len(codes) or len(codes) < _FEW.value:
            sampled = np.arange(len(codes))
        pieces = find_islands(codes[sampled], starts[sampled], ends[sampled])
        return len(sampled) / max(len(pieces.starts), 1)

    def fold(self, merging: SessionMerging) -> pa.Table:
        """Return the pieces that rows make among themselves: bounds, keys, partials and number of rows."""
        numbers, segments = merging.members(0)
        spelled = with_plain_keys(self._program, merging.arrivals[0].table)
        folded = self._fold.fold_segments(spelled, segments).append_column(ROWS, counted(segments))
        return self._as_sessions(Joined(numbers, folded), merging)

    def grow(
        self,
        sessions: pa.Table | None,
        is_open: Mask,
        arrivals: Sequence[Arrivals],
        now: int,
        order: ArrivalOrder | None,
        watermark: int = MIN,
    ) -> Grown:
        """Return what rows, pieces or both make of sessions, among which are all of their keys; ``is_open`` says which take rows.

        ``order`` is ``None`` where that of arrival is not known; ``watermark`` says which panes are early.
        """
        met = np.flatnonzero(is_open)
        merging = SessionMerging(self._groups, sessions if is_open.all() else _taken(sessions, met), arrivals)
        near = merging.of_same_keys()
        if len(near) < len(met):
            met = met[near]
            merging = SessionMerging(self._groups, _taken(sessions, met), arrivals)
        dropped = self._dropped(merging, now, order)
        kept = [part.without(lost) for part, lost in zip(arrivals, dropped, strict=True)]
        kept = [part for part in kept if len(part.ends)]
        if not kept:
            return Grown(None, met[:0], None, dropped, 0)
        if any(len(lost) for lost in dropped):
            merging = SessionMerging(self._groups, merging.sessions, kept)
            order = None if order is None else partial(_order_of_rest, order, _without(len(arrivals[0].ends), dropped[0]))
        self._refuse_overflow(merging, now, order)
        return self._merged(merging, met, now, watermark, dropped)

    def _dropped(self, merging: SessionMerging, now: int, order: ArrivalOrder | None) -> list[Integers]:
        """Return, for each of the arrivals, the numbers of the late ones that join no live session."""
        late = [self.rule.is_late(part.ends, now) for part in merging.arrivals]
        if not any(part.any() for part in late):
            return [np.zeros(0, np.int64) for _ in late]
        return merging.unjoined(late, order)

    def _merged(self, merging: SessionMerging, met: Integers, now: int, watermark: int, dropped: list[Integers]) -> Grown:
        offsets = merging.offsets() if self._fold.is_ordered else None
        joined, of = merging.touched_sessions()
        parts = [self._of_part(merging, number, offsets) for number in range(len(merging.arrivals))]
        if merging.sessions is not None and len(joined):
            parts.append(self._of_sessions(_taken(merging.sessions, joined), of, None if offsets is None else offsets[joined]))
        merged = self._merged_parts(parts, merging.arrivals[0].is_folded)
        added = self._as_sessions(merged, merging)
        fires, before = self.rule.has_fired(added[END].to_numpy(), now), None
        if self._program.spec.panes == NO_PANES:
            refired = added.filter(pa.array(fires)) if fires.any() else None
        else:
            before, added, refired = self._with_panes(merging, joined, of, added, merged.numbers, watermark)
        if self._evictions is not None:
            added = self._evictions.left(added, fires)
        if self.rule.keeps_empty:
            added = added.append_column(FILLED, pa.array(~fires))
        return Grown(added, met[joined], refired, dropped, merging.islands.growths, before)

    def _with_panes(
        self, merging: SessionMerging, joined: Integers, of: Integers, added: pa.Table, numbers: Integers, watermark: int
    ) -> tuple[pa.Table | None, pa.Table, pa.Table]:
        """Return the sessions before, those now, and those now as they fire; ``IS_SAME`` of the first and last is set.

        Panes belong to a session of certain bounds: they continue where it has not grown, and begin anew where it has.

        ``joined`` are the numbers of the sessions before that are part of those now, ``of`` their islands; ``added`` are those
        now, which all fire.
        """
        islands = merging.islands
        is_same, panes = np.zeros(len(islands.starts), bool), PaneNumbers.none(len(islands.starts))
        before = _taken(merging.sessions, joined)
        if before is not None:
            same = (before[START].to_numpy() == islands.starts[of]) & (before[END].to_numpy() == islands.ends[of])
            is_same[of[same]] = True
            panes = PaneNumbers.kept(before).at(np.flatnonzero(same)).spread(len(is_same), of[same])
            before = before.append_column(IS_SAME, pa.array(same))
        if self._program.spec.panes.shows_info:
            is_early = added[END].to_numpy() - 1 > watermark
            added = panes.at(numbers).following(is_early).beside(added)
        return before, added, added.append_column(IS_SAME, pa.array(is_same[numbers]))

    def _of_part(self, merging: SessionMerging, number: int, offsets: Integers | None) -> Joined:
        """Return the partials of some arrivals: of rows one for each island, of pieces one each."""
        part = merging.arrivals[number]
        if part.is_folded:
            return Joined(merging.of_part(number), part.table.select(self._fold.columns))
        rows = with_plain_keys(self._program, part.table)  # only now: late rows are emitted as they arrived
        rows = rows if offsets is None else replaced(rows, ARRIVAL, pa.array(merging.part(offsets, number)))
        islands, segments = merging.members(number)
        return Joined(islands, self._fold.fold_segments(rows, segments))

    def _of_sessions(self, sessions: pa.Table, islands: Integers, offsets: Integers | None) -> Joined:
        """Return the partials that sessions hold."""
        is_filled = _is_filled(sessions)
        partials = sessions.select(self._fold.columns)
        partials = partials if offsets is None else self._fold.renumbered(partials, offsets)
        return Joined(islands[is_filled], partials.filter(pa.array(is_filled)))

    def _merged_parts(self, parts: Sequence[Joined], has_pieces: bool) -> Joined:
        """Return partials with one row an island: most islands have one already."""
        if len(parts) == 1 and not has_pieces:
            return parts[0]
        numbers = np.concatenate([part.numbers for part in parts])
        partials = pa.concat_tables([part.partials for part in parts])
        counts = np.bincount(numbers)
        is_alone = counts[numbers] == 1
        if is_alone.all():
            return Joined(numbers, partials)
        merging = np.flatnonzero(~is_alone)
        order = sorted_by(numbers[merging], np.zeros_like(merging)).order
        gathered, in_order = merging[order], numbers[merging][order]
        begins = np.flatnonzero(np.diff(in_order, prepend=-1))
        together = partials.take(pa.array(gathered)).combine_chunks()
        merged = self._fold.merge_segments(together, Runs.at(np.append(begins, len(gathered))))
        tables = [merged, partials.filter(pa.array(is_alone))]
        return Joined(np.concatenate([in_order[begins], numbers[is_alone]]), pa.concat_tables(tables))

    def _as_sessions(self, joined: Joined, merging: SessionMerging) -> pa.Table:
        islands, numbers = merging.islands, joined.numbers
        first = pa.array(islands.first[numbers])
        columns = {name: plain_key(merging.key_column(name).take(first)) for name in self._groups}
        columns |= {START: pa.array(islands.starts[numbers]), END: pa.array(islands.ends[numbers])}
        if self._fold.is_ordered:
            columns[HELD] = pa.array(merging.totals()[numbers])
        return pa.table({**columns, **dict(zip(joined.partials.column_names, joined.partials.columns, strict=True))})

    def _refuse_overflow(self, merging: SessionMerging, now: int, order: ArrivalOrder | None) -> None:
        """Refuse sessions that merge and whose cleanup time, beyond int64, wraps to behind the watermark: Flink's sum does."""
        lateness = self.rule.lateness
        is_behind = _wraps_behind(merging.bounds[1], lateness, now)
        if not is_behind.any():
            return
        merges = _merged(merging) if order is None else _merges(merging, is_behind, order)
        for number, window in merges:
            if _wraps_behind(np.array([window.end]), lateness, now).any():
                columns = {name: merging.key_column(name).slice(number, 1) for name in self._groups}
                keys = pa.table(key_arrays(self._program, pa.table(columns)), self._program.keys)
                key = python_keys(keys, keys.column_names)[0] if columns else None
                raise MergeBehindWatermarkError(key, window, lateness.allowed, "watermark", now).located(key=key)


def _without(count: int, numbers: Integers) -> Integers:
    return np.delete(np.arange(count), numbers)


def _order_of_rest(order: ArrivalOrder, rest: Integers, numbers: Integers) -> Integers:
    """Sort numbers of the ``rest`` of some rows, ascending, by the arrival of the rows."""
    return np.searchsorted(rest, order(rest[numbers]))


def _wraps_behind(ends: Integers, lateness: Lateness, now: int) -> Mask:
    """Return which windows would be kept beyond int64 and are behind the watermark by the sum that overflows."""
    is_behind: Mask = (ends - 1 > MAX - lateness.allowed) & lateness.are_behind(ends - 1, now)
    return is_behind


def _merges(merging: SessionMerging, asked: Mask, order: ArrivalOrder) -> Iterator[tuple[int, TimeWindow]]:
    """Yield the intervals that change an open session, with the merged window, on islands that hold one asked for."""
    is_asked = np.zeros(len(merging.islands.starts), bool)
    is_asked[merging.islands.of[asked]] = True
    numbers = merging.in_order(np.flatnonzero(is_asked[merging.islands.of]), order)
    columns = (column[numbers].tolist() for column in (merging.islands.of, *merging.bounds))
    for place, start, end in merges_in_order(*columns):
        yield int(numbers[place]), TimeWindow(start, end)


def _merged(merging: SessionMerging) -> Iterator[tuple[int, TimeWindow]]:
    """Yield an interval of each island on which some merged, with the session they make, where their order is not known."""
    islands, (starts, ends) = merging.islands, merging.bounds
    merges = np.ones(len(islands.starts), bool)
    merges[islands.of[(starts == islands.starts[islands.of]) & (ends == islands.ends[islands.of])]] = False
    for number in np.flatnonzero(merges).tolist():
        yield int(islands.first[number]), TimeWindow(int(islands.starts[number]), int(islands.ends[number]))


def _is_filled(sessions: pa.Table) -> Mask:
    if FILLED not in sessions.column_names:
        return np.ones(sessions.num_rows, bool)
    filled: Mask = sessions[FILLED].to_numpy()
    return filled


def _taken(sessions: pa.Table | None, numbers: Integers) -> pa.Table | None:
    return None if sessions is None else sessions.take(pa.array(numbers))
