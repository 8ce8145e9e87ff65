"""MurmurHash3, the 128-bit form for 64-bit machines, of whole columns: what sketches of Apache DataSketches are made of.

Source of the rule: Austin Appleby's MurmurHash3_x64_128. Sketches on disk were made with it, so it may not change.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windowpane.arrays import Integers, Unsigned
from windowpane.arrays.columns import text_bounds

_C1, _C2 = np.uint64(0x87C37B91114253D5), np.uint64(0x4CF5AD432745937F)
_BLOCK = 16


def murmur_of_texts(values: pa.Array, seed: int, prefix: bytes = b"") -> tuple[Unsigned, Unsigned]:
    """Return both halves of the hash of each text or binary value, put after ``prefix``; of NULL, anything."""
    first, second = np.empty(len(values), np.uint64), np.empty(len(values), np.uint64)
    for rows, words, length in texts_by_length(values, prefix):
        first[rows], second[rows] = _hashed(words, length, seed)
    return first, second


def murmur_of_words(words: Unsigned, seed: int) -> tuple[Unsigned, Unsigned]:
    return _hashed(words.reshape(1, -1), 8, seed)


def _hashed(words: Unsigned, length: int, seed: int) -> tuple[Unsigned, Unsigned]:
    h1, h2 = (np.full(words.shape[1], seed, np.uint64) for _ in range(2))
    spare = np.empty(words.shape[1], np.uint64)
    whole = length // _BLOCK * 2
    for k1, k2 in zip(words[:whole:2], words[1:whole:2], strict=True):
        h1 ^= _mixed(k1, _C1, 31, _C2, spare)
        _turn(h1, 27, spare)
        h1 += h2
        h1 *= np.uint64(5)
        h1 += np.uint64(0x52DCE729)
        h2 ^= _mixed(k2, _C2, 33, _C1, spare)
        _turn(h2, 31, spare)
        h2 += h1
        h2 *= np.uint64(5)
        h2 += np.uint64(0x38495AB5)
    rest = words[whole:]
    if len(rest) > 1:
        h2 ^= _mixed(rest[1], _C2, 33, _C1, spare)
    if len(rest):
        h1 ^= _mixed(rest[0], _C1, 31, _C2, spare)
    h1 ^= np.uint64(length)
    h2 ^= np.uint64(length)
    h1 += h2
    h2 += h1
    _finalize(h1, spare)
    _finalize(h2, spare)
    h1 += h2
    h2 += h1
    return h1, h2


def _mixed(words: Unsigned, before: np.uint64, bits: int, after: np.uint64, spare: Unsigned) -> Unsigned:
    mixed: Unsigned = words * before
    _turn(mixed, bits, spare)
    mixed *= after
    return mixed


def _turn(values: Unsigned, bits: int, spare: Unsigned) -> None:
    np.right_shift(values, np.uint64(64 - bits), out=spare)
    values <<= np.uint64(bits)
    values |= spare


def _finalize(values: Unsigned, spare: Unsigned) -> None:
    for factor in (np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53)):
        values ^= np.right_shift(values, np.uint64(33), out=spare)
        values *= factor
    values ^= np.right_shift(values, np.uint64(33), out=spare)


_GATHERED = 1 << 20
"""Bytes of texts that are brought together at a time: they fit into the processor's cache."""


class TextsOfOneLength(NamedTuple):
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
