"""What both engines of filling do with a batch: results pass, in the order in which watermarks made windows emit them."""

from __future__ import annotations

from abc import abstractmethod

import pyarrow as pa

from windowpane.engines.batch.driver import OrderedBatch
from windowpane.engines.common.arrival import ordered
from windowpane.engines.filling.program import FillingProgram


class FillingBatch(OrderedBatch[FillingProgram]):
    def work(self, tables: list[pa.Table]) -> None:
        results = ordered(tables)
        if results is None:
            return
        for part in self.by_watermark(results):
            fired = part.select(self.program.main_schema.names).cast(self.program.main_schema).combine_chunks()
            self.emit(fired)
            self.take(fired)

    @abstractmethod
    def take(self, results: pa.Table) -> None:
        """Take results in order of arrival, and fill what they change among the windows that are closed."""

    @abstractmethod
    def on_watermark(self, before: int) -> None:
        """Fill the windows that the watermark has closed."""
