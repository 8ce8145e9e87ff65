"""Codes: integers in place of the values of one column, which compare as Spark SQL compares the values; and where columns differ.

Arrow's own order and equality are Spark's for plain types. Floating point has one NaN, the largest value, and one zero; nested
values are compared by their canonical form, value by value. As values are written, -0.0 differs from 0.0. Codes mean something
only within the column they were made from.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windowpane.arrays import Integers, Mask
from windowpane.arrays.columns import flat
from windowpane.kernels.keys.dense_codes import dense_codes, struct_leaves
from windowpane.kernels.keys.ordered_codes import are_negative_zeros, has_codes, ordered_codes, validity
from windowpane.kernels.packed_order import lexical_order
from windowpane.windowing.aggregates.canonical import Form, Frozen, form_of, is_array, written_form_of

NULL_CODE = -1
_NEGATIVE_ZERO = -2


def is_nested(kind: pa.DataType) -> bool:
    return bool(is_array(kind) or pa.types.is_struct(kind) or pa.types.is_map(kind))


def canonical(column: object) -> pa.Array:
    """Return the column with one spelling for equal values: one NaN, no negative zero, entries of maps sorted by key."""
    values = flat(column)
    if pa.types.is_floating(values.type):
        kind = values.type
        return pc.if_else(pc.is_nan(values), pa.scalar(float("nan"), kind), pc.add(values, pa.scalar(0.0, kind)))
    if not is_nested(values.type):
        return values
    form = form_of(values.type)
    spelled = [None if value is None else form.thaw(form.freeze(value)) for value in values.to_pylist()]
    return pa.array(spelled, values.type)


def equality_codes(column: object) -> Integers:
    """Return codes that are equal exactly where the values are; ``NULL_CODE`` for null."""
    values = flat(column)
    if leaves := _leaves(values):
        found = dense_codes([pa.chunked_array([canonical(leaf)]) for leaf in leaves], len(values)).codes
        return np.where(validity(values), found, NULL_CODE)
    if is_nested(values.type):
        return _codes_of_forms(values, form_of(values.type))
    indices = canonical(values).dictionary_encode().indices
    codes: Integers = pc.fill_null(indices, NULL_CODE).to_numpy(zero_copy_only=False).astype(np.int64)
    return codes


def _leaves(values: pa.Array) -> list[pa.Array]:
    """Return the columns that structs are made of, of which none is nested; nothing for others."""
    leaves = struct_leaves(pa.chunked_array([values])) if pa.types.is_struct(values.type) else None
    return [flat(leaf) for leaf in leaves or ()]


def _codes_of_forms(values: pa.Array, form: Form) -> Integers:
    seen = dict[Frozen, int]()
    frozen = (None if value is None else form.freeze(value) for value in values.to_pylist())
    return np.array([NULL_CODE if f is None else seen.setdefault(f, len(seen)) for f in frozen], np.int64)


def comparable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column that Arrow compares as Spark SQL compares ``column``: itself, or codes of its values; null stays null."""
    if not (is_nested(column.type) or pa.types.is_floating(column.type)):
        return column
    codes = equality_codes(column)
    return pa.chunked_array([pa.array(codes, mask=codes == NULL_CODE)])


