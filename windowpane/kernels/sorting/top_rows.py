"""The first rows of each group in an order: a window's Top-N, over the results of one window or many.

Source of the rules: Flink's Window Top-N, ``ROW_NUMBER() OVER (PARTITION BY window_start, window_end, ... ORDER BY ...) <= n``;
NULL and NaN are where Spark SQL puts them. Ties are broken by columns that identify a row, so the result depends on the
rows alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from windowpane.arrays import Integers, Mask
from windowpane.kernels.keys.key_codes import key_codes, plain_key
from windowpane.kernels.sorting.column_order import ASCENDING, SortKey, sort_keys, sorted_by
from windowpane.windowing.over.spec import OrderColumn


@dataclass(frozen=True)
class TopRows:
    """The first ``count`` rows of each group."""

    count: int  # how many
    order: OrderColumn  # the order of rows
    groups: tuple[str, ...]  # columns whose values are equal within a group, and differ between groups
    identity: tuple[str, ...]  # columns that identify a row in its group, ascending among rows that tie
    newest: bool = False  # whether only the last row of each identity counts: those before it are older versions

    def of(self, rows: pa.Table) -> tuple[pa.Table, Integers]:
        """Return the rows, groups together and each in its order, and the rank of each from 1."""
        if self.newest:
            rows = rows.filter(pa.array(_last_of_each(_codes(rows, (*self.groups, *self.identity)))))
        codes = _codes(rows, self.groups)
        keys: list[SortKey] = [(pa.array(codes), ASCENDING), *sort_keys(rows[self.order.name], self.order)]
        for name in self.identity:
            keys += sort_keys(rows[name], OrderColumn(name, nulls_first=True))
        order = sorted_by(keys).to_numpy()
        ranks = _ranks(codes[order])
        is_top = ranks <= self.count
        return rows.take(pa.array(order[is_top])), ranks[is_top]


def _codes(rows: pa.Table, names: Sequence[str]) -> Integers:
    return key_codes([plain_key(rows[name]) for name in names], rows.num_rows)


def _last_of_each(codes: Integers) -> Mask:
    is_last: Mask = np.zeros(len(codes), np.bool_)
    is_last[len(codes) - 1 - np.unique(codes[::-1], return_index=True)[1]] = True
    return is_last


def _ranks(codes: Integers) -> Integers:
    """Return the place of each row among those of its code, which are neighbours, from 1."""
    places = np.arange(len(codes))
    begins = np.append(True, codes[1:] != codes[:-1])[: len(codes)]
    ranks: Integers = places - np.maximum.accumulate(np.where(begins, places, 0)) + 1
    return ranks
