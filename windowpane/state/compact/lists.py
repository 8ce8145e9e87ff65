"""Compact lists: of 64-bit integers as distances from the least, of texts that repeat as codes and each text once.

Lists of integers, and of structs that have some, are marked in the metadata of their field, codes by their type: no other column
of a stream has codes.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from windowpane.state.compact.distances import distances
from windowpane.state.compact.texts import coded_texts, texts_repeat

_BASE = b"windowpane.base_of_lists"
_BASES = b"windowpane.bases_of_structs"
"""The place of a field of the structs and its least value, of each that has distances."""


def with_compact_lists(table: pa.Table, structs: bool = False) -> pa.Table:
    """Return a table whose lists of integers and of texts are compact where that saves bytes; texts may be coded already."""
    for place, field in enumerate(table.schema):
        is_meant = pa.types.is_list(field.type) and (structs or not pa.types.is_struct(field.type.value_type))
        found = _compact(field, _flat(table[field.name])) if is_meant else None
        if found is not None:
            table = table.set_column(place, *found)
    return table


def with_plain_lists(table: pa.Table) -> pa.Table:
    """Return the table that ``with_compact_lists`` was given, coded texts spelled."""
    for place, field in enumerate(table.schema):
        if pa.types.is_list(field.type) and pa.types.is_dictionary(field.type.value_type):
            lists = _flat(table[field.name])
            texts = lists.values.cast(lists.values.type.value_type)
            table = table.set_column(place, field.name, _like(lists, lists.offsets, texts))
        elif field.metadata and _BASES in field.metadata:
            table = table.set_column(place, field.name, _plain_structs(_flat(table[field.name]), field.metadata[_BASES]))
        elif field.metadata and _BASE in field.metadata:
            lists = _flat(table[field.name])
            numbers = pc.add(lists.values.cast(pa.int64()), int(field.metadata[_BASE]))
            table = table.set_column(place, field.name, _like(lists, lists.offsets, numbers))
    return table


def _compact(field: pa.Field, lists: pa.ListArray) -> tuple[pa.Field, pa.ListArray] | None:
    kind = field.type.value_type
    if lists.null_count:
        return None
    first, last = lists.offsets[0].as_py(), lists.offsets[-1].as_py()
    values, offsets = lists.values.slice(first, last - first), pc.subtract(lists.offsets, first)
    if pa.types.is_struct(kind):
        return None if values.null_count else _compact_structs(field, lists, offsets, values)
    if kind == pa.int64():
        narrow = distances(pa.chunked_array([values]))
        if narrow is None:
            return None
        made = _like(lists, offsets, _flat(narrow[1]))
        return pa.field(field.name, made.type, metadata={_BASE: str(narrow[0]).encode()}), made
    codes = _codes(values) if pa.types.is_string(kind) or pa.types.is_dictionary(kind) else None
    if codes is None:
        return None
    made = _like(lists, offsets, codes)
    return field.with_type(made.type), made


def _compact_structs(
    field: pa.Field, lists: pa.ListArray, offsets: pa.Array, values: pa.StructArray
) -> tuple[pa.Field, pa.ListArray] | None:
    """Return lists of structs with the integers of each as distances, ``None`` where all take 64 bits."""
    fields, columns, bases = list(values.type), values.flatten(), []
    for place, column in enumerate(columns):
        narrow = distances(pa.chunked_array([column])) if column.type == pa.int64() else None
        if narrow is not None:
            bases.append(f"{place}:{narrow[0]}")
            columns[place] = _flat(narrow[1])
            fields[place] = fields[place].with_type(columns[place].type)
    if not bases:
        return None
    made = _like(lists, offsets, pa.StructArray.from_arrays(columns, fields=fields))
    return pa.field(field.name, made.type, metadata={_BASES: " ".join(bases).encode()}), made


def _plain_structs(lists: pa.ListArray, bases: bytes) -> pa.ListArray:
    fields, columns = list(lists.type.value_type), lists.values.flatten()
    for place, base in (map(int, each.split(":")) for each in bases.decode().split()):
        columns[place] = pc.add(columns[place].cast(pa.int64()), base)
        fields[place] = fields[place].with_type(pa.int64())
    return _like(lists, lists.offsets, pa.StructArray.from_arrays(columns, fields=fields))


def _codes(texts: pa.Array) -> pa.DictionaryArray | None:
    """Return texts as codes that are as narrow as they can be, ``None`` where those would not be fewer bytes."""
    is_coded = pa.types.is_dictionary(texts.type)
    return coded_texts(texts) if is_coded or texts_repeat(texts) else None


def _like(lists: pa.ListArray, offsets: pa.Array, values: pa.Array) -> pa.ListArray:
    """Return lists of other values, whose field is named as that of ``lists``, and is null or not as that is."""
    return pa.ListArray.from_arrays(offsets, values, type=pa.list_(lists.type.value_field.with_type(values.type)))


def _flat(column: Any) -> pa.ListArray:
    """Return lists as one array; here offsets are read, so a slice needs no copy."""
    if not isinstance(column, pa.ChunkedArray):
        return column
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
