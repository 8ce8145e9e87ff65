"""The layout of a checkpoint: how many buckets its keys were spread over, which must stay as it was.

Bucket ids follow the number of state partitions. Spark's offline repartition (4.2 and later) moves the buckets of a checkpoint to
another number of partitions, but not the keys in them: rows would be sent to buckets that do not hold their keys' state. So each
bucket keeps the number under ``layout``, and compares it when a run first comes to it.

A batch may have rows of new buckets alone, which hold nothing to compare. So each batch calls the bucket that every layout has,
with a *probe*: the first one of a run finds a rewritten checkpoint before anything is written. That a batch is the first one, no
task knows for certain; and a task that runs again, after its executor was lost, must send what it sent before: Spark (4.3, for
one) compares the two, and gives the batch up where they differ.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

from pyspark import TaskContext

from windowpane.errors import RepartitionedCheckpointError
from windowpane.spark.internals.session import BATCH, QUERY, task_property
from windowpane.spark.stages.buckets import pinned_partitions
from windowpane.spark.stages.messages import PROBE
from windowpane.state.blob_store import BlobStore
from windowpane.state.codec import decode_int64, encode_int64, frame, unframe

PROBED_BUCKET = 0  # The least id comes first in every layout (``bucket_ids``)
_KEY, _KIND = "layout", "bucket-layout"

_compared: set[tuple[Layout, object]] = set()


@dataclass(frozen=True)
class Layout:
    """The layout of the query that this task belongs to."""

    query: str  # the query's id
    partitions: int  # the number of its state partitions, as its checkpoint pins it

    @classmethod
    def of_task(cls) -> Self | None:
        """Return it, ``None`` outside of a streaming query's tasks."""
        query, partitions = task_property(QUERY), pinned_partitions()
        return None if query is None or partitions is None else cls(query, partitions)

    def compare(self, bucket: object, store: BlobStore) -> None:
        """Compare with the layout that a bucket was written under; done once for each bucket in this process."""
        if (self, bucket) in _compared:
            return
        blob = store.get(_KEY)
        if blob is None:
            store.put(_KEY, frame(_KIND, encode_int64(self.partitions)))
            return
        written = decode_int64(unframe(_KIND, blob))
        if written != self.partitions:
            raise RepartitionedCheckpointError(written, self.partitions)
        _compared.add((self, bucket))


def probes() -> Iterator[tuple[int, bytes]]:
    """Yield a bucket and the blob to send it, in the first task of a batch."""
    context = TaskContext.get()
    if context is not None and context.partitionId() == 0 and Layout.of_task() is not None:
        yield PROBED_BUCKET, PROBE


def is_first_batch() -> bool:
    """Whether a task is of the first batch of its query; a batch that is run again has the same number."""
    return task_property(BATCH) == "0"
