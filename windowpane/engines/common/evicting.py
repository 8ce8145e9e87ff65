"""Evictors in the columnar engines: which have a rule there, and the elements that panes keep for it.

Where an evictor leaves nothing, a firing drops what its window holds, so what runs in its place is a purging trigger. One that
comes before the function leaves it nothing to see: each result is that of no rows. One that comes after lets it see everything.
Source of the rule: Flink's CountEvictor and TimeEvictor with bounds that are not positive.
"""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from windowpane.arrays.columns import replaced
from windowpane.engines.common.columnar import fold_of
from windowpane.engines.program import Program
from windowpane.errors import MistakeError, present
from windowpane.hidden_columns import ARRIVAL, TIME, hidden
from windowpane.kernels.aggregates.protocol import KernelAggregate, Partial
from windowpane.kernels.eviction import LastSurvive, Survivors, YoungSurvive
from windowpane.kernels.grouping.grouped_fold import GroupedFold
from windowpane.windowing.evictors import CountEvictor, Evictor, TimeEvictor
from windowpane.windowing.spec import WindowSpec
from windowpane.windowing.times import MIN
from windowpane.windowing.triggers import PurgingTrigger


class NoRows(KernelAggregate):
    """The result of an aggregate that was given no rows, whatever there is. Partial: the number of rows, which nobody reads."""

    def __init__(self, prefix: str, result: object, kind: pa.DataType) -> None:
        super().__init__(prefix, ())
        self._result, self._kind = result, kind

    @property
    def partials(self) -> tuple[Partial, ...]:
        return (Partial(f"{self.prefix}e", "count_all", "sum"),)

    def prepare(self, rows: pa.Table) -> dict[str, pa.Array]:
        return {}

    def finish(self, partials: pa.Table) -> pa.Array:
        return pa.array([self._result] * partials.num_rows, self._kind)


def empties(evictor: Evictor | None) -> bool:
    """Return whether an evictor takes every element away."""
    if type(evictor) is CountEvictor:
        return evictor.max_count <= 0
    return type(evictor) is TimeEvictor and evictor.window_size <= 0


def emptying_refusal(program: Program) -> str | None:
    """Return why such an evictor is not known to take every element away, ``None`` if it is."""
    spec = program.spec
    if not spec.evictor.do_evict_after and program.arrow is not None:  # type: ignore[union-attr]  # one that empties
        return f"{spec.evictor!r} leaves nothing to a function on Arrow tables"
    return (
        None
        if spec.assigner.is_event_time or type(spec.evictor) is CountEvictor
        else f"{spec.evictor!r} spares rows without an event time"
    )


def purging(program: Program) -> tuple[Program, GroupedFold]:
    """Return the program that an engine of panes runs, and the fold of its aggregates."""
    fold, spec = present(fold_of(program), "the planner checked"), program.spec
    if not empties(spec.evictor):
        return program, fold
    trigger = spec.trigger if spec.purges else PurgingTrigger.of(spec.trigger)
    purged = replace(program, spec=replace(spec, evictor=None, trigger=trigger))
    return purged, fold if spec.evictor.do_evict_after else fold_of_no_rows(purged)  # type: ignore[union-attr]


def fold_of_no_rows(program: Program) -> GroupedFold:
    """Return the fold whose results are those of a program's aggregates where there are no rows."""
    parts = []
    for number, (_, aggregate, slots) in enumerate(program.aggregates):
        bound = aggregate.bind([program.value_types.field(slot).type for slot in slots])
        parts.append(NoRows(hidden(f"{number}_"), bound.get_result(bound.create_accumulator()), bound.result_type))
    return GroupedFold(tuple(parts))


def evictor_refusal(program: Program) -> str | None:
    """Return why the engines of panes cannot evict so, ``None`` if they can."""
    evictor = program.spec.evictor
    if evictor is None:
        return None
    if type(evictor) not in (CountEvictor, TimeEvictor):
        return f"{type(evictor).__name__} compares rows one by one"
    return emptying_refusal(program) if empties(evictor) else None


def refinement_refusal(spec: WindowSpec, merges: bool = False) -> str | None:
    """Return why an evictor has to go over a window at each of its late rows, ``None`` if it need not.

    Where windows merge, which of them a late row fires is known only row by row.
    """
    if spec.evictor is None or not spec.allowed_lateness or not spec.assigner.is_event_time:
        return None
    if spec.refine == "each":
        return "refine='each' evicts at every late row"
    if not spec.fires_for_late_elements:
        return None
    if not spec.coalesces_refinements:
        return f"{spec.evictor!r} must not take away what a purging trigger has not shown yet"
    if not spec.purges and spec.evicts_after and (merges or empties(spec.evictor)):
        return f"{spec.evictor!r} leaves each late row of a batch other elements to see"
    return None


def survivors_of(evictor: Evictor) -> Survivors:
    """Return the rule of an evictor that ``evictor_refusal`` does not refuse."""
    if isinstance(evictor, CountEvictor):
        return LastSurvive(evictor.max_count)
    if not isinstance(evictor, TimeEvictor):
        raise MistakeError("the planner checked")
    return YoungSurvive(evictor.window_size, no_time=MIN)


def argument_columns(program: Program, fold: GroupedFold) -> list[str]:
    """Return the columns that the aggregates, or the function in their place, take."""
    given = program.values if program.arrow is not None else (name for _, _, slots in program.aggregates for name in slots)
    arguments = dict.fromkeys(given)
    return [*arguments, *([ARRIVAL] if fold.is_ordered else [])]


def kept_columns(program: Program, fold: GroupedFold) -> list[str]:
    """Return the columns of an element that are kept: the arguments of the aggregates, and its time if the evictor needs it."""
    return [*argument_columns(program, fold), *([TIME] if isinstance(program.spec.evictor, TimeEvictor) else [])]


def timed(program: Program, rows: pa.Table) -> pa.Table:
    """Return rows in which the time that an evictor reads is ``MIN`` where it was null."""
    if not isinstance(program.spec.evictor, TimeEvictor):
        return rows
    return replaced(rows, TIME, pc.fill_null(rows[TIME], MIN))
