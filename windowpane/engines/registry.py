"""The registry: every engine there is, by the kind of programs it runs, the fastest first, the reference last.

A new engine is one ``EngineSpec`` in one of the lists; nothing else names all engines. Only planning reads this module: a worker
is sent the class of its engine, and imports no other.
"""

from __future__ import annotations

from typing import Any, Final, TypeVar

from windowpane.engines.deduplication.engine import DeduplicationEngine
from windowpane.engines.deduplication.program import DeduplicationProgram
from windowpane.engines.deduplication.reference import DeduplicationReferenceEngine
from windowpane.engines.filling.engine import FillingEngine
from windowpane.engines.filling.program import FillingProgram
from windowpane.engines.filling.reference import FillingReferenceEngine
from windowpane.engines.join.as_of import JoinAsOfEngine
from windowpane.engines.join.by_arrival import JoinByArrivalEngine
from windowpane.engines.join.interval import JoinIntervalEngine
from windowpane.engines.join.program import JoinProgram
from windowpane.engines.join.reference import JoinReferenceEngine
from windowpane.engines.join.windows import JoinWindowEngine
from windowpane.engines.over import close, update
from windowpane.engines.over.close import OverCloseEngine
from windowpane.engines.over.program import Emit, OverProgram
from windowpane.engines.over.reference import OverReferenceEngine
from windowpane.engines.over.update import OverUpdateEngine
from windowpane.engines.panes import engine as panes
from windowpane.engines.panes.engine import PanesEngine
from windowpane.engines.patterns import left_out, text
from windowpane.engines.patterns.program import PatternProgram
from windowpane.engines.patterns.reference import PatternReferenceEngine
from windowpane.engines.patterns.text import PatternTextEngine
from windowpane.engines.program import Program
from windowpane.engines.rolling import engine as rolling
from windowpane.engines.rolling import point_in_time
from windowpane.engines.rolling.engine import RollingEngine
from windowpane.engines.rolling.point_in_time import PointInTimeEngine, PointInTimeReferenceEngine
from windowpane.engines.rolling.program import PointInTimeProgram, RollingProgram
from windowpane.engines.rolling.reference import RollingReferenceEngine
from windowpane.engines.rolling.waiting_labels import WaitingLabelsEngine, WaitingLabelsReferenceEngine
from windowpane.engines.row import engine as row
from windowpane.engines.row.engine import RowEngine
from windowpane.engines.row.reference import ReferenceEngine
from windowpane.engines.sessions import closed
from windowpane.engines.sessions import engine as sessions
from windowpane.engines.sessions.closed import ClosedSessionsEngine
from windowpane.engines.sessions.closed_reference import ClosedSessionsReferenceEngine
from windowpane.engines.sessions.engine import SessionsEngine
from windowpane.engines.settling.engine import SettlingEngine
from windowpane.engines.settling.program import SettlingProgram
from windowpane.engines.settling.reference import SettlingReferenceEngine
from windowpane.engines.slices import engine as slices
from windowpane.engines.slices.engine import SlicesEngine
from windowpane.engines.slices.folding import combiner as combiner_of_slices
from windowpane.engines.spec import Combining, EngineSpec
from windowpane.kernels.over.window import call_kernel
from windowpane.windowing.assigners import ClosedSessionWindows
from windowpane.windowing.joins import ArrivalMatch, AsOfMatch, IntervalMatch, WindowMatch


def _is_closed_session(program: Program) -> bool:
    return isinstance(program.spec.assigner, ClosedSessionWindows)


def _is_other(program: Program) -> bool:
    return not _is_closed_session(program)


def _is_session(program: Program) -> bool:
    return program.spec.merges


def _is_no_session(program: Program) -> bool:
    return not program.spec.merges


def _has_windows_of_fixed_size(program: Program) -> bool:
    return not program.spec.merges and program.spec.assigner.has_ends


def _is_static(program: PointInTimeProgram) -> bool:
    return not program.is_streaming


def _is_stream(program: PointInTimeProgram) -> bool:
    return program.is_streaming


