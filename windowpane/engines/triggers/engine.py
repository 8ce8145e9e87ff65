"""The triggers engine: panes whose trigger is called row by row and timer by timer, on Arrow tables.

For composable triggers, and Flink's where no other engine has a rule for them, on windows of fixed size and global windows:
built-in aggregates, accumulating, discarding or retracting. The trigger itself is called, once for all panes that are alike
(``standings``); its answers cut the rows of a batch into pieces that end where panes fire or purge::

    AfterCount(2), repeated     held  x | batch  x F  x x F  x
    accumulating shows          first firing  held + 1st piece   second  held + 1st + 2nd
    discarding shows            first firing  held + 1st piece   second  2nd

Where only clocks fire, rows fold before the shuffle: no piece ends within a batch, and partials are taken in place of rows.

State, by name in the bucket's blob store: ``header``; a pane store (see there) with one row for each key and window: its
standing, whether it holds something and the partials, with ``pane_info`` how many panes there were, and where panes are taken
back the partials of the last one; ``d``, when the first timers of each segment are due; for staggered windows their
``stagger``. Who may mutate: this engine, once a batch. Recovery: read them back.
"""

from __future__ import annotations

from windowpane.engines.combiner import Combiner
from windowpane.engines.common.columnar import common_refusal, folding_combiner
from windowpane.engines.common.columnar_batch import ColumnarBatch
from windowpane.engines.common.staggering import slicing_refusal
from windowpane.engines.panes.panes import PanesEngine, windows_refusal
from windowpane.engines.program import Program
from windowpane.engines.triggers.panes import TriggeredPanes
from windowpane.engines.triggers.sessions import TriggeredSessions
from windowpane.engines.triggers.standings import (
    fires_by_clocks_alone,
    row_reader,
)
from windowpane.state.blob_store import BlobStore
from windowpane.windowing.arrow.functions import ArrowWindowFunction
from windowpane.windowing.assigners import EventTimeSessionWindows, GlobalWindows, ProcessingTimeSessionWindows
from windowpane.windowing.triggers import (
    ContinuousEventTimeTrigger,
    DeltaTrigger,
    EventTimeTrigger,
    ProcessingTimeoutTrigger,
    ProcessingTimeTrigger,
    PurgingTrigger,
    Trigger,
)
from windowpane.windowing.triggers.composable.pane_trigger import PaneTrigger


class TriggersEngine(PanesEngine):
    """Runs what ``refusal`` does not refuse."""

    name = "triggers"

    def batch(self, store: BlobStore) -> ColumnarBatch:
        make = TriggeredSessions if self.program.spec.merges else TriggeredPanes
        return make(self.program, self.fold, store)

    @property
    def combiner(self) -> Combiner:
        """What folds rows before the shuffle."""
        return folding_combiner(self.program, self.fold, self.fold_by_slice)


def refusal(program: Program) -> str | None:
    """Return why the triggers engine cannot run a program, ``None`` if it can."""
    spec = program.spec
    is_session = type(spec.assigner) in (EventTimeSessionWindows, ProcessingTimeSessionWindows)
    if not is_session and (refused := windows_refusal(spec.assigner)) is not None:
        return refused
    reader = row_reader(spec.trigger)
    if reader is not None and type(reader) not in (ContinuousEventTimeTrigger, DeltaTrigger):
        return f"{type(reader).__name__} is no trigger of windowpane's"
    if isinstance(spec.assigner, GlobalWindows) and _waits_for_end(spec.trigger):
        return f"{type(spec.firing_trigger).__name__} on global windows is refused when a row comes"
    if spec.evictor is not None:
        return "an evictor needs every row"
    if isinstance(program.arrow, ArrowWindowFunction):
        return "a function on tables of many keys would see several firings of a key at once"
    if program.arrow is not None and isinstance(spec.trigger, PaneTrigger):
        return "a function on Arrow tables has no result of no rows"
    return common_refusal(program, shows_panes=True)


def combining_refusal(program: Program) -> str | None:
    """Return why the engine must see each row, or its windows are not known outside its bucket; ``None`` if neither."""
    if not fires_by_clocks_alone(program.spec):
        return "the trigger is called row by row"
    return slicing_refusal(program.spec)


def _waits_for_end(trigger: Trigger) -> bool:
    if isinstance(trigger, PurgingTrigger | ProcessingTimeoutTrigger):
        return _waits_for_end(trigger.inner)
    return type(trigger) in (EventTimeTrigger, ProcessingTimeTrigger)
