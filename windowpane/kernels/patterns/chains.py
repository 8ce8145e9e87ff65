"""Patterns whose rows are looked for one after the other: all attempts together, a part at a time, by next positions.

Such a pattern has rows of one variable each, ``->`` between some of them, and an absence at the end at most. So an attempt has
one way, which takes the next row, or the next one that ends what is passed over; nothing is ever given back.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from windowpane.arrays import Integers, Mask
from windowpane.errors import MistakeError
from windowpane.kernels.patterns.regex import ROW, UNKNOWN, PatternText, first_from
from windowpane.windowing.patterns import tree
from windowpane.windowing.patterns.tree import Pattern


@dataclass(frozen=True)
class Ways:
    """The ways of attempts, a row each."""

    matches: Mask  # whether it is a match
    waits: Mask  # whether it asks for a row that is not known
    wants: Mask  # whether it fails for want of a row before its end
    # the places of all its rows, one that is not known included, and of each part, as far as it went: (attempts, 1 + parts, 2)
    spans: Integers

    def of(self, attempts: Integers) -> Ways:
        """Return the ways of some of the attempts."""
        return Ways(self.matches[attempts], self.waits[attempts], self.wants[attempts], self.spans[attempts])


def ways(pattern: PatternText, chain: tuple[Pattern, ...], text: Integers, places: Integers, stops: Integers) -> Ways:
    """Return the ways of attempts, given the places where each begins and before which it ends."""
    count, rows = len(places), np.append(text, UNKNOWN)
    goes_on, waits, wants = np.ones(count, np.bool_), np.zeros(count, np.bool_), np.zeros(count, np.bool_)
    spans = np.empty((count, 1 + len(chain), 2), np.int64)
    at = asked = places
    for number, part in enumerate(chain, start=1):
        spans[:, number, 0] = at
        if isinstance(part, tree.Passing):
            at = np.where(goes_on, np.minimum(_following(pattern, part.until, text)[at], stops), at)
        elif isinstance(part, tree.Absence):
            found = _following(pattern, part.of, text)[at]
            asks = goes_on & (found < stops) & (rows[found] == UNKNOWN)
            waits, asked = waits | asks, np.where(asks, found, asked)
            goes_on = goes_on & (found >= stops)
        elif isinstance(part, tree.Variable):
            is_there, row = at < stops, rows[np.minimum(at, len(text))]
            asks = goes_on & is_there & (row == UNKNOWN)
            waits, asked = waits | asks, np.where(asks, at, asked)
            wants |= goes_on & ~is_there
            goes_on = goes_on & is_there & pattern.taken([part.name])[row]
            at = at + goes_on
        else:
            raise MistakeError(f"{part} has several ways")
        spans[:, number, 1] = at
    spans[:, 0, 0], spans[:, 0, 1] = places, np.where(waits, asked + 1, at)
    return Ways(goes_on, waits, wants, spans)


def _following(pattern: PatternText, names: tuple[str, ...], text: Integers) -> Integers:
    """Return for each place the first one at or behind it of a row that some variables take, or of what is no row."""
    return first_from(np.append(pattern.taken(names)[text] | (text < ROW), True))
