"""The counts engine: windows that fire each time they have received so many elements, on Arrow tables.

For count windows (tumbling and sliding), and count triggers on global windows and windows of fixed size, purging or not, with
or without an evictor: built-in aggregates only. Every boundary inside a batch fires, as element by element. A running count
for each key and window cuts the batch into pieces that end at the boundaries; a firing sees a range of pieces.

State: ``header``; a pane store (see there) whose rows are, without an evictor, the partials and the count of each key and
window (``counted_contents``), and with one the elements it has left or pieces of them (``counted_evictions``); for staggered
windows their ``stagger``. Who may mutate: this engine, once a batch. Recovery: read them back.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd

import numpy as np
import pyarrow as pa

from windowpane.arrays import Integers
from windowpane.engines.common.columnar import common_refusal, keyed, with_plain_keys
from windowpane.engines.common.columnar_batch import ColumnarBatch
from windowpane.engines.common.evicting import evictor_refusal, survivors_of
from windowpane.engines.messages import Message
from windowpane.engines.panes.counted_contents import CountedContents, CountRule, FoldedPartials
from windowpane.engines.panes.counted_evictions import EvictedElements, EvictedPieces
from windowpane.engines.panes.ended import EndedPanesBatch
from windowpane.engines.panes.panes import Elements, PanesEngine, windows_refusal
from windowpane.engines.panes.touched import touched_panes
from windowpane.engines.program import Program
from windowpane.errors import MistakeError
from windowpane.kernels.grouping.grouped_fold import GroupedFold
from windowpane.kernels.keys.dense_codes import dense_codes
from windowpane.state.blob_store import BlobStore
from windowpane.windowing.arrow.functions import ArrowWindowFunction
from windowpane.windowing.evictors import CountEvictor
from windowpane.windowing.spec import WindowSpec
from windowpane.windowing.triggers import CountTrigger
from windowpane.windowing.windows import GLOBAL_WINDOW


class CountsEngine(PanesEngine):
    """Runs what ``refusal`` does not refuse."""

    name = "counts"

    def batch(self, store: BlobStore) -> ColumnarBatch:
        return _Batch(self.program, self.fold, store)


def refusal(program: Program) -> str | None:
    """Return why the counts engine cannot run a program, ``None`` if it can."""
    spec = program.spec
    if _count_trigger(spec) is None:
        return f"{type(spec.trigger).__name__} does not count"
    if (refused := windows_refusal(spec.assigner)) is not None:
        return refused
    if isinstance(program.arrow, ArrowWindowFunction):
        return "a function on tables of many keys would see several firings of a key at once"
    return evictor_refusal(program) or common_refusal(program)


def _count_trigger(spec: WindowSpec) -> CountTrigger | None:
    trigger = spec.firing_trigger
    return trigger if type(trigger) is CountTrigger else None


class _Batch(EndedPanesBatch):
    """One batch of one bucket: state opened, run, written back."""

    def __init__(self, program: Program, fold: GroupedFold, store: BlobStore) -> None:
        super().__init__(program, fold, store)
        self._contents = _contents(program, fold)

    def panes_of(self, end: int) -> int:
        rows = self._panes.read([end])
        return 0 if rows is None else len(dense_codes([rows[name] for name in self._keys], rows.num_rows).firsts)

    def take(self, messages: Sequence[Message]) -> None:
        tables = [message.table for message in messages]
        rows, starts = self._windows.sliced(keyed(self.program, self.arrived(tables, always_in_order=True)))
        elements = self._windows.in_open_windows(with_plain_keys(self.program, rows), starts)
        if len(elements.numbers):
            self._fire(elements)

    def _fire(self, elements: Elements) -> None:
        touched = touched_panes(self._panes, elements)
        outcome = self._contents.take(touched)
        self._emit(elements, outcome.fired, outcome.elements)
        self._open += outcome.kept_count - touched.held_count
        self._panes.write(outcome.kept, touched.segments)

    def _emit(self, elements: Elements, fired: pa.Table, numbers: Integers) -> None:
        """Emit firings in the order of the elements that made them fire, for each the partials and the number of that element."""
        order = np.argsort(numbers)
        fired, ends = fired.take(pa.array(order)), elements.ends[numbers[order]]
        if self._windows.is_global:
            self.results.emit(GLOBAL_WINDOW, fired, self.watermark)
        else:
            self.results.emit_panes(self._windows.starts(ends), ends, fired, self.watermark)


def _contents(program: Program, fold: GroupedFold) -> CountedContents:
    trigger, spec = _count_trigger(program.spec), program.spec
    if trigger is None:
        raise MistakeError("the planner checked")
    rule = CountRule(max(1, trigger.max_count), spec.purges)
    if spec.evictor is None:
        return FoldedPartials(program, fold, rule)
    if isinstance(spec.evictor, CountEvictor) and not spec.evictor.do_evict_after and gcd(rule.every, spec.evictor.max_count) > 1:
        return EvictedPieces(program, fold, rule, spec.evictor.max_count)
    return EvictedElements(program, fold, rule, survivors_of(spec.evictor))
