"""The changes of one batch merged by key: at most one change of each row is left. Source: RisingWave, per chunk.

Insert and delete cancel, delete and insert become an update, updates collapse, an update that changes nothing vanishes. Each
half of an update is taken by itself, because the other half may be in another partition and so in another bucket.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass

from windowpane.arrays.values import Row
from windowpane.errors import InconsistentChangeError
from windowpane.windowing.outputs import APPEARING, CHANGE_TYPES, Change

Report = Callable[[InconsistentChangeError], None]
"""Takes an impossible change: raises it, or counts it and returns."""


@dataclass(slots=True)
class _Merged:
    before: Row | None
    after: Row | None
    last: str


def consolidate(
    changes: Iterable[tuple[str, Row]], key: Callable[[Row], Hashable], same: Callable[[Row, Row], bool], report: Report
) -> list[Change]:
    """Return the net change of each row, in order of first appearance."""
    merged: dict[Hashable, _Merged] = {}
    for word, row in changes:
        if word not in CHANGE_TYPES:
            raise InconsistentChangeError(repr(word), row, f"a change type is one of {', '.join(sorted(CHANGE_TYPES))}")
        _merge(merged, key(row), word, row, report)
    pairs = ((each.before, each.after) for each in merged.values())
    return [Change(a, b) for a, b in pairs if not (a is b if a is None or b is None else same(a, b))]


def _merge(merged: dict[Hashable, _Merged], key: Hashable, word: str, row: Row, report: Report) -> None:
    appears = word in APPEARING
    known = merged.get(key)
    if known is None:
        merged[key] = _Merged(None, row, word) if appears else _Merged(row, None, word)
    elif appears:
        if known.after is not None:
            report(InconsistentChangeError(word, row, f"the same batch already has {known.last} of it"))
        known.after, known.last = row, word
    elif known.after is None:
        report(InconsistentChangeError(word, row, f"the same batch already has {known.last} of it"))
    else:
        known.after, known.last = None, word
