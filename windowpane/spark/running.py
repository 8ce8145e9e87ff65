"""Running: one query with several sinks, and an end for runs that wait for the clock.

Every batch is computed once, kept while its outputs are written, and handed to each sink with its batch id; the sinks are
idempotent by query and batch, so a batch repeated after a crash leaves the same rows.
"""

from __future__ import annotations

import json
import tempfile
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from windowpane.errors import InvalidSpecError
from windowpane.sinks import DeltaTable, Files, Sink, SinkFunction
from windowpane.spark.build import Windowed
from windowpane.spark.outputs import Output


def start(
    windowed: Windowed,
    sinks: Mapping[str, Sink],
    checkpoint: str | None,
    trigger: Mapping[str, Any] | None,
    query_name: str | None,
) -> Any:
    """Start a query that writes each output named in ``sinks`` and return it."""
    if not windowed.is_streaming:
        raise InvalidSpecError("start runs a stream, and this DataFrame is static: write result.df instead.")
    if not sinks:
        raise InvalidSpecError("start needs a sink for at least one output, for example start(main='out/main').")
    outputs = [windowed.named(name) for name in sinks]
    location = checkpoint or tempfile.mkdtemp(prefix="windowpane-checkpoint-")
    batches = BatchWriter(tuple((output, _function(sinks[output.name], location)) for output in outputs))
    writer = windowed.operator_df.writeStream.foreachBatch(batches.__call__).option("checkpointLocation", location)
    if query_name is not None:
        writer = writer.queryName(query_name)
    if trigger:
        writer = writer.trigger(**trigger)
    query = writer.start()
    if windowed.time_mode == "ProcessingTime" and (trigger or {}).get("availableNow"):
        stop_when_consumed(query)
    return query


@dataclass(frozen=True)
class BatchWriter:
    """Writes each output of a batch to its sink."""

    outputs: tuple[tuple[Output, SinkFunction], ...]

    def __call__(self, blobs: Any, batch_id: int) -> None:
        """Compute the batch once and hand every output to its sink."""
        blobs = blobs.persist()
        try:
            for output, write in self.outputs:
                write(output.of(blobs), batch_id)
        finally:
            blobs.unpersist()


def _function(sink: Sink, checkpoint: str) -> SinkFunction:
    if isinstance(sink, str):
        sink = Files(sink)
    if isinstance(sink, Files):
        return FilesWriter(sink, checkpoint)
    if isinstance(sink, DeltaTable):
        return DeltaWriter(sink, checkpoint)
    if callable(sink):
        return sink
    raise InvalidSpecError(f"a sink is a path, Files, DeltaTable or a callable (DataFrame, batch_id), but this is {sink!r}.")


def query_id(dataframe: Any, checkpoint: str) -> str:
    """Return the id of the query that owns a checkpoint, which stays the same over restarts."""
    text = dataframe.sparkSession.read.text(f"{checkpoint}/metadata").first()[0]
    return str(json.loads(text)["id"])


@dataclass(frozen=True)
class FilesWriter:
    """Writes each batch into a folder of its own, over whatever an interrupted attempt left there."""

    sink: Files
    checkpoint: str

    def __call__(self, dataframe: Any, batch_id: int) -> None:
        """Write one batch; a batch without rows leaves no folder."""
        if dataframe.isEmpty():
            return
        folder = f"{self.sink.path}/query={query_id(dataframe, self.checkpoint)}/batch={batch_id}"
        dataframe.write.mode("overwrite").format(self.sink.format).options(**self.sink.options).save(folder)


@dataclass(frozen=True)
class DeltaWriter:
    """Appends each batch to a Delta table under the query's id and the batch's number, which Delta takes once."""

    sink: DeltaTable
    checkpoint: str

    def __call__(self, dataframe: Any, batch_id: int) -> None:
        """Write one batch."""
        once = {"txnAppId": query_id(dataframe, self.checkpoint), "txnVersion": str(batch_id)}
        dataframe.write.mode("append").format("delta").options(**self.sink.options, **once).save(self.sink.path)


def stop_when_consumed(query: Any, poll_seconds: float = 0.2) -> threading.Thread:
    """End an ``availableNow`` run once its sources are consumed.

    In processing-time mode Spark goes on with empty batches for ever, since a timer could be due at any time. The input is
    consumed when a batch read nothing from any source; Flink, too, ends a bounded job without waiting for the clock.
    """

    def watch() -> None:
        while query.isActive:
            progress = query.lastProgress
            if progress is not None and _read_nothing(progress):
                query.stop()
                return
            query.awaitTermination(poll_seconds)

    thread = threading.Thread(target=watch, name="windowpane-stop-when-consumed", daemon=True)
    thread.start()
    return thread


def _read_nothing(progress: Any) -> bool:
    sources = progress["sources"]
    return bool(sources) and all(source["startOffset"] == source["endOffset"] for source in sources)
