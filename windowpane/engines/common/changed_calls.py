"""Calls that were added, removed, renamed or moved since state was written: its partials are those of the calls of now.

A call is known by what it computes. One that was removed leaves the state; one that was added gets partials that stand for rows
it has not seen. Its results are NULL in every window that began before, so nothing that is read of these is ever shown.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windowpane.engines.changes import SINCE, Description, matched_calls
from windowpane.engines.program import Program
from windowpane.hidden_columns import ARRIVAL, hidden
from windowpane.kernels.grouping.grouped_fold import GroupedFold

_GROUP = hidden("group")


def changed_partials(program: Program, fold: GroupedFold, was: Description) -> Callable[[pa.Table], pa.Table] | None:
    """Return what makes partials of an earlier program those of ``program``; ``None`` where they are the same columns."""
    numbers = matched_calls(was.get("calls", ()), program.description.get("calls", ()))
    if numbers == tuple(range(len(was.get("calls", ())))):
        return None
    sources: dict[str, str | None] = {}
    for now, before in enumerate(numbers):
        for name in (each for each in fold.columns if each.startswith(hidden(f"{now}_"))):
            sources[name] = None if before is None else hidden(f"{before}_") + name.removeprefix(hidden(f"{now}_"))
    unseen = _unseen(program, fold)
    prefixes = tuple(hidden(f"{number}_") for number in range(len(was["calls"])))

    def changed(held: pa.Table) -> pa.Table:
        partials = {}
        for name in fold.columns:
            source = sources[name]
            nothing = pa.array(np.zeros(held.num_rows, np.int64))
            partials[name] = unseen[name].take(nothing) if source is None else held[source]
        columns: dict[str, pa.ChunkedArray] = {}
        for name in held.column_names:
            columns |= partials if name.startswith(prefixes) else {name: held[name]}
        return pa.table(columns)

    return changed


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
        if since is None:
            found.append(column)
            continue
        is_complete = pc.fill_null(pc.greater_equal(starts.cast(pa.int64()), since), False)
        found.append(pc.if_else(is_complete, column, pa.scalar(None, column.type)))
    return found
