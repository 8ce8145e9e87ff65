"""Texts as arrays of words of eight bytes, those of one length together: what hashes of whole columns work on."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windowpane.arrays import Integers, Unsigned
from windowpane.arrays.columns import text_bounds

_GATHERED = 1 << 20
"""Bytes of texts that are brought together at a time: they fit into the processor's cache."""


class TextsOfOneLength(NamedTuple):
    """Some texts of a column, all of one length in bytes."""

    rows: slice | Integers  # which rows of the column they are
    words: Unsigned  # a row of the array for each eight bytes, in little-endian order; the last is filled up with zeros
    length: int  # their length in bytes


def texts_by_length(values: pa.Array, prefix: bytes = b"") -> Iterator[TextsOfOneLength]:
    """Yield all texts or binary values of an array, each put after ``prefix``; those of NULL hold anything.

    Example:
        >>> for some in texts_by_length(pa.array(["a", "bc", "d"])):
        ...     print(some.rows.tolist(), some.length, some.words.tolist())
        [0, 2] 1 [[97, 100]]
        [1] 2 [[25442]]
    """
    large = values.cast(pa.large_binary())
    offsets = text_bounds(large)
    content = np.frombuffer(large.buffers()[2] or b"", np.uint8)
    starts, lengths = offsets[:-1], np.diff(offsets)
    order = np.argsort(lengths, kind="stable") if len(lengths) and lengths.min() != lengths.max() else None
    ends = np.flatnonzero(np.diff(lengths if order is None else lengths[order])) + 1
    for first, last in itertools.pairwise([0, *ends.tolist(), len(lengths)]):
        length = int(lengths[first if order is None else order[first]]) if last > first else 0
        step = max(1, _GATHERED // max(length, 1))
        for start in range(first, last, step):
            end = min(start + step, last)
            rows = slice(start, end) if order is None else order[start:end]
            yield TextsOfOneLength(rows, _words(content, starts[rows], length, prefix), len(prefix) + length)


def _words(content: npt.NDArray[np.uint8], starts: Integers, length: int, prefix: bytes) -> Unsigned:
    whole = len(prefix) + length
    padded = -(-whole // 8) * 8
    if not padded:
        return np.empty((0, len(starts)), np.uint64)
    are_neighbours = len(starts) and int(starts[-1]) - int(starts[0]) == (len(starts) - 1) * length
    if not length:
        texts = np.empty((len(starts), 0), np.uint8)
    elif are_neighbours:
        texts = content[starts[0] : starts[-1] + length].reshape(len(starts), length)
    else:
        texts = np.lib.stride_tricks.sliding_window_view(content, length)[starts]
    if length != padded:
        filled = np.zeros((len(starts), padded), np.uint8)
        filled[:, : len(prefix)] = np.frombuffer(prefix, np.uint8)
        filled[:, len(prefix) : whole] = texts
        texts = filled
    return np.ascontiguousarray(texts).view("<u8").T
