"""Distances: 64-bit integers as what they are above the least of them, in 8, 16 or 32 bits."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

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
