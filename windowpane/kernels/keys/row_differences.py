"""Where two columns differ, as Spark SQL compares values: NaN equals NaN, -0.0 equals 0.0, NULL equals NULL only."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windowpane.arrays import Mask
from windowpane.kernels.keys.ordered_codes import has_codes, ordered_codes, validity
from windowpane.windowing.aggregates.canonical import form_of

_COMPARED = (pa.types.is_string, pa.types.is_binary, pa.types.is_decimal)


def differing(left: pa.Array, right: pa.Array) -> Mask:
    """Return where two columns of one type differ."""
    valid = validity(left)
    uneven: Mask = valid != validity(right)
    if has_codes(left.type):
        unequal: Mask = ordered_codes(left) != ordered_codes(right)
        return uneven | (valid & unequal)
    if any(test(left.type) for test in _COMPARED):
        different: Mask = pc.fill_null(pc.not_equal(left, right), False).to_numpy(zero_copy_only=False)
        return uneven | different
    return _by_form(left, right)


def _by_form(left: pa.Array, right: pa.Array) -> Mask:
    form = form_of(left.type)
    pairs = zip(left.to_pylist(), right.to_pylist(), strict=True)
    same = [a is b if a is None or b is None else form.freeze(a) == form.freeze(b) for a, b in pairs]
    return ~np.array(same, np.bool_) if same else np.zeros(0, np.bool_)
