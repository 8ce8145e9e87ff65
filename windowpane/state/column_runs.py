"""Runs of rows in state, column by column: rows of one key and window that arrived together, as functions get them.

Layout of a run, pickled: ``ColumnRun(length, names, columns, times)``. A column is a tuple, by its first item::

    "=" value                       the same value in every row
    "i" least dtype bytes           integers, as distances from the least of the batch, in as few bytes as those need
    "d" least dtype bytes           dates, so, in days since 1970
    "t" least dtype bytes zone      timestamps, so, in microseconds since 1970; the zone is that of the column's type, or None
    "f" dtype bytes                 floats
    "D" texts                       decimals
    "v" values                      Python values

``times`` are the event times of the rows, an ``"i"`` column, or ``None`` where nobody reads them. A run never changes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal

import numpy as np
import pyarrow as pa

from windowpane.arrays import Integers, NumpyArray
from windowpane.arrays.python_values import calendar_numbers, days_at, instants_at, python_rows, python_values, zone_of
from windowpane.arrays.values import Value
from windowpane.errors import MistakeError

_Stored = tuple[Value, ...]


class ColumnRun:
    """Rows of a run, which are made anew whenever they are read."""

    __slots__ = ("_columns", "_length", "_names", "_times")

    def __init__(self, length: int, names: tuple[str, ...], columns: tuple[_Stored, ...], times: _Stored | None) -> None:
        self._length, self._names, self._columns, self._times = length, names, columns, times

    def __reduce__(self) -> tuple[type[ColumnRun], tuple[Value, ...]]:
        return ColumnRun, (self._length, self._names, self._columns, self._times)

    def padded(self, names: Sequence[str]) -> ColumnRun:
        held = dict(zip(self._names, self._columns, strict=True))
        columns = tuple(held.get(name, ("=", None)) for name in names)
        return ColumnRun(self._length, tuple(names), columns, self._times)

    @property
    def values(self) -> list[dict[str, Value]]:
        return python_rows(self._names, [_read(column, self._length) for column in self._columns], self._length)

    @property
    def timestamps(self) -> list[int]:
        if self._times is None:
            raise MistakeError("they are kept for an evictor")
        return _read(self._times, self._length)


def _read(column: _Stored, length: int) -> list[Value]:
    form, *parts = column
    if form == "=":
        return parts * length
    if form == "v":
        return list(parts[0])
    if form == "D":
        return list(map(Decimal, parts[0]))
    if form == "f":
        floats: list[Value] = np.frombuffer(parts[1], parts[0]).tolist()
        return floats
    least, distances = parts[0], np.frombuffer(parts[2], parts[1])
    if form == "i":
        numbers: list[Value] = (distances.astype(np.int64) + least if least else distances).tolist()
        return numbers
    return days_at(distances, least) if form == "d" else instants_at(distances, least, zone_of(parts[3]))


_Column = Callable[[int, int], _Stored]
"""A column of the rows of a batch, run after run: from where to where -> these rows of it as they are stored."""


def _alike(values: Sequence[Value]) -> _Column:
    """Return a column that has one value in each run."""
    return lambda start, end: ("=", values[start])


def _numbers(head: _Stored, values: NumpyArray, tail: _Stored = ()) -> _Column:
    """Return a column as an array; ``head`` is stored before it, ``tail`` behind it."""

    def part(start: int, end: int) -> _Stored:
        piece = values[start:end]
        return (*head, piece.dtype.str, piece.tobytes(), *tail)

    return part


def _objects(form: str, values: list[Value]) -> _Column:
    return lambda start, end: (form, values[start:end])


class BatchColumns:
    def __init__(self, rows: pa.Table, order: Integers, starts: Integers, times: Integers | None) -> None:
        firsts = np.repeat(starts, np.diff(starts, append=len(order)))
        self._names = tuple(rows.column_names)
        self._columns = [_column(column, order, firsts) for column in rows.columns]
        self._times = None if times is None else _distances("i", times[order])

    def run(self, start: int, end: int) -> ColumnRun:
        columns = tuple([column(start, end) for column in self._columns])
        times = None if self._times is None else self._times(start, end)
        return ColumnRun(end - start, self._names, columns, times)


def _column(column: pa.ChunkedArray, order: Integers, firsts: Integers) -> _Column:
    """Return a column in order; ``firsts`` are the places of the first rows of each row's run."""
    kind = column.type
    if not column.null_count:
        if pa.types.is_signed_integer(kind):
            numbers = column.cast(pa.int64()).to_numpy()[order]
            return _alike(numbers.tolist()) if _are_alike(numbers, firsts) else _distances("i", numbers)
        if pa.types.is_float32(kind) or pa.types.is_float64(kind):
            return _numbers(("f",), column.to_numpy()[order])
        counted = calendar_numbers(column)
        if counted is not None:
            return _distances("d", counted[order]) if pa.types.is_date32(kind) else _distances("t", counted[order], (kind.tz,))
    taken = column.take(pa.array(order))
    if pa.types.is_decimal128(kind) and not column.null_count:
        return _objects("D", taken.cast(pa.string()).to_pylist())
    if pa.types.is_string(kind):
        return _texts(taken, firsts)
    return _objects("v", python_values(taken))


def _texts(column: pa.ChunkedArray, firsts: Integers) -> _Column:
    """Return texts; equal ones are one object, which is pickled once a run."""
    encoded = column.combine_chunks().dictionary_encode(null_encoding="encode")
    texts, codes = np.array(encoded.dictionary.to_pylist(), object), encoded.indices.to_numpy()
    values = texts[codes].tolist()
    return _alike(values) if _are_alike(codes, firsts) else _objects("v", values)


def _are_alike(values: NumpyArray, firsts: Integers) -> bool:
    return bool((values == values[firsts]).all())


def _distances(form: str, numbers: Integers, tail: _Stored = ()) -> _Column:
    """Return integers as distances from the least, in as few bytes as those need."""
    if not len(numbers):
        return _numbers((form, 0), numbers, tail)
    least, greatest = int(numbers.min()), int(numbers.max())
    if greatest - least >= 2**63:
        return _numbers((form, 0), numbers, tail)
    return _numbers((form, least), (numbers - least).astype(np.min_scalar_type(greatest - least)), tail)
