"""The values that RisingWave's ``approx_percentile`` gives: those of the buckets of a DDSketch.

A bucket holds the values between two powers of a base that follows from the relative error. Each value counts as the one of its
bucket. Source: RisingWave's ``approx_percentile``; Masson et al., "DDSketch" (2019).
"""

from __future__ import annotations

import math


def bucket_value(value: float, relative_error: float) -> float:
    """Return the value that stands for all of the bucket of a value, off by ``relative_error`` of it at most."""
    if value == 0 or not math.isfinite(value):
        return value
    base = (1 + relative_error) / (1 - relative_error)
    bucket = math.ceil(math.log(abs(value)) / math.log(base))
    return math.copysign(2 * _power(base, bucket) / (base + 1), value)


def _power(base: float, exponent: int) -> float:
    """Return a power by squaring, which rounds as RisingWave's does."""
    result, square, rest = 1.0, base, abs(exponent)
    while rest:
        if rest & 1:
            result *= square
        rest >>= 1
        if rest:
            square *= square
    return 1 / result if exponent < 0 else result
