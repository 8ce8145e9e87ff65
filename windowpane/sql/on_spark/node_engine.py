"""The engine of stages that run together, mostly one: nodes of a plan on a bucket of rows, with their state in its blobs.

A node is run behind those whose results it takes: they are in the bucket already. The names of its blobs begin with its place,
if there are several. State of OVER windows is that of their engines. Every other node keeps its inputs, or what they fold to,
as rows in hash pages, one set an input, named by the number of the input; in place of a hash, they lie by ``Stage.place_sql``.
Groups with DISTINCT in calls have further sets, from 1 on: the values of each argument, by ``Stage.place_of`` the group and the
value. A batch reads the pages of the keys it touches, and those with a row that the watermark passes. The node's operator runs
on these pages as if they were its whole state, and its state behind the batch is written back. Who may mutate: this engine,
once a batch. Recovery: Spark commits all state of a batch or none.

Beside the state of a node lies, as JSON, what it is and by what its rows are spread (``KEPT``): no batch reads it, but people who
look into a checkpoint, and who spreads it over other buckets.

Every bucket gets the watermarks with every batch: each task that read something adds a clock table to the rows, and the newest
watermark of each relation counts. The first bucket sends them to the next stage.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windowpane.arrays import Unsigned
from windowpane.engines.common.tagged import tag
from windowpane.engines.program import MAIN
from windowpane.engines.protocol import BucketOutput, Clock
from windowpane.errors import MistakeError
from windowpane.sql.embedded.storage import Storage
from windowpane.sql.expressions.expr import quoted
from windowpane.sql.nodes import Aggregate, CloseSort, Join, Match, Over
from windowpane.sql.on_spark.change_sets import clock_of, is_initial, newest
from windowpane.sql.on_spark.places import spread_of, stored_places
from windowpane.sql.on_spark.rowwise import task_storage, typed, typed_items
from windowpane.sql.on_spark.stages import HASH, INPUT, Stage, column_types
from windowpane.sql.streaming.clock import FixedClock
from windowpane.sql.streaming.deltas import Delta
from windowpane.sql.streaming.distinct_values import Placing
from windowpane.sql.streaming.folding import Folded
from windowpane.sql.streaming.freeing import closing_columns
from windowpane.sql.streaming.joining import Joined
from windowpane.sql.streaming.kept import kept_by
from windowpane.sql.streaming.matching import Matching
from windowpane.sql.streaming.over import over_on_blobs, runs_keyed
from windowpane.sql.streaming.physical import FOLDED, physical
from windowpane.state.blob_store import Below, BlobStore
from windowpane.state.hash_pages import HashPages, PageSummary
from windowpane.state.listing import KEPT, kept_blob
from windowpane.windowing.times import MAX, MIN

CLOCK_OUTPUT = MAIN + 1
"""The output with the watermarks for the next stage."""

_OWNER = "stage"

Deltas = list[Delta | None]


@dataclass(frozen=True)
class _Batch:
    """What a bucket gets: changes of each input, and the watermarks."""

    tables: tuple[list[pa.Table], ...]
    clock: pa.Table

    @classmethod
    def of(cls, tables: Sequence[pa.Table], inputs: int) -> _Batch:
        clock = newest([table for table in tables if tag(table, "clock") is not None])
        return cls(tuple([table for table in tables if tag(table, "input") == str(index)] for index in range(inputs)), clock)

    @property
    def bucket(self) -> int:
        return int(tag(self.clock, "bucket") or 0)


@dataclass(frozen=True)
class _Arrived:
    """What a node gets."""

    deltas: Deltas
    places: Unsigned
    clock: pa.Table


class NodeEngine:
    name = "sql nodes"

    def __init__(self, stages: Sequence[tuple[int, Stage]]) -> None:
        """Run stages, by their numbers in the plan: each behind those it reads."""
        self._stages, self._storage = dict(stages), task_storage()
        self._kept: dict[int, dict[str, Any]] = {}

    def run(self, store: BlobStore, rows: Sequence[pa.Table], clock: Clock) -> BucketOutput:
        """Run one batch of a bucket; the watermarks are tables beside those of the rows."""
        stages = list(self._stages.values())
        batch = _Batch.of(rows, sum(len(stage.inputs) for stage in stages))
        watermarks = [(CLOCK_OUTPUT, batch.clock)] if batch.bucket == 0 else []
        if batch.bucket and not stages[-1].keys[0]:
            return BucketOutput()
        emitted: dict[int, Delta | None] = {}
        with self._storage.transaction():
            tables = iter(batch.tables)
            for place, (number, stage) in enumerate(self._stages.items()):
                arrived = self._arrived(stage, [next(tables) for _ in stage.inputs], emitted, batch.clock)
                own = _BucketBlobs(store, "" if len(stages) == 1 else f"{place}.")
                emitted[number] = self._run_node(stage, own, arrived)
                self._say(number, own, clock_of(batch.clock) if batch.bucket == 0 else {})
            result = emitted[number]
            changes = None if result is None else self._storage.arrow(f"SELECT * FROM {result}")
        results = [(MAIN, changes)] if changes is not None and changes.num_rows else []
        return BucketOutput([*results, *watermarks])

    def _say(self, number: int, store: _BucketBlobs, clock: Mapping[str, str]) -> None:
        """Keep what the state of a stage is beside it, and in the first bucket the watermarks."""
        if number not in self._kept:
            stage = self._stages[number]
            self._kept[number] = {**kept_by(stage.node, self._storage, paged=True), "spread": spread_of(stage)}
        blob = kept_blob({**self._kept[number], "clock": clock})
        if store.get(KEPT) != blob:
            store.put(KEPT, blob)

    def _arrived(
        self, stage: Stage, tables: Sequence[list[pa.Table]], emitted: Mapping[int, Delta | None], clock: pa.Table
    ) -> _Arrived:
        """Return what a stage gets: tables for each of its inputs, and what stages before it have emitted."""
        places = [stored_places(table) for arriving in tables for table in arriving]
        deltas: Deltas = []
        for index, source in enumerate(stage.node.inputs):
            kinds = column_types(source.columns)
            rows = typed(self._storage, tables[index], kinds) if tables[index] else None
            for flow in stage.inputs[index]:
                if flow.stage is not None and (changes := emitted.get(flow.stage)) is not None:
                    if rows is not None:
                        raise MistakeError("what flows from such a stage is all that flows into the input")
                    given = f"SELECT {typed_items(flow.columns)} FROM {changes}"
                    rows = self._storage.temporary(f"WITH {INPUT} AS ({given}) SELECT {typed_items(kinds)} FROM ({flow.sql})")
                    placed = self._storage.arrow(f"SELECT DISTINCT {stage.place_sql(index)} AS {HASH} FROM {rows}")
                    places.append(stored_places(placed))
            deltas.append(None if rows is None else Delta(rows))
        return _Arrived(deltas, np.unique(np.concatenate(places)) if places else np.empty(0, np.uint64), clock)

    def _run_node(self, stage: Stage, store: _BucketBlobs, arrived: _Arrived) -> Delta | None:
        if isinstance(stage.node, Over) and not runs_keyed(stage.node, self._storage):
            operator = over_on_blobs(stage.node, self._storage, store)
            return operator.run(arrived.deltas, initial=is_initial(arrived.clock))
        if isinstance(stage.node, Match):
            matching = Matching(stage.node, self._storage, store, FixedClock(clock_of(arrived.clock)))
            return matching.run(arrived.deltas, initial=is_initial(arrived.clock))
        return PagedNode(stage, self._storage, store).run(arrived)


@dataclass(frozen=True)
class _PageSet:
    """A table of a node's state in pages: those that the watermark touches, and all that are read."""

    pages: HashPages
    due: Sequence[int]
    read: Sequence[int]


