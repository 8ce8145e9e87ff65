"""Spark's ``xxhash64`` of key columns, for rows that Spark never sees: a key must find the bucket that holds its state.

XXH64 with seed 42, each column hashed with the hash of those before it as its seed; NULL leaves the seed as it is, and a struct
is hashed as its fields are, one after the other. Whole columns are hashed at once: texts of one length together, a word of each
at a time.

Source of the rule: Spark's ``XxHash64``, and Yann Collet's specification of XXH64.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windowpane.arrays import Integers, Unsigned
from windowpane.arrays.columns import flat
from windowpane.kernels.keys.texts_by_length import texts_by_length

_SEED = 42
_P1, _P2, _P3, _P4, _P5 = (
    np.uint64(prime)
    for prime in (
        0x9E3779B185EBCA87,
        0xC2B2AE3D27D4EB4F,
        0x165667B19E3779F9,
        0x85EBCA77C2B2AE63,
        0x27D4EB2F165667C5,
    )
)
_STRIPE = 32


def is_hashed_alike(kind: pa.DataType) -> bool:
    """Whether ``spark_hashes`` knows how Spark hashes values of a type."""
    if pa.types.is_struct(kind):
        return all(is_hashed_alike(field.type) for field in kind)
    return _is_bytes(kind) or _integer_bytes(kind) is not None


def spark_hashes(keys: pa.Table) -> Integers:
    """Return ``xxhash64`` of each row of key columns."""
    hashes = np.full(keys.num_rows, _SEED, np.uint64)
    for column in keys.columns:
        hashes = _hashed(flat(column), hashes)
    return hashes.view(np.int64)


def _hashed(values: pa.Array, seeds: Unsigned) -> Unsigned:
    """Return the hash of each value with a seed of its own."""
    if pa.types.is_struct(values.type):
        for place in range(values.type.num_fields):
            seeds = _hashed(pc.struct_field(values, [place]), seeds)
        return seeds
    hashed = _of_bytes(values, seeds) if _is_bytes(values.type) else _of_integers(values, seeds)
    return np.where(values.is_null().to_numpy(zero_copy_only=False), seeds, hashed) if values.null_count else hashed


def _is_bytes(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_binary(kind) or types.is_large_binary(kind))


def _integer_bytes(kind: pa.DataType) -> int | None:
    """Return how many bytes of a number, instant, day or truth Spark hashes, ``None`` for other types."""
    if pa.types.is_boolean(kind) or kind in (pa.int8(), pa.int16(), pa.int32()) or pa.types.is_date32(kind):
        return 4
    return 8 if kind == pa.int64() or pa.types.is_timestamp(kind) else None


def _of_integers(values: pa.Array, seeds: Unsigned) -> Unsigned:
    width = _integer_bytes(values.type)
    numbers = pc.fill_null(values.cast(pa.int32() if width == 4 else pa.int64()), 0).to_numpy()
    if width == 4:
        return _avalanched(_with_half(seeds + _P5 + np.uint64(4), numbers.view(np.uint32).astype(np.uint64)))
    return _avalanched(_with_word(seeds + _P5 + np.uint64(8), numbers.view(np.uint64)))


def _of_bytes(values: pa.Array, seeds: Unsigned) -> Unsigned:
    """Return the hashes of texts; of NULL, anything."""
    hashes = np.empty(len(values), np.uint64)
    for rows, words, length in texts_by_length(values):
        hashes[rows] = _of_one_length(words, length, seeds[rows])
    return hashes


def _of_one_length(words: Unsigned, length: int, seeds: Unsigned) -> Unsigned:
    """Return the hashes of texts of ``length`` bytes, given as words."""
    stripes = length // _STRIPE * 4
    hashes = _of_stripes(words[:stripes], seeds) if stripes else seeds + _P5
    hashes = hashes + np.uint64(length)
    for word in words[stripes : length // 8]:
        hashes = _with_word(hashes, word)
    return _avalanched(_with_rest(hashes, words[length // 8], length % 8) if length % 8 else hashes)


def _of_stripes(words: Unsigned, seeds: Unsigned) -> Unsigned:
    """Return four lanes of words folded into one hash."""
    lanes = [seeds + _P1 + _P2, seeds + _P2, seeds, seeds - _P1]
    for number, word in enumerate(words):
        lanes[number % 4] = _round(lanes[number % 4], word)
    hashes = _turned(lanes[0], 1) + _turned(lanes[1], 7) + _turned(lanes[2], 12) + _turned(lanes[3], 18)
    for lane in lanes:
        hashes = (hashes ^ _round(np.uint64(0), lane)) * _P1 + _P4
    return hashes


def _with_rest(hashes: Unsigned, word: Unsigned, rest: int) -> Unsigned:
    """Take in the last ``rest`` bytes, fewer than eight, which are at the low end of ``word``."""
    if rest >= 4:
        hashes = _with_half(hashes, word & np.uint64(0xFFFFFFFF))
        word, rest = word >> np.uint64(32), rest - 4
    for _ in range(rest):
        hashes = _turned(hashes ^ (word & np.uint64(0xFF)) * _P5, 11) * _P1
        word = word >> np.uint64(8)
    return hashes


def _with_word(hashes: Unsigned, word: Unsigned) -> Unsigned:
    return _turned(hashes ^ _round(np.uint64(0), word), 27) * _P1 + _P4


def _with_half(hashes: Unsigned, half: Unsigned) -> Unsigned:
    return _turned(hashes ^ half * _P1, 23) * _P2 + _P3


def _round(lane: Unsigned | np.uint64, word: Unsigned) -> Unsigned:
    return _turned(lane + word * _P2, 31) * _P1


def _turned(values: Unsigned, bits: int) -> Unsigned:
    return (values << np.uint64(bits)) | (values >> np.uint64(64 - bits))


def _avalanched(hashes: Unsigned) -> Unsigned:
    hashes = (hashes ^ (hashes >> np.uint64(33))) * _P2
    hashes = (hashes ^ (hashes >> np.uint64(29))) * _P3
    return hashes ^ (hashes >> np.uint64(32))
