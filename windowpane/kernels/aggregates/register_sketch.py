"""approx_count_distinct by column: of a group with many values, only those that set a register reach its sketch.

A HyperLogLog sketch with ``k`` registers holds single values until there are about ``k / 8``, and from then on the greatest
rank of the values of each register. So where the values of a group set ``k / 4`` registers or more, all but the greatest
of each register leave no trace, and the sketch is the same without them. Registers and ranks are computed of whole columns.

Source of the rule: Apache DataSketches, HllSketch: the hash is MurmurHash3 with seed 9001; the low bits of its first half
choose the register, the leading zeros of its second half make the rank.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from windowpane.arrays import Integers, Mask, Unsigned
from windowpane.kernels.aggregates.sketches import Sketch
from windowpane.kernels.grouping.segments import NOWHERE, Segments
from windowpane.kernels.keys.murmur import murmur_of_texts, murmur_of_words
from windowpane.kernels.keys.ordered_codes import plain_bits
from windowpane.windowing.aggregates.algorithms.distinct_sketch import TEXT_MARK, ApproxCountDistinct, DistinctSketch

_SEED = 9001
_GREATEST_RANK = 63


class RegisterSketch(Sketch):
    """approx_count_distinct. Partial: the sketch of Apache DataSketches as its bytes."""

    def __init__(self, prefix: str, slots: tuple[str, ...], bound: ApproxCountDistinct) -> None:
        super().__init__(prefix, slots, bound, DistinctSketch.to_bytes, DistinctSketch.from_bytes)
        self._distinct = bound

    def _needed(self, column: pa.Array, segments: Segments) -> tuple[Integers, Integers]:
        size = 1 << self._distinct.lg_k
        is_large = segments.sizes > size
        hashes = self._hashes(column) if is_large.any() else None
        if hashes is None:
            return super()._needed(column, segments)
        large = np.flatnonzero(is_large)
        group = _large_groups(segments, is_large, len(column))
        ranks = np.where(_is_valid(column) & (group != NOWHERE), _ranks(hashes[1]), np.uint8(0))
        registers = group * size + (hashes[0] & np.uint64(size - 1)).view(np.int64)
        greatest = np.zeros(len(large) * size, np.uint8)
        np.maximum.at(greatest, registers, ranks)
        # One row of those that set a register to its greatest rank stands for all of them.
        setting = np.flatnonzero((ranks == greatest[registers]) & (ranks > 0))
        row_of = np.full(len(greatest), NOWHERE)
        row_of[registers[setting]] = setting
        rows = [segments.rows_of(each) for each in range(segments.count)]
        for each, row_of_register in zip(large.tolist(), row_of.reshape(-1, size), strict=True):
            found = row_of_register[row_of_register != NOWHERE]
            if len(found) >= size // 4:
                rows[each] = found
        return np.concatenate(rows), np.cumsum([0, *map(len, rows)])

    def _hashes(self, values: pa.Array) -> tuple[Unsigned, Unsigned] | None:
        """Return both halves of the hash of each value as the sketch takes it, ``None`` for values of a nested type."""
        kind = values.type
        if pa.types.is_string(kind) or pa.types.is_large_string(kind):
            return murmur_of_texts(values, _SEED, prefix=TEXT_MARK.encode())
        if pa.types.is_signed_integer(kind):
            return murmur_of_words(pc.fill_null(values.cast(pa.int64()), 0).to_numpy().view(np.uint64), _SEED)
        if pa.types.is_floating(kind):
            return murmur_of_words(plain_bits(pc.fill_null(values.cast(pa.float64()), 0).to_numpy()).view(np.uint64), _SEED)
        if pa.types.is_nested(kind):
            return None
        distinct = values.dictionary_encode()
        texts = [self._distinct.datum(value) for value in distinct.dictionary.to_pylist()] or [""]
        places = pc.fill_null(distinct.indices, 0).to_numpy()
        first, second = murmur_of_texts(pa.array(texts, pa.large_string()), _SEED)
        return first[places], second[places]


def _large_groups(segments: Segments, is_large: Mask, rows: int) -> Integers:
    """Return which of the large groups each row belongs to, ``NOWHERE`` if to none."""
    numbers = np.where(is_large, np.cumsum(is_large) - 1, NOWHERE)
    groups = np.full(rows, NOWHERE)
    groups[segments.order] = np.repeat(numbers, segments.sizes)
    return groups


def _ranks(hashes: Unsigned) -> npt.NDArray[np.uint8]:
    """Return the number of leading zeros, and one, of each word."""
    # frexp gives the exponent of the next power of two, exactly so of numbers below 2**53.
    high = np.frexp((hashes >> np.uint64(32)).astype(np.float64))[1]
    low = np.frexp((hashes & np.uint64(0xFFFFFFFF)).astype(np.float64))[1]
    zeros = np.where(high > 0, 32 - high, 64 - low)
    ranks: npt.NDArray[np.uint8] = np.minimum(zeros + 1, _GREATEST_RANK).astype(np.uint8)
    return ranks


def _is_valid(values: pa.Array) -> Mask:
    return np.asarray(values.is_valid().to_numpy(zero_copy_only=False))
