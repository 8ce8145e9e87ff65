"""Coded texts: columns of texts that repeat as each text once, and a number a row.

Codes are known by their type, Arrow's dictionary: no other column of a stream has codes.
"""

from __future__ import annotations

import math
from collections.abc import Container

import numpy as np
import pyarrow as pa

from windowpane.arrays.columns import flat
from windowpane.sizes import Size

_WIDTHS = ((1 << 8, pa.uint8()), (1 << 16, pa.uint16()), (1 << 31, pa.int32()))
MANY_TEXTS = Size("texts worth coding", 1 << 12, (2, 20))
_SAMPLE = 1 << 12
_FEWEST_REPEATS = 4
"""Coding a text takes as long as compressing one of 30 letters, and as much room as four where none repeats."""


def with_coded_texts(table: pa.Table) -> pa.Table:
    """Return a table with codes in place of the texts of each column where they repeat; texts may be coded already."""
    for place, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type) or pa.types.is_string(field.type):
            texts = _worth_their_room(flat(table[field.name]))
            codes = coded_texts(texts) if pa.types.is_dictionary(texts.type) or texts_repeat(texts) else texts
            table = table.set_column(place, field.with_type(codes.type), codes)
    return table


def _worth_their_room(texts: pa.Array) -> pa.Array:
    """Return texts spelled where they are coded and so few rows that the texts of other rows are most of it."""
    if pa.types.is_dictionary(texts.type) and len(texts) < max(MANY_TEXTS.value, _FEWEST_REPEATS * len(texts.dictionary)):
        return texts.cast(texts.type.value_type)
    return texts


def with_plain_texts(table: pa.Table, but: Container[str] = ()) -> pa.Table:
    """Return a table with texts where it has coded ones, ``but`` for those columns, which stay as they are."""
    for place, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type) and field.name not in but:
            texts = table[field.name].cast(field.type.value_type)
            table = table.set_column(place, field.with_type(texts.type), texts)
    return table


def coded_texts(texts: pa.Array) -> pa.DictionaryArray:
    """Return texts, which may be coded already, as codes that are as narrow as they can be."""
    codes = texts if pa.types.is_dictionary(texts.type) else texts.dictionary_encode()
    width = next(kind for most, kind in _WIDTHS if len(codes.dictionary) <= most)
    return pa.DictionaryArray.from_arrays(codes.indices.cast(width), codes.dictionary)


def texts_repeat(texts: pa.Array) -> bool:
    """Whether texts are so many, and repeat so often, that codes and each text once take less room; estimated from a sample."""
    if len(texts) < MANY_TEXTS.value:
        return False
    sample = texts.take(pa.array(np.arange(0, len(texts), max(1, len(texts) // _SAMPLE))))
    most = len(texts) / _FEWEST_REPEATS
    # So many rows meet so many of that many texts, if those are equally frequent.
    return len(sample.unique()) < -most * math.expm1(-len(sample) / most)
