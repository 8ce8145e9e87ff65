"""The changelog of last rows: what rows of a batch make of the held runs of their keys."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from windowpane.arrays import Integers, Mask
from windowpane.arrays.columns import flat
from windowpane.engines.deduplication.program import DeduplicationProgram
from windowpane.kernels.deduplication.runs import run_numbers
from windowpane.kernels.keys.row_differences import written_differently
from windowpane.windowing.outputs import CHANGE_TYPE, DELETE, INSERT, UPDATE_POSTIMAGE, UPDATE_PREIMAGE


@dataclass(frozen=True)
class Runs:
    """The runs that rows of a batch are in, by the numbers of their spans: held ones first, then rows in order of arrival."""

    newest: Integers  # for each run the span that holds its newest row
    starts: Integers  # where each run starts
    shown: Integers  # for each run the newest held span, -1 if it has none
    held: Integers  # the held spans that are in a run

    @classmethod
    def of(cls, codes: Integers, starts: Integers, ends: Integers, held: int, within: int) -> Runs:
        numbers = run_numbers(codes, starts, ends, within)
        count = int(numbers.max()) + 1
        has_rows = np.zeros(count, np.bool_)
        has_rows[numbers[held:]] = True
        in_order = np.argsort(ends, kind="stable")  # of spans with one end the held one is first, then as they arrived
        newest, shown, first = np.full(count, -1), np.full(count, -1), np.full(count, np.iinfo(np.int64).max)
        newest[numbers[in_order]] = in_order
        of_held = in_order[in_order < held]
        shown[numbers[of_held]] = of_held
        np.minimum.at(first, numbers, starts)
        return cls(newest[has_rows], first[has_rows], shown[has_rows], np.flatnonzero(has_rows[numbers[:held]]))


def changelog(runs: Runs, spans: pa.Table, program: DeduplicationProgram) -> pa.Table:
    """Return how the last rows changed: deleted rows, then updates, both images together, then new rows."""
    rows = spans.select(program.passed)
    deleted = np.setdiff1d(runs.held, runs.shown)
    is_new = runs.shown < 0
    before, after = runs.shown[~is_new], runs.newest[~is_new]
    changed = _changed(rows, before, after)
    before, after = before[changed], after[changed]
    numbers = np.concatenate([deleted, np.stack([before, after], axis=1).ravel(), runs.newest[is_new]])
    images = np.tile([UPDATE_PREIMAGE, UPDATE_POSTIMAGE], len(before))
    words = [*[DELETE] * len(deleted), *images.tolist(), *[INSERT] * int(is_new.sum())]
    return rows.take(pa.array(numbers)).append_column(CHANGE_TYPE, pa.array(words, pa.string()))


def _changed(rows: pa.Table, before: Integers, after: Integers) -> Mask:
    changed = np.zeros(len(before), np.bool_)
    one, other = rows.take(pa.array(before)).combine_chunks(), rows.take(pa.array(after)).combine_chunks()
    for name in rows.column_names:
        changed |= written_differently(flat(one[name]), flat(other[name]))
    return changed
