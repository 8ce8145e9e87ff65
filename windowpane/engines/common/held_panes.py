"""What the state of windows holds, for people who look at it: a row for each key and window, and what a firing now would give.

Every engine of windows lists its state as such tables, so what is shown of windows, keys and timers is one computation for all.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windowpane.arrays import Integers, Mask
from windowpane.arrays.values import Row
from windowpane.engines.common.columnar import key_arrays
from windowpane.engines.common.results import Results
from windowpane.engines.program import WINDOW_END, WINDOW_START, Program
from windowpane.engines.spec import BucketEngine
from windowpane.hidden_columns import END, FIRING_WATERMARK, HELD, PREFIX, START, TIME, hidden
from windowpane.kernels.grouping.grouped_fold import GroupedFold
from windowpane.state.blob_store import BlobStore
from windowpane.state.memory import HeldWrites
from windowpane.windowing.assigners import ClosedSessionWindows
from windowpane.windowing.panes import NO_PANES
from windowpane.windowing.times import MIN
from windowpane.windowing.triggers import CountTrigger, Trigger
from windowpane.windowing.triggers.composable.pane_trigger import PaneTrigger

ELEMENTS, PARTIALS = HELD, hidden("partials")
"""How many elements, or partials, a pane holds; NULL in one of the two."""
SIZE = hidden("size")
"""Its share of the stored bytes."""
NEXT, KNOWN = hidden("next"), hidden("known")
"""When the next timer of its own is due, and what its trigger knows, in words; NULL where it has none."""
WORDS = hidden("words")
"""Its partials in words."""
ROWS = hidden("rows")
"""The rows that it holds, a list of structs."""

OF_PANES = pa.schema(
    [
        pa.field(START, pa.int64()),
        pa.field(END, pa.int64()),
        pa.field(ELEMENTS, pa.int64()),
        pa.field(PARTIALS, pa.int64()),
        pa.field(SIZE, pa.int64()),
        pa.field(NEXT, pa.int64()),
        pa.field(KNOWN, pa.string()),
    ]
)
"""What stands beside the keys of a pane; the bounds of the global window are NULL."""
_LONGEST = 200


@dataclass(frozen=True)
class Wanted:
    """What is asked for."""

    key: pa.Table | None = None  # one row with the key columns, ``None`` for all keys
    start: int | None = None  # with ``end`` the window, ``None`` for all
    end: int | None = None  # see there
    results: bool = False  # whether what a firing now would give is asked for, too
    rows: bool = False  # whether the rows are, where they are held one by one

    def takes_window(self, start: int | None, end: int | None) -> bool:
        return (self.start is None or self.start == start) and (self.end is None or self.end == end)

    def take_windows(self, starts: Integers, ends: Integers) -> Mask:
        """Return which windows are asked for."""
        found = np.ones(len(ends), np.bool_)
        for times, asked in ((starts, self.start), (ends, self.end)):
            found &= True if asked is None else times == asked
        return found

    def of(self, keys: list[pa.Array], rows: int) -> Mask:
        """Return which rows have the key."""
        found = np.ones(rows, np.bool_)
        for column, asked in zip(keys, self.key.columns if self.key is not None else [], strict=False):
            value = asked[0]
            if not value.is_valid:
                same = column.is_null()
            elif pa.types.is_nested(column.type):
                wanted = value.as_py()
                same = pa.array([each == wanted or repr(each) == repr(wanted) for each in column.to_pylist()], pa.bool_())
            elif pa.types.is_floating(column.type) and math.isnan(value.as_py()):
                same = pc.fill_null(pc.is_nan(column), False)
            else:
                same = pc.fill_null(pc.equal(column, value), False)
            found &= same.to_numpy(zero_copy_only=False)
        return found


class WindowsEngine(BucketEngine[Program]):
    """An engine of windows that lists what a bucket holds."""

    @classmethod
    def serves(cls, program: Program) -> bool:
        return not isinstance(program.spec.assigner, ClosedSessionWindows)

    def held(self, store: BlobStore, wanted: Wanted) -> Iterator[pa.Table]:
        """Yield key columns and those of ``OF_PANES``; with results also these, as the output has them, and ``WORDS``.

        With rows there is a column ``ROWS``, of a program whose function is given the rows of a window.
        """
        listed: Iterator[pa.Table] = self.open(HeldWrites(store)).held(wanted)
        return listed


@dataclass(frozen=True)
class PaneTables:
    """Makes such tables of partials."""

    program: Program
    fold: GroupedFold | None  # whose partials they are, ``None`` where results are made otherwise
    wanted: Wanted  # what is asked for
    watermark: int = MIN  # the watermark under which they would fire

    def of(
        self,
        partials: pa.Table,
        starts: Integers | None,
        ends: Integers,
        size: int,
        columns: Mapping[str, Integers | pa.Array] | None = None,
        count: str = PARTIALS,
    ) -> pa.Table:
        """Return a table of panes, one row each, of keys and partials; ``starts`` is ``None`` for the global window.

        ``columns`` are what else is known of them, of those of ``OF_PANES``, ``size`` the bytes of all of them as stored,
        ``count`` how many rows they are of, ``PARTIALS`` for one each where ``columns`` does not say.
        """
        rows, known = partials.num_rows, dict(columns or {})
        keys = key_arrays(self.program, partials)
        keep = self.wanted.of(keys, rows)
        known |= {SIZE: shares(size, partials)}
        if starts is not None:
            known |= {START: starts, END: ends}
        if count == PARTIALS and ELEMENTS not in known:
            known[PARTIALS] = np.ones(rows, np.int64)
        table = pa.table(
            [*keys, *(_column(known.get(each.name), each.type, rows) for each in OF_PANES)],
            names=[*self.program.keys.names, *OF_PANES.names],
        ).filter(pa.array(keep))
        if self.wanted.rows and self.fold is not None:
            table = table.append_column(ROWS, partials[self.fold.columns[0]].filter(pa.array(keep)))
        if self.wanted.results and self.fold is not None and set(self.fold.columns) <= set(partials.column_names):
            kept = partials.filter(pa.array(keep))
            table = self._with_results(table, kept, None if starts is None else starts[keep], ends[keep], self.fold)
        return table

    def _with_results(
        self, table: pa.Table, partials: pa.Table, starts: Integers | None, ends: Integers, fold: GroupedFold
    ) -> pa.Table:
        plain = replace(self.program, spec=replace(self.program.spec, panes=NO_PANES))
        results, rows = Results(plain, fold), partials.num_rows
        if starts is None:
            results.emit_firings(None, ends, partials, self.watermark, [], np.zeros(rows, np.bool_), rows)
        else:
            results.emit_panes(starts, ends, partials, self.watermark)
        fired = results.table()
        hidden_ones = {*self.program.keys.names, WINDOW_START, WINDOW_END, TIME, FIRING_WATERMARK}
        if fired is not None and fired.num_rows == rows:  # a function on tables may give other rows
            for name in fired.column_names:
                table = table if name in hidden_ones else table.append_column(fired.schema.field(name), fired[name])
        return table.append_column(WORDS, pa.array(in_words(self.program, partials, fold), pa.string()))


def in_words(program: Program, partials: pa.Table, fold: GroupedFold) -> list[str]:
    """Return each row of partials as text, shortened; a partial has the name of its result and a letter for what it is."""
    names = {f"{number}": name for number, (name, _, _) in enumerate(program.aggregates)}
    columns = []
    for column in (each for each in fold.columns if each in partials.column_names):
        number, _, part = column.removeprefix(PREFIX).partition("_")
        columns.append((f"{names.get(number, number)}.{part}", partials[column].to_pylist()))
    texts = (", ".join(f"{name}: {values[row]}" for name, values in columns) for row in range(partials.num_rows))
    return [text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..." for text in texts]


def trigger_words(trigger: Trigger, values: Row) -> str | None:
    """Return the values that a trigger keeps of a window, as words; ``None`` where it keeps none, or none for readers."""
    if isinstance(trigger, PaneTrigger):
        return None
    most = f" of {trigger.max_count}" if isinstance(trigger, CountTrigger) else ""
    return ", ".join(f"{name.rpartition('/')[2]} {value}{most}" for name, value in values.items() if value is not None) or None


def shares(total: int, rows: pa.Table) -> Integers:
    """Return whole numbers that add up to a total: the share of each row, by its columns and the lengths of what they hold."""
    weights = np.full(rows.num_rows, 8 * max(rows.num_columns, 1), np.int64)
    for column in rows.columns:
        if pa.types.is_list(column.type) or pa.types.is_large_list(column.type):
            weights += 8 * pc.fill_null(pc.list_value_length(column), 0).to_numpy().astype(np.int64)
        elif pa.types.is_string(column.type) or pa.types.is_binary(column.type):
            weights += pc.fill_null(pc.binary_length(column), 0).to_numpy().astype(np.int64)
    ends = np.cumsum(weights)
    bounds = (ends.astype(np.float64) / max(int(weights.sum()), 1) * total).astype(np.int64)
    if len(bounds):
        bounds[-1] = total
    found: Integers = np.diff(bounds, prepend=0)
    return found


def _column(values: Integers | pa.Array | None, kind: pa.DataType, rows: int) -> pa.Array:
    return pa.nulls(rows, kind) if values is None else values if isinstance(values, pa.Array) else pa.array(values, kind)
