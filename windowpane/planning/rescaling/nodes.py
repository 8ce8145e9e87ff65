"""The state of nodes of SQL in another number of buckets.

A node says beside its state by what its rows are spread (``sql.on_spark.places``). Rows that are kept by the keys of an input
have the number of their place beside them, and what remains of it by the number of buckets is their bucket; of all others, such
as those that an engine holds, SQL computes it of their keys, which only the room of SQL can run: it hands in ``Places``.

State: none of its own; old buckets are only read. Pages are written as if each were due: the next batch that a watermark comes
with looks at them, and notes when they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from windowpane.arrays import Unsigned
from windowpane.engines.batch.header import HEADER, BucketHeader
from windowpane.errors import MistakeError
from windowpane.planning.rescaling.programs import Buckets, Moving, OfNode, Sees, blob_of, pages_of
from windowpane.state.hash_pages import HashPages, PageSummary
from windowpane.state.listing import KEPT, kept_blob, nodes_in
from windowpane.state.memory import MemoryBlobStore
from windowpane.windowing.times import MIN

Places = Callable[[pa.Table, Mapping[str, Any]], Unsigned]
"""Returns where rows belong, which have the columns that the second argument, ``spread`` of what a node keeps, has SQL over."""


def no_places(rows: pa.Table, spread: Mapping[str, Any]) -> Unsigned:
    """Say that nobody has handed in what runs SQL."""
    raise MistakeError("nodes of SQL are moved with what says where their rows belong")


def moved(old: Buckets, count: int, places_of: Places, sees: Sees | None = None) -> list[MemoryBlobStore]:
    """Return the state of nodes that run together, in so many buckets; the first one has the watermarks."""
    new = [MemoryBlobStore() for _ in range(count)]
    for prefix, node in _nodes(old).items():
        own = [_below(store, prefix) for store in old]
        move = _of_program if "program" in node else _of_pages
        for number, part in enumerate(move(node, own, count, places_of, sees)):
            if number and not node["spread"]["keys"][0]:
                continue  # all rows are in the first bucket, and no other one has anything
            for name in part:
                new[number].put(prefix + name, blob_of(part, name))
            new[number].put(prefix + KEPT, kept_blob(node if not number else {**node, "clock": {}}))
    return new


def _nodes(old: Buckets) -> dict[str, dict[str, Any]]:
    """Return what each node keeps, by what the names of its blobs begin with, and the watermarks that the first bucket has."""
    found: dict[str, dict[str, Any]] = {}
    for store in old:
        for prefix, node in nodes_in(store).items():
            found[prefix] = node if node["clock"] or prefix not in found else found[prefix]
    return found


def _below(store: MemoryBlobStore, prefix: str) -> MemoryBlobStore:
    found = MemoryBlobStore()
    for name in store:
        if name.startswith(prefix) and name != prefix + KEPT:
            found.put(name.removeprefix(prefix), blob_of(store, name))
    return found


def _of_program(
    node: Mapping[str, Any], old: Buckets, count: int, places_of: Places, sees: Sees | None
) -> Iterable[MemoryBlobStore]:
    """Yield the buckets of a program; headers of such ones describe none, and some engines have none."""
    filled = [store for store in old if store.keys()]
    if not filled:
        yield from (MemoryBlobStore() for _ in range(count))
        return
    has_header = any(HEADER in store for store in filled)
    of_node = OfNode(node["program"], lambda keys: places_of(keys, node["spread"]))
    for store in Moving(filled, count, None, sees, of_node).stores():
        header = BucketHeader.of(blob_of(store, HEADER))
        store.remove(HEADER)
        if has_header:
            BucketHeader(**{**vars(header), "description": {}}).write(store)
        yield store


def _of_pages(
    node: Mapping[str, Any], old: Buckets, count: int, places_of: Places, sees: Sees | None
) -> Iterable[MemoryBlobStore]:
    new = [MemoryBlobStore() for _ in range(count)]
    for name in sorted({each.removesuffix(".i") for store in old for each in store if each.endswith(".i")}):
        pages = [page for store in old for page in pages_of(store, name) if page.num_rows]
        if pages:
            _move_pages(name, pa.concat_tables(pages, promote_options="default"), node["spread"], new, places_of, sees)
    return new


def _move_pages(name: str, rows: pa.Table, spread: Mapping[str, Any], new: Buckets, places_of: Places, sees: Sees | None) -> None:
    def stored(table: pa.Table) -> Unsigned:
        found: Unsigned = table[spread["column"]].to_numpy().astype(np.uint64)
        return found

    keys, number = spread["keys"], int(name)
    is_of_input = number < len(keys)
    numbers = ((stored(rows) if is_of_input else places_of(rows, spread)) % np.uint64(len(new))).astype(np.int64)
    if sees is not None:
        sees(rows.select(keys[number if is_of_input else 0]), numbers)
    for bucket in np.unique(numbers).tolist():
        pages = HashPages(new[bucket], name, stored, lambda page: PageSummary(MIN, page.num_rows))
        pages.write(0, rows.filter(pa.array(numbers == bucket)))
        pages.commit()
