"""The collector behind the window operator: what the operator emits, as tables by output number."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from operator import attrgetter
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from windowpane.arrays.values import Value
from windowpane.engines.batch.late_counts import LateCounts
from windowpane.engines.common.missed_windows import FINISHED, LATE, missing_rows
from windowpane.engines.program import MAIN, WINDOW_END, WINDOW_START, Program
from windowpane.engines.protocol import Clock
from windowpane.engines.rows import check_keys, key_values, output_table
from windowpane.errors import UndeclaredSideOutputError, present
from windowpane.operators.window.timer_service import TimerService
from windowpane.windowing.functions import PassThrough
from windowpane.windowing.outputs import CHANGE_TYPE, OutputTag
from windowpane.windowing.panes import PANE_INDEX, PANE_IS_FIRST, PANE_IS_LAST, PANE_NONSPECULATIVE_INDEX, PANE_TIMING, Pane
from windowpane.windowing.times import MIN
from windowpane.windowing.windows import Window


class _Result(NamedTuple):
    row: Value
    key: Value
    window: Window
    fired_under: int
    row_number: int
    pane: Pane | None = None
    change: str | None = None


class _Late(NamedTuple):
    row_number: int
    missed: Sequence[Window]
    dropped: bool
    reason: str
    under: int


def _pane(result: _Result) -> Pane:
    return present(result.pane, "the program asks for panes")


_PANE_VALUES: dict[str, Callable[[_Result], Value]] = {
    PANE_INDEX: lambda result: _pane(result).index,
    PANE_NONSPECULATIVE_INDEX: lambda result: _pane(result).nonspeculative_index,
    PANE_TIMING: lambda result: _pane(result).timing.value,
    PANE_IS_FIRST: lambda result: _pane(result).is_first,
    PANE_IS_LAST: lambda result: _pane(result).is_last,
    CHANGE_TYPE: lambda result: result.change,
}


class OutputCollector:
    """Takes what a window operator emits in one batch.

    The caller says which input row the operator is at (``row_number`` of ``rows``), so that late rows are emitted as they
    arrived, and the clock of the batch.
    """

    def __init__(self, program: Program, timers: TimerService, late_counts: LateCounts) -> None:
        self._late_counts = late_counts
        self.clock = Clock(MIN, MIN)
        self.rows: pa.Table | None = None
        self.row_number = 0
        self._program = program
        self._timers = timers
        self._results: list[_Result] = []
        self._sides: dict[int, list[_Result]] = {}
        self._late: list[_Late] = []

    def emit(self, key: object, window: Window, value: object, pane: Pane | None = None, change: str | None = None) -> None:
        self._results.append(_Result(value, key, window, self._timers.forwarded_watermark, self.row_number, pane, change))

    def side_output(self, tag: OutputTag, key: object, window: Window, value: object) -> None:
        number = self._program.output_of(tag)
        if number is None:
            raise UndeclaredSideOutputError(tag.name, [side.tag.name for side in self._program.side_outputs])
        result = _Result(value, key, window, self._timers.forwarded_watermark, self.row_number)
        self._sides.setdefault(number, []).append(result)

    def late(self, key: object, value: object, timestamp: int, missed: Sequence[Window], dropped: bool) -> None:
        last = min((window.max_timestamp for window in missed), default=timestamp)
        one = np.ones(1, np.int64)
        self._late_counts.note(one * timestamp, one * last, self._timers.watermark, one, one * dropped, key)
        if self._program.late_output is not None:
            self._late.append(_Late(self.row_number, missed, dropped, LATE, self._timers.watermark))

    def finished(self, key: object, value: object, timestamp: int, windows: Sequence[Window]) -> None:
        if self._program.late_output is not None:
            self._late.append(_Late(self.row_number, windows, True, FINISHED, self._timers.watermark))

    @contextmanager
    def in_row_order(self) -> Iterator[None]:
        """Put the results of the block in the order of the rows that caused them, whatever order those are visited in."""
        begins = {id(taken): len(taken) for taken in self._all_taken()}
        yield
        for taken in self._all_taken():
            begin = begins.get(id(taken), 0)
            taken[begin:] = sorted(taken[begin:], key=attrgetter("row_number"))

    def _all_taken(self) -> list[list[Value]]:
        return [self._results, self._late, *self._sides.values()]

    def tables(self) -> list[tuple[int, pa.Table]]:
        return list(self._tables())

    def _tables(self) -> Iterator[tuple[int, pa.Table]]:
        if self._results:
            yield MAIN, self._main_table()
        if self._late and self._program.late_output is not None:
            numbers, missed, dropped, reasons, under = zip(*self._late, strict=True)
            rows = present(self.rows, "late rows were rows of this batch")
            late = missing_rows(self._program, rows, numbers, missed, dropped, np.array(under), self.clock, reasons)
            yield self._program.late_output, late
        for number, results in sorted(self._sides.items()):
            side = self._program.side_outputs[number - 1]
            yield number, output_table(side.tag.name, side.schema, ((r.row, r.key, r.window) for r in results))

    def _main_table(self) -> pa.Table:
        program, results = self._program, self._results
        keys = [key_values(result.key, len(program.keys)) for result in results]
        columns = [pa.array([key[i] for key in keys], field.type) for i, field in enumerate(program.keys)]
        columns += [_bounds([result.window for result in results], side, program.window_bound) for side in ("start", "end")]
        given = {*program.keys.names, WINDOW_START, WINDOW_END, *program.pane_columns.names}
        rows = [(result.row, result.key, result.window) for result in results]
        if isinstance(program.spec.function.process, PassThrough):
            rows = [(self._as_row(row), key, window) for row, key, window in rows]
        check_keys(program.keys, self._returned_keys(), rows)
        main = output_table("main", program.main, rows, given)
        columns += main.columns
        columns += [pa.array(map(_PANE_VALUES[field.name], results), field.type) for field in program.pane_columns]
        columns += [pa.array([r.window.max_timestamp for r in results], pa.int64())]
        columns += [pa.array([r.fired_under for r in results], pa.int64())]
        return pa.table(columns, schema=program.main_schema)

    def _returned_keys(self) -> list[str]:
        """Return the keys that rows of the function have, if they have a column of the name.

        What an incremental function alone returns is made of rows of the input: a column of theirs is the key if it was given as
        the key, and not an expression of the same name.
        """
        program = self._program
        if not isinstance(program.spec.function.process, PassThrough):
            return list(program.keys.names)
        return [name for name, column in zip(program.keys.names, program.key_columns, strict=True) if name == column]

    def _as_row(self, row: object) -> Value:
        """Return a row; a plain incremental function whose result is ``None`` gives one of NULLs where an evictor fires it."""
        return dict.fromkeys(self._program.main.names) if row is None else row


def _bounds(windows: Sequence[Window], side: str, kind: pa.DataType) -> pa.Array:
    return pa.array([getattr(window, side, None) for window in windows], pa.int64()).cast(kind)
