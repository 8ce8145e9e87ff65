"""Keys as integers: codes that distinguish keys within a table, and hashes that are the same in every process.

A code costs one subtraction for a single integer column, one dictionary encoding a column otherwise. A hash is that of the
values: integers through SplitMix64 (Steele, Lea and Flood, 2014), text by at most its first and last 32 bytes. So keys that hash
alike are legal, and whoever partitions by hash must take them. State on disk lies by these hashes: their constants may not
change.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import md5

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windowpane.arrays import Integers, Unsigned
from windowpane.arrays.columns import flat, text_bounds
from windowpane.kernels.keys.coded_texts import CodedTexts, are_coded
from windowpane.kernels.keys.codes import canonical
from windowpane.sizes import Size

GAMMA = np.uint64(0x9E3779B97F4A7C15)
"""The step from one state of the generator to the next: 2**64 by the golden ratio, made odd."""


def mixed(words: Unsigned) -> Unsigned:
    """Return the finalizer of each word: every bit of the input moves every bit of the output, and 0 stays 0."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    finalized: Unsigned = words ^ (words >> np.uint64(31))
    return finalized


def stepped(words: Unsigned) -> Unsigned:
    """Return the finalizer of the state after each word: the number that the generator draws from it."""
    return mixed(words + GAMMA)


_MOST_BITS = Size("bits of integer keys as codes", 40, (1, 3))
_EDGE = Size("hashed bytes at the ends of a text", 32, (8,))
_MASKS = np.array([2 ** (8 * kept) - 1 for kept in range(9)], np.uint64)
"""The bits of the first bytes of a word, by how many they are."""

_HASH_BITS = 23
"""Of a place the lower bits, which are those of a hash."""
_PLACED = (1 << 63 - _HASH_BITS) - 1
"""The bits of a number that its place has."""
_SECOND = 20
"""So many bits of a time in microseconds are less than a second, about."""

_SAMPLE = Size("values that show whether a column repeats them", 1 << 12, (1, 2))


