"""Cells of text formats in the types of their columns, by Arrow: all at once, or one by one where some do not fit.

Instants that are written without a zone are those of a given zone, as Java has them.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windowpane.arrays.columns import flat
from windowpane.malformed import json_cell, json_value

_ZONE_AT_END = r"(?:[zZ]|[+-]\d{2}(?::?\d{2})?)$"
_UTC = pa.timestamp("us", "UTC")
_DAY = 86_400_000_000
_DATE_WITH_ZONE = len("2024-01-01Z")  # What is no longer has no time

_BLOCK = 8 << 20  # Bytes that are parsed at a time, of which a line may be no longer

MISFITS = (pa.ArrowException, TypeError, ValueError, OverflowError)
"""What Arrow raises for a value that is not of a type."""
Misfit = tuple[int, str]  # The row of a cell that does not fit, and why


@dataclass(frozen=True)
class TypedCells:
    schema: pa.Schema  # the columns
    zone: str  # where instants are that are written without a zone
    of_json: bool = True  # whether bytes are written in base64, as Spark and Flink have them in JSON

    def table(self, found: pa.Table) -> pa.Table:
        """Return what a reader of a format found, in the types of the columns."""
        return pa.table([self.column(found, field) for field in self.schema], schema=self.schema)

    def column(self, found: pa.Table, field: pa.Field) -> pa.ChunkedArray | pa.Array:
        """Return a column in its type; NULLs where there is none of its name, as from Spark's reader."""
        if field.name not in found.column_names:
            return pa.nulls(found.num_rows, field.type)
        return self._cast(found[field.name], field.type)

    def _cast(self, column: pa.ChunkedArray | pa.Array, kind: pa.DataType) -> pa.ChunkedArray | pa.Array:
        """Return texts in their type, those within nested values, too."""
        if pa.types.is_nested(kind) and column.type != kind:
            return self._cast_within(flat(column), kind)
        if pa.types.is_timestamp(kind):
            column = _instants(column, self.zone) if kind.tz is not None else column
        if self.of_json and _is_bytes(kind):
            return pa.array([None if text is None else b64decode(text, validate=True) for text in column.to_pylist()], kind)
        return column.cast(kind)

    def _cast_within(self, column: pa.Array, kind: pa.DataType) -> pa.Array:
        if pa.types.is_struct(kind):
            parts = [flat(self._cast(part, field.type)) for part, field in zip(column.flatten(), kind, strict=True)]
            return pa.StructArray.from_arrays(parts, fields=list(kind), mask=column.is_null())
        if not pa.types.is_list(kind):
            raise pa.ArrowNotImplementedError(f"{kind} is not read at once")
        lengths = pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False)
        values = flat(self._cast(column.flatten(), kind.value_type))
        return pa.ListArray.from_arrays(_offsets(lengths), values, type=kind, mask=column.is_null())

    def fitted(self, texts: pa.ChunkedArray, field: pa.Field) -> tuple[pa.ChunkedArray, list[Misfit]]:
        """Return the values of texts, NULL where one does not fit, and the misfits."""
        if pa.types.is_nested(field.type):
            return self._fitted_nested(texts, field.type)
        pieces: list[pa.Array] = []
        misfits: list[Misfit] = []
        waiting = [(0, len(texts))]
        while waiting:
            start, end = waiting.pop()
            try:
                values = self.column(pa.table({field.name: texts.slice(start, end - start)}), field)
                pieces += values.chunks if isinstance(values, pa.ChunkedArray) else [values]
            except MISFITS as error:
                middle = (start + end) // 2
                if end - start > 1:
                    waiting += [(middle, end), (start, middle)]
                    continue
                misfits.append((start, str(error).split("\n")[0]))
                pieces.append(pa.nulls(1, field.type))
        return pa.chunked_array(pieces, field.type), misfits

    def _fitted_nested(self, texts: pa.ChunkedArray, kind: pa.DataType) -> tuple[pa.ChunkedArray, list[Misfit]]:
        values = [None if text is None else json_value(text) for text in texts.to_pylist()]
        array, misfits = self._shaped(values, kind)
        if misfits:
            array, _ = self._shaped([None if row in misfits else value for row, value in enumerate(values)], kind)
        return pa.chunked_array([array], kind), sorted(misfits.items())

    def _shaped(self, values: Sequence[Any], kind: pa.DataType) -> tuple[pa.Array, dict[int, str]]:
        """Return values of JSON as an array, and by row why one does not fit: what is within them is read as columns are."""
        if not pa.types.is_nested(kind):
            texts = pa.chunked_array([[json_cell(value) for value in values]], pa.string())
            column, misfits = self.fitted(texts, pa.field("", kind))
            return flat(column), dict(misfits)
        word, shape = ("array", list) if pa.types.is_list(kind) else ("object", dict)
        fits = [isinstance(value, shape) for value in values]
        odd = {row: f"it is no {word}" for row, value in enumerate(values) if value is not None and not fits[row]}
        held = [value if fit else shape() for value, fit in zip(values, fits, strict=True)]
        mask = pa.array([not fit for fit in fits], pa.bool_())
        if pa.types.is_struct(kind):
            parts = [self._shaped([value.get(field.name) for value in held], field.type) for field in kind]
            array = pa.StructArray.from_arrays([part for part, _ in parts], fields=list(kind), mask=mask)
            return array, {row: why for _, found in parts for row, why in found.items()} | odd
        rows, offsets = [row for row, value in enumerate(held) for _ in value], _offsets([len(value) for value in held])
        if pa.types.is_list(kind):
            items, found = self._shaped([each for value in held for each in value], kind.value_type)
            array = pa.ListArray.from_arrays(offsets, items, type=kind, mask=mask)
            return array, {rows[at]: why for at, why in found.items()} | odd
        keys, of_keys = self._shaped([key for value in held for key in value], kind.key_type)
        items, found = self._shaped([each for value in held for each in value.values()], kind.item_type)
        array = pc.if_else(mask, pa.scalar(None, kind), pa.MapArray.from_arrays(offsets, keys, items).cast(kind))
        return array, {rows[at]: why for at, why in (of_keys | found).items()} | odd

    def json_lines(self, content: pa.Buffer) -> pa.Table:
        """Return the objects of JSON, one a line; Arrow's error where one of them does not fit."""
        return self.table(parsed_lines(content, pa.schema([pa.field(field.name, as_text(field.type)) for field in self.schema])))

    @property
    def nested(self) -> list[str]:
        """The columns whose cells are JSON themselves."""
        return [field.name for field in self.schema if pa.types.is_nested(field.type)]


