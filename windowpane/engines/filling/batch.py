"""What both engines of filling do with a batch: results pass, in the order in which watermarks made windows emit them."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windowpane.engines.batch.driver import OrderedBatch
from windowpane.engines.common.arrival import ordered
from windowpane.engines.filling.program import FillingProgram
from windowpane.hidden_columns import FIRING_WATERMARK


class FillingBatch(OrderedBatch[FillingProgram]):
    def work(self, tables: list[pa.Table]) -> None:
        results = ordered(tables)
        if results is None:
            return
        for fired_under in np.unique(results[FIRING_WATERMARK].to_numpy()).tolist():
            self.advance_watermark(fired_under)
            fired = results.filter(pc.equal(results[FIRING_WATERMARK], fired_under)).select(self.program.main_schema.names)
            fired = fired.cast(self.program.main_schema).combine_chunks()
            self.emit(fired)
            self.take(fired)

    @abstractmethod
    def take(self, results: pa.Table) -> None:
        """Take results in order of arrival, and fill what they change among the windows that are closed."""

    @abstractmethod
    def on_watermark(self, before: int) -> None:
        """Fill the windows that the watermark has closed."""
