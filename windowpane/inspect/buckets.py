"""The buckets of a checkpoint with the programs that wrote them: a header says which program, and that which engine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import pyarrow as pa

from windowpane.engines.batch.header import HEADER, BucketHeader
from windowpane.engines.changing import OfGeneration
from windowpane.engines.common.held_panes import ListsPanes, Wanted
from windowpane.engines.join.program import JoinProgram
from windowpane.engines.join.windows import JoinWindowEngine
from windowpane.engines.program import Program
from windowpane.engines.registry import AnyProgram, engine_named
from windowpane.engines.spec import EngineSpec
from windowpane.errors import UnreadableDescriptionError
from windowpane.planning.description.programs import read_back
from windowpane.state.blob_store import BlobStore
from windowpane.state.listing import listed
from windowpane.windowing.joins import WindowMatch

_MOST_NODES = 8  # so many nodes, and inputs of one, are looked for
_OF_OVER = {"g": "rows with their results", "b": "rows that wait", "t": "tails", "p": "rows of attempts"}


@dataclass(frozen=True)
class Bucket:
    """What one program has in one bucket.

    Args:
        operator: the number of the operator.
        number: the number of the bucket.
        store: its blobs.
        header: what the last batch left.
        program: the program, ``None`` where a part of it is not found by its name.
        spec: its engine, likewise.
        said: what is said of it where its engine was not chosen: what is not found, or who runs it.
    """

    operator: int
    number: int
    store: BlobStore
    header: BucketHeader
    program: AnyProgram | None
    spec: EngineSpec[Any] | None
    said: str = ""

    @cached_property
    def holds(self) -> Mapping[str, str]:
        """What each structure of its state holds, by name; of nodes of SQL the inputs that they keep."""
        return _inputs_of_nodes(self.store) if self.spec is None else self.spec.holds

    @cached_property
    def engine(self) -> Any:
        """Its engine, made once, ``None`` where the program is not found."""
        return None if self.spec is None or self.program is None else self.spec.make(self.program)

    @cached_property
    def windows(self) -> Program | None:
        """Its program, where it is one of windows; of a join by window that over the rows of both sides."""
        if isinstance(self.program, JoinProgram) and isinstance(self.program.match, WindowMatch):
            row_by_row = self.engine.name == "join reference"
            return JoinWindowEngine(self.program, row_by_row).windowed
        return self.program if isinstance(self.program, Program) else None

    @property
    def keys(self) -> pa.Schema:
        """The key columns of its windows; a join has those of its left side."""
        program = self.windows
        if program is None:
            return pa.schema([])
        names = self.program.left.keys if isinstance(self.program, JoinProgram) else program.keys.names
        return pa.schema([field.with_name(name) for name, field in zip(names, program.keys, strict=True)])

    def held(self, wanted: Wanted) -> Iterator[pa.Table]:
        """Yield the panes that its engine lists."""
        engine = self.engine
        if isinstance(self.program, JoinProgram):
            engine = JoinWindowEngine(self.program, engine.name == "join reference")
            wanted = replace(wanted, results=False)  # its function joins what both sides hold, batch after batch
        if isinstance(engine, ListsPanes):
            yield from (table for table in engine.held(self.store, wanted) if table.num_rows)

    @property
    def clock(self) -> int:
        """The clock that its windows end by."""
        windows = self.windows
        is_by_clock = windows is not None and not windows.spec.lateness.is_event_time
        return self.header.processing_time if is_by_clock else self.header.watermark


def buckets_of(operator: int, number: int, store: BlobStore) -> Iterator[Bucket]:
    """Yield what each program has in a bucket: one, or those before it whose windows are still open."""
    blob = store.get(HEADER)
    if blob is None:
        if _inputs_of_nodes(store):
            nothing = BucketHeader({"kind": "nodes of SQL", "engine": "nodes of SQL"})
            yield Bucket(operator, number, store, nothing, None, None, "the store of its session keeps the program")
        return
    header = BucketHeader.of(blob)
    if not header.generation:
        yield _bucket(operator, number, store, header)
        return
    for generation in range(header.generation + 1):
        part = OfGeneration(store, generation)
        own = part.get(HEADER)
        if own is not None:
            yield _bucket(operator, number, part, BucketHeader.of(own))


def _bucket(operator: int, number: int, store: BlobStore, header: BucketHeader) -> Bucket:
    description = header.description
    spec = engine_named(description["engine"]) if "engine" in description else None
    if "kind" not in description:
        return Bucket(operator, number, store, header, None, spec, "the store of its session keeps the program")
    try:
        program = read_back(description)
    except UnreadableDescriptionError as error:
        return Bucket(operator, number, store, header, None, spec, f"it cannot be read back: {error}")
    return Bucket(operator, number, store, header, program, spec)


def _inputs_of_nodes(store: BlobStore) -> dict[str, str]:
    """Return the structures of nodes of SQL: each keeps its inputs, and has a place of its own where several run together."""
    parts = {str(index): f"rows of input {index}" for index in range(_MOST_NODES)} | _OF_OVER
    places = {"": ""} | {f"{number}.": f"node {number}, " for number in range(_MOST_NODES)}
    names = {place + part: said + holds for place, said in places.items() for part, holds in parts.items()}
    return {name: holds for name, holds in names.items() if listed(store, name) is not None}
