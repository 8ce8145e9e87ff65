"""Evictors that leave nothing: a firing drops what its window holds, so what runs in their place is a purging trigger.

An evictor that comes before the function leaves it nothing to see: each result is that of no rows. One that comes after lets it
see everything. Source of the rule: Flink's CountEvictor and TimeEvictor with bounds that are not positive.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa

from windowpane.engines.common.columnar import fold_of
from windowpane.engines.program import Program
from windowpane.errors import MistakeError
from windowpane.hidden_columns import hidden
from windowpane.kernels.aggregates.protocol import KernelAggregate, Partial
from windowpane.kernels.grouping.grouped_fold import GroupedFold
from windowpane.windowing.evictors import CountEvictor, Evictor, TimeEvictor
from windowpane.windowing.triggers import PurgingTrigger


class NoRows(KernelAggregate):
    """The result of an aggregate that was given no rows, whatever there is. Partial: the number of rows, which nobody reads."""

    def __init__(self, prefix: str, result: Any, kind: pa.DataType) -> None:
        super().__init__(prefix, ())
        self._result, self._kind = result, kind

    @property
    def partials(self) -> tuple[Partial, ...]:
        return (Partial(f"{self.prefix}e", "count_all", "sum"),)

    def prepare(self, rows: pa.Table) -> dict[str, Any]:
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
    fold, spec = fold_of(program), program.spec
    if fold is None:
        raise MistakeError("the planner checked")
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
