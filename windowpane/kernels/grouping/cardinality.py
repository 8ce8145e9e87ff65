"""Cardinality: how many groups rows will make, estimated from a sample of them."""

from __future__ import annotations

import math

_STEPS = 60


def expected_groups(sampled: int, groups: int, rows: int) -> float:
    """Return how many groups ``rows`` rows make if ``sampled`` of them, drawn at random, made ``groups``.

    Groups are taken for equally frequent: ``sampled`` rows from K groups meet about ``K * (1 - exp(-sampled / K))`` of them
    (the occupancy problem), which is solved for K. Skewed groups are more than that says, so the answer is a lower bound.

    Example:
        >>> round(expected_groups(10_000, 1_000, 1_000_000))
        1000
    """
    if groups >= sampled:
        return float(rows)
    low, high = math.log(max(groups, 1)), math.log(max(groups, 1)) + 40
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if _met(math.exp(middle), sampled) < groups else (low, middle)
    return _met(math.exp(high), rows)


def _met(groups: float, rows: int) -> float:
    return -groups * math.expm1(-rows / groups)