def _calls(program: OverProgram) -> str:
    """Return, for people, which calls continue from counters and which are folded row by row."""
    kernels = [call_kernel(call, program.columns) for call in program.spec.calls]
    running = [str(kernel.call) for kernel in kernels if kernel.is_running]
    folded = [str(kernel.call) for kernel in kernels if kernel.is_folded]
    parts = [f"{', '.join(running)} from counters of the row before"] if running else []
    parts += [f"{', '.join(folded)} row by row by the aggregate itself"] if folded else []
    return "; ".join(parts) or "every call for all rows at once"


def _of_the_reference(program: Program | OverProgram) -> str:
    if program.key_delay is not None:
        return "each key has a watermark of its own, which only the reference operator keeps"
    return "the reference operator runs every program"


_STATE_OF_ROWS = "sorted pages: keyed state, event-time timers, processing-time timers"
_HOLDS_OF_ROWS = {"s": "keyed state", "e": "event-time timers", "p": "processing-time timers"}

WINDOW_ENGINES: Final[tuple[EngineSpec[Program], ...]] = (
    EngineSpec(
        SlicesEngine,
        refusal=slices.refusal,
        reason="windows of fixed size over built-in aggregates share slices",
        state="a segment log: partial aggregates by slice and key",
        holds={"s": "partials by slice", "a": "partials of windows that end now"},
        combining=Combining(combiner_of_slices, slices.combining_refusal, folds_punctual=True, folds_ordered=True),
        serves=_is_other,
        explains=_has_windows_of_fixed_size,
    ),
    EngineSpec(
        SessionsEngine,
        refusal=sessions.refusal,
        reason="sessions of built-in aggregates are islands of rows and open sessions",
        state="hash pages: open sessions with their partial aggregates, with an evictor their elements, by a hash of the key",
        holds={"p": "open sessions", "w": "emitted panes"},
        combining=Combining(sessions.combiner, sessions.combining_refusal),
        serves=_is_other,
        explains=_is_session,
    ),
    EngineSpec(
        PanesEngine,
        refusal=panes.refusal,
        reason=lambda program: panes.Kind.of(program.spec).value,
        state="segment logs by window or shard of keys: what triggers know, and partial aggregates, or with an evictor elements",
        holds={"p": "panes"},
        combining=Combining(panes.combiner, panes.combining_refusal),
        serves=_is_other,
        explains=_is_no_session,
    ),
    EngineSpec(
        RowEngine,
        refusal=row.refusal,
        reason="functions, triggers and evictors in Python take the rows of a batch by key",
        state=_STATE_OF_ROWS,
        holds=_HOLDS_OF_ROWS,
        serves=_is_other,
        tells_refusals=True,
    ),
    EngineSpec(
        ClosedSessionsEngine,
        refusal=closed.refusal,
        reason="rows that the watermark has passed are cut into sessions, all keys at once",
        state="a sort buffer, and hash pages: open sessions with their partial aggregates, by a hash of the key",
        holds={"b": "rows that wait", "p": "open sessions"},
        serves=_is_closed_session,
    ),
    EngineSpec(
        ClosedSessionsReferenceEngine,
        reason="the reference cuts the rows of a key one by one",
        state="sorted pages: rows that wait and open sessions, by key",
        holds={"s": "rows that wait and open sessions, by key"},
        serves=_is_closed_session,
    ),
    EngineSpec(ReferenceEngine, reason=_of_the_reference, state=_STATE_OF_ROWS, holds=_HOLDS_OF_ROWS, serves=_is_other),
)
"""The engines of windows."""

