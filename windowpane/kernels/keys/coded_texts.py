"""Coded texts: columns that hold each text once, and a number a row, as Parquet files hold texts that repeat.

Arrow's name for them is dictionary arrays. A source hands texts on so where the combiner reads the numbers alone; what the
combiner emits, and all that bypasses it, is texts again. Nested keys as bytes are coded in a fold, too. No other column is a
dictionary, so the type shows which these are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windowpane.arrays.columns import flat

CODED = pa.dictionary(pa.int32(), pa.string())
"""The type of a column of coded texts."""


_ROWS_A_TEXT = 6
"""To put a text in order takes as long as to spell and compare those of so many rows."""


@dataclass(frozen=True)
class CodedTexts:
    """A column apart: the texts, and the place of each row's among those.

    Example:
        >>> held = CodedTexts.of(pa.array(["b", None, "b"]).dictionary_encode())
        >>> held.texts.to_pylist(), held.codes.to_pylist(), held.spelled(pa.array([1, 0])).to_pylist()
        (['b', None], [0, 1, 0], [None, 'b'])
    """

    texts: pa.Array
    codes: pa.Array

    @classmethod
    def of(cls, column: object) -> Self:
        """Return a column of coded texts apart, null as a text behind the others."""
        values = flat(column)
        texts = pa.concat_arrays([values.dictionary, pa.nulls(1, values.dictionary.type)])
        return cls(texts, pc.fill_null(values.indices, len(values.dictionary)))

    @classmethod
    def in_order(cls, column: object) -> Self | None:
        """Return a column of coded texts with codes in the order of the texts, null for null; ``None`` if rows are too few."""
        values = flat(column)
        if len(values) < _ROWS_A_TEXT * len(values.dictionary):
            return None
        order = pc.array_sort_indices(values.dictionary)
        ranks = np.empty(len(order), np.int64)
        ranks[order.to_numpy()] = np.arange(len(order))
        return cls(values.dictionary.take(order), pa.array(ranks).take(values.indices))

    def spelled(self, codes: object) -> pa.Array:
        return self.texts.take(flat(codes))


def are_coded(kind: pa.DataType) -> bool:
    return bool(pa.types.is_dictionary(kind))


def is_coded(column: pa.ChunkedArray) -> bool:
    """Whether a column holds each text once, chunk by chunk, as those who count codes rely on; a file may hold one twice."""
    if column.type != CODED:
        return False
    texts = [chunk.dictionary for chunk in column.chunks]
    return all(not each.null_count and pc.count_distinct(each).as_py() == len(each) for each in texts)


def spelled(table: pa.Table) -> pa.Table:
    for place, field in enumerate(table.schema):
        if are_coded(field.type):
            table = table.set_column(place, field.name, table[field.name].cast(field.type.value_type))
    return table


def together(tables: Sequence[pa.Table]) -> pa.Table:
    """Return tables of the same columns as one; texts that only some of them code are spelled in all."""
    alike = all(table.schema.equals(tables[0].schema) for table in tables)
    return pa.concat_tables(tables if alike else [spelled(table) for table in tables])


def coded_alike(tables: Sequence[pa.Table], names: Iterable[str]) -> list[pa.Table]:
    """Return tables whose columns of ``names`` hold coded texts in all of them where they do in one."""
    found = list(tables)
    for name in names:
        if any(are_coded(table.schema.field(name).type) for table in found):
            found = [table.set_column(table.schema.get_field_index(name), name, _coded(table[name])) for table in found]
    return found


def _coded(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return texts, which may be coded in numbers of any width, as ``CODED``."""
    return (column if are_coded(column.type) else column.dictionary_encode()).cast(CODED)