def parsed_lines(content: pa.Buffer | bytes, schema: pa.Schema) -> pa.Table:
    """Return the columns of objects of JSON, one a line, as Arrow parses them.

    Raises:
        pa.ArrowException: a line is no object, or a value is not of its type.
        ValueError: it is not UTF-8.
    """
    from pyarrow.json import ParseOptions, ReadOptions, read_json

    str(content, "utf-8")
    options = ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore")
    return read_json(pa.BufferReader(content), ReadOptions(block_size=_BLOCK), options)


def _offsets(lengths: Sequence[int]) -> pa.Array:
    return pa.array(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32))


def as_text(kind: pa.DataType) -> pa.DataType:
    """Return the type that a text format is parsed to: instants, whose zone is looked at first, dates and bytes stay text.

    Raises:
        pa.ArrowNotImplementedError: Arrow does not parse an object as a map.
    """
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(as_text(field.type)) for field in kind])
    if pa.types.is_map(kind):
        raise pa.ArrowNotImplementedError(f"{kind} is not read at once")
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(as_text(kind.value_type)))
    return pa.string() if pa.types.is_timestamp(kind) or pa.types.is_date(kind) or _is_bytes(kind) else kind


def _is_bytes(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind))


def _instants(column: pa.ChunkedArray, zone: str) -> pa.ChunkedArray:
    """Return instants of texts or of wall times; those without a zone are in ``zone``."""
    if pa.types.is_timestamp(column.type):
        return column if column.type.tz is not None else _in_zone(column, zone)
    if pc.all(pc.ends_with(column, "Z")).as_py() and pc.min(pc.binary_length(column)).as_py() > _DATE_WITH_ZONE:
        with suppress(pa.ArrowInvalid):
            return column.cast(_UTC)
    zoned = pc.and_(pc.match_substring_regex(column, _ZONE_AT_END), pc.match_substring(column, ":"))
    if not pc.any(zoned).as_py():
        return _in_zone(column.cast(pa.timestamp("us")), zone)
    instants = pc.if_else(zoned, column, None).cast(_UTC)
    walls = _in_zone(pc.if_else(zoned, None, column).cast(pa.timestamp("us")), zone)
    return pc.coalesce(instants, walls.cast(instants.type))


def _in_zone(walls: pa.ChunkedArray, zone: str) -> pa.ChunkedArray:
    """Return the instants of wall times as Java has them: of two the earlier; one that is skipped moves on by what is skipped."""
    first = pc.assume_timezone(walls, zone, ambiguous="earliest", nonexistent="earliest")
    last = pc.assume_timezone(walls, zone, ambiguous="earliest", nonexistent="latest")
    if first.equals(last):
        return first
    gap = pa.scalar(_DAY, pa.duration("us"))
    before = pc.subtract(walls, gap)
    moved = pc.add(pc.assume_timezone(before, zone, ambiguous="earliest", nonexistent="earliest"), gap)
    return pc.if_else(pc.equal(first, last), first, moved)
