"""Order of arrival: the rows of a batch in the order that a retried task repeats, and their numbers in a bucket.

Rows come in the order of ``order_by``, then of input partition and position in it. The number of a row goes on from batch to
batch, so it tells which of two rows of a bucket came first whatever slice or table they stand in.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windowpane.engines.program import JUDGED, PARTITION, POSITION, Program, Upstream
from windowpane.kernels.aggregates import ARRIVAL

_IS_SET = "__windowpane_is_set_"


def in_order(program: Program, tables: Sequence[pa.Table]) -> pa.Table | None:
    """Return the rows of a batch in order of arrival, ``None`` if there are none."""
    filled = [table for table in tables if table.num_rows]
    if not filled:
        return None
    judged = [JUDGED] if program.upstream is Upstream.JUDGED_WINDOW else []
    merged = pa.concat_tables(filled, promote_options="permissive")
    if not judged and not program.order_by and _have_come_in_order(merged):
        return merged.combine_chunks()
    order = []
    for column in program.order_by:  # NULLs first, as in Spark SQL; Arrow puts them last
        merged = merged.append_column(_IS_SET + column, pc.is_valid(merged[column]))
        order += [_IS_SET + column, column]
    columns = [*judged, *order, PARTITION, POSITION]
    return merged.sort_by([(column, "ascending") for column in columns]).combine_chunks()


def numbered(rows: pa.Table, first: int) -> pa.Table:
    """Return rows that are in order with their arrival numbers, from ``first`` on."""
    return rows.append_column(ARRIVAL, pa.array(np.arange(first, first + rows.num_rows)))


def _have_come_in_order(rows: pa.Table) -> bool:
    partitions, positions = rows[PARTITION].to_numpy(), rows[POSITION].to_numpy()
    later = np.diff(partitions)
    return not (later < 0).any() and not ((later == 0) & (np.diff(positions) <= 0)).any()
