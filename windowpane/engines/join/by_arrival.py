"""The engine of joins by arrival: each left row with the right row of its key that has arrived last.

State, by name in the bucket's blob store: ``header``, and pages ``p`` by a hash of the key: the last right row of each key, with
the hash before its columns. A batch takes its right rows first; then its left rows find theirs, and nothing is corrected later. A
delete takes the row of its key away. Keys with NULL meet nothing and are not held, unless NULL equals NULL.

Who may mutate: this engine, once a batch. Recovery: read them back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import pyarrow as pa

from windowpane.arrays import Integers, Mask
from windowpane.arrays.columns import padded
from windowpane.engines.batch.driver import BucketBatch, Left
from windowpane.engines.common.arrival import ordered
from windowpane.engines.common.tagged import tag
from windowpane.engines.join.batch import fulfilling, key_columns, results
from windowpane.engines.join.program import JoinCounters, JoinProgram
from windowpane.engines.join.versions import are_live, versions_among
from windowpane.engines.nested_keys.writing import hashable_key
from windowpane.engines.program import MAIN
from windowpane.engines.spec import BucketEngine
from windowpane.hidden_columns import FIRING_WATERMARK, HASH, TIME
from windowpane.kernels.keys.key_codes import key_codes, key_hashes
from windowpane.kernels.keys.ordered_codes import all_valid
from windowpane.state.blob_store import BlobStore
from windowpane.state.hash_pages import DENSE_ROWS, PAGE_ROWS, STEP_ROWS, HashPages, PageSummary, stored_hashes
from windowpane.windowing.expressions import Side
from windowpane.windowing.joins import ArrivalMatch
from windowpane.windowing.times import MAX, MIN


class _Batch(BucketBatch[JoinProgram]):
    counters = JoinCounters

    def __init__(self, engine: BucketEngine[JoinProgram], store: BlobStore) -> None:
        super().__init__(engine, store)
        self._pages = HashPages(store, "p", stored_hashes, _summary, PAGE_ROWS.value, DENSE_ROWS.value)

    def work(self, tables: list[pa.Table]) -> None:
        left = self._arrived("left", tables)
        right = self._arrived("right", tables)
        right = right.filter(pa.array(self._meets(right, "right")))

        def step(held: pa.Table | None, numbers: Integers) -> pa.Table | None:
            of_left, of_right = numbers[numbers < left.num_rows], numbers[numbers >= left.num_rows] - left.num_rows
            return self._step(held, left.take(pa.array(of_left)), right.take(pa.array(of_right)))

        hashes = np.concatenate([stored_hashes(left), stored_hashes(right)])
        self._pages.each(len(hashes), lambda: hashes, MIN, STEP_ROWS.value, step)

    def close(self) -> Left:
        held = self._pages.live
        return Left(held, self._pages.byte_size, is_idle=True, gauges={"held_right": held})

    def _arrived(self, side: Side, tables: Sequence[pa.Table]) -> pa.Table:
        of = self.program.sides[side]
        wanted = pa.schema([*of.columns, *([pa.field(TIME, pa.int64())] if side == "left" else [])])
        rows = ordered([table for table in tables if tag(table, "side") == side])
        rows = wanted.empty_table() if rows is None else rows.select(wanted.names).cast(wanted)
        rows = versions_among(rows) if side == "right" else rows
        hashed = key_hashes([hashable_key(name, rows[name]) for name in of.keys], rows.num_rows)
        return rows.add_column(0, HASH, pa.array(hashed, pa.uint64())).combine_chunks()

    def _meets(self, rows: pa.Table, side: Side) -> Mask:
        """Return which rows have a key that equals any."""
        return all_valid([] if self.program.null_safe else [rows[name] for name in self.program.sides[side].keys], rows.num_rows)

    def _step(self, held: pa.Table | None, left: pa.Table, right: pa.Table) -> pa.Table | None:
        """Let right rows replace those that some pages hold, and left rows find theirs."""
        known = [] if held is None else [padded(held, right.schema).cast(right.schema)]
        versions = pa.concat_tables([*known, right]).combine_chunks()
        columns = key_columns(self.program, left, versions)
        codes = np.unique(key_codes(columns, left.num_rows + versions.num_rows), return_inverse=True)[1]
        last = np.full(int(codes.max(initial=-1)) + 1, -1)
        np.maximum.at(last, codes[left.num_rows :], np.arange(versions.num_rows))
        last[last >= 0] = np.where(are_live(versions)[last[last >= 0]], last[last >= 0], -1)
        self._match(left, versions, np.where(self._meets(left, "left"), last[codes[: left.num_rows]], -1))
        return versions.take(pa.array(np.sort(last[last >= 0]))) if right.num_rows else None

    def _match(self, left: pa.Table, versions: pa.Table, chosen: Integers) -> None:
        lefts = np.flatnonzero(chosen >= 0)
        lefts = lefts[fulfilling(self.program, lefts, chosen[lefts], left, versions)]
        self._emit("pairs", left.take(pa.array(lefts)), versions.take(pa.array(chosen[lefts])))
        if self.program.pads_left:
            is_alone = np.ones(left.num_rows, np.bool_)
            is_alone[lefts] = False
            self._emit("padded", left.filter(pa.array(is_alone)), None)

    def _emit(self, name: str, left: pa.Table, right: pa.Table | None) -> None:
        if left.num_rows:
            self.count(name, left.num_rows)
            system = {TIME: left[TIME], FIRING_WATERMARK: pa.repeat(pa.scalar(MIN, pa.int64()), left.num_rows)}
            self.outputs.append((MAIN, results(self.program, left, right, system, left.num_rows)))


def _summary(held: pa.Table) -> PageSummary:
    return PageSummary(MAX, held.num_rows)


class JoinByArrivalEngine(BucketEngine[JoinProgram]):
    name = "join_arrival"
    reason = "left rows find the last right row of their key all at once"
    state = "hash pages: the last right row of each key, by a hash of the key"
    holds: ClassVar = {"p": "last right rows"}
    batch = _Batch

    @classmethod
    def serves(cls, program: JoinProgram) -> bool:
        return isinstance(program.match, ArrivalMatch)