def plain_key(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a key column with one spelling for equal keys: one NaN, no negative zero."""
    return pa.chunked_array([canonical(column)]) if pa.types.is_floating(column.type) else column


def key_codes(columns: Sequence[pa.ChunkedArray], rows: int) -> Integers:
    """Return an integer for each of ``rows`` rows, not negative, equal exactly for equal keys (NULL equals NULL)."""
    codes = np.zeros(rows, np.int64)
    if not rows:
        return codes
    for number, column in enumerate(columns):
        added = _codes(column)
        bits = int(added.max()).bit_length()
        if int(codes.max()).bit_length() + bits > 63:
            codes = np.unique(codes, return_inverse=True)[1]
            added = np.unique(added, return_inverse=True)[1]
            bits = int(added.max()).bit_length()
        codes = (codes << bits) | added if number else added
    return codes


def _codes(column: pa.ChunkedArray) -> Integers:
    if pa.types.is_integer(column.type) and not column.null_count:
        bounds = pc.min_max(column).as_py()
        if (bounds["max"] - bounds["min"]).bit_length() <= _MOST_BITS.value:
            offsets: Integers = np.subtract(column.to_numpy(), bounds["min"], dtype=np.int64)
            return offsets
    if are_coded(column.type):
        indices = CodedTexts.of(column).codes
    else:
        indices = flat(column).dictionary_encode(null_encoding="encode").indices
    codes: Integers = indices.to_numpy().astype(np.int64)
    return codes


def key_hashes(columns: Sequence[pa.ChunkedArray], rows: int) -> Unsigned:
    hashes = np.zeros(rows, np.uint64)
    for column in columns:
        hashes = stepped(hashes * np.uint64(31) + _hashes(column))
    return hashes


def key_places(columns: Sequence[pa.ChunkedArray], rows: int) -> Integers:
    """Return where keys lie in state: equal for equal keys, not negative.

    They lie in the order of a time or a whole number among them, where there is one, and then by their hash: keys of one time, or
    numbered one after the other, are those that a batch has, and lie together.
    """
    hashes = key_hashes(columns, rows)
    for is_leading, step in ((pa.types.is_timestamp, _SECOND), (pa.types.is_integer, 0)):
        leading = next((column for column in columns if is_leading(column.type)), None)
        if leading is not None:
            numbers: Integers = pc.fill_null(leading.cast(pa.int64()), 0).to_numpy() >> step
            return ((numbers & _PLACED) << _HASH_BITS) | (hashes >> np.uint64(64 - _HASH_BITS)).astype(np.int64)
    return (hashes >> np.uint64(1)).astype(np.int64)


def _hashes(column: pa.ChunkedArray) -> Unsigned:
    if pa.types.is_integer(column.type) and not column.null_count:
        return stepped(column.to_numpy().astype(np.int64).view(np.uint64))
    values = column.combine_chunks()  # texts without those of rows that a slice leaves out
    sample = values.slice(0, _SAMPLE.value)
    if not values.null_count and 2 * len(sample.unique()) > len(sample):  # a dictionary is unlikely to make it cheaper
        return _hashes_of_values(values)
    encoded = values.dictionary_encode()
    hashes = np.append(_hashes_of_values(encoded.dictionary), GAMMA)
    found: Unsigned = hashes[pc.fill_null(encoded.indices, len(encoded.dictionary)).to_numpy()]
    return found


def _hashes_of_values(values: pa.Array) -> Unsigned:
    if pa.types.is_date32(values.type):
        values = values.cast(pa.int32())
    if not (pa.types.is_string(values.type) or pa.types.is_binary(values.type)):
        is_fixed = any(test(values.type) for test in (pa.types.is_integer, pa.types.is_boolean, pa.types.is_timestamp))
        values = values.cast(pa.int64() if is_fixed else pa.string())
    if pa.types.is_integer(values.type):
        return stepped(values.to_numpy(zero_copy_only=False).astype(np.int64).view(np.uint64))
    return hashes_of_texts(values.cast(pa.large_binary()))


def hashes_of_texts(values: pa.LargeBinaryArray) -> Unsigned:
    """Return hashes of byte strings: of their lengths, and of the words at either end; of NULL, any.

    State lies by them: they may not change.
    """
    bounds = text_bounds(values)
    starts, ends = bounds[:-1], bounds[1:]
    lengths, words = ends - starts, _words(values)
    heads = _edge_hashes(words, starts, lengths, lengths.view(np.uint64))
    tails, long = heads, np.flatnonzero(lengths > _EDGE.value)
    if len(long):
        tails = heads.copy()
        tails[long] = _edge_hashes(
            words, ends[long] - _EDGE.value, lengths[long] * 0 + _EDGE.value, lengths[long].view(np.uint64)
        )
    return stepped(heads ^ (tails << np.uint64(1)))


def text_hash(texts: pa.ChunkedArray) -> pa.Array:
    """Return a hash of all bytes of each text: a million of 37 bytes take DuckDB 0.20 s, their MD5 0.55 s.

    Of longer texts than ``hashes_of_texts`` reads it is the MD5: addresses of pages are often the same at both ends.
    """
    values = flat(texts).cast(pa.large_binary())
    hashes = hashes_of_texts(values)
    for row in np.flatnonzero(pc.fill_null(pc.binary_length(values), 0).to_numpy() > 2 * _EDGE.value).tolist():
        hashes[row] = int.from_bytes(md5(values[row].as_buffer(), usedforsecurity=False).digest()[:8], "little")
    return pa.array(hashes, mask=values.is_null().to_numpy(zero_copy_only=False) if values.null_count else None)


def _words(values: pa.LargeBinaryArray) -> Unsigned:
    """Return the words of eight bytes that begin at each byte of some byte strings; zeros are behind the last."""
    data, room = values.buffers()[2], np.zeros(8, np.uint8)
    held = room if data is None else np.concatenate([np.frombuffer(data, np.uint8), room])
    return np.ndarray(len(held) - 7, np.dtype("<u8"), held, strides=(1,))


def _edge_hashes(words: Unsigned, starts: Integers, lengths: Integers, seeds: Unsigned) -> Unsigned:
    """Return hashes of the bytes from ``starts`` on, at most the edge of a text, word by word; behind the text they are 0."""
    hashes, shortest, longest = seeds, int(lengths.min(initial=_EDGE.value)), int(lengths.max(initial=0))
    for offset in range(0, _EDGE.value, 8):
        if offset >= longest:
            hashes = stepped(hashes)
        elif offset + 8 <= shortest:
            hashes = stepped(hashes ^ words[starts + offset])
        else:
            kept = _MASKS[np.clip(lengths - offset, 0, 8)]
            hashes = stepped(hashes ^ (words[np.minimum(starts + offset, len(words) - 1)] & kept))
    return hashes
