"""The panes engine: windows of fixed size and the global window, fired key by key by any trigger, on Arrow tables.

For built-in aggregates, accumulating, discarding or retracting, and for count and time evictors. A pane is what one window holds
of one key. What fires it is one of the kinds of trigger program:

- that of a batch (``EachBatch``) or of a count, which has a rule on arrays;
- that of a trigger that is called, once for panes that are alike; where clocks alone fire it, rows are appended to panes that
  nobody reads until then.

State, by name in the bucket's blob store: ``header``; a pane store ``p`` (see ``pane_state``), and ``d``, when timers are due;
for staggered windows their ``stagger``. Who may mutate: this engine, once a batch. Recovery: read them back.
"""

from __future__ import annotations

from enum import Enum
from math import gcd
from typing import ClassVar

import numpy as np
import pyarrow as pa

from windowpane.engines.combiner import Combiner
from windowpane.engines.common.columnar import (
    common_refusal,
    folding_combiner,
    key_names,
    keyed,
    refuse_null_times,
    with_plain_keys,
)
from windowpane.engines.common.evicting import evictor_refusal, purging, refinement_refusal, survivors_of
from windowpane.engines.common.held_panes import WindowsEngine
from windowpane.engines.common.slicing import slices_of, slicing_refusal
from windowpane.engines.nested_keys.writing import coded_keys
from windowpane.engines.panes.called import Called
from windowpane.engines.panes.evicted_contents import EvictedElements, EvictedPieces
from windowpane.engines.panes.fired import FiredPanes
from windowpane.engines.panes.folded_contents import Contents, FoldedContents, MergedContents
from windowpane.engines.panes.standings import fires_by_clocks_alone, standings_refusal, waits_for_clocks
from windowpane.engines.panes.trigger_program import Counting, OncePerBatch
from windowpane.engines.program import Program
from windowpane.engines.spec import Combining
from windowpane.hidden_columns import ROWS, SLICE, TIME
from windowpane.kernels.grouping.grouped_fold import GroupedFold
from windowpane.state.blob_store import BlobStore
from windowpane.windowing.evictors import CountEvictor
from windowpane.windowing.spec import WindowSpec
from windowpane.windowing.triggers import CountTrigger, NeverTrigger


class Kind(Enum):
    """The kinds of trigger program, and why each is chosen."""

    BATCHES = "each batch changes built-in aggregates by key and window, and fires what it changed"
    COUNTS = "running counts cut built-in aggregates where windows fire"
    CLOCKS = "built-in aggregates are kept by key and window, and clocks fire them"
    CALLED = "the trigger is called once for windows that are alike, and cuts built-in aggregates"

    @classmethod
    def of(cls, spec: WindowSpec) -> Kind:
        if spec.fires_each_batch:
            return cls.BATCHES
        if type(spec.firing_trigger) is CountTrigger:
            return cls.COUNTS
        return cls.CLOCKS if waits_for_clocks(spec) else cls.CALLED


def combiner(program: Program) -> Combiner:
    folding = PaneFolding(program)
    return folding_combiner(folding.program, folding.fold, folding.fold_rows)


class PaneFolding:
    """What panes are made of, and how rows fold into it."""

    def __init__(self, program: Program) -> None:
        self.program, self.fold = purging(program)
        self.kind = Kind.of(self.program.spec)

    def fold_rows(self, rows: pa.Table) -> pa.Table:
        """Return the partials of rows by slice and key, and how many rows each is of: the combiner, before the shuffle.

        The slice of processing-time windows is not known yet, and is any for all; global windows have none. The order of arrival
        is lost. Where clocks fire, partials have the earliest time of their rows, which are then taken in order of that: one
        possible order of arrival.

        Raises:
            MissingTimestampError: a row without an event time in event-time windows.
            TimestampOverflowError: a row whose windows do not fit into int64.
        """
        program, slices = self.program, slices_of(self.program.spec.assigner)
        rows, starts = with_plain_keys(program, keyed(program, rows, coded_keys)), np.zeros(rows.num_rows, np.int64)
        if slices is not None and program.spec.assigner.is_event_time:
            refuse_null_times(program, rows)
            starts = slices.starts(rows[TIME].to_numpy())
        rows = rows.append_column(SLICE, pa.array(starts))
        kept = [(TIME, "min")] if self.kind is Kind.CLOCKS else []
        return self.fold.fold(rows, [SLICE, *key_names(program)], counted=ROWS, kept=kept)