def as_written(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column that Arrow compares by how the values of ``column`` are written: as ``comparable``, with two zeros."""
    values = flat(column)
    if is_nested(values.type):
        codes = _codes_of_forms(values, written_form_of(values.type))
    elif pa.types.is_floating(values.type):
        codes = np.where(are_negative_zeros(values), _NEGATIVE_ZERO, equality_codes(values))
    else:
        return column
    return pa.chunked_array([pa.array(codes, mask=codes == NULL_CODE)])


def codes_and_validity(column: object) -> tuple[Integers, Mask]:
    """Return codes in the order of the values, equal where those are, and where there is a value; of null they are any."""
    values = flat(column)
    if has_codes(values.type):
        return ordered_codes(values), validity(values)
    codes = order_codes(values)
    return codes, codes != NULL_CODE


def order_codes(column: object) -> Integers:
    """Return codes in the order of the values, equal where those are; ``NULL_CODE``, the smallest, for null."""
    values = flat(column)
    if leaves := _leaves(values):
        return np.where(validity(values), _ranks(leaves), NULL_CODE)
    if is_nested(values.type):
        form = form_of(values.type)
        frozen = [None if value is None else form.freeze(value) for value in values.to_pylist()]
        ranks = {value: rank for rank, value in enumerate(sorted({f for f in frozen if f is not None}))}
        return np.array([NULL_CODE if f is None else ranks[f] for f in frozen], np.int64)
    ranked: Integers = pc.rank(canonical(values), tiebreaker="dense").to_numpy().astype(np.int64)
    ranked[values.is_null().to_numpy(zero_copy_only=False)] = NULL_CODE
    return ranked


def _ranks(leaves: Sequence[pa.Array]) -> Integers:
    """Return the ranks of rows by several columns, the first one first, NULL before every value."""
    words = [word for codes, valid in map(codes_and_validity, leaves) for word in (valid.astype(np.int64), codes)]
    order = lexical_order(words)
    is_larger = np.zeros(len(order), np.bool_)
    for word in words:
        is_larger[1:] |= word[order[1:]] != word[order[:-1]]
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.cumsum(is_larger)
    return ranks


_COMPARED = (pa.types.is_string, pa.types.is_binary, pa.types.is_decimal)


def differing(left: pa.Array, right: pa.Array) -> Mask:
    if leaves := _leaves(left):
        return _any_differ(differing, leaves, _leaves(right))
    valid = validity(left)
    uneven: Mask = valid != validity(right)
    if has_codes(left.type):
        unequal: Mask = ordered_codes(left) != ordered_codes(right)
        return uneven | (valid & unequal)
    if any(test(left.type) for test in _COMPARED):
        different: Mask = pc.fill_null(pc.not_equal(left, right), False).to_numpy(zero_copy_only=False)
        return uneven | different
    return _by_form(left, right, form_of(left.type))


def _any_differ(differ: Callable[[pa.Array, pa.Array], Mask], left: Sequence[pa.Array], right: Sequence[pa.Array]) -> Mask:
    found: Mask = np.logical_or.reduce([differ(one, other) for one, other in zip(left, right, strict=True)])
    return found


def written_differently(left: pa.Array, right: pa.Array) -> Mask:
    """Return where two columns of one type are not the same as written: where they differ, and where zeros have other signs."""
    if leaves := _leaves(left):
        return _any_differ(written_differently, leaves, _leaves(right))
    if pa.types.is_floating(left.type):
        signs: Mask = are_negative_zeros(left) != are_negative_zeros(right)
        return differing(left, right) | signs
    if pa.types.is_nested(left.type):
        return _by_form(left, right, written_form_of(left.type))
    return differing(left, right)


def rows_written_differently(left: pa.Table, right: pa.Table) -> Mask:
    found = np.zeros(left.num_rows, np.bool_)
    for one, other in zip(left.columns, right.columns, strict=True):
        found |= written_differently(flat(one), flat(other))
    return found


def written_differently_among(left: pa.Array, right: pa.Array, among: Mask) -> Mask:
    """Return where two columns are not the same as written, among some rows: no others are looked at."""
    rows = np.flatnonzero(among)
    found = np.zeros(len(among), np.bool_)
    found[rows] = written_differently(left.take(pa.array(rows)), right.take(pa.array(rows)))
    return found


def _by_form(left: pa.Array, right: pa.Array, form: Form) -> Mask:
    pairs = zip(left.to_pylist(), right.to_pylist(), strict=True)
    same = [a is b if a is None or b is None else form.freeze(a) == form.freeze(b) for a, b in pairs]
    return ~np.array(same, np.bool_) if same else np.zeros(0, np.bool_)
