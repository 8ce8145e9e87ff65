"""Late rows as data: the columns they came with, the windows they missed, and whether no window took them."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from windowpane.engines.program import Program
from windowpane.windowing.windows import TimeWindow, Window

WINDOWS_MISSED = "windows_missed"
DROPPED = "dropped"

_MICROS = pa.list_(pa.struct([("start", pa.int64()), ("end", pa.int64())]))


def late_table(
    program: Program, rows: pa.Table, numbers: Sequence[int], missed: Sequence[Sequence[Window]], dropped: Sequence[bool]
) -> pa.Table:
    """Return the late output for the rows of a batch with these ``numbers``.

    Args:
        program: says which columns late rows carry, and their schema.
        rows: the batch.
        numbers: which of its rows are late.
        missed: for each, the windows it missed.
        dropped: for each, whether no window took it.
    """
    assert program.late_output is not None, "late rows are collected only where they are asked for"
    schema = program.side_outputs[program.late_output - 1].schema
    kept = rows.select(program.late_columns).take(pa.array(numbers, pa.int64()))
    bounds = pa.array([[_bounds(window) for window in windows] for windows in missed], _MICROS)
    columns = [*kept.columns, bounds.cast(schema.field(WINDOWS_MISSED).type), pa.array(dropped, pa.bool_())]
    return pa.table(columns, names=[*program.late_columns, WINDOWS_MISSED, DROPPED]).cast(schema)


def _bounds(window: Window) -> dict[str, int | None]:
    if isinstance(window, TimeWindow):
        return {"start": window.start, "end": window.end}
    return {"start": None, "end": None}