def _counted(program: Program, fold: GroupedFold, every: int) -> Contents:
    evictor = program.spec.evictor
    if isinstance(evictor, CountEvictor) and not evictor.do_evict_after and gcd(every, evictor.max_count) > 1:
        return EvictedPieces(program, fold, every, evictor.max_count)
    return _contents(program, fold)


def _contents(program: Program, fold: GroupedFold) -> Contents:
    evictor = program.spec.evictor
    never_fires = isinstance(program.spec.firing_trigger, NeverTrigger)
    return (
        FoldedContents(program, fold) if evictor is None or never_fires else EvictedElements(program, fold, survivors_of(evictor))
    )


def combining_refusal(program: Program) -> str | None:
    """Return why the engine must see each row, or its windows are not known outside its bucket; ``None`` if neither."""
    kind = Kind.of(program.spec)
    if kind is Kind.COUNTS or (kind is Kind.CALLED and not fires_by_clocks_alone(program.spec)):
        return "the trigger is called row by row"
    if kind is Kind.CLOCKS and program.order_by:
        return "order_by tells which row of a key comes first"
    return slicing_refusal(program.spec)


class PanesEngine(WindowsEngine):
    name = "panes"
    state = "segment logs by window or shard of keys: what triggers know, and partial aggregates, or with an evictor elements"
    holds: ClassVar = {"p": "panes"}
    combining = Combining(combiner, combining_refusal)

    def __init__(self, program: Program) -> None:
        self.folding = PaneFolding(program)
        super().__init__(self.folding.program)

    @classmethod
    def refusal(cls, program: Program) -> str | None:
        spec, kind = program.spec, Kind.of(program.spec)
        if spec.assigner.has_ends and slices_of(spec.assigner) is None:
            return f"the windows of {type(spec.assigner).__name__} are neither global nor of fixed size"
        if kind is Kind.CLOCKS and isinstance(spec.firing_trigger, NeverTrigger):
            return common_refusal(program)
        if kind is Kind.CLOCKS and (refused := refinement_refusal(spec)) is not None:
            return refused
        if kind in (Kind.CLOCKS, Kind.COUNTS) and (refused := evictor_refusal(program)) is not None:
            return refused
        if kind is Kind.CALLED and (refused := standings_refusal(program)) is not None:
            return refused
        if kind not in (Kind.CLOCKS, Kind.COUNTS) and spec.evictor is not None:
            return "an evictor needs every row"
        fires_again = kind in (Kind.COUNTS, Kind.CALLED) or (kind is Kind.CLOCKS and spec.refines_each)
        return common_refusal(program, shows_panes=spec.evictor is None, fires_again=fires_again)

    @classmethod
    def explains(cls, program: Program) -> bool:
        return not program.spec.merges

    @classmethod
    def reason_for(cls, program: Program) -> str:
        return Kind.of(program.spec).value

    def open(self, store: BlobStore) -> FiredPanes:
        program, fold, kind = self.program, self.folding.fold, self.folding.kind
        spec = program.spec
        if kind is Kind.BATCHES:
            return FiredPanes(self, store, OncePerBatch(spec), MergedContents(program, fold))
        if isinstance(spec.firing_trigger, CountTrigger) and kind is Kind.COUNTS:
            every = max(1, spec.firing_trigger.max_count)
            return FiredPanes(self, store, Counting(spec, every), _counted(program, fold, every))
        return FiredPanes(self, store, Called(program), _contents(program, fold))
