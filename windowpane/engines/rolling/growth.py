"""Other plans: state of rolling features that another plan wrote is used on where it holds all that the new one needs.

Rows, which the reference operator keeps one by one, serve every feature of their columns that sees no farther back. Of pieces a
plan may have fewer features than the one that wrote them, or more, if the state holds the aggregate of each over another window:
pieces are merged into windows, and know none. They must not be too coarse for a new window, nor forgotten too early::

    held of a key     | day | day | 3 | 1 | 2 | 5 | 4 |      an hour exactly, 30 days by the day
    of 30 minutes                         [           ]      sees single instants
    of 6 hours                [                       ]      would cut a day: refused
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from windowpane.arrays.values import JsonValue
from windowpane.engines.changes import ACCEPTED, Description, matched_calls
from windowpane.engines.rolling.pieces import Keys, Pieces
from windowpane.engines.rolling.program import RollingProgram
from windowpane.hidden_columns import hidden
from windowpane.kernels.rolling import PieceFeatures
from windowpane.windowing.aggregates import Aggregate
from windowpane.windowing.rolling import RollingCall, RollingSpec, RollingWindow
from windowpane.windowing.times import MIN


@dataclass(frozen=True)
class Growth:
    """How a larger plan reads the state of a smaller one."""

    places: tuple[int | None, ...]  # for each feature of the larger plan its number in the smaller one, ``None`` if it is new
    renamed: tuple[tuple[str, str], ...]  # the partial columns of the smaller plan, each with its name in the larger one
    types: tuple[pa.DataType, ...]  # the types of the features of the larger plan
    lost: str  # what of the smaller one does not serve it, for people; empty for nothing

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
    now, spec = program.description, program.spec
    before = _spec_before(program, was)
    lost = None if before is None else _lost(before, spec)
    if lost is None:
        return None
    aggregates = list(dict.fromkeys(map(_aggregate, was["calls"])))
    new, renamed = PieceFeatures(spec, program.columns), list[tuple[str, str]]()
    for call, form in zip(dict.fromkeys(map(_aggregate, now["calls"])), new.fold.aggregates, strict=True):
        if call not in aggregates:
            return None
        prefix = hidden(f"{aggregates.index(call)}_")
        renamed += [(prefix + name.removeprefix(form.prefix), name) for name in form.columns]
    return Growth(matched_calls(was["calls"], now["calls"]), tuple(renamed), tuple(new.types), lost)


def places_in(program: RollingProgram, was: Description) -> tuple[int | None, ...] | None:
    """Return for each feature its number in a plan with the parts ``was``, of which rows are in state one by one.

    ``None`` for a feature that is new; instead of all where these rows lack a column, or were forgotten too early.
    """
    before, now = _spec_before(program, was), program.spec
    if before is None or now.reach > before.reach or now.windows[-1].length > before.windows[-1].length:
        return None
    if any(column not in was["columns"] for column in program.description["columns"]):
        return None
    return matched_calls(was["calls"], program.description["calls"])


def _spec_before(program: RollingProgram, was: Description) -> RollingSpec | None:
    """Return the windows of a plan that differs in its features alone, ``None`` for another one."""
    differing = {part for part in {*was, *program.description} if was.get(part) != program.description.get(part)}
    if not differing <= {"calls", "columns", "resolved", ACCEPTED}:
        return None
    return RollingSpec(tuple(map(_of_window, was["calls"])), program.spec.step, program.spec.emit)


def _of_window(call: JsonValue) -> RollingCall:
    window = call["window"]
    return RollingCall(call["name"], Aggregate.of("count"), RollingWindow(window["length"], window["hop"], window["is_exact"]))


def _aggregate(call: JsonValue) -> str:
    """Return what calls that differ in their windows alone have in common."""
    return json.dumps([call[part] for part in ("function", "arguments", "parameters", "types", "condition")])


def _lost(before: RollingSpec, now: RollingSpec) -> str | None:
    """Return what is lost of the features of state, empty for nothing; ``None`` if it does not serve."""
    if _is_sound(before, now):
        return ""
    new = [window for window in now.windows if window not in before.windows]
    finer = [window for window in new if any(_is_finer(window, old) for old in before.windows)]
    kept = [window for window in now.windows if window not in finer]
    if not {*kept} <= {*before.windows} or now.reach > before.reach:
        return None
    if finer:
        return "windows cut what state has put together by the old hop until they have passed it"
    return "what only a window could see that is gone is forgotten"


def _is_finer(window: RollingWindow, old: RollingWindow) -> bool:
    return window.length == old.length and (window.is_exact or (not old.is_exact and old.hop % window.hop == 0))


def _is_sound(before: RollingSpec, now: RollingSpec) -> bool:
    """Whether the pieces that ``before`` has kept are all that ``now`` needs, and as fine."""
    added = [window for window in now.windows if window not in before.windows]
    if before.windows == now.windows:
        return True
    if before.grain != now.grain or before.reach != now.reach or before.windows[-1] != now.windows[-1]:
        return False
    return all(
        (not window.is_exact and window.hop % width == 0)
        or any(window.length + window.overhang <= other.length for other in finer)  # it never begins before the other
        for window in added
        for width, finer in before.levels
    )
