"""Calls of OVER windows that were added, removed or renamed since state was written: rows in it get the values of those of now.

A call that is known keeps its values and carry columns, whatever rows were freed since. One that is new is computed over all rows
that state holds; on update these values come out as updates of the rows, of which what had the name of the call before, or NULL,
was emitted. A row
that the same batch changes comes out once, from what was emitted of it to what it is after the batch.

Nothing here mutates state.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windowpane.arrays import Integers, Mask
from windowpane.arrays.columns import flat, padded, replaced
from windowpane.engines.changes import Description, Outcome, Verdict, matched_calls
from windowpane.engines.over.eviction import Eviction
from windowpane.engines.over.program import Emit, OverProgram
from windowpane.kernels.keys.codes import written_differently
from windowpane.kernels.over.protocol import CallKernel
from windowpane.kernels.over.sorting import partition_numbers
from windowpane.kernels.over.window import OverWindow
from windowpane.kernels.packed_order import stable_order
from windowpane.kernels.sorting.sort_keys import SortKeys
from windowpane.windowing.frames import Bound, Side, Units
from windowpane.windowing.intervals import Interval
from windowpane.windowing.outputs import CHANGE_TYPE, DELETE, UPDATE_POSTIMAGE, UPDATE_PREIMAGE
from windowpane.windowing.over.spec import OverCall


def added_call(was: OverProgram, program: OverProgram, number: int) -> Outcome:
    """Return what it means that a call is added to those of another program."""
    call = program.spec.calls[number]
    lacking = [name for name in call.columns if name not in was.columns.names]
    if lacking:
        return Outcome(Verdict.REFUSED, f"rows in state lack {', '.join(lacking)}")
    before = OverWindow(was.spec, was.columns)
    if program.mode is Emit.UPDATE:
        if Eviction.of(was, before.calls) is None:
            return Outcome(Verdict.SAFE, "rows in state get its values, as updates, when a row next comes to their bucket")
        return Outcome(Verdict.ACCEPT, "rows in state get its values, as updates; rows that were freed so far are in no frame")
    if _holds(before.framed, call):
        return Outcome(Verdict.SAFE, "the rows that its frames need are in state")
    return Outcome(Verdict.ACCEPT, "its frames reach back only to the first row of each partition that is in state")


def _holds(kept: Sequence[CallKernel], call: OverCall) -> bool:
    """Whether the rows that framed calls need of each partition are all that a call needs before a row."""
    frames, reach = [each.call.reach for each in kept], call.reach
    unbounded = [each for each in frames if each.start.is_unbounded and each.units is not Units.SESSION]
    if unbounded or (reach.units is Units.ROWS and not reach.start.is_unbounded and (reach.start.steps or 0) >= 0):
        return True
    if call.ignore_nulls or reach.start.is_unbounded:
        return False
    return any(each.units is reach.units and each.gap == reach.gap and _reaches(each.start, reach.start) for each in frames)


def _reaches(far: Bound, near: Bound) -> bool:
    """Whether a start of frames is at or before another one of the same units."""
    if far == near or (far.side is Side.PRECEDING and near.side.value >= Side.CURRENT_ROW.value):
        return True
    if far.side is not Side.PRECEDING or near.side is not Side.PRECEDING:
        return far.side.value < near.side.value
    return type(far.offset) is type(near.offset) and not isinstance(far.offset, Interval) and far.offset >= near.offset  # type: ignore[operator]


@dataclass
class ChangedCalls:
    """The calls of a program against those of the one that wrote a bucket."""

    program: OverProgram
    sources: dict[str, str | None]  # for each output the one of before that is the same, ``None`` for a new one
    new: dict[str, bool]  # the new ones, and whether an output of before had the name and the type
    _rows: pa.Table = field(default_factory=lambda: pa.table({}), init=False)  # those in state
    _shown: dict[str, pa.Array] = field(default_factory=dict, init=False)  # what was emitted of them under the names of new calls

    @classmethod
    def of(cls, program: OverProgram, was: Description) -> ChangedCalls:
        before, calls = was["calls"], program.description["calls"]
        numbers = zip(calls, matched_calls(before, calls), strict=True)
        sources = {call["name"]: None if number is None else before[number]["name"] for call, number in numbers}
        types = {call["name"]: call["type"] for call in before}
        new = {call["name"]: call["type"] for call in calls if sources[call["name"]] is None}
        return cls(program, sources, {name: types.get(name) == kind for name, kind in new.items()})

    @property
    def _identity(self) -> list[str]:
        return list(dict.fromkeys([*self.program.spec.partition_by, *self.program.spec.key]))

    @property
    def telling(self) -> OverProgram:
        """The program, whose results tell which row each is: ``changelog`` takes them, and leaves out what is not read."""
        read = self.program.read
        return replace(self.program, read=None if read is None else read.union(self._identity))

    def recomputed(self, window: OverWindow, held: pa.Table, schema: pa.Schema) -> pa.Table:
        """Return rows in state, in their order, with the columns of ``schema``: outputs and carry columns of the calls of now."""
        given = held.drop_columns([name for name in held.column_names if name in self.sources and self.sources[name] != name])
        computed = {*self.sources, *window.carries.names}
        rows = padded(given, pa.schema([each for each in schema if each.name not in computed]))
        numbers = partition_numbers([flat(rows[name]) for name in self.program.spec.partition_by], rows.num_rows)
        order = stable_order(numbers)
        rows, held = rows.take(pa.array(order)).combine_chunks(), held.take(pa.array(order))
        if rows.num_rows:
            starts: Mask = np.append(True, np.diff(numbers[order]) != 0)
            values = window.values(window.rows(rows, starts, np.zeros(int(starts.sum()), np.bool_)))
            made = dict(
                zip([*self.program.outputs.names, *window.carries.names], [*values.outputs, *values.carries], strict=True)
            )
        else:
            made = {each.name: pa.nulls(0, each.type) for each in (*self.program.outputs, *window.carries)}
        made |= {name: held[name] for name in window.carries.names if name in held.column_names}
        made |= {name: held[old] for name, old in self.sources.items() if old is not None and old in held.column_names}
        columns = [made[each.name] if each.name in computed else rows[each.name] for each in schema]
        table = pa.table(columns, schema=schema)
        if self.program.mode is Emit.UPDATE:
            self._rows = table
            for name, was_there in self.new.items():
                kind = schema.field(name).type
                self._shown[name] = flat(held[name]) if was_there else pa.nulls(table.num_rows, kind)
        return table

    def changelog(self, emitted: pa.Table | None) -> pa.Table | None:
        """Return what a batch emits, with the updates of rows that it does not change itself."""
        schema, rows, parts = self.program.result_schema, self._rows, list[pa.Table]()
        differs = np.zeros(rows.num_rows, np.bool_)
        for name, before in self._shown.items():
            differs |= written_differently(before, flat(rows[name]))
        if emitted is not None and emitted.num_rows:
            images = np.flatnonzero(pc.is_in(emitted[CHANGE_TYPE], pa.array([DELETE, UPDATE_PREIMAGE])).to_numpy())
            places = self._places(emitted.take(pa.array(images)))
            differs[places] = False
            chosen = np.arange(emitted.num_rows)
            chosen[images] = emitted.num_rows + np.arange(len(images))
            for name in (name for name in self._shown if name in emitted.column_names):
                both = pa.concat_arrays([flat(emitted[name]), self._shown[name].take(pa.array(places))])
                emitted = replaced(emitted, name, both.take(pa.array(chosen)))
            parts.append(_that_differ(emitted.select(schema.names)))
        if differs.any():
            updated, words = pa.array(np.flatnonzero(differs)), pa.nulls(int(differs.sum()), pa.string())
            after = rows.take(updated).append_column(CHANGE_TYPE, words.fill_null(UPDATE_POSTIMAGE)).select(schema.names)
            before = replaced(after, CHANGE_TYPE, words.fill_null(UPDATE_PREIMAGE))
            for name in (name for name in self._shown if name in schema.names):
                before = replaced(before, name, self._shown[name].take(updated))
            neighbours = np.arange(2 * after.num_rows).reshape(2, -1).T.ravel()
            parts.insert(0, pa.concat_tables([before, after]).take(pa.array(neighbours)).cast(schema))
        self._rows, self._shown = rows.slice(0, 0), {name: column.slice(0, 0) for name, column in self._shown.items()}
        return pa.concat_tables(parts) if parts else None

    def _places(self, images: pa.Table) -> Integers:
        """Return which of the rows in state each row is that was there before the batch."""
        identity, names = SortKeys(self.program.spec, self.program.columns, with_order=False), self._identity
        own, others = (identity.of(table.select(names).combine_chunks()) for table in (self._rows, images))
        order = np.argsort(own, kind="stable")
        found: Integers = order[np.searchsorted(own[order], others)]
        return found


def _that_differ(changes: pa.Table) -> pa.Table:
    """Return changes without the updates whose images are alike; the images of an update are neighbours."""
    befores = np.flatnonzero(pc.equal(changes[CHANGE_TYPE], UPDATE_PREIMAGE).to_numpy())
    differs = np.zeros(len(befores), np.bool_)
    for column in (flat(changes[name]) for name in changes.column_names if name != CHANGE_TYPE):
        differs |= written_differently(column.take(pa.array(befores)), column.take(pa.array(befores + 1)))
    stays = np.ones(changes.num_rows, np.bool_)
    stays[befores] = stays[befores + 1] = differs
    return changes.filter(pa.array(stays))
