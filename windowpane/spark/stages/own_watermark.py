"""Own watermark: one that the operator makes, where Spark cannot make it.

From the marks of a batch (``messages``) a bucket makes the watermark of the next one (``windowing.watermarks``). An operator
behind another one has the watermark of that, by what the buckets of it report.

State: one framed JSON blob under ``watermark``, written once a batch by ``OwnWatermark``. Recovery reads it back: the
watermark does not go back, and another id of the run shows that the query was stopped between. The clock is that of the batch's
plan, which Spark repeats with the batch.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa

from windowpane.spark.internals.session import RUN, task_property
from windowpane.spark.stages.messages import Moves, latest_of
from windowpane.state.blob_store import BlobStore
from windowpane.state.codec import frame, unframe
from windowpane.windowing.watermarks import SourceMark, Watermarks, WatermarkState, advance

_KEY, _KIND = "watermark", "own-watermark"


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
        after = advance(self.strategy, before, latest_of(marks), now, task_property(RUN) or "")
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
