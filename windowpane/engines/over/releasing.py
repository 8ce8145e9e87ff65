"""Between sort buffer and window: rows in order of arrival on their way in, in the order of the window on their way out.

While they wait, rows can still be updated and deleted. All changes of a row have its time, so they leave the buffer
together, and what they amount to is settled then, by the rules of ``operators.sort_buffer``.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from windowpane.arrays import Integers
from windowpane.arrays.columns import flat
from windowpane.engines.over.changes import refuse_other_words
from windowpane.engines.over.program import CHANGE_TYPE, INSERT, OverProgram
from windowpane.engines.rows import python_rows
from windowpane.errors import InconsistentChangeError
from windowpane.hidden_columns import PARTITION, POSITION
from windowpane.kernels.over.sorting import equal_neighbours, key_sorting_codes, partition_numbers, sorting_codes
from windowpane.kernels.sorting.packed_order import lexical_order
from windowpane.operators.over.consolidation import Report
from windowpane.windowing.outputs import APPEARING


def in_arrival_order(program: OverProgram, rows: pa.Table) -> pa.Table:
    """Return a batch as the buffer takes it: with its change types, in order of arrival, unless every row is an insert."""
    if program.append_only:
        return rows
    if CHANGE_TYPE not in rows.column_names:
        rows = rows.append_column(CHANGE_TYPE, pa.repeat(INSERT, rows.num_rows))
    refuse_other_words(program, rows)
    return rows.sort_by([(PARTITION, "ascending"), (POSITION, "ascending")]) if PARTITION in rows.column_names else rows


def sorting_words(program: OverProgram, rows: pa.Table) -> list[Integers]:
    spec = program.spec
    ordered = sorting_codes(flat(rows[spec.order_names[0]]), spec.order_by[0])
    return [*ordered, *(codes for name in spec.key for codes in key_sorting_codes(flat(rows[name])))]


def in_window_order(program: OverProgram, rows: pa.Table, words: list[Integers], report: Report) -> pa.Table:
    """Return released rows, which are in order of arrival, with their changes applied, sorted by ORDER BY and key."""
    identity = [*words, partition_numbers([flat(rows[name]) for name in program.spec.partition_by], rows.num_rows)]
    order = _settled(program, rows, lexical_order(identity), identity, report)
    return rows.take(pa.array(order))


def _settled(program: OverProgram, rows: pa.Table, order: Integers, identity: list[Integers], report: Report) -> Integers:
    group = np.append(0, np.cumsum(~equal_neighbours(identity, order)))[: len(order)]
    words = rows[CHANGE_TYPE].take(pa.array(order)).to_pylist() if CHANGE_TYPE in rows.column_names else [INSERT] * len(order)
    appears = np.array([word in APPEARING for word in words], np.bool_)
    plain = appears & (np.bincount(group, minlength=1)[group] == 1)
    kept = plain.copy()
    last: dict[int, int | None] = {}
    for at in np.flatnonzero(~plain).tolist():
        held = last.get(int(group[at]))
        if (held is not None) == bool(appears[at]):
            row = python_rows(rows.slice(int(order[at]), 1).select(program.columns.names))[0]
            report(
                InconsistentChangeError(
                    words[at], row, "it waits already" if held is not None else "it does not wait, or no longer"
                )
            )
        last[int(group[at])] = at if appears[at] else None
    kept[[at for at in last.values() if at is not None]] = True
    settled: Integers = order[kept]
    return settled
