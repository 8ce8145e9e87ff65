"""min and max over spans: spans that advance together take a short way, which others must not notice."""

from __future__ import annotations

import numpy as np
import pytest

from windowpane.kernels.over.extremes import extremes, neutral

SEEDS = range(40)


def spans(random: np.random.Generator, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return spans of one width and distance, cut at the ends of segments, a few of them made anything."""
    width, behind = int(random.integers(1, 40)), int(random.integers(-20, 40))
    numbers = np.arange(rows)
    segment = int(random.integers(1, rows + 1))
    first = numbers // segment * segment
    end = np.minimum(first + segment, rows)
    lo = np.clip(numbers - behind, first, end)
    hi = np.clip(numbers - behind + width, lo, end)
    strange = random.random(rows) < random.choice([0.0, 0.02, 0.7])
    lo = np.where(strange, random.integers(0, rows, rows), lo)
    return lo, np.where(strange, random.integers(lo, rows + 1), hi)


@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_every_span_has_the_extreme_of_its_rows(seed, largest):
    random = np.random.default_rng(seed)
    rows = int(random.integers(1, 300))
    codes = random.integers(-50, 50, rows)
    lo, hi = spans(random, rows)
    pick = max if largest else min
    expected = [pick(codes[a:b].tolist(), default=neutral(largest)) for a, b in zip(lo, hi, strict=True)]
    assert extremes(codes, [(lo, hi)], largest).tolist() == expected, f"seed {seed}"
