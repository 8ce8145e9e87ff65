"""The stagger of a bucket's windows: settled by its first rows, and kept under ``stagger`` in the blob store.

Who may mutate: the engine, once in the life of a bucket. Recovery: read it back. Source of the rule: Flink's WindowStagger.
"""

from __future__ import annotations

from windowpane.engines.common.slicing import SharedSlices, Slices, slices_of
from windowpane.errors import MistakeError
from windowpane.state.blob_store import BlobStore
from windowpane.state.codec import decode_int64, encode_int64, frame, unframe
from windowpane.windowing.assigners import (
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
    WindowAssigner,
    WindowStagger,
)
from windowpane.windowing.spec import WindowSpec

_KEY, _KIND = "stagger", "window-stagger"


def is_staggered(assigner: WindowAssigner) -> bool:
    """Whether buckets shift an assigner's windows against each other."""
    return _stagger(assigner) is not WindowStagger.ALIGNED


def slicing_refusal(spec: WindowSpec) -> str | None:
    """Return why the slice of a row is not known outside its bucket, or not enough to fold it; ``None`` if it is."""
    slices = slices_of(spec.assigner)
    if is_staggered(spec.assigner):
        return "a bucket shifts its windows when its first rows come"
    if slices is not None and slices.has_gaps and spec.assigner.is_event_time:
        return "rows between windows are late by their own time"
    return "late rows fire one by one" if spec.refines_each else None


def staggered(slices: Slices, assigner: WindowAssigner, store: BlobStore, now: int | None) -> Slices:
    """Return ``slices`` shifted as this bucket's windows are.

    Args:
        slices: the slices before the shift.
        assigner: the assigner they are of.
        store: the bucket's state.
        now: the processing time of the bucket's first rows, which settle the shift; ``None`` before there are rows.
    """
    stagger = _stagger(assigner)
    if stagger is WindowStagger.ALIGNED:
        return slices
    if not isinstance(slices, SharedSlices):
        raise MistakeError("windows that are staggered have one size")
    blob = store.get(_KEY)
    if blob is None and now is None:
        return slices
    if blob is None:
        if now is None:
            raise MistakeError("windows by the clock have a clock")
        blob = frame(_KIND, encode_int64(stagger.offset(now, slices.slide)))
        store.put(_KEY, blob)
    return slices.shifted(decode_int64(unframe(_KIND, blob)))


def _stagger(assigner: WindowAssigner) -> WindowStagger:
    if isinstance(assigner, TumblingEventTimeWindows | TumblingProcessingTimeWindows):
        return assigner.stagger
    return WindowStagger.ALIGNED
