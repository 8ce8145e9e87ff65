"""Compact tables: Arrow IPC streams with integers, times, lists and texts in as few bytes as their values need.

A state call costs some 20 ms a megabyte, a shuffled megabyte several copies, and most 64-bit columns of partials and results hold
small counts, or one time over and over. So a column of 64-bit integers, timestamps or durations is stored as the distance from
its least value, in 8, 16 or 32 bits. Where that is asked for, lists of integers are stored so, too, and texts that repeat, in
lists and in columns, as codes with each text once.

Metadata of a field say how to read integers, so a stream without them reads as it is. Codes are known by their type, Arrow's
dictionary: no other column of a stream has codes.
"""

from __future__ import annotations

import math
from collections.abc import Container

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windowpane.arrays import NumpyArray
from windowpane.arrays.columns import flat
from windowpane.sizes import Size

_BASE = b"windowpane.base"
_FEW_ROWS = Size("rows not worth storing compactly", 64, (1, 3))  # Below so many rows there is nothing to gain
SMALL = Size("rows stored compactly by numpy", 1 << 13, (1, 4, 20))
"""So few that a call of Arrow's functions costs more than what it does."""


def to_stream(
    table: pa.Table, compression: str | None = None, *, lists: bool = False, structs: bool = False, texts: bool = False
) -> pa.Buffer:
    """Return a table as a compact Arrow IPC stream.

    Args:
        table: the table.
        compression: as Arrow names it (``lz4``, ``zstd``), ``None`` for none.
        lists: whether lists of integers and of texts may be stored compactly, too.
        structs: whether lists of structs may be, as well.
        texts: whether columns of texts that repeat may be stored with each text once.
    """
    stored = table if table.num_rows < _FEW_ROWS.value else _narrowed(table)
    stored = with_compact_lists(stored, structs) if lists or structs else stored
    stored = with_coded_texts(stored) if texts else stored
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, stored.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
        writer.write_table(stored)
    return sink.getvalue()


def from_stream(stream: bytes | memoryview | pa.Buffer, coded: Container[str] = ()) -> pa.Table:
    """Return the table that ``to_stream`` was given, coded texts spelled but for those of the columns ``coded``."""
    return with_plain_texts(with_plain_lists(_widened(pa.ipc.open_stream(stream).read_all())), coded)


def _narrowed(table: pa.Table) -> pa.Table:
    fields, columns = [], []
    for field, column in zip(table.schema, table.columns, strict=True):
        found = _narrow(column) if field.type in _NAMES else None
        if found is not None:
            base, column = found
            field = pa.field(field.name, column.type, metadata={_BASE: f"{base} {_NAMES[field.type]}".encode()})
        fields.append(field)
        columns.append(column)
    return pa.table(columns, schema=pa.schema(fields, table.schema.metadata))


def _narrow(column: pa.ChunkedArray) -> tuple[int, pa.Array | pa.ChunkedArray] | None:
    """Return the least value and the distances from it, ``None`` if they take 64 bits all the same."""
    numbers = _whole(column)
    if numbers is None:
        return distances(column.cast(pa.int64()))
    least, greatest = int(numbers.min()), int(numbers.max())
    kind = distance_type(greatest - least)
    return None if kind is None else (least, pa.array((numbers - least).astype(kind.to_pandas_dtype())))


def _whole(column: pa.ChunkedArray) -> NumpyArray | None:
    """Return a column of few rows as numpy sees it, ``None`` for others."""
    if column.null_count or column.num_chunks != 1 or len(column) > SMALL.value:
        return None
    values = column.chunk(0)
    numbers: NumpyArray = (values if pa.types.is_integer(values.type) else values.view(pa.int64())).to_numpy()
    return numbers


def _widened(table: pa.Table) -> pa.Table:
    if not any(field.metadata and _BASE in field.metadata for field in table.schema):
        return table
    fields, columns = [], []
    for field, column in zip(table.schema, table.columns, strict=True):
        if field.metadata and _BASE in field.metadata:
            base, _, name = field.metadata[_BASE].decode().partition(" ")
            kind = _TYPES[name]
            column = _widen(column, int(base), kind)
            field = pa.field(field.name, kind)
        fields.append(field)
        columns.append(column)
    return pa.table(columns, schema=pa.schema(fields, table.schema.metadata))


def _widen(column: pa.ChunkedArray, base: int, kind: pa.DataType) -> pa.Array | pa.ChunkedArray:
    distances = _whole(column)
    if distances is None:
        numbers = column.cast(pa.int64())
        return (numbers if base == 0 else pc.add(numbers, base)).cast(kind)
    return pa.array(np.add(distances, base, dtype=np.int64)).view(kind)


