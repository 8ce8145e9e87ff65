"""Sorting rows into (partition, ORDER BY, key), and the layout of rows so sorted.

Partitions only need to lie together here, so they are numbered as they appear.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windowpane.arrays import Integers, Mask
from windowpane.kernels.keys.coded_texts import CodedTexts, are_coded
from windowpane.kernels.keys.ordered_codes import codes_of, has_codes, ordered_codes, validity
from windowpane.kernels.over.frames import Layout
from windowpane.kernels.packed_order import fit_together, order_with_ties, stable_order
from windowpane.windowing.over.spec import OrderColumn


def partition_numbers(columns: Sequence[pa.Array], rows: int) -> Integers:
    """Return the number of each row's partition, from 0 and fewer than a few times the rows; NULL is an ordinary value.

    Texts may be coded.
    """
    numbers = np.zeros(rows, np.int64)
    for column in columns:
        added, size = _numbered(column)
        numbers = numbers * size + added
        if len(columns) > 1:
            numbers = np.unique(numbers, return_inverse=True)[1].reshape(-1)
    return numbers


def _numbered(column: pa.Array) -> tuple[Integers, int]:
    """Return a number for each value of a column, equal exactly where values are, and how many numbers there may be."""
    if are_coded(column.type):
        held = CodedTexts.of(column)
        texts = held.texts.dictionary_encode(null_encoding="encode")  # one that is coded twice is still one
        return texts.indices.to_numpy()[held.codes.to_numpy()], len(texts)
    if pa.types.is_signed_integer(column.type) and not column.null_count and len(column):
        bounds = pc.min_max(column)
        least, most = bounds["min"].as_py(), bounds["max"].as_py()
        if most - least < len(column):
            return np.subtract(column.to_numpy(), least, dtype=np.int64), most - least + 1
    plain = pa.array(ordered_codes(column), mask=~validity(column)) if pa.types.is_floating(column.type) else column
    encoded = plain.dictionary_encode(null_encoding="encode")
    return encoded.indices.to_numpy(), len(encoded.dictionary)


def sorting_codes(column: pa.Array, order: OrderColumn) -> list[Integers]:
    codes = ~codes_of(column) if order.descending else codes_of(column)
    if not column.null_count:
        return [codes]
    valid = validity(column)
    last = valid if order.nulls_first else ~valid
    return [last.astype(np.int64), np.where(valid, codes, 0)]


def key_sorting_codes(column: pa.Array) -> list[Integers]:
    """Return the codes to sort a key column by; NULL is last, as the largest value."""
    return sorting_codes(column, OrderColumn("", nulls_first=False))


def order_in_partitions(partitions: Integers, columns: Sequence[Integers]) -> tuple[Integers, Integers]:
    """Return the positions that sort rows by partition and columns, equal rows in their order, and the places of equal ones.

    Where partition and first column fit into a word they are sorted at once. Where not, the columns are sorted first: with the
    partitions first, all rows of a partition would tie.
    """
    if fit_together([partitions, columns[0]]):
        return order_with_ties([partitions, *columns])
    order, ties = order_with_ties(columns)
    order = order[stable_order(partitions[order])]
    if len(ties):
        same = equal_neighbours([partitions, *columns], order)
        ties = np.flatnonzero(np.append(same, False) | np.append(False, same))
    return order, ties


def equal_neighbours(columns: Sequence[Integers], order: Integers) -> Mask:
    """Return for each row but the first, in an order, whether it equals the row before it in every column."""
    same = np.ones(max(len(order) - 1, 0), np.bool_)
    for column in columns:
        if not same.any():
            break
        values = column[order]
        same &= values[1:] == values[:-1]
    return same


def starts(columns: Sequence[pa.Array], rows: int) -> Mask:
    """Return where a row differs from the row before it in one of the columns; NULL equals NULL."""
    changed = np.zeros(rows, np.bool_)
    changed[:1] = True
    for column in columns:
        changed[1:] |= _differs(column)
    return changed


def _differs(column: pa.Array) -> Mask:
    if has_codes(column.type):
        codes = ordered_codes(column)
        different: Mask = codes[1:] != codes[:-1]
    else:
        different = pc.fill_null(pc.not_equal(column[1:], column[:-1]), False).to_numpy(zero_copy_only=False)
    if column.null_count:
        valid = validity(column)
        different = different | (valid[1:] != valid[:-1])
    return different


def layout_of(starts_segment: Mask, ordered: Sequence[pa.Array]) -> Layout:
    """Return the layout of sorted rows from where segments start and the ORDER BY columns; without any, all rows are peers."""
    return Layout(starts_segment, starts_segment | starts(ordered, len(starts_segment)))
