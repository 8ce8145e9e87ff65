"""Rows encoded, and Spark's watermark made of what is reported beside them: the latest event time so far.

Spark's own way, a watermark on the column of the rows, copies each row once more, since its node parts the code that Spark
generates in two. Here it sees one row a blob.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from windowpane.spark.stages import encode
from windowpane.spark.stages.blobs import HEARTBEAT
from windowpane.spark.stages.buckets import bucket_ids, state_partitions
from windowpane.spark.stages.project import mapped_in_arrow
from windowpane.spark.stages.types import TIMESTAMP

Batches = Iterable[pa.RecordBatch]

_LATEST = "latest"
_SCHEMA = f"{encode.SCHEMA}, {_LATEST} timestamp"


@dataclass(frozen=True)
class LatestTime:
    """Encodes rows, and says beside each blob what the latest event time is by then.

    Args:
        encoder: encodes them.
        time: the column of the event time, as a timestamp or as microseconds; ``None`` for none.
    """

    encoder: encode.Encoder
    time: str | None

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        latest = _Latest(self.time)
        reported = None
        for blobs in self.encoder(latest.seen(batches)):
            reported = latest.value
            yield blobs.append_column(_LATEST, pa.array([reported] * blobs.num_rows, TIMESTAMP))
        if latest.value is not None and latest.value != reported:
            yield self._heartbeat(latest.value)

    def _heartbeat(self, latest: int) -> pa.RecordBatch:
        """Return a blob without rows: only heartbeats came, or they came last."""
        return self.sent(HEARTBEAT, latest)

    def sent(self, blob: bytes, latest: int | None = None) -> pa.RecordBatch:
        first = bucket_ids(state_partitions(self.encoder.partitions))[0]
        columns = [pa.array([first], pa.int32()), pa.array([blob], pa.binary()), pa.array([latest], TIMESTAMP)]
        return pa.RecordBatch.from_arrays(columns, [encode.BUCKET, "blob", _LATEST])


def encoded(dataframe: Any, function: Any, watermark: str | None) -> Any:
    """Return what a ``LatestTime`` makes of a DataFrame as ``encode.SCHEMA``."""
    blobs = mapped_in_arrow(dataframe, function, _SCHEMA)
    watermarked = blobs if watermark is None else blobs.withWatermark(_LATEST, watermark)
    return watermarked.select(encode.BUCKET, "blob")


@dataclass
class _Latest:
    time: str | None
    value: int | None = None

    def seen(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if self.time is not None:
                self._see(pc.max(batch[self.time].cast(pa.int64())).as_py())
            yield batch

    def _see(self, time: int | None) -> None:
        if time is not None:
            self.value = time if self.value is None else max(self.value, time)
