"""approx_count_distinct by column: a group with many values gets the registers of its sketch without a sketch to add to.

A HyperLogLog sketch with ``k`` registers holds single values until there are about ``k / 8``, and from then on the greatest
rank of the values of each register. So where the values of a group set ``k / 4`` registers or more, those registers are all
there is to its sketch. Registers and ranks are computed of whole columns, and written as the library writes a merged sketch.

Source of the rules: Apache DataSketches, HllSketch and its PreambleUtil: the hash is MurmurHash3 with seed 9001; the low bits
of its first half choose the register, the leading zeros of its second half make the rank. A stored sketch of type HLL_8 is a
preamble of 40 bytes and a byte a register; what it sums up of the registers is exact in doubles, so their order is no matter.
"""

from __future__ import annotations

from typing import cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from windowpane.aggregates.sketches.columnar import Sketch
from windowpane.aggregates.sketches.distinct import TEXT_MARK, ApproxCountDistinct, DistinctSketch
from windowpane.arrays import Integers, Unsigned
from windowpane.kernels.keys.coded_texts import CodedTexts, are_coded
from windowpane.kernels.keys.murmur import murmur_of_texts, murmur_of_words
from windowpane.kernels.keys.ordered_codes import plain_bits
from windowpane.kernels.segments import Segments
from windowpane.windowing.aggregates.definition import ColumnarCall

_SEED = 9001
_GREATEST_RANK = 63
_FEWEST_SET = 4
"""A group that sets one in so many registers has more values than any sketch holds singly."""
_COMPACT, _OUT_OF_ORDER, _HLL_8 = 8, 16, 10
"""Flags of a sketch that was merged, and the mode and type of one with a byte a register."""
_PREAMBLE = np.dtype(
    [("first", "u1", 8), ("history", "<f8"), ("below_32", "<f8"), ("from_32", "<f8"), ("unset", "<i4"), ("exceptions", "<i4")]
)
_WEIGHTS = 2.0 ** -np.arange(_GREATEST_RANK + 1)
_WEIGHTS_BELOW_32 = np.where(np.arange(_GREATEST_RANK + 1) < 32, _WEIGHTS, 0)
_WEIGHTS_FROM_32 = _WEIGHTS - _WEIGHTS_BELOW_32


class RegisterSketch(Sketch):
    """approx_count_distinct. Partial: the sketch of Apache DataSketches as its bytes."""

    takes_codes = True

    def __init__(self, prefix: str, slots: tuple[str, ...], bound: ApproxCountDistinct) -> None:
        super().__init__(prefix, slots, bound, DistinctSketch.to_bytes, DistinctSketch.from_bytes)
        self._distinct = bound

    def _images(self, column: pa.Array, segments: Segments) -> list[bytes]:
        known = self._images_of_many(column, segments)
        rest = [group for group in range(segments.count) if group not in known]
        if not known or not rest:
            return super()._images(column, segments) if rest else [known[group] for group in range(segments.count)]
        order = np.concatenate([segments.rows_of(group) for group in rest])
        others = iter(super()._images(column, Segments(order, np.cumsum([0, *segments.sizes[rest].tolist()]))))
        return [known[group] if group in known else next(others) for group in range(segments.count)]

    def _images_of_many(self, column: pa.Array, segments: Segments) -> dict[int, bytes]:
        """Return the sketches of the groups whose values set so many registers that it holds nothing else."""
        lg_k = self._distinct.lg_k
        size = 1 << lg_k
        may = segments.sizes >= size // _FEWEST_SET
        marks = self._marks(column) if may.any() else None
        if marks is None:
            return {}
        at, ranks = marks
        groups = np.flatnonzero(may)
        rows = segments.order if may.all() else segments.order[np.repeat(may, segments.sizes)]
        places = np.repeat(np.arange(len(groups)) * size, segments.sizes[groups])
        places += at[rows]
        registers = np.zeros(len(groups) * size, np.uint8)
        np.maximum.at(registers, places, ranks[rows])
        table = registers.reshape(-1, size)
        is_full = np.count_nonzero(table, axis=1) >= size // _FEWEST_SET
        return dict(zip(groups[is_full].tolist(), _written(table[is_full], lg_k), strict=True))

    def _marks(self, values: pa.Array) -> tuple[Integers, npt.NDArray[np.uint8]] | None:
        """Return the register of each value and its rank there, 0 of null; ``None`` for values of a nested type."""
        if are_coded(values.type):
            held = CodedTexts.of(values)
            marks, codes = self._marks(held.texts), held.codes.to_numpy()
            return None if marks is None else (marks[0][codes], marks[1][codes])
        hashes = self._hashes(values)
        if hashes is None:
            return None
        at = (hashes[0] & np.uint64((1 << self._distinct.lg_k) - 1)).view(np.int64)
        return at, np.where(values.is_valid().to_numpy(zero_copy_only=False), _ranks(hashes[1]), np.uint8(0))

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


def _written(table: npt.NDArray[np.uint8], lg_k: int) -> list[bytes]:
    """Return the stored sketches of some groups, given a row of registers each."""
    headers = np.zeros(len(table), _PREAMBLE)
    headers["first"] = np.frombuffer(bytes((10, 1, 7, lg_k, 0, _COMPACT | _OUT_OF_ORDER, 0, _HLL_8)), np.uint8)
    headers["below_32"] = _WEIGHTS_BELOW_32[table].sum(axis=1)
    headers["from_32"] = _WEIGHTS_FROM_32[table].sum(axis=1)
    headers["unset"] = table.shape[1] - np.count_nonzero(table, axis=1)
    whole = np.concatenate([headers.view(np.uint8).reshape(len(table), _PREAMBLE.itemsize), table], axis=1)
    return [row.tobytes() for row in whole]


def _ranks(hashes: Unsigned) -> npt.NDArray[np.uint8]:
    """Return the number of leading zeros, and one, of each word."""
    # Doubles hold 53 bits exactly, and say in their exponent how many of them there are.
    high = (hashes >> np.uint64(11)).astype(np.float64).view(np.int64) >> 52
    ranks = (1022 + 53 + 1 - high).astype(np.uint8)
    (without,) = np.nonzero(high == 0)
    if len(without):
        low = np.frexp(hashes[without].astype(np.float64))[1]
        ranks[without] = np.minimum(64 - low + 1, _GREATEST_RANK)
    return ranks


def columnar(call: ColumnarCall) -> RegisterSketch:
    return RegisterSketch(call.prefix, call.slots, cast("ApproxCountDistinct", call.bound))
