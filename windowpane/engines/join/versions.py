"""Versions: the right rows of a join as of an instant, which may be a changelog; and which one each left row was emitted with.

The latter is not stored. The version of a waiting left row follows from the versions that are held between two batches, so a
batch computes it before it takes rows, and again at its end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windowpane.arrays import Integers, Mask
from windowpane.arrays.columns import flat
from windowpane.errors import UnknownChangeError
from windowpane.kernels.keys.codes import rows_written_differently
from windowpane.kernels.keys.ordered_codes import codes_of, validity
from windowpane.windowing.outputs import CHANGE_TYPE, CHANGE_TYPES, DELETE, INSERT, UPDATE_POSTIMAGE, UPDATE_PREIMAGE


def versions_among(rows: pa.Table) -> pa.Table:
    """Return rows without those that an update replaces: the version that replaces one comes beside it."""
    if CHANGE_TYPE not in rows.column_names:
        return rows
    words = rows[CHANGE_TYPE]
    unknown = rows.filter(pc.invert(pc.fill_null(pc.is_in(words, pa.array(sorted(CHANGE_TYPES))), False)))
    if unknown.num_rows:
        raise UnknownChangeError(CHANGE_TYPE, unknown[CHANGE_TYPE][0].as_py(), sorted(CHANGE_TYPES))
    return rows.filter(pc.not_equal(words, UPDATE_PREIMAGE))


def are_live(versions: pa.Table) -> Mask:
    if CHANGE_TYPE not in versions.column_names:
        return np.ones(versions.num_rows, np.bool_)
    live: Mask = pc.not_equal(versions[CHANGE_TYPE], DELETE).to_numpy(zero_copy_only=False)
    return live


def sequence_ranks(versions: pa.Table, column: str | None) -> Integers:
    """Return numbers that order versions of one time by a column, NULL first; zeros without one."""
    if column is None:
        return np.zeros(versions.num_rows, np.int64)
    values = flat(versions[column])
    ranks: Integers = np.unique(codes_of(values), return_inverse=True)[1] + 1
    return np.where(validity(values), ranks, 0)


def filled_versions(versions: pa.Table, order: Integers, codes: Integers, names: Sequence[str]) -> pa.Table:
    """Return versions with the last values that are no NULLs, up to the deletion before; given the order of keys and times."""
    begins = np.ones(len(order), np.bool_)
    begins[1:] = (np.diff(codes[order]) != 0) | ~are_live(versions)[order[:-1]]
    places = np.arange(len(order))
    first = np.maximum.accumulate(np.where(begins, places, 0))
    for number, name in enumerate(versions.column_names):
        if name in names and name != CHANGE_TYPE and versions[name].null_count:
            last = np.maximum.accumulate(np.where(validity(flat(versions[name]))[order], places, -1))
            found = np.empty(len(order), np.int64)
            found[order] = order[np.where(last >= first, last, places)]
            versions = versions.set_column(number, versions.schema.field(number), versions[name].take(pa.array(found)))
    return versions


NOTHING = -1
"""In place of a version: the left row has none."""
_UNSEEN = -2
"""In place of a version: the left row has not been emitted yet."""


class Changes(NamedTuple):
    """Rows of a changelog, both halves of an update beside each other."""

    lefts: Integers  # the left row of each
    versions: Integers  # its version, of ``tables`` one after the other; ``NOTHING`` where it has none
    words: list[str]  # what kind of change it is


@dataclass
class Shown:
    versions: pa.Table  # the versions as they were before the batch
    matched: Integers  # for each left row the number of its version there, ``NOTHING`` for none
    compared: tuple[str, ...]  # the columns of a version that are emitted
    pads: bool  # whether a left row without a version is emitted

    def take(self, count: int) -> None:
        self.matched = np.concatenate([self.matched, np.full(count, _UNSEEN)])

    def keep(self, mask: Mask) -> None:
        self.matched = self.matched[mask]

    def changes(self, rows: Integers, versions: pa.Table, matched: Integers) -> Changes:
        before = self.matched[rows]
        was = (before >= 0) | (before == NOTHING) if self.pads else before >= 0
        now = np.full(len(rows), True) if self.pads else matched >= 0
        differs = ~(was & now) | ~self._same(before, versions, matched)
        deleted, inserted = np.flatnonzero(was & differs), np.flatnonzero(now & differs)
        places = np.concatenate([deleted, inserted])
        halves = np.repeat([0, 1], [len(deleted), len(inserted)])
        order = np.lexsort((halves, places))
        moved = np.where(matched >= 0, matched + self.versions.num_rows, NOTHING)
        found = np.concatenate([before[deleted], moved[inserted]])[order]
        is_update = (was & now)[places]
        words = np.where(is_update, halves + 2, halves)[order]
        named = [DELETE, INSERT, UPDATE_PREIMAGE, UPDATE_POSTIMAGE]
        return Changes(rows[places[order]], found, [named[word] for word in words.tolist()])

    def _same(self, before: Integers, versions: pa.Table, matched: Integers) -> Mask:
        same: Mask = (before == NOTHING) & (matched == NOTHING)
        both = np.flatnonzero((before >= 0) & (matched >= 0))
        if len(both):
            old, new = self.versions.select(self.compared), versions.select(self.compared)
            same[both] = ~rows_written_differently(old.take(pa.array(before[both])), new.take(pa.array(matched[both])))
        return same
