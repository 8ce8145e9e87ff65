"""Changes of a view on their way to PostgreSQL: each task copies those of its partition to the staging table of the batch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain

import pyarrow as pa
import pyarrow.compute as pc

from windowpane.sql.streaming.deltas import WEIGHT
from windowpane.state.compact import from_stream
from windowpane.stores import PostgresStore
from windowpane.stores.batches import GONE


@dataclass(frozen=True)
class ToStaging:
    """Brings changes to a staging table; runs on Spark's tasks.

    Args:
        url: of the server.
        staging: the table.
        ids: how the columns of the view are named in its plan.
    """

    url: str
    staging: str
    ids: Mapping[str, str]

    def __call__(self, partition: int, batches: Iterator[pa.RecordBatch]) -> None:
        """Take the blobs of a partition; where there are none, the server is not asked."""
        tables = (self._named(from_stream(blob.as_py())) for batch in batches for blob in batch.column("blob"))
        for first in tables:
            store = PostgresStore(self.url)
            try:
                store.stage(self.staging, partition, chain([first], tables))
            finally:
                store.close()

    def _named(self, changes: pa.Table) -> pa.Table:
        columns = {name: changes[identity] for name, identity in self.ids.items()}
        return pa.table({**columns, GONE: pc.less(changes[WEIGHT], 0)})
