"""Panes come back as they were written, in shards that are cut anew as they grow."""

from __future__ import annotations

import pyarrow as pa

from verify.sizes import given_sizes
from windowpane.arrays.columns import split
from windowpane.engines.panes.store import SHARD_ROWS, PaneStore
from windowpane.hidden_columns import SEGMENT
from windowpane.state.memory import MemoryBlobStore


def keys(numbers) -> pa.Table:
    return pa.table({"k": [f"key {number}" for number in numbers], "n": list(numbers)})


def read(panes: PaneStore, segments: list[int]) -> pa.Table:
    rows = panes.read(segments)
    assert rows is not None
    return rows


def put(panes: PaneStore, rows: pa.Table) -> None:
    """Add rows to the shards of the global window."""
    shards = panes.shards(rows.select(["k"]))
    touched = sorted(set(shards.tolist()))
    held = panes.read(touched)
    rows = rows.append_column(SEGMENT, pa.array(shards))
    panes.write(rows if held is None else pa.concat_tables([held, rows]), touched)
    panes.flush()


@given_sizes({SHARD_ROWS: 10})
def test_shards_are_cut_anew_as_they_grow_and_nothing_is_lost():
    store = MemoryBlobStore()
    for start in range(0, 300, 30):
        put(PaneStore(store, ("k",), is_global=True), keys(range(start, start + 30)))
    panes = PaneStore(store, ("k",), is_global=True)
    everything = read(panes, panes.segments())
    assert sorted(everything["n"].to_pylist()) == list(range(300))
    assert len(panes.segments()) >= 16
    assert everything[SEGMENT].to_pylist() == panes.shards(everything.select(["k"])).tolist()


@given_sizes({SHARD_ROWS: 10})
def test_a_touched_shard_is_read_alone():
    store = MemoryBlobStore()
    put(PaneStore(store, ("k",), is_global=True), keys(range(300)))
    panes, before = PaneStore(store, ("k",), is_global=True), store.reads
    assert read(panes, panes.shards(keys([7])).tolist()).num_rows < 40
    assert store.reads == before + 1


@given_sizes({SHARD_ROWS: 10})
def test_keys_that_are_numbered_one_after_the_other_lie_together():
    store = MemoryBlobStore()
    rows = pa.table({"k": [f"key {number}" for number in range(300)], "n": range(300)})
    for first in (200, 0, 100):
        panes = PaneStore(store, ("k", "n"), is_global=True)
        own = rows.slice(first, 100)
        touched = sorted(set(panes.shards(own).tolist()))
        held = panes.read(touched)
        own = own.append_column(SEGMENT, pa.array(panes.shards(own)))
        panes.write(own if held is None else pa.concat_tables([held, own]), touched)
        panes.flush()
    panes = PaneStore(store, ("k", "n"), is_global=True)
    everything = read(panes, panes.segments())
    assert everything["n"].to_pylist() == list(range(300))
    assert everything[SEGMENT].to_pylist() == panes.shards(everything).tolist()
    assert len(set(panes.shards(rows.slice(120, 10)).tolist())) <= 3


def test_windows_are_segments_that_go_as_a_whole():
    store = MemoryBlobStore()
    panes = PaneStore(store, ("k",), is_global=False)
    panes.write(keys([1, 2]).append_column(SEGMENT, pa.array([20, 10])), [10, 20])
    panes.flush()
    panes = PaneStore(store, ("k",), is_global=False)
    assert panes.segments() == [10, 20]
    panes.drop(10)
    panes.write(read(panes, [20]).slice(0, 0), [20])
    panes.flush()
    assert panes.segments() == []
    assert store.keys() == []


def test_rows_split_by_a_column_in_order():
    parts = split(pa.table({"a": [2, 1, 2], "b": ["x", "y", "z"]}), "a")
    assert [(value, part["b"].to_pylist()) for value, part in parts] == [(1, ["y"]), (2, ["x", "z"])]
