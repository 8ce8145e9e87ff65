"""State that begins with a history: rows before a cut, which are in the state before the first row of the stream arrives.

The cut is kept in the header of each bucket. A row of the stream below it is skipped (``batch.driver``), in this run and in all
later ones: the history has the rows of that time. So no row below the cut is still expected, which is what a watermark of
``cut - 1`` means. History and stream together give what one run over both gives: the history is its first batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol, runtime_checkable

import pyarrow as pa

from windowpane.engines.batch.header import HEADER, BucketHeader
from windowpane.engines.protocol import BucketOutput, Clock, Engine
from windowpane.errors import present
from windowpane.state.blob_store import BlobStore
from windowpane.windowing.times import MIN


@runtime_checkable
class BeginsWithHistory(Protocol):
    """An engine with a way of its own, which emits nothing."""

    def begin(self, store: BlobStore, rows: Sequence[pa.Table], cut: int) -> None:
        """Put rows below ``cut`` into the empty state of a bucket."""


def begun(engine: Engine, store: BlobStore, rows: Sequence[pa.Table], cut: int) -> BucketOutput:
    """Put rows below ``cut`` into the empty state of a bucket, and return what they give before it."""
    if isinstance(engine, BeginsWithHistory):
        engine.begin(store, rows, cut)
        return BucketOutput()
    output = engine.run(store, rows, Clock(MIN, MIN)).followed_by(engine.run(store, [], Clock(max(cut - 1, MIN), MIN)))
    header = BucketHeader.of(present(store.get(HEADER), "it was written"))
    replace(header, cut=cut).write(store)
    return output
