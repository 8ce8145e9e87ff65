"""SplitMix64 (Steele, Lea and Flood, 2014) on arrays: the steps that hashes of keys and of partitions are made of.

State on disk lies by these hashes, so the constants may not change.
"""

from __future__ import annotations

import numpy as np

from windowpane.arrays import Unsigned

GAMMA = np.uint64(0x9E3779B97F4A7C15)
"""The step from one state of the generator to the next: 2**64 by the golden ratio, made odd."""


def mixed(words: Unsigned) -> Unsigned:
    """Return the finalizer of each word: every bit of the input moves every bit of the output, and 0 stays 0."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    finalized: Unsigned = words ^ (words >> np.uint64(31))
    return finalized


def stepped(words: Unsigned) -> Unsigned:
    """Return the finalizer of the state after each word: the number that the generator draws from it."""
    return mixed(words + GAMMA)
