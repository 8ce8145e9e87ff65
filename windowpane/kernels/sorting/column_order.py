"""The order of rows by some columns, as Spark SQL sorts them: NaN is the largest number, and NULLs are where they are put.

Arrow alone puts NULL and NaN last, whatever the direction; so each column is sorted by up to three.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

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