class PagedNode:
    """A node whose operator keeps its inputs, over pages of a bucket."""

    def __init__(self, stage: Stage, storage: Storage, store: BlobStore) -> None:
        self._stage, self._node, self._storage = stage, stage.node, storage
        self._closing = stage.node.by if isinstance(stage.node, CloseSort) else self._groups_that_close()
        self._due = self._closing[0] if self._closing else None
        self._store = store

    def _groups_that_close(self) -> tuple[str, ...]:
        return closing_columns(self._node)[:1] if isinstance(self._node, Aggregate) else ()

    def run(self, arrived: _Arrived) -> Delta | None:
        clock = FixedClock(clock_of(arrived.clock))
        operator = self._operator(clock)
        touched = [arrived.places] * len(self._node.inputs)
        if isinstance(operator, Folded):
            touched += self._touched_values(operator, arrived.deltas[0])
        limit = self._limit(clock)
        sets = [self._set(index, hashes, limit) for index, hashes in enumerate(touched)]
        for each, table, columns in zip(sets, operator.tables, operator.state_columns, strict=True):
            self._load(table, each.pages, each.read, columns)
        changes: Delta | None = operator.run(arrived.deltas, initial=is_initial(arrived.clock))
        for index, each in enumerate(sets[: len(self._node.inputs)]):
            placed = f"SELECT *, {self._stage.place_sql(index)} AS {HASH} FROM {operator.tables[index]}"
            self._save(placed, each.pages, each.read)
        if isinstance(operator, Folded):
            for each, values in zip(sets[1:], operator.values, strict=True):
                changed = [] if values.changed is None else each.pages.locate(self._places_in(values.changed)).tolist()
                self._save(f"SELECT * FROM {values.table}", each.pages, sorted({*changed, *each.due}))
        operator.drop()
        return changes

    def _set(self, index: int, hashes: Unsigned, limit: int | None) -> _PageSet:
        """Return a set of pages, and which of them a batch and the watermark touch; page 0 is that of keys without a page."""
        pages = HashPages(self._store, str(index), stored_places, self._summary)
        due = [] if limit is None else pages.due(limit)
        return _PageSet(pages, due, sorted({*pages.locate(hashes).tolist(), *due}))

    def _touched_values(self, operator: Folded, batch: Delta | None) -> list[Unsigned]:
        """Return where the distinct values of a batch lie, of each argument."""
        counted = [] if batch is None else operator.count_values(batch)
        return [self._places_in(values) for values in counted] or [np.empty(0, np.uint64)] * len(operator.values)

    def _places_in(self, values: str) -> Unsigned:
        return stored_places(self._storage.arrow(f"SELECT DISTINCT {HASH} FROM {values}"))

    def _operator(self, clock: FixedClock) -> Any:
        node, how = self._node, physical(self._node, self._storage, paged=True)
        if isinstance(node, Aggregate) and how is FOLDED:
            return Folded(node, self._storage, _OWNER, clock, Placing(HASH, self._stage.place_of))
        if isinstance(node, Join):
            return Joined(node, self._storage, _OWNER, clock, whole=False)
        return how.make(node, self._storage, _OWNER, clock)

    def _limit(self, clock: FixedClock) -> int | None:
        """Return the number up to which the watermark touches pages; ``None`` if it touches none."""
        limits = [clock.of(self._node.watermarks[name]) for name in self._closing]
        if len(limits) > 1:
            return MIN
        if not limits or limits[0] is None:
            return None
        value: int | None = _instants(self._storage.arrow(f"SELECT {limits[0]} AS value")["value"])[0].as_py()
        return value or MIN

    def _load(self, table: str, pages: HashPages, places: Sequence[int], columns: Sequence[str]) -> None:
        found = [page for place in places if (page := pages.read(place)) is not None]
        if found:
            names = ", ".join(map(quoted, columns))
            rows = self._storage.temporary_from(pa.concat_tables(found))
            self._storage.run(f"INSERT INTO {table} ({names}) SELECT {names} FROM {rows}")

    def _save(self, state: str, pages: HashPages, places: Sequence[int]) -> None:
        if not places:
            return
        rows = self._storage.arrow(state)
        located = pages.locate(stored_places(rows))
        for place in places:
            pages.write(place, rows.filter(pa.array(located == place)))
        pages.commit()

    def _summary(self, page: pa.Table) -> PageSummary:
        """A page is due when the watermark reaches its first row; always, where the node waits for several watermarks."""
        if self._due is None:
            return PageSummary(MAX, page.num_rows)
        if len(self._closing) > 1:
            return PageSummary(MIN, page.num_rows)
        first = pc.min(_instants(page[self._due])).as_py()
        return PageSummary(MAX if first is None else first, page.num_rows)


def _instants(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return values as whole numbers in their order; values of other types count as always due."""
    kind = values.type
    if pa.types.is_date32(kind):
        values = values.cast(pa.int32())
    if pa.types.is_date32(kind) or pa.types.is_timestamp(kind) or pa.types.is_integer(kind):
        return values.cast(pa.int64())
    return pa.chunked_array([pa.array([MIN] * len(values), pa.int64())])


class _BucketBlobs(Below):
    """The blobs of a node in a bucket; Spark saves them."""

    def save(self) -> None:
        """Spark does."""

    def forget(self) -> None:
        """Nothing is cached."""

    def drop(self) -> None:
        """Spark forgets the state with its checkpoint."""
