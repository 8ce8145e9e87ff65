"""The buckets of a checkpoint with the programs that wrote them: a header says which program, and that which engine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final, Protocol

import pyarrow as pa

from windowpane.engines.batch.header import HEADER, BucketHeader
from windowpane.engines.changing import OfGeneration
from windowpane.engines.common.held_panes import Wanted, WindowsEngine
from windowpane.engines.join.program import JoinProgram
from windowpane.engines.join.windows import JoinWindowEngine
from windowpane.engines.program import BucketProgram, Program
from windowpane.engines.registry import engine_named
from windowpane.engines.spec import BucketEngine
from windowpane.errors import UnreadableDescriptionError
from windowpane.planning.description.programs import read_back
from windowpane.sizes import Size
from windowpane.state.blob_store import BlobStore
from windowpane.state.listing import Listed, listed
from windowpane.windowing.joins import WindowMatch

MOST_PANES: Final = Size("panes of a bucket that are read to list windows and keys", 1 << 16, (1 << 16,))
"""What is shown of more is of those that end first, and says so."""


class KeptByNode(Protocol):
    """What a node of SQL keeps that no engine of programs runs."""

    def listed(self) -> Iterator[tuple[str, Listed]]:
        """Yield what each of its tables holds, and its size."""

    def held(self) -> Iterator[Any]:
        """Yield the rows of each table, as ``held_rows`` has them."""


@dataclass(frozen=True)
class Bucket:
    """What one program has in one bucket.

    Args:
        operator: the number of the operator.
        number: the number of the bucket.
        store: its blobs.
        header: what the last batch left.
        program: the program, ``None`` where a part of it is not found by its name.
        runs_on: the class of its engine, likewise.
        said: what is said of it where its engine was not chosen: what is not found, or which node of SQL it is.
        node: what a node of SQL holds that no engine of programs runs.
        names: what people call the columns of the program, where these have ids.
        reached: of nodes of SQL the watermarks of relations in microseconds, where the bucket has them.
    """

    operator: int
    number: int
    store: BlobStore
    header: BucketHeader
    program: BucketProgram | None
    runs_on: type[BucketEngine[Any]] | None
    said: str = ""
    node: KeptByNode | None = None
    names: Mapping[str, str] = field(default_factory=dict)
    reached: Mapping[str, int] | None = None

    @property
    def holds(self) -> Mapping[str, str]:
        """What each structure of its state holds, by name; of a join by window those of the windows."""
        if self.runs_on is None:
            return {}
        return engine_named(self.engine.windows_on).holds if isinstance(self.engine, JoinWindowEngine) else self.runs_on.holds

    def listed(self) -> Iterator[tuple[str, Listed]]:
        """Yield what each structure of its state holds, and what its index says."""
        if self.node is not None:
            yield from self.node.listed()
        for name, holds in self.holds.items():
            found = listed(self.store, name)
            if found is not None:
                yield holds, found

    @cached_property
    def engine(self) -> Any:
        """Its engine, made once, ``None`` where the program is not found."""
        return None if self.runs_on is None or self.program is None else self.runs_on(self.program)

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
        engine = self.engine
        if isinstance(self.program, JoinProgram):
            engine = JoinWindowEngine(self.program, engine.name == "join reference")
            wanted = replace(wanted, results=False)  # its function joins what both sides hold, batch after batch
        if isinstance(engine, WindowsEngine | JoinWindowEngine):
            yield from (table for table in engine.held(self.store, wanted) if table.num_rows)

    @cached_property
    def panes(self) -> Panes:
        """Its panes, those that end first in front, read once for all tables that are made of them."""
        return Panes(self.held(Wanted()))

    @property
    def clock(self) -> int:
        """The clock that its windows end by."""
        windows = self.windows
        is_by_clock = windows is not None and not windows.spec.lateness.is_event_time
        return self.header.processing_time if is_by_clock else self.header.watermark


class Panes:
    """Panes that are read when they are first asked for, and kept: at most ``MOST_PANES``.

    Attributes:
        is_complete: whether no pane is left out of those that were asked for so far.
    """

    def __init__(self, tables: Iterator[pa.Table]) -> None:
        self._tables, self._read, self._room = tables, list[pa.Table](), MOST_PANES.value
        self.is_complete = True

    def __iter__(self) -> Iterator[pa.Table]:
        yield from self._read
        for table in self._tables if self.is_complete else ():
            part = table.slice(0, self._room)
            self._room -= part.num_rows
            self.is_complete = part.num_rows == table.num_rows
            if part.num_rows:
                self._read.append(part)
                yield part
            if not self.is_complete:
                return


def buckets_of(operator: int, number: int, store: BlobStore) -> Iterator[Bucket]:
    """Yield what each program has in a bucket: one, or those before it whose windows are still open; of nodes of SQL nothing."""
    blob = store.get(HEADER)
    newest = None if blob is None else BucketHeader.of(blob)
    if newest is not None and "kind" in newest.description:
        for part, header in _generations(store, newest):
            yield bucket_of(operator, number, part, header)


def headers_of(store: BlobStore) -> Iterator[BucketHeader]:
    """Yield the header of each program that has something in a bucket."""
    blob = store.get(HEADER)
    if blob is not None:
        yield from (header for _, header in _generations(store, BucketHeader.of(blob)))


def _generations(store: BlobStore, header: BucketHeader) -> Iterator[tuple[BlobStore, BucketHeader]]:
    if not header.generation:
        yield store, header
        return
    for generation in range(header.generation + 1):
        part = OfGeneration(store, generation)
        own = part.get(HEADER)
        if own is not None:
            yield part, BucketHeader.of(own)


def bucket_of(operator: int, number: int, store: BlobStore, header: BucketHeader) -> Bucket:
    description = header.description
    runs_on = engine_named(description["engine"]) if "engine" in description else None
    try:
        program = read_back(description)
    except UnreadableDescriptionError as error:
        return Bucket(operator, number, store, header, None, runs_on, f"it cannot be read back: {error}")
    return Bucket(operator, number, store, header, program, runs_on)
