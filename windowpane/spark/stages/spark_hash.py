"""Spark's ``xxhash64`` of key columns, for rows that Spark never sees: a key must find the bucket that holds its state.

XXH64 with seed 42, each column hashed with the hash of those before it as its seed; NULL leaves the seed as it is. Equal keys are
hashed once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from windowpane.kernels.grouping.segments import flat
from windowpane.kernels.over.sorting import partition_numbers

_SEED = 42


def is_hashed_alike(kind: pa.DataType) -> bool:
    """Whether ``spark_hashes`` knows how Spark hashes values of a type."""
    return _plain(kind) is not None


def spark_hashes(keys: pa.Table) -> npt.NDArray[np.int64]:
    """Return ``xxhash64`` of each row of key columns."""
    numbers = partition_numbers([flat(column) for column in keys.columns], keys.num_rows)
    some_row = np.zeros(int(numbers.max(initial=-1)) + 1, np.int64)
    some_row[numbers] = np.arange(len(numbers))
    columns = [_as_bytes(column) for column in keys.take(pa.array(some_row)).columns]
    hashes = np.fromiter((_hash(values) for values in zip(*columns, strict=True)), np.uint64, len(some_row))
    return hashes.view(np.int64)[numbers]


def _hash(values: Iterable[bytes | None]) -> int:
    seed = _SEED
    for value in values:
        seed = seed if value is None else xxhash.xxh64_intdigest(value, seed)
    return seed


def _as_bytes(column: pa.ChunkedArray) -> list[bytes | None]:
    convert = _plain(column.type)
    assert convert is not None, "the caller asked"
    found: list[bytes | None] = convert(column)
    return found


def _plain(kind: pa.DataType) -> Callable[[pa.ChunkedArray], list[bytes | None]] | None:
    """Return what turns a column into the bytes that Spark hashes."""
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return lambda column: column.cast(pa.large_binary()).to_pylist()
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return lambda column: column.to_pylist()
    if pa.types.is_boolean(kind) or kind in (pa.int8(), pa.int16(), pa.int32()) or pa.types.is_date32(kind):
        return lambda column: _integers(column, np.dtype("<i4"))
    if kind == pa.int64() or pa.types.is_timestamp(kind):
        return lambda column: _integers(column, np.dtype("<i8"))
    return None


def _integers(column: pa.ChunkedArray, width: np.dtype[Any]) -> list[bytes | None]:
    kind = pa.int32() if width.itemsize == 4 else pa.int64()
    missing = pc.is_null(column).to_pylist()
    values = pc.fill_null(column.cast(kind), 0).to_numpy().astype(width)
    return [None if null else value.tobytes() for value, null in zip(values, missing, strict=True)]
