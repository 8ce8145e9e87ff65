"""Changes of a batch brought to PostgreSQL by the tasks that made them: into a staging table by COPY, and one MERGE.

All changes of a result with one key of its operator are in one task, in their order; each task brings what they come to. Where a
key of the table is another one, a row may be deleted by one task and written by another: the written one stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark import TaskContext

from windowpane.spark.stages.project import mapped_in_arrow
from windowpane.spark.stages.types import arrow_schema
from windowpane.stores import Batch, PostgresStore

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_BROUGHT = pa.schema([("rows", pa.int64())])


def bring(df: DataFrame, url: str, batch: Batch) -> None:
    """Apply the changes in a DataFrame as a batch, which is given without them."""
    store = PostgresStore(url)
    try:
        if batch.is_applied(store.taken(batch.source)):
            return
        batch = replace(batch, changes=arrow_schema(df.schema, f"table {batch.table!r}").empty_table())
        staging = store.begin_staging(batch)
        mapped_in_arrow(df, ToStaging(url, staging, batch.table, batch.key).__call__, "rows long").collect()
        store.apply(batch, staging)
    finally:
        store.close()


@dataclass(frozen=True)
class ToStaging:
    """Brings the changes of a task; runs in tasks."""

    url: str = field(repr=False)
    staging: str
    table: str
    key: tuple[str, ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        found = [each for each in batches if each.num_rows]
        if not found:
            return
        changes = Batch(self.table, self.key, pa.Table.from_batches(found), 0, "").by_key()
        context, store = TaskContext.get(), PostgresStore(self.url)
        try:
            store.stage(self.staging, context.partitionId() if context else 0, [changes])
        finally:
            store.close()
        yield pa.RecordBatch.from_arrays([pa.array([changes.num_rows], pa.int64())], schema=_BROUGHT)
