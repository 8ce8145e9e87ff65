"""What a structure of blobs says of itself, from its index alone: for people who look at state.

Rows of nodes of SQL have a blob beside them, which says what they are, and by what they are spread over buckets. Who may mutate:
the engine of the node, once a batch, where it differs. Recovery: no batch reads it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from windowpane.state.blob_store import BlobStore
from windowpane.state.codec import frame, unframe
from windowpane.state.hash_pages import HashPages, PageSummary, stored_hashes
from windowpane.state.row_pages import RowPages
from windowpane.state.segment_log import SegmentLog
from windowpane.state.sorted_pages import SortedPages

KEPT, _KIND = "kept", "kept-by-node"


@dataclass(frozen=True)
class Listed:
    """One structure of a bucket."""

    kind: str  # which one, for people
    blobs: int  # how many blobs it is, the index among them
    size: int  # its bytes as stored
    entries: int | None  # how many rows or entries it holds; ``None`` where the index does not say
    first: int | None = None  # the least of the numbers that its parts are named by, or are due at; ``None`` where it has none
    waiting: int = 0  # how many of its parts wait for a compaction


def listed(store: BlobStore, name: str) -> Listed | None:
    """Return what the structure of a name holds, ``None`` if it holds nothing."""
    index = store.get(f"{name}.i")
    if index is None:
        rows = None if store.get(f"{name}.r") is None else RowPages(store, name)
        return None if rows is None else Listed("row pages", len(rows) + 2, rows.byte_size, None)
    kind = index[4 : 4 + index[3]].decode()
    if kind == "segment-log-index":
        log = SegmentLog(store, name)
        waiting = sum(map(log.wants_compaction, log.segments()))
        return Listed("segment log", log.chunk_count + 1, log.byte_size, log.row_count, min(log.segments()), waiting)
    if kind == "hash-pages-index":
        pages = hash_pages(store, name)
        return Listed("hash pages", len(pages) + 1, pages.byte_size, pages.rows, pages.next_due)
    entries = SortedPages(store, name)
    return Listed("sorted pages", entries.page_count + 1, entries.byte_size, len(entries))


def hash_pages(store: BlobStore, name: str) -> HashPages:
    """Return pages that are only read."""
    return HashPages(store, name, stored_hashes, lambda page: PageSummary(0, page.num_rows))


def kept_blob(kept: Mapping[str, Any]) -> bytes:
    """Return what a node of SQL keeps as a blob."""
    return frame(_KIND, json.dumps(kept).encode())


def nodes_in(store: BlobStore) -> dict[str, dict[str, Any]]:
    """Return what each node of SQL in a bucket keeps, by what the names of its blobs begin with; nothing where there is none."""
    blob = store.get(KEPT)
    if blob is not None:
        return {"": read_kept(blob)}
    found: dict[str, dict[str, Any]] = {}
    while (blob := store.get(f"{len(found)}.{KEPT}")) is not None:
        found[f"{len(found)}."] = read_kept(blob)
    return found


def read_kept(blob: bytes) -> dict[str, Any]:
    """Return what a blob says that a node keeps."""
    found: dict[str, Any] = json.loads(unframe(_KIND, blob))
    return found
