"""Larger plans: state of rolling features that another plan wrote is used on where it holds all that the new one needs.

A plan may have more features than the one that wrote the state, if the state holds the aggregate of each over another window:
pieces are merged into windows, and know none. Pieces must not be too coarse for the new window, nor forgotten too early::

    held of a key     | day | day | 3 | 1 | 2 | 5 | 4 |      an hour exactly, 30 days by the day
    of 30 minutes                         [           ]      sees single instants
    of 6 hours                [                       ]      would cut a day: refused
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from windowpane.engines.changes import Description
from windowpane.engines.rolling.pieces import Keys, Pieces
from windowpane.engines.rolling.program import RollingProgram
from windowpane.kernels.rolling import PieceFeatures
from windowpane.windowing.rolling import RollingSpec
from windowpane.windowing.times import MIN


@dataclass(frozen=True)
class Growth:
    """How a larger plan reads the state of a smaller one."""

    places: tuple[int | None, ...]  # for each feature of the larger plan its number in the smaller one, ``None`` if it is new
    renamed: tuple[tuple[str, str], ...]  # the partial columns of the smaller plan, each with its name in the larger one
    types: tuple[pa.DataType, ...]  # the types of the features of the larger plan

    def of(self, keys: Keys, pieces: Pieces) -> tuple[Keys, Pieces]:
        """Return keys and pieces as the larger plan holds them; each key is to be looked at again."""
        features = [
            pa.nulls(len(keys), kind) if place is None else keys.features[place]
            for place, kind in zip(self.places, self.types, strict=True)
        ]
        partials = pa.table([pieces.partials[was] for was, _ in self.renamed], names=[now for _, now in self.renamed])
        grown = dataclasses.replace(keys, features=features, seen=np.full(len(keys), MIN))
        return grown, dataclasses.replace(pieces, partials=partials)


def growth_of(program: RollingProgram, was: Description) -> Growth | None:
    """Return how ``program`` reads the state of a plan with the parts ``was``; ``None`` if it cannot."""
    now = program.description
    differing = {part for part in {*was, *now} if was.get(part) != now.get(part)}
    if not differing <= {"calls", "columns", "resolved"}:
        return None
    held, after = was["calls"], now["calls"]
    numbers = [number for number, call in enumerate(after) if call in held]
    if [after[number] for number in numbers] != held:
        return None
    before = dataclasses.replace(program.spec, calls=tuple(program.spec.calls[number] for number in numbers))
    if not _is_sound(before, program.spec):
        return None
    old, new = PieceFeatures(before, program.columns), PieceFeatures(program.spec, program.columns)
    if {*old.distinct} != {*new.distinct}:
        return None
    renamed = [
        pair
        for call, aggregate in zip(new.distinct, new.fold.aggregates, strict=True)
        for pair in zip(old.fold.aggregates[old.distinct.index(call)].columns, aggregate.columns, strict=True)
    ]
    places = tuple(numbers.index(number) if number in numbers else None for number in range(len(program.spec.calls)))
    return Growth(places, tuple(renamed), tuple(new.types))


def _is_sound(before: RollingSpec, now: RollingSpec) -> bool:
    """Whether the pieces that ``before`` has kept are all that ``now`` needs, and as fine."""
    added = [window for window in now.windows if window not in before.windows]
    if before.grain != now.grain or before.reach != now.reach or before.windows[-1] != now.windows[-1]:
        return False
    return all(
        (not window.is_exact and window.hop % width == 0)
        or any(window.length + window.overhang <= other.length for other in finer)  # it never begins before the other
        for window in added
        for width, finer in before.levels
    )
