"""The windows of sessions: which one each row opens by itself, and when sessions fire and are over, on arrays.

A row opens ``[instant, instant + gap)``, with a fixed gap, or one that a column or a function says for each row. The rule is
that of the default triggers and of ``EachBatch``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windowpane.arrays import Integers, Mask
from windowpane.arrays.values import Value
from windowpane.engines.common.columnar import refuse_null_times
from windowpane.engines.program import Program
from windowpane.engines.rows import python_keys, python_rows
from windowpane.errors import InvalidSessionGapError, MistakeError, TimestampOverflowError, UserFunctionError, WindowpaneError
from windowpane.hidden_columns import TIME
from windowpane.windowing.assigners import EventTimeSessionWindows, ProcessingTimeSessionWindows
from windowpane.windowing.assigners.session import GapColumn
from windowpane.windowing.lateness import Lateness
from windowpane.windowing.spec import WindowSpec
from windowpane.windowing.times import Duration, to_micros


@dataclass(frozen=True)
class SessionRule:
    """The rule of one program; clocks are the watermark for event time, the machine's clock for processing time."""

    lateness: Lateness  # when sessions are over
    purges: bool  # whether a firing drops what the session held
    each_batch: bool = False  # whether sessions fire with each batch that has rows of theirs, and not at their end

    @classmethod
    def of(cls, spec: WindowSpec) -> Self:
        return cls(spec.lateness, spec.purges, spec.fires_each_batch)

    @property
    def is_event_time(self) -> bool:
        """Whether the watermark ends sessions, or the clock of the machine."""
        return self.lateness.is_event_time

    @property
    def outlives_firing(self) -> bool:
        """Whether a session is kept after it has fired, open to more rows."""
        return self.each_batch or (self.is_event_time and self.lateness.allowed > 0)

    @property
    def keeps_empty(self) -> bool:
        """Whether a session may outlive what it held: purged, but open to late rows."""
        return self.purges and self.outlives_firing

    def fires(self, ends: Integers, before: int, now: int) -> Mask:
        """Return which sessions fire as the clock moves from ``before`` to ``now``."""
        if self.each_batch:
            return np.zeros(len(ends), bool)
        due = ends - 1 <= now
        return due & (ends - 1 > before) if self.is_event_time else due

    def has_fired(self, ends: Integers, now: int) -> Mask:
        """Return which sessions have fired by ``now``, so that a row that joins them fires them again."""
        if self.each_batch:
            return np.ones(len(ends), bool)
        return ends - 1 <= now if self.is_event_time else np.zeros(len(ends), bool)

    def is_over(self, ends: Integers, now: int) -> Mask:
        """Return which sessions take no more rows."""
        return self.lateness.cleanup_times(ends - 1) <= now

    def is_late(self, ends: Integers, now: int) -> Mask:
        """Return which rows are late by themselves: their own session would be over. By the clock no row is late."""
        return self.is_over(ends, now) if self.is_event_time else np.zeros(len(ends), bool)

    def next_time(self, ends: Integers, now: int) -> Integers:
        """Return when something next happens to each session: it fires, or it is over."""
        return np.where(self.has_fired(ends, now), self.lateness.cleanup_times(ends - 1), ends - 1)


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
    gaps: Integers | np.int64
    if isinstance(gap, GapColumn):
        gaps = _gaps_in_column(program, rows, rows[assigner.columns[0]])
    else:
        gaps = _gaps_of_rows(program, rows, gap) if callable(gap) else np.int64(gap)
    ends: Integers = starts + gaps
    if (ends < starts).any():  # int64 has wrapped
        at = int(np.flatnonzero(ends < starts)[0])
        start, length = int(starts[at]), int(np.broadcast_to(gaps, starts.shape)[at])
        raise TimestampOverflowError(start, start, start + length).located(**_place(program, rows, at))
    return starts, ends


def _gaps_in_column(program: Program, rows: pa.Table, gaps: pa.ChunkedArray) -> Integers:
    """Return the gaps that a column holds: intervals, or texts, each of which is read once."""
    if pa.types.is_duration(gaps.type):
        micros = gaps.cast(pa.duration("us")).cast(pa.int64())
    else:
        coded = gaps.combine_chunks().dictionary_encode()
        micros = pa.array([_in_micros(program, rows, gaps, text) for text in coded.dictionary.to_pylist()], pa.int64())
        micros = micros.take(coded.indices)
    found: Integers = pc.fill_null(micros, 0).to_numpy()
    if (found <= 0).any():
        at = int(np.argmax(found <= 0))
        place = _place(program, rows, at)
        raise InvalidSessionGapError(micros[at].as_py(), place["element"]).located(**place)
    return found


def _in_micros(program: Program, rows: pa.Table, gaps: pa.ChunkedArray, text: str) -> int:
    try:
        return to_micros(text)
    except WindowpaneError as error:
        raise error.located(**_place(program, rows, pc.index(gaps, text).as_py())) from error.__cause__


def _gaps_of_rows(program: Program, rows: pa.Table, gap_of: Callable[[Value], Duration]) -> Integers:
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
