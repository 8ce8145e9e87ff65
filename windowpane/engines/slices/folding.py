"""Folding the rows of windows that share slices, by slice and key: by the engine, and before the shuffle."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from windowpane.arrays import Mask
from windowpane.engines.combiner import Combiner, Folding
from windowpane.engines.common.columnar import fold_of, folding_combiner, key_names, keyed, refuse_null_times, with_plain_keys
from windowpane.engines.common.slicing import Slices, slices_of
from windowpane.engines.nested_keys.writing import coded_keys
from windowpane.engines.program import Program
from windowpane.errors import present
from windowpane.hidden_columns import ARRIVAL, PARTITION, POSITION, ROWS, SLICE, TIME
from windowpane.kernels.grouping.coded_groups import expected_groups
from windowpane.kernels.grouping.grouped_fold import GroupedFold
from windowpane.sizes import Size

_SAMPLE = Size("rows sampled before folding slices", 1 << 15, (2, 5))
_TOGETHER = 4
"""A task is taken to have so many times its first rows."""
_FEW, _MANY = 0.05, 0.4
"""Partials a row: below the one, pieces fold as well as all at once; above the other, folding twice costs more than it saves."""


_GROUPS_ALONE = GroupedFold(())
"""Counts the groups that rows make."""


def combiner(program: Program) -> Combiner:
    slices = SliceFolding(program)
    return folding_combiner(
        program,
        slices.fold,
        slices.fold_rows,
        folding=slices.folding,
        is_ordered=slices.fold.is_ordered,
        punctual=None if program.late_output is None else slices.are_punctual,
    )


class SliceFolding:
    def __init__(self, program: Program) -> None:
        self.program = program
        self.slices = present(slices_of(program.spec.assigner), "the planner checked")
        self.fold = present(fold_of(program), "the planner checked")
        self.groups = key_names(program)
        self.is_event_time = program.spec.assigner.is_event_time

    def fold_rows(self, rows: pa.Table) -> pa.Table:
        """Return the partials of rows by slice and key: the combiner, before the shuffle.

        The slice of processing-time windows is not known yet, and is any for all. Where an aggregate depends on the order of
        arrival, rows are numbered by their position in the task, and partials hold their task and last position.

        Raises:
            MissingTimestampError: a row without an event time.
            TimestampOverflowError: a row whose windows do not fit into int64.
        """
        rows = self._keyed_by_slice(rows)
        if not self.fold.is_ordered:
            return self.fold.fold(rows, [SLICE, *self.groups], counted=ROWS)
        rows = rows.append_column(ARRIVAL, rows[POSITION])
        return self.fold.fold(rows, [SLICE, *self.groups], counted=ROWS, kept=[(PARTITION, "max"), (POSITION, "max")])

    def _keyed_by_slice(self, rows: pa.Table) -> pa.Table:
        """Return rows with slice and key, nested keys coded where they repeat."""
        return with_plain_keys(self.program, keyed(self.program, self._starting(rows, self.slices, now=0), coded_keys))

    def are_punctual(self, rows: pa.Table, watermark: int) -> Mask:
        """Return which rows have missed none of their windows, in no gap, under a watermark.

        Raises:
            MissingTimestampError: a row without an event time.
            TimestampOverflowError: a row whose windows do not fit into int64.
        """
        punctual = np.ones(rows.num_rows, np.bool_)
        if self.is_event_time:
            refuse_null_times(self.program, rows)
            starts = self.slices.starts(rows[TIME].to_numpy())
            begun = starts <= watermark  # no window ends before its slices begin
            lateness = self.program.spec.lateness
            for start in np.unique(starts[begun]).tolist():
                if any(lateness.is_late(window.max_timestamp, watermark) for window in self.slices.windows_of(start)):
                    punctual[starts == start] = False
        return punctual

    def folding(self, rows: pa.Table) -> Folding:
        """Return how the rows of a task are best folded, estimated from a sample of them."""
        stride = rows.num_rows // _SAMPLE.value
        if stride < 2:
            return Folding.TOGETHER
        sample = rows.take(pa.array(np.arange(0, rows.num_rows, stride)))
        groups = _GROUPS_ALONE.fold(self._keyed_by_slice(sample), [SLICE, *self.groups]).num_rows
        if expected_groups(sample.num_rows, groups, rows.num_rows) < _FEW * rows.num_rows:
            return Folding.PIECEWISE
        together = _TOGETHER * rows.num_rows
        return Folding.NOT if expected_groups(sample.num_rows, groups, together) > _MANY * together else Folding.TOGETHER

    def sliced(self, rows: pa.Table, slices: Slices, now: int) -> pa.Table:
        """Return rows in no gap with their key and the column that names their slice; ``now`` is the processing time."""
        return keyed(self.program, self._starting(rows, slices, now))

    def _starting(self, rows: pa.Table, slices: Slices, now: int) -> pa.Table:
        if self.is_event_time:
            refuse_null_times(self.program, rows)
            times = rows[TIME].to_numpy()
        else:
            times = np.full(rows.num_rows, now, np.int64)
        starts = slices.starts(times)
        return rows.append_column(SLICE, pa.array(starts))