OVER_ENGINES: Final[tuple[EngineSpec[OverProgram], ...]] = (
    EngineSpec(
        OverUpdateEngine,
        refusal=update.refusal,
        reason=lambda program: (
            f"pages of rows and outputs, affected rows computed by kernels on sorted arrays: {_calls(program)}"
        ),
        state="row pages: rows with their results, by partition and order",
        holds={"g": "rows with their results"},
        serves=lambda program: program.mode is Emit.UPDATE,
    ),
    EngineSpec(
        OverCloseEngine,
        refusal=close.refusal,
        reason=lambda program: f"a sort buffer, complete rows computed by kernels on sorted arrays: {_calls(program)}",
        state="a sort buffer of rows that wait, tails of partitions, counters of running calls",
        holds={"b": "rows that wait", "t": "tails"},
        serves=lambda program: program.mode is Emit.CLOSE,
    ),
    EngineSpec(
        OverReferenceEngine,
        reason=_of_the_reference,
        state="sorted pages: keyed state, and a sort buffer",
        holds={"s": "rows by key", "b": "rows that wait"},
    ),
)
"""The engines of OVER windows."""

ROLLING_ENGINES: Final[tuple[EngineSpec[RollingProgram], ...]] = (
    EngineSpec(
        RollingEngine,
        refusal=rolling.refusal,
        reason="windows of a key merge pieces of partial aggregates, all keys at once",
        state="hash pages: by key its last row, and partial aggregates of the times that a window can still see",
        holds={"p": "features"},
    ),
    EngineSpec(
        RollingReferenceEngine,
        reason="the reference operator runs all rolling features",
        state="sorted pages: by key the rows that a window can still see, and when features change",
        holds={"s": "rows by key", "t": "timers"},
    ),
)
"""The engines of rolling features."""

POINT_IN_TIME_ENGINES: Final[tuple[EngineSpec[PointInTimeProgram], ...]] = (
    EngineSpec(
        PointInTimeEngine,
        refusal=point_in_time.refusal,
        reason="all labels find their rows by one search, and kernels fold them",
        state="nothing",
        holds={},
        serves=_is_static,
    ),
    EngineSpec(
        WaitingLabelsEngine,
        refusal=point_in_time.refusal,
        reason="labels that are due find their rows by one search, and kernels fold them",
        state="hash pages: labels that wait and the rows that windows can see, by a hash of the key",
        holds={"p": "labels and rows"},
        serves=_is_stream,
    ),
    EngineSpec(
        WaitingLabelsReferenceEngine,
        reason="rows and labels of a key meet one by one when the watermark has passed them",
        state="hash pages: labels that wait and the rows that windows can see, by a hash of the key",
        holds={"p": "labels and rows"},
        serves=_is_stream,
    ),
    EngineSpec(
        PointInTimeReferenceEngine,
        reason="rows and labels of a key meet one by one",
        state="nothing",
        holds={},
        serves=_is_static,
    ),
)
"""The engines of rolling features as of the times of labels."""

DEDUPLICATION_ENGINES: Final[tuple[EngineSpec[DeduplicationProgram], ...]] = (
    EngineSpec(
        DeduplicationEngine,
        reason="rows of a batch meet the held ones of their keys all at once",
        state="hash pages: what a row that is not late can be a duplicate of, by a hash of the key",
        holds={"h": "first rows", "k": "their keys", "p": "last rows"},
    ),
    EngineSpec(
        DeduplicationReferenceEngine,
        reason="the reference operator runs every program",
        state="sorted pages: runs of near rows by key, and when each is forgotten",
        holds={"s": "rows by key", "t": "timers"},
    ),
)
"""The engines of deduplication."""

FILLING_ENGINES: Final[tuple[EngineSpec[FillingProgram], ...]] = (
    EngineSpec(
        FillingEngine,
        reason="the windows behind those that have rows are counted for all keys at once",
        state="hash pages: windows with rows that others are still filled from, by a hash of the key",
        holds={"p": "windows with rows"},
    ),
    EngineSpec(
        FillingReferenceEngine,
        reason="the reference fills one window after the other",
        state="sorted pages: windows with rows that others are still filled from, by key",
        holds={"s": "windows with rows, by key"},
    ),
)
"""The engines that fill the gaps of windows."""

