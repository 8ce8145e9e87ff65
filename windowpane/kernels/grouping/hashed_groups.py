"""Grouping by sorted hashes: many groups of texts found in a fraction of the time that a hash table takes.

A hash table of some hundred thousand texts misses the processor's cache at every row, twice: for its place, and for the text to
compare. Hashes of whole columns are sorted instead, each in one word with the place of its row; only rows beside one
of the same hash are compared. With few groups a table is faster, so a sample of the rows decides.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windowpane.arrays import Integers, Unsigned
from windowpane.arrays.columns import flat, text_bounds
from windowpane.kernels.grouping.coded_groups import expected_groups
from windowpane.kernels.keys.key_codes import GAMMA, key_hashes, mixed
from windowpane.kernels.segments import Segments, whole_numbers
from windowpane.sizes import Size

MANY_ROWS = Size("rows worth grouping by sorted hashes", 1 << 18, (2, 8))
_SAMPLE = Size("rows sampled before grouping by sorted hashes", 1 << 12, (2, 8))
_MANY = Size("groups a row that are many for a hash table", 0.6, (0.0, 0.1))
_HASHED = (pa.types.is_signed_integer, pa.types.is_timestamp, pa.types.is_string, pa.types.is_binary)
_WORD, _WORDS = 8, 4
BITS = Size("bits of a word of hash and place", 63, (12, 20))


def hashed_groups(columns: Sequence[pa.ChunkedArray]) -> Segments | None:
    """Return the rows of each group; ``None`` where a hash table is faster, or columns hold nulls or are of other types."""
    rows = len(columns[0])
    if (
        rows < MANY_ROWS.value
        or any(each.null_count or not any(test(each.type) for test in _HASHED) for each in columns)
        or not _makes_many(columns, rows)
    ):
        return None
    words = _placed(_hashes(columns, rows))
    if words is None:
        return None
    words.sort()
    place_bits = np.uint64((rows - 1).bit_length())
    order = (words & ((np.uint64(1) << place_bits) - np.uint64(1))).view(np.int64)
    hashes = words >> place_bits
    is_same = hashes[1:] == hashes[:-1]
    if not is_same.any():
        return Segments(np.arange(rows), np.arange(rows + 1))
    pairs = np.flatnonzero(is_same)
    if not all(_are_equal(column, order[pairs], order[pairs + 1]) for column in columns):
        return None
    return Segments(order, np.concatenate(([0], np.flatnonzero(~is_same) + 1, [rows])))


def _makes_many(columns: Sequence[pa.ChunkedArray], rows: int) -> bool:
    at = pa.array(np.arange(0, rows, max(1, rows // _SAMPLE.value)))
    found = len(np.unique(_hashes([column.take(at) for column in columns], len(at))))
    return expected_groups(len(at), found, rows) > _MANY.value * rows


def _hashes(columns: Sequence[pa.ChunkedArray], rows: int) -> Unsigned:
    """Return a hash for each row, of no more bytes than make most texts differ: those of one hash are compared."""
    hashes = np.zeros(rows, np.uint64)
    for column in columns:
        numbers = whole_numbers(column)
        added = _hashes_of_texts(column) if numbers is None else numbers.view(np.uint64) * GAMMA
        hashes = (hashes << np.uint64(1)) + hashes + added
    return mixed(hashes)


def _hashes_of_texts(column: pa.ChunkedArray) -> Unsigned:
    """Return hashes of lengths and of four words of eight bytes, from the first to the last; shorter texts as keys are hashed."""
    values = flat(column).cast(pa.large_binary())
    offsets = text_bounds(values)
    lengths = np.diff(offsets)
    if lengths.min() < _WORD:
        return key_hashes([column], len(column))
    content = np.frombuffer(values.buffers()[2], np.uint8)
    words = np.ndarray(len(content) - _WORD + 1, np.dtype("<u8"), content, strides=(1,))  # a word may begin at any byte
    hashes, room = lengths.view(np.uint64) * GAMMA, lengths - _WORD
    for number in range(_WORDS):
        hashes = mixed(hashes ^ words[offsets[:-1] + room * number // (_WORDS - 1)])
    return hashes


def _placed(hashes: Unsigned) -> Unsigned | None:
    """Return words whose high bits are those of a hash, the low ones the place of its row; ``None`` if there is no room."""
    places = (len(hashes) - 1).bit_length()
    if places >= BITS.value:
        return None
    kept = np.uint64(BITS.value - places)
    return (hashes >> (np.uint64(64) - kept)) << np.uint64(places) | np.arange(len(hashes), dtype=np.uint64)


def _are_equal(column: pa.ChunkedArray, left: Integers, right: Integers) -> bool:
    numbers = whole_numbers(column)
    if numbers is not None:
        return bool((numbers[left] == numbers[right]).all())
    return bool(pc.all(pc.equal(column.take(pa.array(left)), column.take(pa.array(right)))).as_py())
