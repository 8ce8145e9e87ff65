"""The results of a columnar engine in one batch, as tables of the main output."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windowpane.arrays import Integers, Mask
from windowpane.engines.common.changed_calls import null_before
from windowpane.engines.common.columnar import key_arrays
from windowpane.engines.common.evicting import fold_of_no_rows
from windowpane.engines.program import WINDOW_END, Program
from windowpane.engines.rows import python_keys
from windowpane.errors import AggregateOverflowError
from windowpane.kernels.aggregates.lists import Lists
from windowpane.kernels.grouping.grouped_fold import GroupedFold
from windowpane.windowing.arrow_functions import ArrowWindowFunction, windows_applied
from windowpane.windowing.times import MAX
from windowpane.windowing.windows import Window


class Results:
    """Takes the partials of what fires, finishes them, and gives them keys, window bounds and event time."""

    def __init__(self, program: Program, fold: GroupedFold) -> None:
        self.firings = 0
        self._program = program
        self._fold = fold
        self._tables: list[pa.Table] = []

    @property
    def fold(self) -> GroupedFold:
        """The fold whose partials it takes."""
        return self._fold

    def emit(
        self,
        window: Window,
        partials: pa.Table,
        fired_under: int,
        panes: Sequence[pa.Array] = (),
        is_retraction: bool = False,
    ) -> None:
        """Take the partials of a window, one row a key, that fire under a watermark.

        ``panes`` is what rows say of their panes, the program's ``pane_columns``. Rows that are taken back are no firing.
        """
        bounds = [_repeated(getattr(window, side, None), partials.num_rows) for side in ("start", "end")]
        self._take(partials, bounds, _repeated(window.max_timestamp, partials.num_rows), fired_under, panes, is_retraction)

    def emit_panes(
        self,
        starts: Integers,
        ends: Integers,
        partials: pa.Table,
        fired_under: int,
        panes: Sequence[pa.Array] = (),
        is_retraction: bool = False,
    ) -> None:
        """Take what fires of several time windows: partials, one row a key and window, with the bounds of each."""
        self._take(partials, [pa.array(starts), pa.array(ends)], pa.array(ends - 1), fired_under, panes, is_retraction)

    def emit_firings(
        self,
        starts: Integers | None,
        ends: Integers,
        partials: pa.Table,
        fired_under: int,
        panes: Sequence[pa.Array],
        is_empty: Mask,
        firings: int,
    ) -> None:
        """Take the results of firings, some of them of nothing, and those that they retract: keys and partials, one row a result.

        ``starts`` are those of the windows, ``None`` for the global one. Rows that are empty are the result of no rows, whatever
        their partials.
        """
        count = partials.num_rows
        bounds = [_repeated(None, count)] * 2 if starts is None else [pa.array(starts), pa.array(ends)]
        times = pa.array(ends - 1) if starts is not None else _repeated(MAX, count)
        self._take(partials, bounds, times, fired_under, panes, True, is_empty)
        self.firings += firings

    def table(self) -> pa.Table | None:
        return pa.concat_tables(self._tables) if self._tables else None

    def _take(
        self,
        partials: pa.Table,
        bounds: list[pa.Array],
        times: pa.Array,
        fired_under: int,
        panes: Sequence[pa.Array],
        is_retraction: bool,
        is_empty: Mask | None = None,
    ) -> None:
        program, rows = self._program, partials.num_rows
        if not rows:
            return
        self.firings += 0 if is_retraction else rows
        keys = key_arrays(program, partials)
        bounds = [bound.cast(program.window_bound) for bound in bounds]
        if isinstance(program.arrow, ArrowWindowFunction):
            self._tables.append(self._applied(program.arrow, [*keys, *bounds], partials, fired_under))
            return
        results = null_before(program, bounds[0], self._results(keys, partials, is_empty))
        columns = [*keys, *bounds, *results, *panes, times, _repeated(fired_under, rows)]
        self._tables.append(pa.table(columns, schema=program.main_schema))

    def _results(self, keys: list[pa.Array], partials: pa.Table, is_empty: Mask | None) -> list[pa.Array]:
        """Return the results of partials, where ``is_empty`` those of no rows."""
        if is_empty is None or not is_empty.any():
            return self._finished(keys, partials)
        filled = pa.array(~is_empty)
        finished = self._finished([key.filter(filled) for key in keys], partials.filter(filled))
        nothing = fold_of_no_rows(self._program).finish(partials.filter(pa.array(is_empty)))
        places = np.empty(len(is_empty), np.int64)
        places[np.flatnonzero(~is_empty)] = np.arange(len(is_empty) - is_empty.sum())
        places[np.flatnonzero(is_empty)] = np.arange(len(is_empty) - is_empty.sum(), len(is_empty))
        pairs = zip(finished, nothing, strict=True)
        return [pa.concat_arrays([*_chunks(one), *_chunks(other.cast(one.type))]).take(pa.array(places)) for one, other in pairs]

    def _finished(self, keys: list[pa.Array], partials: pa.Table) -> list[pa.Array]:
        """Return the results; an error names the key, as that of the reference does."""
        try:
            return self._fold.finish(partials)
        except AggregateOverflowError:
            names = self._program.key_columns
            for row in range(partials.num_rows):
                try:
                    self._fold.finish(partials.slice(row, 1))
                except AggregateOverflowError as error:
                    key = python_keys(pa.table([each.slice(row, 1) for each in keys], names=names), names)[0] if names else None
                    raise error.located(key=key) from error.__cause__
            raise

    def _applied(self, function: ArrowWindowFunction, fixed: list[pa.Array], partials: pa.Table, fired_under: int) -> pa.Table:
        """Return what the function makes of the kept rows of all keys; ``fixed`` are the keys and bounds of each."""
        given, returned = self._program.window_schemas
        (kept,) = self._fold.finish(partials)
        lists = Lists.of(kept)
        of = pa.array(lists.numbers)
        rows = [lists.values.field(field.name) for field in list(given)[len(fixed) :]]
        table = pa.table([*(column.take(of) for column in fixed), *rows], schema=given)
        result = windows_applied(function, table, returned)
        ends = result[WINDOW_END].cast(pa.int64())
        times = pc.fill_null(pc.subtract(ends, 1), MAX)
        columns = [*result.columns, times, _repeated(fired_under, result.num_rows)]
        return pa.table(columns, schema=self._program.main_schema)


def _chunks(column: pa.Array | pa.ChunkedArray) -> list[pa.Array]:
    return column.chunks if isinstance(column, pa.ChunkedArray) else [column]


def _repeated(value: int | None, count: int) -> pa.Array:
    return pa.nulls(count, pa.int64()) if value is None else pa.array(np.full(count, value, np.int64))