_UNITS = ("s", "ms", "us", "ns")
_TYPES = {
    "int64": pa.int64(),
    **{f"timestamp {unit}": pa.timestamp(unit) for unit in _UNITS},
    **{f"timestamp {unit} UTC": pa.timestamp(unit, "UTC") for unit in _UNITS},
    **{f"duration {unit}": pa.duration(unit) for unit in _UNITS},
}
_NAMES = {kind: name for name, kind in _TYPES.items()}


# Distances: 64-bit integers as what they are above the least of them.

_STORED = ((2**8, pa.uint8()), (2**16, pa.uint16()), (2**32, pa.uint32()))


def distances(numbers: pa.ChunkedArray) -> tuple[int, pa.ChunkedArray] | None:
    """Return the least of 64-bit integers and the distances from it, ``None`` if they take 64 bits all the same.

    Example:
        >>> least, found = distances(pa.chunked_array([[2**40, 2**40 + 200]]))
        >>> least == 2**40, found.type, found.to_pylist()
        (True, DataType(uint8), [0, 200])
    """
    bounds = pc.min_max(numbers)
    least, greatest = bounds["min"].as_py(), bounds["max"].as_py()
    kind = None if least is None else distance_type(greatest - least)
    if kind is None:
        return None
    found = numbers if least == 0 else pc.subtract(numbers, least)
    return least, found.cast(kind, safe=False)


def distance_type(span: int) -> pa.DataType | None:
    """Return the narrowest type that holds distances up to ``span``, ``None`` if they take 64 bits."""
    return next((kind for count, kind in _STORED if span < count), None)


# Lists of 64-bit integers as distances, of texts that repeat as codes.

_LIST_BASE = b"windowpane.base_of_lists"
_BASES = b"windowpane.bases_of_structs"  # The place of a field of the structs and its least value, of each that has distances


def with_compact_lists(table: pa.Table, structs: bool = False) -> pa.Table:
    """Return a table whose lists of integers and of texts are compact where that saves bytes; texts may be coded already."""
    for place, field in enumerate(table.schema):
        is_meant = pa.types.is_list(field.type) and (structs or not pa.types.is_struct(field.type.value_type))
        found = _compact(field, _flat(table[field.name])) if is_meant else None
        if found is not None:
            table = table.set_column(place, *found)
    return table


def with_plain_lists(table: pa.Table) -> pa.Table:
    for place, field in enumerate(table.schema):
        if pa.types.is_list(field.type) and pa.types.is_dictionary(field.type.value_type):
            lists = _flat(table[field.name])
            texts = lists.values.cast(lists.values.type.value_type)
            table = table.set_column(place, field.name, _like(lists, lists.offsets, texts))
        elif field.metadata and _BASES in field.metadata:
            table = table.set_column(place, field.name, _plain_structs(_flat(table[field.name]), field.metadata[_BASES]))
        elif field.metadata and _LIST_BASE in field.metadata:
            lists = _flat(table[field.name])
            numbers = pc.add(lists.values.cast(pa.int64()), int(field.metadata[_LIST_BASE]))
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
        return pa.field(field.name, made.type, metadata={_LIST_BASE: str(narrow[0]).encode()}), made
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


def _flat(column: object) -> pa.ListArray:
    """Return lists as one array; here offsets are read, so a slice needs no copy."""
    if not isinstance(column, pa.ChunkedArray):
        return column
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


# Texts that repeat as each text once, and a number a row.

_WIDTHS = ((1 << 8, pa.uint8()), (1 << 16, pa.uint16()), (1 << 31, pa.int32()))
MANY_TEXTS = Size("texts worth coding", 1 << 12, (2, 20))
_SAMPLE = 1 << 12
_FEWEST_REPEATS = 4  # Coding a text takes as long as compressing one of 30 letters, and as much room as four where none repeats


def with_coded_texts(table: pa.Table) -> pa.Table:
    """Return a table with codes in place of the texts of each column where they repeat; texts may be coded already."""
    for place, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type) or pa.types.is_string(field.type):
            texts = flat(table[field.name])
            is_coded = pa.types.is_dictionary(texts.type)
            if is_coded and len(texts) < max(MANY_TEXTS.value, _FEWEST_REPEATS * len(texts.dictionary)):
                texts = texts.cast(texts.type.value_type)  # texts of other rows are most of what is coded
            codes = coded_texts(texts) if pa.types.is_dictionary(texts.type) or texts_repeat(texts) else texts
            table = table.set_column(place, field.with_type(codes.type), codes)
    return table


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
