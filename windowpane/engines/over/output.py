"""The changelog of a batch: for each changed row the outputs that were emitted before, and those that are right now.

A row that only moved inside its partition is deleted at one place and inserted at another: one update. The two images of an
update are neighbours; rows are in their order.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from windowpane.arrays import Integers, Mask
from windowpane.arrays.columns import flat
from windowpane.engines.over.program import OverProgram
from windowpane.engines.over.spans import InSpans, InTable, Spans
from windowpane.hidden_columns import TIME
from windowpane.kernels.keys.codes import written_differently, written_differently_among
from windowpane.kernels.sorting.sort_keys import SortKeys
from windowpane.windowing.outputs import DELETE, INSERT, UPDATE_POSTIMAGE, UPDATE_PREIMAGE

Columns = Mapping[str, pa.Array]


def changelog(program: OverProgram, spans: Spans, live: InSpans, current: Columns, was: Columns) -> pa.Table:
    """Return the changelog: ``live`` rows have ``current`` outputs now; ``was`` are those that were emitted for them before."""
    source, before = spans.source[live], spans.before[live]
    fresh = np.flatnonzero(before < 0)
    updated = np.flatnonzero(_differ(program, spans, source, before, current, was))
    deleted = np.flatnonzero(spans.deleted)
    moved, arrived = _moves(program, spans, deleted, live[fresh])
    schema = program.result_schema
    inputs = spans.table.select([*(name for name in program.columns.names if name in schema.names), TIME])
    stored = {name: spans.table[name] for name in program.outputs.names}

    def entries(rows: InTable, outputs: Columns, at: Integers, word: str) -> pa.Table:
        *columns, times = _picked(inputs, rows).columns
        values = [outputs[name].take(pa.array(at)) for name in program.outputs.names if name in schema.names]
        return pa.table([*columns, *values, pa.repeat(word, len(rows)), times], schema=schema)

    moved_from, gone = spans.source[deleted[moved]], spans.source[np.delete(deleted, moved)]
    moved_to, new = fresh[arrived], np.delete(fresh, arrived)
    parts = [
        (entries(before[updated], was, updated, UPDATE_PREIMAGE), 2 * live[updated]),
        (entries(source[updated], current, updated, UPDATE_POSTIMAGE), 2 * live[updated] + 1),
        (entries(moved_from, stored, moved_from, UPDATE_PREIMAGE), 2 * live[moved_to]),
        (entries(source[moved_to], current, moved_to, UPDATE_POSTIMAGE), 2 * live[moved_to] + 1),
        (entries(gone, stored, gone, DELETE), 2 * np.delete(deleted, moved)),
        (entries(source[new], current, new, INSERT), 2 * live[new]),
    ]
    some = [(table, places) for table, places in parts if table.num_rows]
    if not some:
        return parts[0][0]
    order = np.argsort(np.concatenate([places for _, places in some]), kind="stable")
    merged = pa.concat_tables([table for table, _ in some])
    return merged if len(some) == 1 else merged.take(pa.array(order))


def _picked(table: pa.Table, rows: Integers) -> pa.Table:
    """Return some rows of a table: without a copy where they lie one behind the other, as rows do that arrived in order."""
    if len(rows) and rows[-1] - rows[0] == len(rows) - 1 and (np.diff(rows) == 1).all():
        return table.slice(int(rows[0]), len(rows))
    return table.take(pa.array(rows))


def _differ(program: OverProgram, spans: Spans, source: Integers, before: Integers, current: Columns, was: Columns) -> Mask:
    found = np.zeros(len(source), np.bool_)
    for name in program.outputs.names:
        found |= written_differently_among(was[name], current[name], before >= 0)
    rows = np.flatnonzero((before >= 0) & (source != before))
    for name in program.columns.names if len(rows) else ():
        column = flat(spans.table[name])
        found[rows] |= written_differently(column.take(pa.array(before[rows])), column.take(pa.array(source[rows])))
    return found


def _moves(program: OverProgram, spans: Spans, deleted: Integers, inserted: Integers) -> tuple[Integers, Integers]:
    """Return which of the deleted rows are inserted again, and as which row: of one partition and key."""
    none = np.empty(0, np.int64)
    if not len(deleted) or not len(inserted):
        return none, none
    identity = SortKeys(program.spec, program.columns, with_order=False)
    names = program.columns.names
    old, new = (identity.of(spans.table.select(names).take(pa.array(spans.source[rows]))) for rows in (deleted, inserted))
    _, moved, arrived = np.intersect1d(old, new, assume_unique=True, return_indices=True)
    return moved, arrived
