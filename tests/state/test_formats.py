"""Every kind of blob has one version, and another one is refused by name."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import windowpane
from tests.state.test_codec import of_version
from windowpane.engines.batch.header import BucketHeader
from windowpane.engines.common.slicing import slices_of, staggered
from windowpane.engines.deduplication.kept_keys import KeptKeys
from windowpane.engines.join.held_counts import HeldCounts
from windowpane.engines.over.page_form import PageForm, PageWriter
from windowpane.engines.over.sort_buffer import SortBuffer
from windowpane.engines.panes.store import DueTimers
from windowpane.errors import UnknownStateFormatError, present
from windowpane.hidden_columns import HASH, TIME
from windowpane.spark.stages.layout import Layout
from windowpane.spark.stages.messages import keep_results, taken_results
from windowpane.spark.stages.next_watermark import NextWatermark
from windowpane.spark.stages.process import OwnWatermark
from windowpane.state.hash_pages import HashPages, PageSummary, stored_hashes
from windowpane.state.listing import KEPT, kept_blob, read_kept
from windowpane.state.memory import MemoryBlobStore
from windowpane.state.row_pages import NewPage, RowPages
from windowpane.state.segment_log import SegmentLog
from windowpane.state.sorted_pages import SortedPages
from windowpane.testing import WindowTestHarness
from windowpane.windowing.assigners import TumblingProcessingTimeWindows, WindowStagger
from windowpane.windowing.watermarks import Watermarks

TIMES = pa.table({"k": ["a"], TIME: pa.array([5])})
TEN = TumblingProcessingTimeWindows(10, stagger=WindowStagger.NATURAL)


def of_bytes(write: Callable[[], bytes], read: Callable[[bytes], object]) -> Callable[[MemoryBlobStore], None]:
    """Return what writes bytes into a store that is empty, and else reads them."""

    def run(store: MemoryBlobStore) -> None:
        blob = store.get("all")
        store.put("all", write()) if blob is None else read(blob)

    return run


def kept_keys(store: MemoryBlobStore) -> None:
    keys = KeptKeys(store)
    keys.add(np.array([1], np.uint64), np.array([5]), TIMES.select(["k"]))
    keys.commit(0)


def held_counts(store: MemoryBlobStore) -> None:
    counts = HeldCounts(store)
    counts.add(0, {0: 1})
    counts.written()


def row_pages(store: MemoryBlobStore) -> None:
    pages = RowPages(store, "g")
    if len(pages):
        pages.read(0)
    pages.replace(0, 0, [NewPage(b"a", b"rows")])
    pages.flush()


def sort_buffer(store: MemoryBlobStore) -> None:
    rows = TIMES.append_column("t", TIMES[TIME].cast(pa.timestamp("us")))
    buffer = SortBuffer(store, "s", "t", (), rows.schema)
    buffer.add(rows)
    buffer.flush()


def due_timers(store: MemoryBlobStore) -> None:
    timers = DueTimers(store)
    timers.note(0, 5, 5)
    timers.flush()


def own_watermark(store: MemoryBlobStore) -> None:
    watermark = OwnWatermark(Watermarks(3))
    watermark.advanced(store, watermark.read(store), [], 7)


def sorted_pages(store: MemoryBlobStore) -> None:
    pages = SortedPages(store, "p")
    pages.get(b"k")
    pages.put(b"k", b"v")
    pages.flush()


def segment_log(store: MemoryBlobStore) -> None:
    log = SegmentLog(store, "s")
    log.read(0)
    log.append(0, TIMES)
    log.flush()


def hash_pages(store: MemoryBlobStore) -> None:
    pages = HashPages(store, "p", stored_hashes, lambda table: PageSummary(0, 0))
    pages.read(0)
    pages.write(0, pa.table({HASH: pa.array([1], pa.uint64())}))
    pages.commit()


def page(store: MemoryBlobStore) -> object:
    form, rows = PageForm(TIMES.schema), TIMES.combine_chunks().to_batches()[0].columns
    return of_bytes(lambda: PageWriter(form, rows, np.zeros(0, np.int64), []).blob(0, 1), form.from_blob)(store)


def history_results(store: MemoryBlobStore) -> None:
    found = taken_results(store)
    keep_results(store, found or [(0, pa.table({"n": [1]}))])


def kept_by_node(store: MemoryBlobStore) -> None:
    blob = store.get(KEPT)
    if blob is None:
        store.put(KEPT, kept_blob({"node": "Join"}))
    else:
        read_kept(blob)


KINDS: dict[str, Callable[[MemoryBlobStore], object]] = {
    "bucket-header": lambda store: BucketHeader.read(store, {}).write(store),
    "window-stagger": lambda store: staggered(present(slices_of(TEN), "of one size"), TEN, store, 3),
    "kept-keys-runs": kept_keys,
    "held-rows": held_counts,
    "row-pages-root": row_pages,
    "row-pages-block": row_pages,
    "row-pages-page": page,
    "over-sort-buffer-width": sort_buffer,
    "due-timers": due_timers,
    "own-watermark": own_watermark,
    "next-watermark": lambda store: NextWatermark("operator", 0)._bound(store, "run", 5, None),
    "bucket-layout": lambda store: Layout("query", 2).compare(0, store),
    "history-results": history_results,
    "sorted-pages-index": sorted_pages,
    "sorted-pages-page": sorted_pages,
    "segment-log-index": segment_log,
    "segment-log-chunk": segment_log,
    "hash-pages-index": hash_pages,
    "hash-pages-page": hash_pages,
    "kept-by-node": kept_by_node,
    "memory-blobs": of_bytes(MemoryBlobStore().snapshot, MemoryBlobStore().restore),
    "harness-snapshot": of_bytes(WindowTestHarness(TEN).snapshot, lambda blob: WindowTestHarness.restore(blob, TEN)),
}
"""By kind what reads its blobs, where there are any, and writes them."""


@pytest.mark.parametrize("kind", KINDS)
def test_an_unknown_version_is_refused_by_name(kind: str) -> None:
    store, run = MemoryBlobStore(), KINDS[kind]
    run(store)
    blobs = {key: store.get(key) or b"" for key in store.keys()}  # noqa: SIM118
    of_kind = {key: blob for key, blob in blobs.items() if blob[4 : 4 + blob[3]] == kind.encode()}
    assert of_kind
    for key, blob in of_kind.items():
        store.put(key, of_version(2, blob))
    with pytest.raises(UnknownStateFormatError, match=f"'{kind}': found version 2, where this windowpane reads format version 1"):
        run(store)


def test_these_are_all_kinds() -> None:
    modules = [path.read_text() for path in Path(windowpane.__file__).parent.rglob("*.py")]
    lines = [
        line
        for text in modules
        if re.search(r"import .*\b(frame|batch_to_blob|packed)\b", text)
        for line in re.findall(r"^_?[A-Z_]+(?:, _?[A-Z_]+)* = .*", text, re.MULTILINE)
    ]
    assert {kind for line in lines for kind in re.findall(r'"([a-z]+(?:-[a-z]+)+)"', line)} == set(KINDS)
