"""Calls that were added, removed, renamed or moved since state was written: its partials are those of the calls of now.

A call is known by what it computes. One that was removed leaves the state. One that was added gets the partials of others, where
these are what it needs, else such as stand for rows it has not seen: then its results are NULL in every window that began before,
or, if that was asked for, those of the rows since. Partials of a narrower type are widened.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windowpane.engines.changes import INCOMPLETE, SINCE, Description, matched_calls
from windowpane.engines.program import Program
from windowpane.hidden_columns import ARRIVAL, hidden
from windowpane.kernels.aggregates.protocol import KernelAggregate, Partial, columnar_form
from windowpane.kernels.grouping.grouped_fold import GroupedFold
from windowpane.kernels.keys.coded_texts import are_coded
from windowpane.windowing.aggregates import Aggregate, definition_of

_GROUP = hidden("group")


def changed_partials(program: Program, fold: GroupedFold, was: Description) -> Callable[[pa.Table], pa.Table] | None:
    """Return what makes partials of an earlier program those of ``program``; ``None`` where they are the same columns."""
    before, calls = was.get("calls", ()), program.description.get("calls", ())
    numbers = matched_calls(before, calls)
    if numbers == tuple(range(len(before))) and all(old["types"] == new["types"] for old, new in zip(before, calls, strict=True)):
        return None
    sources: dict[str, str | None] = {}
    for now, number in enumerate(numbers):
        made = {} if number is not None else made_of(program, fold, was, now)
        for name in (each for each in fold.columns if each.startswith(hidden(f"{now}_"))):
            kept = None if number is None else hidden(f"{number}_") + name.removeprefix(hidden(f"{now}_"))
            sources[name] = kept or made.get(name)
    unseen = _unseen(program, fold)
    prefixes = tuple(hidden(f"{number}_") for number in range(len(before)))

    def changed(held: pa.Table) -> pa.Table:
        partials = {}
        for name in fold.columns:
            source = sources[name]
            nothing = pa.array(np.zeros(held.num_rows, np.int64))
            column = unseen[name].take(nothing) if source is None else held[source]
            partials[name] = column if are_coded(column.type) else column.cast(unseen[name].type)
        columns: dict[str, pa.ChunkedArray] = {}
        for name in held.column_names:
            columns |= partials if name.startswith(prefixes) else {name: held[name]}
        return pa.table(columns)

    return changed


def made_of(program: Program, fold: GroupedFold, was: Description, number: int) -> dict[str, str]:
    """Return the partials of a new call, each with one of an earlier call that is the same: of an average a sum and a count.

    A partial is the same if it ends the same, and folds and merges the same way over the same argument; there are none where one
    is lacking, or was itself not complete.
    """
    form, call = fold.aggregates[number], program.description["calls"][number]
    if not isinstance(form, KernelAggregate) or not definition_of(call["function"]).is_built_in:
        return {}
    found: dict[tuple[str, str, str], str] = {}
    for at, old in enumerate(was.get("calls", ())):
        is_alike = all(old[part] == call[part] for part in ("arguments", "types"))
        if not is_alike or old["parameters"] or SINCE in old or not definition_of(old["function"]).is_built_in:
            continue
        kinds = [program.value_types.field(slot).type for slot in form.slots]
        other = columnar_form(Aggregate(old["function"], form.slots), hidden(f"{at}_"), form.slots, kinds)
        if isinstance(other, KernelAggregate):
            found |= {_same(each, other.prefix): each.name for each in other.partials}
    made = {each.name: found.get(_same(each, form.prefix)) for each in form.partials}
    return {} if None in made.values() else {name: source for name, source in made.items() if source is not None}


def _same(partial: Partial, prefix: str) -> tuple[str, str, str]:
    return partial.name.removeprefix(prefix), partial.fold, partial.merge


def _unseen(program: Program, fold: GroupedFold) -> pa.Table:
    """Return the partials of one row of NULLs."""
    rows = {field.name: pa.nulls(1, field.type) for field in program.value_types}
    return fold.fold(pa.table({**rows, ARRIVAL: pa.array([0]), _GROUP: pa.array([0])}), [_GROUP])


def null_before(program: Program, starts: pa.Array, results: list[pa.Array]) -> list[pa.Array]:
    """Return results, NULL where their call was added while the window was open."""
    calls = program.description.get("calls", ())
    found = []
    for number, column in enumerate(results):
        since = calls[number].get(SINCE) if number < len(calls) else None
        if since is None or calls[number].get(INCOMPLETE) == "partial":
            found.append(column)
            continue
        is_complete = pc.fill_null(pc.greater_equal(starts.cast(pa.int64()), since), False)
        found.append(pc.if_else(is_complete, column, pa.scalar(None, column.type)))
    return found
