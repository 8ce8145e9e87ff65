"""Panes that fire by their rows alone: a window that is over is removed, and does not fire."""

from __future__ import annotations

from abc import abstractmethod

from windowpane.engines.batch.driver import Left
from windowpane.engines.common.columnar import key_names
from windowpane.engines.common.columnar_batch import ColumnarBatch
from windowpane.engines.panes.panes import PaneWindows
from windowpane.engines.panes.store import PaneStore
from windowpane.engines.program import Program
from windowpane.kernels.grouping.grouped_fold import GroupedFold
from windowpane.state.blob_store import BlobStore


class EndedPanesBatch(ColumnarBatch):
    """One batch of one bucket: state opened, run, written back."""

    def __init__(self, program: Program, fold: GroupedFold, store: BlobStore) -> None:
        """Open the state."""
        super().__init__(program, fold, store)
        self._keys = key_names(program)
        self._windows = PaneWindows(self)
        self._panes = PaneStore(store, self._keys, self._windows.is_global)
        self.widen(self._panes)
        self._open = self.header.open_windows

    @abstractmethod
    def panes_of(self, end: int) -> int:
        """Return how many panes there are of the window that ends at ``end``."""

    @property
    def open_windows(self) -> int:
        """How many panes there are in all."""
        return self._open

    def on_watermark(self, before: int) -> None:
        if self.is_event_time:
            self._drop_ended()

    def on_processing_time(self, before: int) -> None:
        if not self.is_event_time and not self._windows.is_global:
            self._drop_ended()

    def _drop_ended(self) -> None:
        for end in self._panes.segments():
            if self.is_late(self._windows.window(end)):
                self._open -= self.panes_of(end)
                self._panes.drop(end)

    def close(self) -> Left:
        self._panes.flush()
        segments = self._panes.segments()
        by_clock = not self.is_event_time and not self._windows.is_global
        following = min((end - 1 for end in segments), default=None) if by_clock else None
        return self.left(self.open_windows, self._panes.byte_size, not segments, following)
