"""A bound of the watermark of the next batch, from buckets to the tasks that fold rows before the shuffle.

A row that is late is needed whole where late rows are an output, and only its bucket knows the watermark of its batch: Spark
gives no other stage the watermark of a batch. But what a batch leaves behind bounds the watermark of the next one. Where the
operator makes it, the watermark after a batch *is* that of the next. Spark's is the latest event time of all rows of the run
less the delay, or less than that where other streams hold it back; so tasks report their latest event time to every bucket (a
*mark*, see ``messages``), and each bucket keeps the bound that follows, with the id of the run, under ``next-watermark``.

A bucket writes the bound to a file of its executor, and the tasks there read it in the next batch. The file names the run and
the batch: where it is not for this one, as in the first batch of a run, nothing is known, and every row is sent whole. So a file
that is old or missing costs time, never a row.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from windowpane.errors import MistakeError
from windowpane.spark.internals.session import BATCH, RUN, WATERMARK_POLICY, task_property
from windowpane.spark.stages.messages import latest_of
from windowpane.state.blob_store import BlobStore
from windowpane.state.codec import frame, unframe
from windowpane.windowing.times import MIN, add_clamped

_KEY, _KIND = "next-watermark", "next-watermark"
_FOLDERS = "SPARK_LOCAL_DIRS"
"""The variable in which an executor names its folders to its Python workers; they are removed when it ends."""


@dataclass(frozen=True)
class NextWatermark:
    """The bound of one operator's watermark."""

    operator: str  # an id of the operator
    # microseconds by which Spark's watermark stays behind the latest event time at least; ``None`` where the operator makes it
    delay: int | None

    def known(self) -> int | None:
        """Return a watermark that the one of this task's batch does not pass, ``None`` if none is known."""
        batch = self._batch()
        if batch is None:
            return None
        try:
            published = json.loads(batch.path(self.operator).read_text())
        except (OSError, ValueError):
            return None
        return int(published["bound"]) if published["batch"] == batch.number else None

    def publish(self, store: BlobStore, watermark: int, marks: Iterable[pa.Table]) -> None:
        """Write the bound for the tasks of the next batch."""
        batch = self._batch()
        if batch is None:
            return
        bound = watermark if self.delay is None else self._bound(store, batch.run, watermark, latest_of(marks).get(None))
        path = batch.path(self.operator)
        written = path.with_suffix(f".{os.getpid()}")
        with suppress(OSError):  # a full disk, say: the next batch sends its rows whole
            path.parent.mkdir(exist_ok=True)
            written.write_text(json.dumps({"batch": batch.number + 1, "bound": bound}))
            written.replace(path)

    def _batch(self) -> _Batch | None:
        """Return the batch of this task; ``None`` where the fastest stream sets Spark's watermark, which nothing bounds then."""
        batch = _Batch.of_task()
        return None if batch is None or (self.delay is not None and batch.follows_fastest) else batch

    def _bound(self, store: BlobStore, run: str, watermark: int, latest: int | None) -> int:
        """Return the bound of Spark's watermark, and keep it: another stream may hold the watermark back for some batches."""
        if self.delay is None:
            raise MistakeError("the caller has checked")
        blob = store.get(_KEY)
        held = None if blob is None else json.loads(unframe(_KIND, blob))
        before = int(held["bound"]) if held is not None and held["run"] == run else MIN
        bound = max(before, watermark, MIN if latest is None else add_clamped(latest, -self.delay))
        if held != {"run": run, "bound": bound}:
            store.put(_KEY, frame(_KIND, json.dumps({"run": run, "bound": bound}).encode()))
        return bound


@dataclass(frozen=True)
class _Batch:
    """The batch of a streaming query that a task belongs to, on an executor with a folder."""

    run: str
    number: int
    folder: Path
    follows_fastest: bool = False

    @classmethod
    def of_task(cls) -> _Batch | None:
        run, batch = task_property(RUN), task_property(BATCH)
        if run is None or batch is None or not os.environ.get(_FOLDERS):
            return None
        policy = task_property(WATERMARK_POLICY) or "min"
        return cls(run, int(batch), Path(os.environ[_FOLDERS].split(",")[0]), policy.lower() == "max")

    def path(self, operator: str) -> Path:
        return self.folder / "windowpane" / f"{self.run}-{operator}.json"
