"""Sessions whose trigger is called row by row: which sessions rows open, join and merge, and what fires of which pieces.

A walk goes over the rows of a batch in order of arrival. It knows bounds, standings and numbers of panes, no values: rows
become *pieces*, runs of rows of one session with no firing and no merge among them, and a session is the list of its pieces.
When sessions merge their lists are joined, the earliest session first, so the pieces that a session held at any instant are
neighbours in the order of pieces in the end::

    A   a1 a2 F            a session is  a1 a2 | b1 | c1        F sees a1 a2
    B         b1                         --------------
    row          c1 joins both           c1 is the third piece of the one session

The order of things is the operator's: place, merge, late, finished, add, trigger, emit, purge. Source: ``operators.window``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from windowpane.arrays.values import Value
from windowpane.engines.panes.pane_results import OF_CONTENTS, OF_NOTHING
from windowpane.engines.panes.standings import Standings
from windowpane.engines.panes.trigger_program import FIRES, IS_CLEARED, IS_DROPPED, IS_LAST, IS_ON_TIME, MAY_BE_EMPTY, NEW, PURGES
from windowpane.errors import MergeBehindWatermarkError
from windowpane.kernels.sessions.live_sessions import LiveSessions
from windowpane.windowing.outputs import DELETE, INSERT, UPDATE_POSTIMAGE, UPDATE_PREIMAGE
from windowpane.windowing.panes import PaneOptions
from windowpane.windowing.times import MIN
from windowpane.windowing.windows import TimeWindow


class Numbers(NamedTuple):
    """The panes of a session: how many there were, how many of them not early, whether the first of those was on time.

    And whether the last one is the last there is.
    """

    all: int = 0
    others: int = 0
    was_on_time: bool = False
    is_last: bool = False


NO_PANE = Numbers()


class Entry(NamedTuple):
    """A row that a session has emitted, and that may be taken back."""

    start: int  # the start of the session as it was
    end: int
    source: int  # where its partials are: the number of a firing, or below 0 that of a row kept from before, counted from -1 down
    kind: int  # ``OF_CONTENTS`` or ``OF_NOTHING``
    numbers: Numbers  # of its pane


class Output(NamedTuple):
    """A row that is emitted: an entry of a key, and the word of the changelog for it."""

    key: int
    entry: Entry
    word: str


class Seen(NamedTuple):
    """The pieces that a firing sees, from the first to the last of them."""

    first: int
    last: int


@dataclass(slots=True, eq=False)
class Session:
    """A session of a key."""

    key: int  # the number of its key
    start: int
    end: int
    standing: int = NEW  # the number of its standing
    pieces: list[int] = field(default_factory=list)  # what it holds
    continues: bool = False  # whether the next row belongs to the last piece
    numbers: Numbers = NO_PANE  # of its panes
    # what it, and the sessions that were merged into it since its last pane, have emitted
    entries: list[Entry] = field(default_factory=list)
    pending: int | None = None  # what a firing that waits for the end of the batch is, ``None`` for none

    @property
    def window(self) -> TimeWindow:
        return TimeWindow(self.start, self.end)


@dataclass
class Row:
    """A row on its way: its number, its key, the window that it opens by itself, its time, and the row where a trigger looks."""

    number: int
    key: int
    start: int
    end: int
    time: int
    element: Value = None


class SessionWalk:
    """Takes rows and clocks, and notes what happens to sessions.

    Args:
        standings: what the trigger answers.
        options: what results show of panes.
        clocks: watermark and clock.
        sessions: the open ones of the keys of the batch.
        pieces: how many pieces they hold.
        key_of: the key of a number, for errors.
    """

    def __init__(
        self,
        standings: Standings,
        options: PaneOptions,
        clocks: tuple[int, int],
        sessions: Iterable[Session],
        pieces: int,
        key_of: Callable[[int], Value],
    ) -> None:
        self._key_of = key_of
        self._standings, self._options = standings, options
        self._watermark, self._now = clocks
        self._lateness = standings.spec.lateness
        self._is_event_time = standings.spec.assigner.is_event_time
        self._coalesces = standings.spec.coalesces_refinements
        self.by_key: dict[int, LiveSessions[Session]] = defaultdict(LiveSessions)
        for session in sessions:
            live, bounds = self.by_key[session.key], (session.start, session.end)
            live.put(live.touched(*bounds), *bounds, session)
        self._held_back: dict[int, Session] = {}
        self.pieces = pieces
        self.piece_of: list[int] = []
        self.rows: list[int] = []
        self.sealed: list[list[int]] = []
        self.seen: list[Seen] = []
        self.outputs: list[Output] = []
        self.late: list[tuple[int, int, int]] = []
        self.finished: list[tuple[int, TimeWindow]] = []
        self.merges = 0
        self.firings = 0

    # Rows.

    def take(self, rows: Iterable[Row]) -> None:
        """Take rows in order of arrival, then fire what waited for the last of them."""
        for row in rows:
            self._take(row)
        for session in list(self._held_back.values()):
            self._act(session, session.pending or 0)
            session.pending = None
        self._held_back.clear()

    def _take(self, row: Row) -> None:
        sessions = self.by_key[row.key]
        session = self._place(row, sessions)
        if self._lateness.is_late(session.end - 1, self._watermark):
            sessions.remove(session.start)
            self.late.append((row.number, session.start, session.end))
            return
        standing, bits = self._standings.after_row(session.standing, session.window, row.time, row.element)
        session.standing = standing
        if bits & IS_DROPPED:
            self.finished.append((row.number, session.window))
            return
        if not session.continues:
            session.pieces.append(self.pieces)
            session.continues = True
            self.pieces += 1
        self.rows.append(row.number)
        self.piece_of.append(session.pieces[-1])
        if bits & FIRES and self._coalesces and session.end - 1 <= self._watermark:
            session.pending = bits
            self._held_back.setdefault(id(session), session)
        elif bits:
            self._act(session, bits)

    def _place(self, row: Row, sessions: LiveSessions[Session]) -> Session:
        """Return the session that a row is part of, new or grown where it has to be."""
        touched = sessions.touched(row.start, row.end)
        met = sessions.values[touched]
        if not met:
            session = Session(row.key, row.start, row.end)
            sessions.put(touched, row.start, row.end, session)
            return session
        if len(met) == 1 and met[0].start <= row.start and row.end <= met[0].end:
            return met[0]
        merged = Session(row.key, min(row.start, met[0].start), max(row.end, met[-1].end))
        self._refuse_behind(merged)
        self.merges += 1
        merged.standing = self._standings.merged([each.standing for each in met], merged.window)
        merged.continues = len(met) == 1 and met[0].continues
        for each in met:
            self._held_back.pop(id(each), None)
            merged.pieces += each.pieces
            merged.entries += each.entries
        sessions.put(touched, merged.start, merged.end, merged)
        return merged

    def _refuse_behind(self, merged: Session) -> None:
        end, key = merged.end - 1, self._key_of
        if self._lateness.is_behind(end, self._watermark):
            allowed = self._lateness.allowed
            raise MergeBehindWatermarkError(key(merged.key), merged.window, allowed, "watermark", self._watermark)
        if not self._is_event_time and end <= self._now:
            raise MergeBehindWatermarkError(key(merged.key), merged.window, 0, "processing time", self._now)

    # Clocks.

    def advance(self, sessions: Sequence[Session], event_time: bool) -> None:
        """Fire the timers of sessions that a clock has made due, earliest first."""
        due = list[tuple[int, int, int, int, Session, int]]()
        for session in sessions:
            advance = self._standings.advanced(session.standing, session.window, event_time)
            session.standing, latest = advance.number, MIN
            for step in advance.steps:
                latest = max(latest, step.time)
                due.append((latest, session.start, session.end, len(due), session, step.bits))
        for *_, session, bits in sorted(due, key=lambda each: each[:4]):
            self._act(session, bits)
            if bits & IS_CLEARED:
                self._seal(session)
                self.by_key[session.key].remove(session.start)

    # What happens to a session.

    def _act(self, session: Session, bits: int) -> None:
        if bits & FIRES and (session.pieces or bits & MAY_BE_EMPTY):
            self._fire(session, bits)
        if bits & PURGES:
            self._seal(session)
        session.continues = False

    def _seal(self, session: Session) -> None:
        if session.pieces:
            self.sealed.append(session.pieces)
        session.pieces, session.continues = [], False

    def _fire(self, session: Session, bits: int) -> None:
        self.firings += 1
        if session.pieces:
            source, kind = len(self.seen), OF_CONTENTS
            self.seen.append(Seen(session.pieces[0], session.pieces[-1]))
        else:
            source, kind = 0, OF_NOTHING
        before, is_early = session.numbers, session.end - 1 > self._watermark
        was_on_time = before.was_on_time if before.others else bool(bits & IS_ON_TIME) and not is_early
        session.numbers = Numbers(before.all + 1, before.others + (not is_early), was_on_time, bool(bits & IS_LAST))
        entry = Entry(session.start, session.end, source, kind, session.numbers)
        own = False
        if self._options.retracts:
            bounds = session.start, session.end
            self.outputs += [Output(session.key, each, DELETE) for each in session.entries if each[:2] != bounds]
            again = [Output(session.key, each, UPDATE_PREIMAGE) for each in session.entries if each[:2] == bounds]
            self.outputs += again
            session.entries, own = [entry], bool(again)
        self.outputs.append(Output(session.key, entry, UPDATE_POSTIMAGE if own else INSERT))

    def order(self) -> list[list[int]]:
        """Return all pieces in runs that belong together: those of dropped contents, and of each open session."""
        return [*self.sealed, *(session.pieces for live in self.by_key.values() for session in live.values if session.pieces)]
