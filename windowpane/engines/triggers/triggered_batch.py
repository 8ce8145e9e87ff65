"""What batches of panes and of sessions have in common whose trigger is called: its standings, and the clocks that call it."""

from __future__ import annotations

from abc import abstractmethod

from windowpane.engines.common.columnar import key_names
from windowpane.engines.common.columnar_batch import ColumnarBatch
from windowpane.engines.common.evicting import argument_columns
from windowpane.engines.program import Program
from windowpane.engines.triggers.standings import Standings
from windowpane.hidden_columns import TIME
from windowpane.kernels.grouping.grouped_fold import GroupedFold
from windowpane.state.blob_store import BlobStore


class TriggeredBatch(ColumnarBatch):
    """Moves clocks."""

    def __init__(self, program: Program, fold: GroupedFold, store: BlobStore) -> None:
        """Open the state."""
        super().__init__(program, fold, store)
        self._keys, self._names = list(key_names(program)), list(fold.columns)
        self._arguments = argument_columns(program, fold) or [TIME]
        self._standings = Standings(program.spec)

    def on_watermark(self, before: int) -> None:
        """Fire what the watermark makes due."""
        if self.watermark != before:
            self._advance(event_time=True, fired_under=before)

    def on_processing_time(self, before: int) -> None:
        """Fire what the clock makes due."""
        self._advance(event_time=False, fired_under=self.watermark)

    @abstractmethod
    def _advance(self, event_time: bool, fired_under: int) -> None:
        """Fire the timers that a clock makes due."""
