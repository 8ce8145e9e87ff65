"""Evictors in the columnar engines: which have a rule there, and the elements that panes keep for it."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from windowpane.engines.common.emptying import empties, emptying_refusal
from windowpane.engines.program import Program
from windowpane.errors import MistakeError
from windowpane.hidden_columns import ARRIVAL, TIME
from windowpane.kernels.eviction import LastSurvive, Survivors, YoungSurvive
from windowpane.kernels.grouping.grouped_fold import GroupedFold
from windowpane.windowing.evictors import CountEvictor, Evictor, TimeEvictor
from windowpane.windowing.spec import WindowSpec
from windowpane.windowing.times import MIN


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

    Args:
        spec: the windowed computation.
        merges: whether windows merge: which of them a late row fires is then known only row by row.
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
    return rows.set_column(rows.column_names.index(TIME), TIME, pc.fill_null(rows[TIME], MIN))
