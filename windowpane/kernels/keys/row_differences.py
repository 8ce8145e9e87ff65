"""Where two columns differ.

As Spark SQL compares values NaN equals NaN, -0.0 equals 0.0, NULL equals NULL only; as they are written, -0.0 differs from 0.0.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windowpane.arrays import Mask
from windowpane.kernels.keys.ordered_codes import are_negative_zeros, has_codes, ordered_codes, validity
from windowpane.windowing.aggregates.canonical import Form, form_of, written_form_of

_COMPARED = (pa.types.is_string, pa.types.is_binary, pa.types.is_decimal)


def differing(left: pa.Array, right: pa.Array) -> Mask:
    valid = validity(left)
    uneven: Mask = valid != validity(right)
    if has_codes(left.type):
        unequal: Mask = ordered_codes(left) != ordered_codes(right)
        return uneven | (valid & unequal)
    if any(test(left.type) for test in _COMPARED):
        different: Mask = pc.fill_null(pc.not_equal(left, right), False).to_numpy(zero_copy_only=False)
        return uneven | different
    return _by_form(left, right, form_of(left.type))


def written_differently(left: pa.Array, right: pa.Array) -> Mask:
    """Return where two columns of one type are not the same as written: where they differ, and where zeros have other signs."""
    if pa.types.is_floating(left.type):
        signs: Mask = are_negative_zeros(left) != are_negative_zeros(right)
        return differing(left, right) | signs
    if pa.types.is_nested(left.type):
        return _by_form(left, right, written_form_of(left.type))
    return differing(left, right)


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
