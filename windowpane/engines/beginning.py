"""State that begins with a history: rows before a cut, which are in the state before the first row of the stream arrives.

The cut is kept in the header of each bucket. A row of the stream below it is skipped (``batch.driver``), in this run and in all
later ones: the history has the rows of that time. So no row below the cut is still expected, which is what a watermark of
``cut - 1`` means. History and stream together give what one run over both gives: the history is its first batch.

An operator behind another one has for its history what that one gives of its own, up to the same watermark. It skips nothing:
what comes later is of rows behind the cut, or of the state before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

import pyarrow as pa

from windowpane.engines.batch.header import HEADER, BucketHeader
from windowpane.engines.protocol import BucketOutput, Clock, Engine
from windowpane.errors import present
from windowpane.state.blob_store import BlobStore
from windowpane.windowing.times import MIN, add_clamped


@dataclass(frozen=True)
class Past:
    """Where the history of an operator ends."""

    watermark: int  # its watermark there
    cut: int | None = None  # the time below which rows of the stream are skipped, ``None`` behind another operator
    emits: bool = False  # whether others need what it gives

    @classmethod
    def below(cls, cut: int, behind: int = 0, *, is_first: bool = True, emits: bool = False) -> Past:
        """Return the history of rows below ``cut`` of an operator whose watermark stays ``behind`` that of the source."""
        return cls(MIN if cut == MIN else add_clamped(cut - 1, -behind), cut if is_first else None, emits)


@runtime_checkable
class BeginsWithHistory(Protocol):
    """An engine with a way of its own, which emits nothing."""

    def begin(self, store: BlobStore, rows: Sequence[pa.Table], cut: int) -> None:
        """Put rows below ``cut`` into the empty state of a bucket."""


def begun(engine: Engine, store: BlobStore, rows: Sequence[pa.Table], past: Past) -> BucketOutput:
    """Put the rows of a history into the empty state of a bucket, and return what they give before its end."""
    if past.cut is not None and not past.emits and isinstance(engine, BeginsWithHistory):
        engine.begin(store, rows, past.cut)
        return BucketOutput()
    output = engine.run(store, rows, Clock(MIN, MIN)).followed_by(engine.run(store, [], Clock(past.watermark, MIN)))
    if past.cut is not None:
        header = BucketHeader.of(present(store.get(HEADER), "it was written"))
        replace(header, cut=past.cut).write(store)
    return output
