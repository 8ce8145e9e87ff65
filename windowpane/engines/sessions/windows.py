"""The window each row opens by itself: ``[instant, instant + gap)``, with a fixed gap or one that a function computes by row."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from windowpane.arrays import Integers
from windowpane.engines.common.columnar import refuse_null_times
from windowpane.engines.program import Program
from windowpane.engines.rows import python_keys, python_rows
from windowpane.errors import (
    InvalidSessionGapError,
    MistakeError,
    TimestampOverflowError,
    UserFunctionError,
    WindowpaneError,
)
from windowpane.hidden_columns import TIME
from windowpane.windowing.assigners import EventTimeSessionWindows, ProcessingTimeSessionWindows
from windowpane.windowing.times import to_micros


def row_windows(program: Program, rows: pa.Table, processing_time: int) -> tuple[Integers, Integers]:
    """Return start and end of the window of each row.

    Args:
        program: a program of session windows.
        rows: the rows.
        processing_time: the clock, which rows of processing-time sessions begin at.

    Raises:
        MissingTimestampError: a row of event-time sessions without an event time.
        InvalidSessionGapError: a gap that is not greater than zero.
        UserFunctionError: the function that computes the gap raised.
        TimestampOverflowError: a window does not fit into int64.
    """
    assigner = program.spec.assigner
    if not isinstance(assigner, EventTimeSessionWindows | ProcessingTimeSessionWindows):
        raise MistakeError("the planner checked")
    if assigner.is_event_time:
        refuse_null_times(program, rows)
        starts = rows[TIME].to_numpy()
    else:
        starts = np.full(rows.num_rows, processing_time, np.int64)
    gap = assigner.gap
    gaps = _gaps_of_rows(program, rows, gap) if callable(gap) else np.int64(gap)
    ends: Integers = starts + gaps
    if (ends < starts).any():  # int64 has wrapped
        at = int(np.flatnonzero(ends < starts)[0])
        start, length = int(starts[at]), int(np.broadcast_to(gaps, starts.shape)[at])
        raise TimestampOverflowError(start, start, start + length).located(**_place(program, rows, at))
    return starts, ends


def _gaps_of_rows(program: Program, rows: pa.Table, gap_of: Callable[[Any], Any]) -> Integers:
    gaps = np.empty(rows.num_rows, np.int64)
    in_micros = lru_cache(to_micros)
    for at, row in enumerate(python_rows(rows.select(program.values))):
        try:
            given = gap_of(row)
            gap = in_micros(given) if isinstance(given, str) else to_micros(given)
            if gap <= 0:
                raise InvalidSessionGapError(gap, row)
            gaps[at] = gap
        except WindowpaneError as error:
            raise error.located(**_place(program, rows, at)) from error.__cause__
        except Exception as error:
            place = _place(program, rows, at)
            raise UserFunctionError(program.spec.assigner, place["key"], None, error).located(element=row) from error
    return gaps


def _place(program: Program, rows: pa.Table, at: int) -> dict[str, object]:
    row = rows.slice(at, 1)
    return {"key": python_keys(row, program.key_columns)[0], "element": python_rows(row.select(program.values))[0]}
