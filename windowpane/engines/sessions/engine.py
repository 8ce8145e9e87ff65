"""The sessions engine: session windows of built-in aggregates, with a fixed gap or one computed by row, on Arrow tables.

A batch's rows and the open sessions of their keys become islands in one sort; an island's rows are folded and its sessions'
partials merged, so a session costs the same however many rows it has. State, by name in the bucket's blob store: ``header``, and
pages ``p`` of open sessions by a hash of their key. A batch reads and writes the pages of its keys, and those with sessions
that the clock fires or cleans up. Who may mutate: this engine, once a batch. Recovery: read them back.

There are no timers: a session fires when the clock passes its end, is over when it passes its cleanup time, and each page
knows the first time at which one of its sessions does either. With ``EachBatch`` a session fires for the rows of a batch. What it
held before is then what it last emitted, so retractions need nothing else to be kept.
"""

from __future__ import annotations

from typing import ClassVar

import pyarrow as pa

from windowpane.engines.combiner import Combiner
from windowpane.engines.common.columnar import common_refusal, fold_of, folding_combiner, with_encoded_keys
from windowpane.engines.common.evicting import refinement_refusal
from windowpane.engines.common.held_panes import WindowsEngine
from windowpane.engines.panes.standings import standings_refusal
from windowpane.engines.program import Program
from windowpane.engines.sessions.batch import SessionBatch
from windowpane.engines.sessions.called import CalledSessions
from windowpane.engines.sessions.evictions import Evictions, eviction_refusal
from windowpane.engines.sessions.merging import Arrivals
from windowpane.engines.sessions.step import SessionStep
from windowpane.engines.sessions.windows import SessionRule, row_windows
from windowpane.engines.spec import Combining
from windowpane.errors import present
from windowpane.sizes import Size
from windowpane.state.blob_store import BlobStore
from windowpane.windowing.assigners import EventTimeSessionWindows, ProcessingTimeSessionWindows

_WORTH_FOLDING = Size("rows of a piece of a session worth making", 3, (0, 1))
"""Rows a piece must have on average to be worth making: pieces have more columns than rows, and are sorted once more."""


def rule_refusal(program: Program) -> str | None:
    """Return why sessions have no rule on arrays, so that their trigger is called; ``None`` if they have."""
    spec = program.spec
    if not spec.fires_at_window_end and not spec.fires_each_batch:
        return f"{type(spec.trigger).__name__} fires by more than the end of a session"
    if (refused := eviction_refusal(program) or refinement_refusal(spec, merges=True)) is not None:
        return refused
    if spec.fires_each_batch and spec.evictor is not None:
        return "an evictor needs every row"
    if spec.refines_each and not spec.fires_each_batch:
        return "refine='each' fires for every late row"
    return common_refusal(program, shows_panes=spec.fires_each_batch)


def _calling_refusal(program: Program) -> str | None:
    """Return why the trigger of sessions cannot be called, ``None`` if it can."""
    if (refused := standings_refusal(program)) is not None:
        return refused
    if program.spec.evictor is not None:
        return "an evictor needs every row"
    return common_refusal(program, shows_panes=True, fires_again=True)


def combining_refusal(program: Program) -> str | None:
    """Return why the sessions of rows are not known outside their bucket, ``None`` if they are."""
    if rule_refusal(program) is not None:
        return "the trigger is called row by row"
    if program.order_by:
        return "order_by tells which rows of a session come late"
    return None if program.spec.assigner.is_event_time else "sessions begin by the clock of the bucket"


def combiner(program: Program) -> Combiner:
    folding = SessionFolding(program)
    return folding_combiner(program, folding.fold, folding.fold_rows)


class SessionFolding:
    """What sessions are made of: the aggregates, or with an evictor the elements, and the steps of both."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.evictions = None if program.spec.evictor is None else Evictions(program)
        self.fold = present(fold_of(program) if self.evictions is None else self.evictions.kept_fold, "the planner checked")
        self.step = SessionStep(program, SessionRule.of(program.spec), self.fold, self.evictions)

    def fold_rows(self, rows: pa.Table) -> pa.Table:
        """Return the sessions that rows make among themselves. Rows too scattered stay as they are.

        Raises:
            MissingTimestampError, InvalidSessionGapError, TimestampOverflowError, UserFunctionError: a row has no window.
        """
        rows = with_encoded_keys(self.program, rows)
        merging = self.step.merging(Arrivals(rows, *row_windows(self.program, rows, 0)))
        return self.step.fold(merging) if self.step.rows_a_piece(merging) >= _WORTH_FOLDING.value else rows


class SessionsEngine(WindowsEngine):
    name = "sessions"
    reason = "sessions of built-in aggregates are islands of rows and open sessions"
    state = "hash pages: open sessions with their partial aggregates, with an evictor their elements, by a hash of the key"
    holds: ClassVar = {"p": "open sessions", "w": "emitted panes"}
    combining = Combining(combiner, combining_refusal)

    def __init__(self, program: Program) -> None:
        super().__init__(program)
        self.folding, self._calls_trigger = SessionFolding(program), rule_refusal(program) is not None

    @classmethod
    def refusal(cls, program: Program) -> str | None:
        spec, refused = program.spec, rule_refusal(program)
        if type(spec.assigner) not in (EventTimeSessionWindows, ProcessingTimeSessionWindows):
            return f"{type(spec.assigner).__name__} makes no sessions"
        if refused is None or (called := _calling_refusal(program)) is None:
            return None
        return refused if spec.fires_at_window_end or spec.fires_each_batch else called

    @classmethod
    def explains(cls, program: Program) -> bool:
        return program.spec.merges

    def open(self, store: BlobStore) -> SessionBatch | CalledSessions:
        folding = self.folding
        if self._calls_trigger:
            return CalledSessions(self, folding.fold, store)
        return SessionBatch(self, folding.fold, folding.step, store, folding.evictions)
