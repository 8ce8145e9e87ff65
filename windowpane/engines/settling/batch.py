"""What both engines of settling do with a batch: changes wait for the watermark, and those that come behind it are late."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
import pyarrow as pa

from windowpane.engines.batch.driver import Left, OrderedBatch
from windowpane.engines.common.arrival import ordered
from windowpane.engines.over.sort_buffer import SortBuffer
from windowpane.engines.rows import refuse_missing_times, refuse_other_words
from windowpane.engines.settling.program import SettlingProgram
from windowpane.engines.spec import BucketEngine
from windowpane.hidden_columns import FIRING_WATERMARK, TIME
from windowpane.state.blob_store import BlobStore


class SettlingBatch(OrderedBatch[SettlingProgram]):
    def __init__(self, engine: BucketEngine[SettlingProgram], store: BlobStore) -> None:
        super().__init__(engine, store)
        self._buffer = SortBuffer(store, "b", None, (), self.program.waiting)

    def work(self, tables: list[pa.Table]) -> None:
        changes = ordered(tables)
        if changes is None:
            return
        refuse_missing_times(changes, self.program.keys, "a changelog settles")
        refuse_other_words(changes, self.program.columns.names)
        punctual = self.punctual(changes, changes[TIME].to_numpy() <= self.late_under, self.program.late_schema)
        if punctual is not None:
            self._buffer.add(punctual.select(self.program.waiting.names))

    def on_watermark(self, before: int) -> None:
        released = self._buffer.release(self.watermark) if self.watermark > before else []
        if not released:
            return
        staying = self.settled(pa.concat_tables(released).combine_chunks())
        under = pa.array(np.full(staying.num_rows, before, np.int64))
        self.emit(staying.append_column(FIRING_WATERMARK, under).select(self.program.main_schema.names))

    @abstractmethod
    def settled(self, changes: pa.Table) -> pa.Table:
        """Return the rows that stay of changes whose order of arrival is kept, in order of event time."""

    def close(self) -> Left:
        self._buffer.flush()
        return Left(self._buffer.rows, self._buffer.byte_size)
