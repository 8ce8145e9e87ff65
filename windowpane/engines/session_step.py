"""One step of sessions on tables: the clock moves and sessions fire, then rows come and sessions grow, merge and fire again.

A table of sessions has the key columns, ``START`` and ``END``, ``FILLED`` where the rule keeps empty sessions, and the partials
of what each session holds. Invariant, as in Flink's merging window set: two sessions of one key neither overlap nor touch.

Rows come whole, or as pieces: sessions of a few rows, with their partials, that were folded before the shuffle. Rows that are
late by themselves are judged in their order of arrival. Where rows may be folded no such order is known any more; then it is
the one in which each late row comes after what it touches: the outcome of a micro-batch is that of some order of its rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa

from windowpane.engines.rows import python_keys
from windowpane.engines.session_rule import Mask, SessionRule
from windowpane.errors import MergeBehindWatermarkError
from windowpane.kernels.grouped_fold import GroupedFold
from windowpane.kernels.islands import Int64s, Islands, find_islands
from windowpane.kernels.key_codes import key_codes, plain_key
from windowpane.kernels.late_joiners import join_in_order
from windowpane.windowing.times import MAX, wrap_int64
from windowpane.windowing.windows import TimeWindow

START = "__windowpane_start"
END = "__windowpane_end"
FILLED = "__windowpane_filled"
ROWS = "__windowpane_rows"
"""Number of rows that were folded into a piece."""
_ISLAND = "__windowpane_island"

ArrivalOrder = Callable[[Int64s], Int64s]

_SAMPLED = 16
"""One key in so many is looked at to tell whether rows are worth folding; all keys of fewer than ``_FEW`` rows."""
_FEW = 10_000


@dataclass(frozen=True)
class Arrivals:
    """What arrives, by key: rows and the windows they open, or pieces and their bounds.

    Args:
        table: rows with the columns of the aggregates' arguments, or pieces with their partials; both with key columns.
        starts: start of each.
        ends: end of each.
        is_folded: whether these are pieces.
    """

    table: pa.Table
    starts: Int64s
    ends: Int64s
    is_folded: bool = False

    def select(self, wanted: Mask) -> Arrivals:
        """Return those that are wanted."""
        return self if wanted.all() else self.take(np.flatnonzero(wanted))

    def without(self, numbers: Int64s) -> Arrivals:
        """Return all but those with the ``numbers``."""
        return self.select(~np.isin(np.arange(len(self.ends)), numbers)) if len(numbers) else self

    def take(self, numbers: Int64s) -> Arrivals:
        """Return those with the ``numbers``."""
        return Arrivals(self.table.take(pa.array(numbers)), self.starts[numbers], self.ends[numbers], self.is_folded)


@dataclass(frozen=True)
class Grown:
    """Sessions after rows came.

    Args:
        sessions: those left; ``None`` if there were and are none.
        refired: sessions that rows joined after they had fired, to fire again.
        dropped: for each of the arrivals, the numbers of what no session took.
        merges: how many sessions grew or met, as if rows had come in order of time.
    """

    sessions: pa.Table | None
    refired: pa.Table | None
    dropped: list[Int64s]
    merges: int


class SessionStep:
    """The steps of one program.

    Args:
        rule: when sessions fire and are over.
        fold: the aggregates.
        groups: the key columns; empty if there are none.
    """

    def __init__(self, rule: SessionRule, fold: GroupedFold, groups: Sequence[str]) -> None:
        self._rule = rule
        self._fold = fold
        self._groups = list(groups)

    def advance(self, sessions: pa.Table, before: int, now: int) -> tuple[pa.Table, pa.Table]:
        """Return the sessions that fire as the clock moves from ``before`` to ``now``, and those that are left."""
        ends = sessions[END].to_numpy()
        fires = self._rule.fires(ends, before, now)
        fired = sessions.filter(pa.array(fires & self._is_filled(sessions)))
        if self._rule.purges and fires.any():
            sessions = self._emptied(sessions, fires)
        over = self._rule.is_over(ends, now)
        return fired, sessions.filter(pa.array(~over)) if over.any() else sessions

    def rows_a_piece(self, rows: Arrivals) -> float:
        """Return how many rows a piece would have on average, by the pieces of some of the keys."""
        codes = key_codes([plain_key(rows.table[name]) for name in self._groups], len(rows.ends))
        sampled = np.flatnonzero(codes * 0x9E3779B1 >> 7 & (_SAMPLED - 1) == 0)
        if _SAMPLED * _SAMPLED * len(sampled) < len(codes) or len(codes) < _FEW:
            sampled = np.arange(len(codes))
        pieces = find_islands(codes[sampled], rows.starts[sampled], rows.ends[sampled])
        return len(sampled) / max(len(pieces.starts), 1)

    def fold(self, rows: Arrivals) -> pa.Table:
        """Return the pieces that rows make among themselves: bounds, keys, partials and number of rows."""
        islands = self._islands([rows.table], rows.starts, rows.ends)
        folded = self._fold.fold(_numbered(rows.table, islands.of), [_ISLAND], counted=ROWS)
        return self._as_sessions(folded, islands, [rows.table])

    def grow(
        self, sessions: pa.Table | None, arrivals: Sequence[Arrivals], now: int, arrival_order: ArrivalOrder | None
    ) -> Grown:
        """Return what sessions become when rows come.

        Args:
            sessions: the open sessions of the rows' keys, and of any others.
            arrivals: rows, pieces or both.
            now: the clock.
            arrival_order: sorts numbers of rows by their arrival; ``None`` where that is not known.
        """
        dropped = self._dropped(sessions, arrivals, now, arrival_order)
        kept = [part.without(gone) for part, gone in zip(arrivals, dropped, strict=True)]
        kept = [part for part in kept if len(part.ends)]
        return self._merged(sessions, kept, now, dropped) if kept else Grown(sessions, None, dropped, 0)

    # Late rows.

    def _dropped(
        self, sessions: pa.Table | None, arrivals: Sequence[Arrivals], now: int, arrival_order: ArrivalOrder | None
    ) -> list[Int64s]:
        """Return the numbers of what is late by itself and joins no live session, for each of the arrivals."""
        nothing = np.zeros(0, np.int64)
        late = [self._rule.is_over(part.ends, now) if self._rule.is_event_time else np.zeros(0, bool) for part in arrivals]
        if not any(part.any() for part in late):
            return [nothing for _ in arrivals]
        before = sessions.num_rows if sessions is not None else 0
        islands = self._all_islands(sessions, arrivals)
        is_late = np.concatenate([np.zeros(before, bool), *late])
        has_anchor = np.zeros(len(islands.starts), bool)
        has_anchor[islands.of[~is_late]] = True
        gone = is_late & ~has_anchor[islands.of]
        if arrival_order is not None:
            gone |= self._unjoined(sessions, arrivals[0], islands, is_late & ~gone, before, arrival_order)
        bounds = np.cumsum([before, *(len(part.ends) for part in arrivals)])
        return [np.flatnonzero(gone[start:end]) for start, end in pairwise(bounds)]

    def _unjoined(
        self,
        sessions: pa.Table | None,
        rows: Arrivals,
        islands: Islands,
        is_late: Mask,
        before: int,
        arrival_order: ArrivalOrder,
    ) -> Mask:
        """Return which late rows, of islands that hold others, too, come before what they touch."""
        unsettled = np.zeros(len(islands.starts), bool)
        unsettled[islands.of[is_late]] = True
        if not unsettled.any():
            return unsettled[islands.of]
        asked = np.flatnonzero(unsettled[islands.of])
        in_order = np.concatenate([asked[asked < before], arrival_order(asked[asked >= before] - before) + before])
        starts, ends = _bounds(sessions, [rows])
        kept = join_in_order(*(column[in_order].tolist() for column in (islands.of, starts, ends, is_late)))
        gone = np.zeros(len(is_late), bool)
        gone[in_order[~kept]] = True
        return gone

    # Merging.

    def _merged(self, sessions: pa.Table | None, arrivals: Sequence[Arrivals], now: int, dropped: list[Int64s]) -> Grown:
        islands = self._all_islands(sessions, arrivals)
        self._refuse_overflow(sessions, arrivals, islands, now)
        before = sessions.num_rows if sessions is not None else 0
        touched = np.zeros(len(islands.starts), bool)
        touched[islands.of[before:]] = True
        joined = self._joined(sessions, arrivals, islands, touched)
        tables = [*([] if sessions is None else [sessions]), *(part.table for part in arrivals)]
        new = self._as_sessions(joined, islands, tables)
        fires = self._rule.has_fired(new[END].to_numpy(), now)
        refired = new.filter(pa.array(fires)) if fires.any() else None
        if self._rule.keeps_empty:
            new = new.append_column(FILLED, pa.array(~fires))
        if sessions is not None:
            idle = sessions.filter(pa.array(~touched[islands.of[:before]]))
            new = pa.concat_tables([idle, new.select(sessions.column_names)])
        return Grown(new, refired, dropped, islands.growths)

    def _refuse_overflow(self, sessions: pa.Table | None, arrivals: Sequence[Arrivals], islands: Islands, now: int) -> None:
        """Refuse sessions that met and whose cleanup time, beyond int64, wraps to behind the watermark: Flink's sum does."""
        beyond = islands.ends - 1 > MAX - self._rule.lateness
        if not beyond.any():
            return
        starts, ends = _bounds(sessions, arrivals)
        beyond[islands.of[(starts == islands.starts[islands.of]) & (ends == islands.ends[islands.of])]] = False
        for number in np.flatnonzero(beyond).tolist():
            window = TimeWindow(int(islands.starts[number]), int(islands.ends[number]))
            if wrap_int64(window.max_timestamp + self._rule.lateness) <= now:
                key = self._key_of(sessions, arrivals, int(islands.first[number]))
                error = MergeBehindWatermarkError(key, window, self._rule.lateness, "watermark", now)
                raise error.located(key=key)

    def _key_of(self, sessions: pa.Table | None, arrivals: Sequence[Arrivals], number: int) -> object:
        tables = [*([] if sessions is None else [sessions]), *(part.table for part in arrivals)]
        return python_keys(pa.concat_tables([table.select(self._groups) for table in tables]).slice(number, 1), self._groups)[0]

    def _joined(self, sessions: pa.Table | None, arrivals: Sequence[Arrivals], islands: Islands, touched: Mask) -> pa.Table:
        """Return the partials of the touched islands, by their number."""
        at = sessions.num_rows if sessions is not None else 0
        tables, meets = [], np.zeros(len(touched), bool)
        if sessions is not None:
            of = islands.of[:at]
            held = np.flatnonzero(touched[of] & self._is_filled(sessions))
            tables.append(self._partials(sessions.take(pa.array(held)), of[held]))
            meets[of[held]] = True
        several = len(arrivals) > 1
        for part in arrivals:
            of = islands.of[at : at + len(part.ends)]
            at += len(of)
            if part.is_folded:
                tables.append(self._partials(part.table, of))
                several = True
            else:
                tables.append(self._fold.fold(_numbered(part.table, of), [_ISLAND]))
        if several:
            return self._fold.merge(tables, [_ISLAND])
        return self._met(tables, meets)

    def _met(self, tables: Sequence[pa.Table], meets: Mask) -> pa.Table:
        """Return the partials of sessions and of rows together, where each table has an island once."""
        *held, fresh = tables
        if not held or not held[0].num_rows:
            return fresh
        meeting = meets[fresh[_ISLAND].to_numpy()]
        merged = self._fold.merge([*held, fresh.filter(pa.array(meeting))], [_ISLAND])
        return pa.concat_tables([merged, fresh.filter(pa.array(~meeting))])

    def _partials(self, table: pa.Table, numbers: Int64s) -> pa.Table:
        return _numbered(table.select(self._fold.columns), numbers)

    def _as_sessions(self, joined: pa.Table, islands: Islands, tables: Sequence[pa.Table]) -> pa.Table:
        numbers = joined[_ISLAND].to_numpy()
        first = pa.array(islands.first[numbers])
        columns = {name: plain_key(_together(tables, name).take(first)) for name in self._groups}
        columns |= {START: pa.array(islands.starts[numbers]), END: pa.array(islands.ends[numbers])}
        return pa.table({**columns, **{name: joined[name] for name in joined.column_names if name != _ISLAND}})

    # Columns.

    def _all_islands(self, sessions: pa.Table | None, arrivals: Sequence[Arrivals]) -> Islands:
        tables = [*([] if sessions is None else [sessions]), *(part.table for part in arrivals)]
        return self._islands(tables, *_bounds(sessions, arrivals))

    def _islands(self, tables: Sequence[pa.Table], starts: Int64s, ends: Int64s) -> Islands:
        columns = [plain_key(_together(tables, name)) for name in self._groups]
        return find_islands(key_codes(columns, len(starts)), starts, ends)

    def _is_filled(self, sessions: pa.Table) -> Mask:
        if FILLED not in sessions.column_names:
            return np.ones(sessions.num_rows, bool)
        filled: Mask = sessions[FILLED].to_numpy()
        return filled

    def _emptied(self, sessions: pa.Table, fires: Mask) -> pa.Table:
        if FILLED not in sessions.column_names:
            return sessions
        filled = pa.array(self._is_filled(sessions) & ~fires)
        return sessions.set_column(sessions.column_names.index(FILLED), FILLED, filled)


def _bounds(sessions: pa.Table | None, arrivals: Sequence[Arrivals]) -> tuple[Int64s, Int64s]:
    starts = [part.starts for part in arrivals]
    ends = [part.ends for part in arrivals]
    if sessions is not None:
        starts, ends = [sessions[START].to_numpy(), *starts], [sessions[END].to_numpy(), *ends]
    return np.concatenate(starts), np.concatenate(ends)


def _together(tables: Sequence[pa.Table], name: str) -> pa.ChunkedArray:
    return pa.chunked_array([chunk for table in tables for chunk in table[name].chunks])


def _numbered(table: pa.Table, numbers: Int64s) -> pa.Table:
    return table.add_column(0, _ISLAND, pa.array(numbers))
