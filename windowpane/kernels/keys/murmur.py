"""MurmurHash3, the 128-bit form for 64-bit machines, of whole columns: what sketches of Apache DataSketches are made of.

Source of the rule: Austin Appleby's MurmurHash3_x64_128. Sketches on disk were made with it, so it may not change.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from windowpane.arrays import Unsigned
from windowpane.kernels.keys.texts_by_length import texts_by_length

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
