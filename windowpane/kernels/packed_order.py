"""Stable sorting of 64-bit integers as packed words: the distance from the least in the high bits, the place in the low ones.

numpy sorts plain words with vector instructions, ten times as fast as it finds a stable order; the places make words distinct, so
that the order is stable. Numbers too wide to be packed are sorted digit by digit, the least significant first.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from windowpane.arrays import Integers, Mask, Unsigned
from windowpane.sizes import Size

Words = Integers | Unsigned

_RADIX_BITS = 16
"""numpy sorts numbers of so many bits by radix, without a word for each that has its place, in two thirds of the time."""
_BITS = Size("bits of a packed word of an order", 63, (20, 30))


def stable_order(numbers: Words) -> Integers:
    return _sorted(numbers)[0]


def lexical_order(columns: Sequence[Words]) -> Integers:
    """Return the positions that sort rows by columns, the most significant first; equal rows stay in their order."""
    return order_with_ties(columns)[0]


def order_with_ties(columns: Sequence[Words]) -> tuple[Integers, Integers]:
    """Return the positions that sort rows as ``lexical_order`` does, and the places in that order of rows with an equal one.

    As many of the first columns as fit into a word are sorted at once; the others only order the rows that tie. Long texts are
    thousands of columns, so this is a loop, and takes of each column only the rows that tie.

    Example:
        >>> order, ties = order_with_ties([np.array([2, 1, 2]), np.array([5, 9, 5])])
        >>> order.tolist(), ties.tolist()
        ([1, 0, 2], [1, 2])
    """
    leading, taken = _leading(columns, None)
    order, words = _sorted(leading)
    places: Integers = np.arange(len(order))
    groups: Integers = np.zeros(0, np.int64)
    while True:
        starts: Mask = np.ones(len(words) + 1, np.bool_)
        starts[1:-1] = words[1:] != words[:-1]
        if len(groups):
            starts[1:-1] |= groups[1:] != groups[:-1]
        is_tied = ~(starts[1:] & starts[:-1])
        places, groups = places[is_tied], np.cumsum(starts[:-1], dtype=np.int64)[is_tied]
        if not len(places) or taken == len(columns):
            return order, places
        rows = order[places]
        words, more = _leading(columns[taken:], rows)
        taken += more
        within = stable_order(words)
        within = within[stable_order(groups[within])]
        order[places], words, groups = rows[within], words[within], groups[within]


def fit_together(columns: Sequence[Words]) -> bool:
    """Whether columns fit into a word beside the place, so that one sort orders rows by all of them."""
    rows = len(columns[0])
    bits = sum((int(column.max()) - int(column.min())).bit_length() for column in columns) if rows else 0
    return bits + max(rows - 1, 0).bit_length() <= _BITS.value


def _leading(columns: Sequence[Words], rows: Integers | None) -> tuple[Words, int]:
    """Return one word a row for the first columns together, as many as fit beside the place, and how many these are."""
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


def _sorted(numbers: Words) -> tuple[Integers, Words]:
    """Return the positions that sort numbers, and the numbers so sorted, or how far each is from the least."""
    if len(numbers) < 2 or (numbers[1:] >= numbers[:-1]).all():
        return np.arange(len(numbers)), numbers
    distances = (numbers - numbers.min()).view(np.uint64)
    width, places = int(distances.max()).bit_length(), (len(numbers) - 1).bit_length()
    if width <= _RADIX_BITS:
        order = np.argsort(distances.astype(np.uint16 if width > 8 else np.uint8), kind="stable")
        return order, distances[order]
    digit = _BITS.value - places
    packed = _packed(_digit(distances, 0, digit), places)
    order = packed & np.int64((1 << places) - 1)
    if width <= digit:
        return order, packed >> np.int64(places)
    for low in range(digit, width, digit):
        order = order[_packed(_digit(distances[order], low, digit), places) & np.int64((1 << places) - 1)]
    return order, distances[order]


def _digit(distances: Unsigned, low: int, width: int) -> Unsigned:
    return (distances >> np.uint64(low)) & np.uint64((1 << width) - 1)


def _packed(digits: Unsigned, places: int) -> Integers:
    """Return digits, sorted, each with its place in the low bits."""
    words = (digits << np.uint64(places)).view(np.int64)
    words |= np.arange(len(words))
    words.sort()
    return words
