"""The updates engine: windows that fire at the end of each batch for the keys that it brought rows of, on Arrow tables.

For ``EachBatch`` on windows of fixed size and global windows: built-in aggregates only, accumulating, discarding or retracting,
with and without ``pane_info``. The rows of a batch fold by slice and key, meet what the panes hold, and each touched pane fires
once. What a pane held before the batch is what it last emitted, so a retraction needs nothing else to be kept::

    held          k: sum 3          batch   k: sum 4
    emitted       update_preimage   k 3
                  update_postimage  k 7     held afterwards  k: sum 7

State, by name in the bucket's blob store: ``header``; a pane store (see there) with one row for each key and window: its
partials, and with ``pane_info`` how many panes there were (see ``pane_numbers``). A purging trigger keeps no partials. For
staggered windows their ``stagger``. Who may mutate: this engine, once a batch. Recovery: read them back.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from windowpane.arrays import Integers
from windowpane.engines.combiner import Combiner
from windowpane.engines.common.columnar import common_refusal, folding_combiner, keyed, with_plain_keys
from windowpane.engines.common.columnar_batch import ColumnarBatch
from windowpane.engines.common.pane_numbers import PaneNumbers
from windowpane.engines.common.staggering import slicing_refusal
from windowpane.engines.messages import Message, Partials
from windowpane.engines.panes.ended import EndedPanesBatch
from windowpane.engines.panes.panes import Elements, PanesEngine, windows_refusal
from windowpane.engines.panes.touched import TouchedPanes, touched_panes
from windowpane.engines.program import Program
from windowpane.hidden_columns import SEGMENT, SLICE, hidden
from windowpane.kernels.grouping.grouped_fold import GroupedFold
from windowpane.state.blob_store import BlobStore
from windowpane.windowing.changes import INSERT, UPDATE_POSTIMAGE, UPDATE_PREIMAGE
from windowpane.windowing.times import MAX
from windowpane.windowing.windows import GLOBAL_WINDOW

_PANE = hidden("pane")


class UpdatesEngine(PanesEngine):
    """Runs what ``refusal`` does not refuse."""

    name = "updates"

    def batch(self, store: BlobStore) -> ColumnarBatch:
        return _Batch(self.program, self.fold, store)

    @property
    def combiner(self) -> Combiner:
        """What folds rows before the shuffle."""
        return folding_combiner(self.program, self.fold, self.fold_by_slice)


def refusal(program: Program) -> str | None:
    """Return why the updates engine cannot run a program, ``None`` if it can."""
    spec = program.spec
    if not spec.fires_each_batch:
        return f"{type(spec.trigger).__name__} fires within batches"
    if (refused := windows_refusal(spec.assigner)) is not None:
        return refused
    if spec.evictor is not None:
        return "an evictor needs every row"
    return common_refusal(program, shows_panes=True)


def combining_refusal(program: Program) -> str | None:
    """Return why the windows of a row are not known outside its bucket, ``None`` if they are."""
    return slicing_refusal(program.spec)


class _Batch(EndedPanesBatch):
    """One batch of one bucket: state opened, run, written back."""

    def __init__(self, program: Program, fold: GroupedFold, store: BlobStore) -> None:
        super().__init__(program, fold, store)
        self._purges, self._options = program.spec.purges, program.spec.panes

    @property
    def open_windows(self) -> int:
        return 0 if self._purges else self._open

    def panes_of(self, end: int) -> int:
        return self._panes.row_count(end)

    def take(self, messages: Sequence[Message]) -> None:
        tables = [message.table for message in messages]
        if all(isinstance(message, Partials) for message in messages):
            rows, starts = self._windows.folded(pa.concat_tables(tables))
        else:
            rows, starts = self._windows.sliced(keyed(self.program, self.arrived(tables)))
            rows = with_plain_keys(self.program, rows).append_column(SLICE, pa.array(starts))
            rows = self.fold.fold(rows, [SLICE, *self._keys])
            starts = rows[SLICE].to_numpy()
        elements = self._windows.in_open_windows(rows, starts)
        if len(elements.numbers):
            self._fire(elements)

    def _fire(self, elements: Elements) -> None:
        touched = touched_panes(self._panes, elements)
        is_touched = np.zeros(touched.count, bool)
        is_touched[touched.element_panes] = True
        again = is_touched[touched.held_panes]
        before = None if touched.held is None else touched.held.filter(pa.array(again))
        fired, panes = self._fired(touched, before, touched.held_panes[again])
        numbers = self._emit(touched, before, touched.held_panes[again], fired, panes)
        kept = self._kept(touched, fired, panes, numbers)
        if kept is not None:
            unchanged = [] if touched.held is None else [touched.held.filter(pa.array(~again)).select(kept.column_names)]
            self._open += kept.num_rows - int(again.sum())
            self._panes.write(pa.concat_tables([*unchanged, kept]), touched.segments)

    def _fired(self, touched: TouchedPanes, before: pa.Table | None, before_panes: Integers) -> tuple[pa.Table, Integers]:
        """Return the partials of the touched panes with the rows of the batch, and which panes they are."""
        names = list(self.fold.columns)
        parts = [touched.elements.columns(names).append_column(_PANE, pa.array(touched.element_panes))]
        if before is not None and not self._purges:
            parts.insert(0, before.select(names).append_column(_PANE, pa.array(before_panes)))
        merged = self.fold.merge(parts, [_PANE])
        return merged.drop_columns([_PANE]), merged[_PANE].to_numpy()

    def _emit(
        self, touched: TouchedPanes, before: pa.Table | None, before_panes: Integers, fired: pa.Table, panes: Integers
    ) -> PaneNumbers:
        """Emit the results that fired, and those they replace; return how many panes each of ``panes`` has had."""
        options, is_again = self._options, np.zeros(touched.count, bool)
        is_again[before_panes] = True
        last = PaneNumbers.none(0) if before is None else PaneNumbers.kept(before)
        if options.retracts and before is not None:
            columns = last.last_panes() if options.shows_info else []
            columns.append(pa.array(np.full(before.num_rows, UPDATE_PREIMAGE), pa.string()))
            self._put_out(touched, before_panes, before, columns, is_retraction=True)
        is_early = self._last_instants(touched, panes) > self.watermark
        numbers = last.spread(touched.count, before_panes).at(panes).following(is_early)
        columns = numbers.last_panes() if options.shows_info else []
        if options.retracts:
            columns.append(pa.array(np.where(is_again[panes], UPDATE_POSTIMAGE, INSERT), pa.string()))
        self._put_out(touched, panes, fired, columns)
        return numbers

    def _last_instants(self, touched: TouchedPanes, panes: Integers) -> Integers:
        if self._windows.is_global:
            return np.full(len(panes), MAX)
        ends: Integers = touched.keys[SEGMENT].to_numpy()[panes]
        return ends - 1

    def _put_out(
        self, touched: TouchedPanes, panes: Integers, partials: pa.Table, columns: list[pa.Array], is_retraction: bool = False
    ) -> None:
        rows = self._with_keys(touched, panes, partials)
        if self._windows.is_global:
            self.results.emit(GLOBAL_WINDOW, rows, self.watermark, columns, is_retraction)
            return
        ends = touched.keys[SEGMENT].to_numpy()[panes]
        self.results.emit_panes(self._windows.starts(ends), ends, rows, self.watermark, columns, is_retraction)

    def _with_keys(self, touched: TouchedPanes, panes: Integers, partials: pa.Table) -> pa.Table:
        columns = touched.keys.take(pa.array(panes))
        for name in self.fold.columns:
            columns = columns.append_column(name, partials[name])
        return columns

    def _kept(self, touched: TouchedPanes, fired: pa.Table, panes: Integers, numbers: PaneNumbers) -> pa.Table | None:
        """Return the contents of the touched panes afterwards, ``None`` if none have to be kept."""
        if self._purges and not self._options.shows_info:
            return None
        kept = touched.keys.take(pa.array(panes)) if self._purges else self._with_keys(touched, panes, fired)
        return numbers.beside(kept) if self._options.shows_info else kept
