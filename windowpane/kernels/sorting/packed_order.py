"""Stable sorting of 64-bit integers as packed words: the distance from the least in the high bits, the place in the low ones.

numpy sorts plain words with vector instructions, ten times as fast as it finds a stable order; the places make words distinct, so
that the order is stable. Numbers too wide to be packed are sorted digit by digit, the least significant first.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from windowpane.arrays import Integers, Unsigned
from windowpane.sizes import Size

Words = Integers | Unsigned

_BITS = Size("bits of a packed word of an order", 63, (20, 30))


def stable_order(numbers: Words) -> Integers:
    """Return the positions that sort numbers; equal ones stay in their order."""
    if len(numbers) < 2 or (numbers[1:] >= numbers[:-1]).all():
        return np.arange(len(numbers))
    distances = (numbers - numbers.min()).view(np.uint64)
    width, places = int(distances.max()).bit_length(), (len(numbers) - 1).bit_length()
    digit = _BITS.value - places
    order = _packed_order(_digit(distances, 0, digit), places)
    for low in range(digit, width, digit):
        order = order[_packed_order(_digit(distances[order], low, digit), places)]
    return order


def lexical_order(columns: Sequence[Words]) -> Integers:
    """Return the positions that sort rows by columns, the most significant first; equal rows stay in their order.

    As many of the first columns as fit into a word are sorted at once; the others only order the rows that tie. Long texts are
    thousands of columns, so this is a loop, and takes of each column only the rows that tie.
    """
    leading, taken = _leading(columns, None)
    order = stable_order(leading)
    if taken == len(columns):
        return order
    places, groups, words = np.arange(len(order)), np.zeros(len(order), np.int64), leading[order]
    while taken < len(columns):
        starts = np.append(True, (np.diff(words) != 0) | (np.diff(groups) != 0))[: len(words)]
        is_tied = ~(starts & np.append(starts[1:], True)[: len(words)])
        places, groups = places[is_tied], np.cumsum(starts)[is_tied]
        if not len(places):
            break
        rows = order[places]
        words, more = _leading(columns[taken:], rows)
        taken += more
        within = stable_order(words)
        within = within[stable_order(groups[within])]
        order[places], words = rows[within], words[within]
    return order


def _leading(columns: Sequence[Words], rows: Integers | None) -> tuple[Words, int]:
    """Return one word a row for the first columns together, as many as fit beside the place, and how many these are.

    Args:
        columns: the most significant first.
        rows: the rows to take; ``None`` for all.
    """
    words = columns[0] if rows is None else columns[0][rows]
    if not len(words):
        return words, len(columns)
    width = (len(words) - 1).bit_length()
    packed = np.zeros(len(words), np.uint64)
    for number, whole in enumerate(columns):
        column = whole if rows is None else whole[rows]
        distances = (column - column.min()).view(np.uint64)
        bits = int(distances.max()).bit_length()
        width += bits
        if width > _BITS.value:
            return (packed, number) if number else (column, 1)
        packed = (packed << np.uint64(bits)) | distances
    return packed, len(columns)


def _digit(distances: Unsigned, low: int, width: int) -> Unsigned:
    return (distances >> np.uint64(low)) & np.uint64((1 << width) - 1)


def _packed_order(digits: Unsigned, places: int) -> Integers:
    words = (digits << np.uint64(places)).view(np.int64)
    words |= np.arange(len(words))
    words.sort()
    words &= np.int64((1 << places) - 1)
    return words
