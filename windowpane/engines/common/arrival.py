"""Order of arrival: the rows of a batch in the order that a retried task repeats, and their numbers in a bucket.

Rows are in the order of ``order_by``, then of input partition and position in it. Numbers continue from batch to batch, so the
smaller number is that of the row that arrived first, in whatever slice or table two rows of a bucket are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import pyarrow as pa

from windowpane.arrays import Integers
from windowpane.engines.program import Program, Upstream
from windowpane.hidden_columns import ARRIVAL, FIRING_WATERMARK, PARTITION, POSITION
from windowpane.kernels.sorting.column_order import ASCENDING, SortKey, sort_keys, sorted_by
from windowpane.windowing.over.spec import OrderColumn


def in_order(program: Program, tables: Sequence[pa.Table]) -> pa.Table | None:
    """Return the rows of a batch in order of arrival, ``None`` if there are none."""
    firing = [FIRING_WATERMARK] if program.upstream is Upstream.WINDOW_WITH_WATERMARKS else []
    return ordered(tables, program.order_by, firing)


def ordered(tables: Sequence[pa.Table], order_by: Sequence[OrderColumn] = (), before: Sequence[str] = ()) -> pa.Table | None:
    """Return rows in order of arrival, ``None`` if there are none; the columns ``before`` count for more than any other."""
    filled = [table for table in tables if table.num_rows]
    if not filled:
        return None
    merged = pa.concat_tables(filled, promote_options="permissive")
    if not before and not order_by and _are_in_order(merged):
        return merged.combine_chunks()
    return merged.take(arrival_order(merged, order_by, before)).combine_chunks()


def arrival_order(rows: pa.Table, order_by: Sequence[OrderColumn], before: Sequence[str] = ()) -> pa.Array:
    """Return the numbers of rows in order of arrival; the columns ``before`` count for more than any other."""
    keys: list[SortKey] = [(rows[name], ASCENDING) for name in before]
    for column in order_by:
        keys += sort_keys(rows[column.name], column)
    return sorted_by([*keys, *((rows[name], ASCENDING) for name in (PARTITION, POSITION))])


def numbered(rows: pa.Table, first: int) -> pa.Table:
    """Return rows that are in order with their arrival numbers, from ``first`` on."""
    return rows.append_column(ARRIVAL, pa.array(np.arange(first, first + rows.num_rows)))


@dataclass(frozen=True)
class TaskNumbers:
    """Arrival numbers of rows of which some were folded by their task: a row's is that of its task plus its position there.

    Numbers of rows of other buckets are left out, so there are gaps.
    """

    first: int  # the number of the first row of the first task
    tasks: Integers  # the input partitions, ascending
    span: int  # more than any position

    @classmethod
    def of(cls, tables: Sequence[pa.Table], first: int) -> Self:
        """Return the numbers, from ``first`` on, of tables with the input partition and the (last) position of each row."""
        numbers = pa.concat_tables([table.select([PARTITION, POSITION]) for table in tables])
        return cls(first, np.unique(numbers[PARTITION].to_numpy()), int(numbers[POSITION].to_numpy().max()) + 1)

    def of_tasks(self, partitions: Integers) -> Integers:
        """Return the number that the first row of each input partition has."""
        return self.first + np.searchsorted(self.tasks, partitions).astype(np.int64) * self.span

    @property
    def following(self) -> int:
        return self.first + len(self.tasks) * self.span

    def numbered(self, rows: pa.Table) -> pa.Table:
        numbers = self.of_tasks(rows[PARTITION].to_numpy()) + rows[POSITION].to_numpy()
        return rows.append_column(ARRIVAL, pa.array(numbers))


def _are_in_order(rows: pa.Table) -> bool:
    partitions, positions = rows[PARTITION].to_numpy(), rows[POSITION].to_numpy()
    later = np.diff(partitions)
    return not (later < 0).any() and not ((later == 0) & (np.diff(positions) <= 0)).any()
