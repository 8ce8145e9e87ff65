"""The form of a page of rows as bytes: integers in few bytes, columns that stay the same for a while once for each run of rows.

Body: a byte that says whether the page is compact, then

    else:    its length in bytes, and a record batch of the rows, in LZ4
    compact: the runs, if columns repeat (how many rows each has, and their values), then the rows with the other columns, each as
    | bytes of an integer, a byte a column; 0: as it is | least value of each narrowed column | lengths | record batch in LZ4 |

A column of 64-bit integers, instants or durations is stored as the distance from the least value of the rows that are written
together, in 1, 2 or 4 bytes. Pages take half the bytes or less; Spark's state calls spend more on a byte than all that is done
here. Small pages are not compact: each would take longer to write and read than it saves.

Nothing here mutates state or needs recovery.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from windowpane.arrays import Integers, Mask
from windowpane.errors import UnreadableStateError
from windowpane.kernels.keys.codes import written_differently
from windowpane.sizes import Size
from windowpane.state.codec import frame, unframe
from windowpane.state.compact import distance_type

_KIND = "row-pages-page"
_HEAD = frame(_KIND, b"")
_FLAT, _COMPACT = 0, 1
_CODEC = pa.Codec("lz4")
_LENGTH = 8
_LENGTHS = struct.Struct(">QQ")
_NARROW = {1: pa.uint8(), 2: pa.uint16(), 4: pa.uint32()}
FEW_ROWS = Size("rows of a page that is not worth being compact", 1000, (1, 4))
"""Pages of fewer rows are not compact."""


@dataclass(frozen=True)
class PageRows:
    columns: list[pa.Array]  # those that each row has
    counts: Integers  # how many rows each run has; empty where no columns repeat
    repeated: list[pa.Array]  # the columns that repeat, a value a run
    num_rows: int  # how many rows there are


@dataclass(frozen=True)
class PageForm:
    schema: pa.Schema  # of the rows
    runs: int = 0  # of how many first columns of it each run of rows has one value

    @property
    def repeated(self) -> pa.Schema:
        return pa.schema(list(self.schema)[: self.runs])

    def from_blob(self, blob: bytes) -> PageRows:
        if not blob.startswith(_HEAD):
            unframe(_KIND, blob)
        try:
            return self._read(memoryview(blob)[len(_HEAD) :])
        except (pa.ArrowException, OSError, ValueError, IndexError, KeyError, struct.error) as cause:
            raise UnreadableStateError(
                f"a state blob of kind {_KIND!r} is damaged: {cause}; restart from an intact checkpoint"
            ) from cause

    def padded(self, page: PageRows, columns: pa.Schema) -> PageRows:
        """Return rows that have these columns, with all of the form; those that they lack are NULL."""
        held = dict(zip(columns.names[self.runs :], page.columns, strict=True))
        every = [held.get(field.name, pa.nulls(page.num_rows, field.type)) for field in list(self.schema)[self.runs :]]
        return PageRows(every, page.counts, page.repeated, page.num_rows)

    def table(self, pages: Sequence[PageRows]) -> pa.Table:
        if not pages:
            return self.schema.empty_table()
        columns = [pa.concat_arrays(parts) for parts in zip(*(page.columns for page in pages), strict=True)]
        if not self.runs:
            return pa.table(columns, schema=self.schema)
        counts = np.concatenate([page.counts for page in pages])
        repeated = [pa.concat_arrays(parts) for parts in zip(*(page.repeated for page in pages), strict=True)]
        return pa.table([*_spread(repeated, counts), *columns], schema=self.schema)

    def _read(self, body: memoryview) -> PageRows:
        if body[0] == _FLAT:
            batch = _CODEC.decompress(body[1 + _LENGTH :], int.from_bytes(body[1 : 1 + _LENGTH], "big"))
            return self._flat(pa.ipc.read_record_batch(batch, self.schema).columns)
        if body[0] != _COMPACT:
            raise ValueError(f"{body[0]} is no form of a page")
        fields = list(self.schema)
        counts, repeated, at = np.empty(0, np.int64), list[pa.Array](), 1
        if self.runs:
            (lengths, *repeated), at = _unpacked(body, [pa.field("", pa.int64()), *fields[: self.runs]], at)
            counts = lengths.to_numpy()
        columns, _ = _unpacked(body, fields[self.runs :], at)
        return PageRows(columns, counts, repeated, len(columns[0]))

    def _flat(self, columns: Sequence[pa.Array]) -> PageRows:
        rows = len(columns[0])
        counts = np.ones(rows if self.runs else 0, np.int64)
        return PageRows(list(columns[self.runs :]), counts, list(columns[: self.runs]), rows)


def _spread(columns: Sequence[pa.Array], counts: Integers) -> list[pa.Array]:
    """Return columns of a value a run as columns of a value a row, given how many rows each run has."""
    run = pa.array(np.repeat(np.arange(len(counts)), counts))
    return [column.take(run) for column in columns]


def run_firsts(starts: Mask, repeated: pa.Schema, column: Callable[[str], pa.Array]) -> Integers:
    """Return the first row of each run: where a partition starts, and where a value is written otherwise, as -0.0 is and 0.0."""
    for field in repeated:
        if pa.types.is_floating(field.type):
            values = column(field.name)
            starts[1:] |= written_differently(values[1:], values[:-1])
    return np.flatnonzero(starts)


@dataclass(frozen=True)
class PageWriter:
    """Makes pages of rows."""

    form: PageForm
    columns: Sequence[pa.Array]  # those of the rows that are cut into pages, in order, but for those that repeat
    firsts: Integers  # the first row of each run, if columns repeat
    repeated: Sequence[pa.Array]  # the columns that repeat, a value a run

    @cached_property
    def _narrowed(self) -> _Narrowed:
        return _Narrowed.of(self.columns)

    @cached_property
    def _whole(self) -> pa.RecordBatch:
        counts = np.diff(self.firsts, append=len(self.columns[0]))
        repeated = _spread(self.repeated, counts) if self.repeated else []
        return pa.RecordBatch.from_arrays([*repeated, *self.columns], schema=self.form.schema)

    def blob(self, low: int, high: int) -> bytes:
        if high - low < FEW_ROWS.value:
            batch = self._whole.slice(low, high - low).serialize()
            body = _CODEC.compress(batch, asbytes=True)
            return b"".join([_HEAD, bytes([_FLAT]), batch.size.to_bytes(_LENGTH, "big"), body])
        parts = [_HEAD, bytes([_COMPACT])]
        if self.form.runs:
            first = int(np.searchsorted(self.firsts, low, side="right")) - 1
            end = int(np.searchsorted(self.firsts, high))
            counts = np.diff(np.append(np.maximum(self.firsts[first:end], low), high))
            repeated = [pa.array(counts), *(column.slice(first, end - first) for column in self.repeated)]
            parts += _Narrowed.none(repeated).packed(0, end - first)
        return b"".join([*parts, *self._narrowed.packed(low, high)])


@dataclass(frozen=True)
class _Narrowed:
    """Columns as they are stored: how many bytes the integers of each have, 0 for a column as it is, and their least values."""

    columns: Sequence[pa.Array]
    widths: bytes
    least: bytes

    @classmethod
    def none(cls, columns: Sequence[pa.Array]) -> _Narrowed:
        return cls(columns, bytes(len(columns)), b"")

    @classmethod
    def of(cls, columns: Sequence[pa.Array]) -> _Narrowed:
        found = [_narrowed(column) if _is_wide(column.type) else (None, column) for column in columns]
        widths = bytes(0 if least is None else column.type.bit_width // 8 for least, column in found)
        return cls(
            [column for _, column in found],
            widths,
            np.array([least for least, _ in found if least is not None], np.int64).tobytes(),
        )

    def packed(self, low: int, high: int) -> list[bytes]:
        names = [""] * len(self.columns)
        body = pa.RecordBatch.from_arrays([column.slice(low, high - low) for column in self.columns], names).serialize()
        compressed = _CODEC.compress(body, asbytes=True)
        return [self.widths, self.least, _LENGTHS.pack(body.size, len(compressed)), compressed]


def _unpacked(body: memoryview, fields: Sequence[pa.Field], start: int = 0) -> tuple[list[pa.Array], int]:
    at = start + len(fields)
    widths = list(body[start:at])
    least = np.frombuffer(body, np.int64, sum(map(bool, widths)), at).tolist()
    at += 8 * len(least)
    size, length = _LENGTHS.unpack_from(body, at)
    at += _LENGTHS.size
    kinds = [_NARROW[width] if width else field.type for width, field in zip(widths, fields, strict=True)]
    schema = pa.schema([pa.field(str(number), kind) for number, kind in enumerate(kinds)])
    columns = pa.ipc.read_record_batch(_CODEC.decompress(pa.py_buffer(body[at : at + length]), size), schema).columns
    for number in [number for number, width in enumerate(widths) if width]:
        columns[number] = _widened(columns[number], least.pop(0), fields[number].type)
    return columns, at + length


def _is_wide(kind: pa.DataType) -> bool:
    return bool(kind == pa.int64() or pa.types.is_timestamp(kind) or pa.types.is_duration(kind))


def _narrowed(column: pa.Array) -> tuple[int | None, pa.Array]:
    """Return the least value and the distances from it; no least value and the column if they take 64 bits all the same."""
    values: Integers = np.frombuffer(column.buffers()[1], np.int64, len(column), 8 * column.offset)
    nulls = None
    if column.null_count:
        nulls = column.is_null().to_numpy(zero_copy_only=False)
        values = np.where(nulls, values[~nulls][0] if column.null_count < len(column) else 0, values)
    least, greatest = int(values.min()), int(values.max())
    kind = distance_type(greatest - least)
    return (None, column) if kind is None else (least, pa.array((values - least).astype(kind.to_pandas_dtype()), mask=nulls))


def _widened(column: pa.Array, least: int, kind: pa.DataType) -> pa.Array:
    valid, data = column.buffers()
    values = np.add(np.frombuffer(data, f"u{column.type.bit_width // 8}", len(column)), least, dtype=np.int64)
    return pa.Array.from_buffers(kind, len(column), [valid, pa.py_buffer(values)], column.null_count)
