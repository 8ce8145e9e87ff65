"""Cells of text formats in the types of their columns, by Arrow: all at once, or one by one where some do not fit.

Instants that are written without a zone are those of a given zone, as Java has them.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

_ZONE_AT_END = r"(?:[zZ]|[+-]\d{2}(?::?\d{2})?)$"
_UTC = pa.timestamp("us", "UTC")
_DAY = 86_400_000_000
_DATE_WITH_ZONE = len("2024-01-01Z")  # What is no longer has no time

Misfit = tuple[int, str]  # The row of a cell that does not fit, and why


@dataclass(frozen=True)
class TypedCells:
    schema: pa.Schema  # the columns
    zone: str  # where instants are that are written without a zone

    def table(self, found: pa.Table) -> pa.Table:
        """Return what a reader of a format found, in the types of the columns."""
        return pa.table([self.column(found, field) for field in self.schema], schema=self.schema)

    def column(self, found: pa.Table, field: pa.Field) -> pa.ChunkedArray | pa.Array:
        """Return a column in its type; NULLs where there is none of its name, as from Spark's reader."""
        if field.name not in found.column_names:
            return pa.nulls(found.num_rows, field.type)
        column = found[field.name]
        if pa.types.is_timestamp(field.type):
            column = _instants(column, self.zone) if field.type.tz is not None else column
        return column.cast(field.type)

    def fitted(self, texts: pa.ChunkedArray, field: pa.Field) -> tuple[pa.ChunkedArray, list[Misfit]]:
        """Return the values of texts, NULL where one does not fit, and the misfits."""
        pieces: list[pa.Array] = []
        misfits: list[Misfit] = []
        waiting = [(0, len(texts))]
        while waiting:
            start, end = waiting.pop()
            try:
                values = self._values(texts.slice(start, end - start), field)
                pieces += values.chunks if isinstance(values, pa.ChunkedArray) else [values]
            except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
                middle = (start + end) // 2
                if end - start > 1:
                    waiting += [(middle, end), (start, middle)]
                    continue
                misfits.append((start, str(error).split("\n")[0]))
                pieces.append(pa.nulls(1, field.type))
        return pa.chunked_array(pieces, field.type), misfits

    def _values(self, texts: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray | pa.Array:
        if pa.types.is_nested(field.type):
            return pa.array([None if text is None else json.loads(text) for text in texts.to_pylist()], field.type)
        return self.column(pa.table({field.name: texts}), field)

    def json_lines(self, content: pa.Buffer) -> pa.Table:
        """Return the objects of JSON, one a line; Arrow's error where one of them does not fit."""
        from pyarrow.json import ParseOptions, read_json

        schema = pa.schema([pa.field(field.name, as_text(field.type)) for field in self.schema])
        options = ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore")
        return self.table(read_json(pa.BufferReader(content), parse_options=options))

    @property
    def nested(self) -> list[str]:
        """The columns whose cells are JSON themselves."""
        return [field.name for field in self.schema if pa.types.is_nested(field.type)]


def as_text(kind: pa.DataType) -> pa.DataType:
    """Return the type that a text format is parsed to: instants stay text, whose zone is looked at first."""
    return pa.string() if pa.types.is_timestamp(kind) else kind


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
