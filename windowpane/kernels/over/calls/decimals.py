"""Sums and means of decimals of at most 18 digits, from the halves of their totals as whole numbers of the last decimal place."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa

from windowpane.arrays import Integers, Mask
from windowpane.kernels.over.sums import LOW_BITS, exact_sum
from windowpane.windowing.aggregates.decimals import EXACT, fitted, mean


def decimal_sums(high: Integers, low: Integers, valid: Mask, kind: pa.DataType) -> pa.Array:
    """Return totals as decimals of ``kind``, ten digits longer than the values: ten billion rows fit."""
    words = np.empty((len(high), 2), np.int64)
    words[:, 0] = (high << LOW_BITS) + low
    words[:, 1] = (high + (low >> LOW_BITS)) >> LOW_BITS
    bitmap = None if valid.all() else pa.array(valid).buffers()[1]
    return pa.Array.from_buffers(kind, len(high), [bitmap, pa.py_buffer(words)])


def decimal_means(high: Integers, low: Integers, counts: Integers, scale: int, kind: pa.DataType, label: str) -> pa.Array:
    """Return means as Spark rounds them; NULL where the count is 0."""
    totals = [Decimal(exact_sum(*halves)).scaleb(-scale, EXACT) for halves in zip(high.tolist(), low.tolist(), strict=True)]
    pairs = zip(totals, counts.tolist(), strict=True)
    return pa.array([fitted(mean(total, n, kind.scale), kind, label) if n else None for total, n in pairs], kind)
