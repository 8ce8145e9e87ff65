"""When keys are looked at: at the ticks at which a row may enter or leave a window, and when rows are forgotten.

There is no timer a key. Each key holds the first such instant after all that is done, and a page the first of its keys.
"""

from __future__ import annotations

import numpy as np

from windowpane.arrays import Integers, Mask
from windowpane.engines.rolling.held import Keys, Pieces
from windowpane.windowing.rolling.spec import RollingEmit, RollingSpec
from windowpane.windowing.rolling.windows import RollingWindow
from windowpane.windowing.times import MAX, MIN

FAR = MAX // 2
"""Later than any watermark at which something is held."""


def set_looks(spec: RollingSpec, keys: Keys, pieces: Pieces, which: Mask, now: int) -> None:
    """Set when to look at some keys again, all up to the watermark ``now`` being done."""
    now = min(now, FAR)
    if not which.all():
        pieces = _of_keys(pieces, which)
    looks = np.full(len(keys), FAR)
    starts = np.flatnonzero(np.diff(pieces.owners, prepend=-1))
    owners = pieces.owners[starts]
    looks[owners] = spec.forgotten(pieces.times[starts])

    def sooner(moments: Integers) -> None:
        if len(starts):
            looks[owners] = np.minimum(looks[owners], np.minimum.reduceat(moments, starts))

    if spec.emit is RollingEmit.EACH and pieces.waiting is not None:
        sooner(np.where(pieces.waiting > 0, pieces.times, FAR))
    if spec.emit is RollingEmit.TICK:
        for moments in _tick_moments(spec, pieces.times):
            sooner(np.where(moments > now, moments, FAR))
    if spec.emit in (RollingEmit.TICK, RollingEmit.CHANGED) and now > MIN:
        is_stale = keys.seen[owners] == MIN
        looks[owners[is_stale]] = np.minimum(looks[owners[is_stale]], spec.tick_from(now + 1))
    if spec.emit is RollingEmit.CHANGED:
        for window in spec.windows:
            firsts, leaves = _first_to_leave(window, pieces, starts, keys.seen[owners])
            moments = spec.tick_from(np.maximum(window.leaving(pieces.times[firsts]), now + 1 if now > MIN else MIN))
            looks[owners[leaves]] = np.minimum(looks[owners[leaves]], moments)
    keys.look[which] = looks[which]


def _first_to_leave(window: RollingWindow, pieces: Pieces, starts: Integers, seen: Integers) -> tuple[Integers, Mask]:
    """Return the first piece of each key that leaves a window after an instant, and which keys have one.

    These are the pieces that the window as of that instant takes, or will take; a key's pieces are in order of time.
    """
    bounds = np.where(seen == MIN, MIN, window.start(np.maximum(seen, MIN // 2)))
    sizes = np.diff(starts, append=len(pieces.times))
    is_past = pieces.times < np.repeat(bounds, sizes)
    past = np.add.reduceat(is_past, starts, dtype=np.int64) if len(starts) else sizes
    leaves = past < sizes
    return (starts + past)[leaves], leaves


def due_ticks(spec: RollingSpec, keys: Keys, pieces: Pieces, before: int, watermark: int) -> tuple[Integers, Integers]:
    """Return the (key, tick) pairs after ``before`` and up to ``watermark`` at which features may change, in order."""
    due = keys.look <= watermark
    asked, ticks = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    pieces = _of_keys(pieces, due)
    for moments in _tick_moments(spec, pieces.times):
        is_due = (moments > before) & (moments <= watermark)
        asked.append(pieces.owners[is_due])
        ticks.append(moments[is_due])
    if before > MIN and (following := spec.tick_from(before + 1)) <= watermark:
        stale = np.flatnonzero(due & (keys.seen == MIN))
        asked.append(stale)
        ticks.append(np.full(len(stale), following))
    pairs = np.unique(np.stack([np.concatenate(asked), np.concatenate(ticks)]), axis=1)
    return pairs[0], pairs[1]


def _tick_moments(spec: RollingSpec, times: Integers) -> list[Integers]:
    """Return the ticks at which pieces enter windows, and for each window those at which they leave it."""
    return [spec.tick_from(times), *(spec.tick_from(window.leaving(times)) for window in spec.windows)]


def _of_keys(pieces: Pieces, which: Mask) -> Pieces:
    """Return the pieces of some keys, without their partials."""
    chosen = which[pieces.owners]
    waiting = None if pieces.waiting is None else pieces.waiting[chosen]
    return Pieces(pieces.owners[chosen], pieces.times[chosen], pieces.partials.slice(0, 0), waiting)
