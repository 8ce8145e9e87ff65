"""Own watermark: one that the operator makes, where Spark cannot make it.

Each task of the encoder reports the latest event time of every source in its rows to every bucket: a *mark*, a blob beside
those of rows. So all buckets know the same of each batch, and a batch without marks has no rows. From the marks a bucket makes
the watermark of its next batch (``windowing.watermarks``).

An operator behind another one has the watermark of that: each bucket *reports* the one it was under in the batch, and the one at
its end, which is another one if rows may close windows at once; the encoder of the next operator hands the least of them to all
its buckets.

State: one framed JSON blob under ``watermark``, written once a batch by ``OwnWatermark``. Recovery reads it back: the
watermark does not go back, and another id of the run shows that the query was stopped between. The clock is that of the batch's
plan, which Spark repeats with the batch.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext

from windowpane.hidden_columns import TIME
from windowpane.spark.stages.blobs import pack
from windowpane.state.blob_store import BlobStore
from windowpane.state.codec import frame, unframe
from windowpane.windowing.times import MIN, add_clamped
from windowpane.windowing.watermarks import SourceMark, SourceName, Watermarks, WatermarkState, advance

_MARK, _REPORT = b"windowpane.mark", b"windowpane.report"
_KEY, _KIND = "watermark", "own-watermark"
RUN = "spark.jobGroup.id"
"""The local property with the run of a query: another one each time that it starts."""


@dataclass
class Mark:
    """The latest event time of each source, seen in the rows of one task.

    Args:
        source: the column with the names of sources, ``None`` for one source.
    """

    source: str | None
    latest: dict[SourceName, int] = field(default_factory=dict)

    def see(self, rows: pa.Table) -> None:
        if self.source is None:
            _add(self.latest, [None], [pc.max(rows[TIME]).as_py()])
            return
        table = pa.table({"source": rows[self.source], "time": rows[TIME]})
        times = table.group_by("source", use_threads=False).aggregate([("time", "max")])  # few rows: threads cost more
        _add(self.latest, times["source"].cast(pa.string()).to_pylist(), times["time_max"].to_pylist())

    def blob(self) -> bytes | None:
        """Return the mark as it travels, ``None`` if there is nothing to report."""
        if not self.latest:
            return None
        columns = [pa.array(list(self.latest), pa.string()), pa.array(list(self.latest.values()), pa.int64())]
        table = pa.table(columns, names=["source", "latest"])
        return pack(table.replace_schema_metadata({_MARK: b""}))


def is_mark(table: pa.Table) -> bool:
    return _MARK in (table.schema.metadata or {})


def latest_of(marks: Iterable[pa.Table]) -> dict[SourceName, int]:
    latest: dict[SourceName, int] = {}
    for mark in marks:
        _add(latest, mark["source"].to_pylist(), mark["latest"].to_pylist())
    return latest


def _add(latest: dict[SourceName, int], sources: Iterable[SourceName], times: Iterable[int | None]) -> None:
    for source, time in zip(sources, times, strict=True):
        if time is not None:
            latest[source] = max(latest.get(source, time), time)


@dataclass(frozen=True)
class Moves:
    """The watermark of a bucket in one batch.

    Args:
        before: the one that rows are compared with.
        after: the one at the end of the batch.
    """

    before: int = MIN
    after: int = MIN

    def less(self, delay: int) -> Moves:
        return Moves(add_clamped(self.before, -delay), add_clamped(self.after, -delay))

    @classmethod
    def least(cls, reports: Sequence[Moves]) -> Moves:
        return cls(min((each.before for each in reports), default=MIN), min((each.after for each in reports), default=MIN))

    def report(self) -> pa.Table:
        return pa.table({}).replace_schema_metadata({_REPORT: f"{self.before} {self.after}".encode()})


def reported(table: pa.Table) -> Moves | None:
    """Return the watermark that a table reports, ``None`` if it is no report."""
    found = (table.schema.metadata or {}).get(_REPORT)
    return None if found is None else Moves(*map(int, found.split()))


@dataclass(frozen=True)
class OwnWatermark:
    strategy: Watermarks

    def read(self, store: BlobStore) -> WatermarkState:
        """Return what earlier batches have written; nothing of sources, where another column names them now."""
        blob = store.get(_KEY)
        if blob is None:
            return WatermarkState()
        held = json.loads(unframe(_KIND, blob))
        sources = {name: SourceMark(latest, silent) for name, latest, silent in held.pop("sources")}
        is_same = held.pop("column") == self.strategy.source
        return WatermarkState(sources=sources if is_same else {}, **held)

    def moves(self, before: WatermarkState, marks: Iterable[pa.Table], now: int) -> Moves:
        """Return the watermark in a batch at ``now``: at its end it is that of its rows, where they may close windows at once.

        What the clock adds counts from the next batch on. How much that is depends on the run, and a batch that a run did not
        commit is repeated by another one: its results must be the same, since sinks take a batch once.
        """
        if not self.strategy.is_at_once:
            return Moves(before.watermark, before.watermark)
        clock = now if before.now is None else before.now
        return Moves(before.watermark, advance(self.strategy, before, latest_of(marks), clock, before.run).watermark)

    def advanced(self, store: BlobStore, before: WatermarkState, marks: Iterable[pa.Table], now: int) -> WatermarkState:
        """Return what is known after a batch at ``now``, and keep it."""
        context = TaskContext.get()
        run = str(context.getLocalProperty(RUN)) if context is not None else ""
        after = advance(self.strategy, before, latest_of(marks), now, run)
        body = {
            "watermark": after.watermark,
            "held_by": after.held_by,
            "column": self.strategy.source,
            "sources": [(name, mark.latest, mark.silent) for name, mark in after.sources.items()],
            "now": after.now,
            "run": after.run,
            "caught_up": after.caught_up,
        }
        store.put(_KEY, frame(_KIND, json.dumps(body).encode()))
        return after
