"""The order of rows by some columns, as Spark SQL sorts them, and the first rows of each group in it: a window's Top-N.

NaN is the largest number, and NULLs are where they are put. Arrow alone puts both last, whatever the direction; so each column is
sorted by up to three. Source of the rules of Top-N: Flink's Window Top-N, ``ROW_NUMBER() OVER (PARTITION BY window_start,
window_end, ... ORDER BY ...) <= n``. Ties are broken by columns that identify a row, so the result depends on the rows alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windowpane.arrays import Integers
from windowpane.kernels.keys.key_codes import key_codes, plain_key
from windowpane.kernels.segments import starts_of_runs
from windowpane.windowing.over.spec import OrderColumn

SortKey = tuple[pa.ChunkedArray | pa.Array, str]
"""Values, and ``"ascending"`` or ``"descending"``."""

ASCENDING, DESCENDING = "ascending", "descending"


def sort_keys(values: pa.ChunkedArray, column: OrderColumn) -> list[SortKey]:
    direction = DESCENDING if column.descending else ASCENDING
    keys: list[SortKey] = [(pc.is_valid(values), ASCENDING if column.nulls_first else DESCENDING)]
    if pa.types.is_floating(values.type):
        keys.append((pc.fill_null(pc.is_nan(values), False), direction))
    return [*keys, (values, direction)]


def sorted_by(keys: Sequence[SortKey]) -> pa.Array:
    """Return the numbers of rows in the order of keys, the first counts most; rows that tie stay in their order."""
    names = [str(number) for number in range(len(keys))]
    table = pa.table([values for values, _ in keys], names=names)
    return pc.sort_indices(table, sort_keys=[(name, direction) for name, (_, direction) in zip(names, keys, strict=True)])


@dataclass(frozen=True)
class TopRows:
    count: int  # how many
    order: OrderColumn  # the order of rows
    groups: tuple[str, ...]  # columns whose values are equal within a group, and differ between groups
    identity: tuple[str, ...]  # columns that identify a row in its group, ascending among rows that tie
    newest: bool = False  # whether only the last row of each identity counts: those before it are older versions

    def of(self, rows: pa.Table) -> tuple[pa.Table, Integers]:
        """Return the rows, groups together and each in its order, and the rank of each from 1."""
        if self.newest:
            codes = _codes(rows, (*self.groups, *self.identity))
            lasts = len(codes) - 1 - np.unique(codes[::-1], return_index=True)[1]
            rows = rows.take(pa.array(np.sort(lasts)))
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


def _ranks(codes: Integers) -> Integers:
    """Return the place of each row among those of its code, which are neighbours, from 1."""
    places = np.arange(len(codes))
    begins = starts_of_runs(codes)
    ranks: Integers = places - np.maximum.accumulate(np.where(begins, places, 0)) + 1
    return ranks
