"""Coded texts: columns that hold each text once, and a number a row, as Parquet files hold texts that repeat.

Arrow's name for them is dictionary arrays. A source hands texts on so where the combiner reads the numbers alone; what comes out
of the combiner, and all that goes around it, is texts again. No other column is a dictionary, so the type says which these are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windowpane.kernels.grouping.cardinality import expected_groups
from windowpane.kernels.grouping.segments import flat
from windowpane.sizes import Size

CODED = pa.dictionary(pa.int32(), pa.string())
"""The type of a column of coded texts."""


_WIDTHS = ((1 << 8, pa.uint8()), (1 << 16, pa.uint16()), (1 << 31, pa.int32()))
MANY_TEXTS = Size("texts worth coding in a list", 1 << 12, (2, 20))
_SAMPLE = 1 << 12
_FEWEST_REPEATS = 4
"""Coding a text takes as long as compressing one of 30 letters, and as much room as four where none repeats."""


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
    def of(cls, column: Any) -> Self:
        """Return a column of coded texts apart, null as a text behind the others."""
        values = flat(column)
        texts = pa.concat_arrays([values.dictionary, pa.nulls(1, values.dictionary.type)])
        return cls(texts, pc.fill_null(values.indices, len(values.dictionary)))

    @classmethod
    def in_order(cls, column: Any) -> Self | None:
        """Return a column of coded texts with codes in the order of the texts, null for null; ``None`` if rows are too few."""
        values = flat(column)
        if len(values) < _ROWS_A_TEXT * len(values.dictionary):
            return None
        order = pc.array_sort_indices(values.dictionary)
        ranks = np.empty(len(order), np.int64)
        ranks[order.to_numpy()] = np.arange(len(order))
        return cls(values.dictionary.take(order), pa.array(ranks).take(values.indices))

    def spelled(self, codes: Any) -> pa.Array:
        """Return the texts of some codes."""
        return self.texts.take(flat(codes))


def are_coded(kind: pa.DataType) -> bool:
    """Whether a column of a type holds coded texts."""
    return bool(pa.types.is_dictionary(kind))


def are_coded_lists(kind: pa.DataType) -> bool:
    """Whether a column of a type holds lists of coded texts."""
    return bool(pa.types.is_list(kind)) and are_coded(kind.value_type)


def coded_lists(column: Any) -> pa.ListArray | None:
    """Return lists of texts with codes that are as narrow as they can be, ``None`` where codes would not be fewer bytes.

    Args:
        column: the lists, whose texts may be coded already.

    Example:
        >>> coded_lists(pa.array([["a", "b"], ["a"]])) is None
        True
    """
    lists = flat(column)
    if lists.null_count:
        return None
    first, last = lists.offsets[0].as_py(), lists.offsets[-1].as_py()
    texts = lists.values.slice(first, last - first)
    if not are_coded(texts.type) and not _repeat(texts):
        return None
    codes = texts if are_coded(texts.type) else texts.dictionary_encode()
    width = next(kind for most, kind in _WIDTHS if len(codes.dictionary) <= most)
    narrow = pa.DictionaryArray.from_arrays(codes.indices.cast(width), codes.dictionary)
    return lists_like(lists, pc.subtract(lists.offsets, first), narrow)


def spelled_lists(column: Any) -> pa.ListArray:
    """Return lists of coded texts as lists of texts."""
    lists = flat(column)
    return lists_like(lists, lists.offsets, lists.values.cast(lists.values.type.value_type))


def lists_like(lists: pa.ListArray, offsets: pa.Array, values: pa.Array) -> pa.ListArray:
    """Return lists of other values, whose field is named as that of ``lists``, and is null or not as that is."""
    return pa.ListArray.from_arrays(offsets, values, type=pa.list_(lists.type.value_field.with_type(values.type)))


def _repeat(texts: pa.Array) -> bool:
    """Whether texts are so many, and repeat so often, that codes and each text once take less room; judged by some of them."""
    if not pa.types.is_string(texts.type) or len(texts) < MANY_TEXTS.value:
        return False
    sample = texts.take(pa.array(np.arange(0, len(texts), max(1, len(texts) // _SAMPLE))))
    return expected_groups(len(sample), len(sample.unique()), len(texts)) * _FEWEST_REPEATS < len(texts)


def is_coded(column: pa.ChunkedArray) -> bool:
    """Whether a column holds each text once, chunk by chunk, as those who count codes rely on; a file may hold one twice."""
    if column.type != CODED:
        return False
    texts = [chunk.dictionary for chunk in column.chunks]
    return all(not each.null_count and pc.count_distinct(each).as_py() == len(each) for each in texts)


def are_texts(kind: pa.DataType) -> bool:
    """Whether a column of a type holds texts, coded or not."""
    return bool(pa.types.is_string(kind)) or are_coded(kind)


def spelled(table: pa.Table) -> pa.Table:
    """Return a table with texts where it has coded ones."""
    for place, field in enumerate(table.schema):
        if are_coded(field.type):
            table = table.set_column(place, field.name, table[field.name].cast(field.type.value_type))
    return table


def together(tables: Sequence[pa.Table]) -> pa.Table:
    """Return tables of the same columns as one; texts that only some of them code are spelled in all."""
    alike = all(table.schema.equals(tables[0].schema) for table in tables)
    return pa.concat_tables(tables if alike else [spelled(table) for table in tables])
