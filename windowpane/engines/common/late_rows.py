"""Late rows as data: the columns they arrived with, the windows they missed, and whether no window took them."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from windowpane.engines.program import Program
from windowpane.errors import MistakeError
from windowpane.windowing.windows import TimeWindow, Window

WINDOWS_MISSED = "windows_missed"
DROPPED = "dropped"
REASON = "reason"
"""Why a row is among the late ones; the column exists where a trigger may be finished while rows still arrive."""
LATE, FINISHED = "late", "finished"
"""It was too late for the windows; or their trigger was finished."""

_MICROS = pa.list_(pa.struct([("start", pa.int64()), ("end", pa.int64())]))


def late_table(
    program: Program,
    rows: pa.Table,
    numbers: Sequence[int],
    missed: Sequence[Sequence[Window]],
    dropped: Sequence[bool],
    reasons: Sequence[str] = (),
) -> pa.Table:
    """Return the late output for the rows of a batch with these ``numbers``.

    Args:
        program: says which columns late rows carry, and their schema.
        rows: the batch.
        numbers: which of its rows are late.
        missed: for each, the windows it missed.
        dropped: for each, whether no window took it.
        reasons: for each, why it is here, where the schema has that column; late if none are given.
    """
    if program.late_output is None:
        raise MistakeError("late rows are collected only where they are asked for")
    schema = program.side_outputs[program.late_output - 1].schema
    kept = rows.select(program.late_columns).take(pa.array(numbers, pa.int64()))
    bounds = pa.array([[_bounds(window) for window in windows] for windows in missed], _MICROS)
    columns = [*kept.columns, bounds.cast(schema.field(WINDOWS_MISSED).type), pa.array(dropped, pa.bool_())]
    names = [*program.late_columns, WINDOWS_MISSED, DROPPED]
    if REASON in schema.names[len(names) :]:
        columns, names = [*columns, pa.array(reasons or [LATE] * len(numbers), pa.string())], [*names, REASON]
    return pa.table(columns, names=names).cast(schema)


def _bounds(window: Window) -> dict[str, int | None]:
    if isinstance(window, TimeWindow):
        return {"start": window.start, "end": window.end}
    return {"start": None, "end": None}