SETTLING_ENGINES: Final[tuple[EngineSpec[SettlingProgram], ...]] = (
    EngineSpec(
        SettlingEngine,
        reason="changes of equal rows are counted all at once",
        state="a sort buffer: changes that wait for the watermark",
        holds={"b": "changes that wait"},
    ),
    EngineSpec(
        SettlingReferenceEngine,
        reason="the reference counts one change after the other",
        state="a sort buffer: changes that wait for the watermark",
        holds={"b": "changes that wait"},
    ),
)
"""The engines that settle changelogs."""

JOIN_ENGINES: Final[tuple[EngineSpec[JoinProgram], ...]] = (
    EngineSpec(
        JoinIntervalEngine,
        reason="pairs are found by search in rows sorted by key and time",
        state="the rows of each side that a row to come can reach, and which of them have matched",
        holds={"l": "left rows", "r": "right rows"},
        serves=lambda program: isinstance(program.match, IntervalMatch),
    ),
    EngineSpec(
        JoinAsOfEngine,
        reason="the version of a time is found by search in versions sorted by key and time",
        state="left rows that wait, and of each key the versions that a left row to come can match",
        holds={"l": "left rows", "r": "versions", "a": "last versions"},
        serves=lambda program: isinstance(program.match, AsOfMatch),
    ),
    EngineSpec(
        JoinByArrivalEngine,
        reason="left rows find the last right row of their key all at once",
        state="hash pages: the last right row of each key, by a hash of the key",
        holds={"p": "last right rows"},
        serves=lambda program: isinstance(program.match, ArrivalMatch),
    ),
    EngineSpec(
        JoinWindowEngine,
        reason="a window program over the rows of both sides, whose function joins what a window holds",
        state="that of windows which keep their rows",
        holds=_HOLDS_OF_ROWS | {"p": "panes"},
        serves=lambda program: isinstance(program.match, WindowMatch),
    ),
    EngineSpec(
        JoinReferenceEngine,
        reason="the reference operators run every join",
        state="sorted pages: the held rows of both sides by key, and when they are final",
        holds={"s": "rows by key", "t": "timers"},
    ),
)
"""The engines of joins, one for each way of matching."""

PATTERN_ENGINES: Final[tuple[EngineSpec[PatternProgram], ...]] = (
    EngineSpec(
        PatternTextEngine,
        refusal=text.refusal,
        reason="conditions are bytes, all rows at once, which a regular expression searches",
        state="a sort buffer, and hash pages: by key the rows from the waiting attempt on",
        holds={"b": "rows that wait", "p": "rows of attempts"},
        combining=Combining(left_out.combiner, left_out.refusal, folds_punctual=True, folds_ordered=True),
    ),
    EngineSpec(
        PatternReferenceEngine,
        reason="the matcher that backtracks runs every pattern",
        state="a sort buffer, and hash pages: by key the rows from the waiting attempt on",
        holds={"b": "rows that wait", "p": "rows of attempts"},
    ),
)
"""The engines of row patterns."""

AnyProgram = (
    Program
    | OverProgram
    | RollingProgram
    | PointInTimeProgram
    | DeduplicationProgram
    | FillingProgram
    | SettlingProgram
    | JoinProgram
    | PatternProgram
)
"""A program of some kind."""
P = TypeVar("P", bound=AnyProgram)

_BY_KIND: Final[dict[type, tuple[EngineSpec[Any], ...]]] = {
    Program: WINDOW_ENGINES,
    OverProgram: OVER_ENGINES,
    RollingProgram: ROLLING_ENGINES,
    PointInTimeProgram: POINT_IN_TIME_ENGINES,
    DeduplicationProgram: DEDUPLICATION_ENGINES,
    FillingProgram: FILLING_ENGINES,
    SettlingProgram: SETTLING_ENGINES,
    JoinProgram: JOIN_ENGINES,
    PatternProgram: PATTERN_ENGINES,
}


def engines_for(program: P) -> tuple[EngineSpec[P], ...]:
    engines = _BY_KIND[type(program)]
    return engines[-1:] if isinstance(program, Program | OverProgram) and program.key_delay is not None else engines


def engine_named(name: str) -> EngineSpec[Any]:
    return next(each for engines in _BY_KIND.values() for each in engines if each.name == name)
