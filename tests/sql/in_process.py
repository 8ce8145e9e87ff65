"""Sessions whose views run in stages on buckets, as on Spark, in this process: no JVM; the same change sets, stages and engines.

A source is a folder of Parquet files. A batch has the oldest change set that is left, and one file of each source, in two tasks.
Window programs are Spark's alone: here groups run on the nodes, too.
"""

from __future__ import annotations

import os
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from windowpane.engines.program import MAIN
from windowpane.engines.protocol import Clock
from windowpane.planning.rescaling.buckets import problems, rescaled
from windowpane.spark.queries import batch_query, staged
from windowpane.spark.sources import arrow_rows, connectors
from windowpane.spark.stages.blobs import unpack
from windowpane.spark.stages.buckets import bucket_ids
from windowpane.spark.stages.wire import Wire
from windowpane.sql import Session
from windowpane.sql.on_spark import spark_runner, view_batches, view_streams
from windowpane.sql.on_spark.batch_writing import LogWriter
from windowpane.sql.on_spark.ingest import Ingest
from windowpane.sql.on_spark.pending_changes import PendingChanges
from windowpane.sql.on_spark.places import places_of
from windowpane.sql.on_spark.programs.groups_below import SpreadPlan
from windowpane.sql.on_spark.queries import ViewQueries
from windowpane.sql.on_spark.stages import STAGE
from windowpane.state.memory import MemoryBlobStore

BUCKETS, TASKS = 3, 2


@dataclass(frozen=True)
class Files:
    """Stands for the DataFrame of a source, or of change sets: the files of a folder, one a batch.

    Args:
        folder: has the files.
        columns: those that are read; ``None`` for change sets.
        partition: the column with the number of the task.
        is_shared: whether tasks share a change set.
    """

    folder: Path
    columns: tuple[str, ...] | None = None
    partition: str | None = None
    is_shared: bool = False
    sparkSession: object = None  # noqa: N815 - Spark's name

    @property
    def paths(self) -> list[Path]:
        return sorted(self.folder.glob("*.parquet"), key=lambda path: int(path.stem))

    def known(self, path: Path) -> str:
        """Return by what it is known that a file was read: change sets by their names alone."""
        return path.name if self.columns is None else str(path)

    def tasks(self, path: Path | None) -> list[list[pa.RecordBatch]]:
        """Return the rows of a file as tasks get them: of a source several tasks, of a change set one, unless it is shared."""
        if path is None:
            return []
        table = pq.read_table(path, columns=None if self.columns is None else list(self.columns))
        tasks = TASKS if self.is_shared or self.columns is not None else 1
        if self.partition is not None:
            table = table.append_column(self.partition, pa.array([n % tasks for n in range(table.num_rows)]))
        return [table.take(pa.array(range(task, table.num_rows, tasks), pa.int64())).to_batches() for task in range(tasks)]


class Exchange:
    """Replaces a ``BatchExchange``."""

    def __init__(self, folder: object) -> None:
        self._published: str | None = None
        self._reports: dict[Any, Any] = {}
        self._files = Path(mkdtemp(prefix="windowpane-test-"))
        self.partition = 0

    def publish(self, text: str, spark: object = None) -> None:
        self._published, self._reports = text, {}

    def published(self) -> str | None:
        return self._published

    def new_file(self) -> Path:
        return self._files / f"{uuid.uuid4().hex}.parquet"

    def report(self, seen: Any, what: Any) -> None:
        self._reports[what] = seen

    @property
    def reports(self) -> list[Any]:
        return list(self._reports.values())


@dataclass
class InProcess:
    """Runs a staged query batch by batch."""

    entries: Sequence[staged.Entry]
    stages: Sequence[staged.Stage]
    result: Sequence[staged.Inlet]
    to_files: staged.ToFiles

    def __post_init__(self) -> None:
        self.stores: defaultdict[tuple[int, int], MemoryBlobStore] = defaultdict(MemoryBlobStore)
        self.taken: set[str] = set()
        self.buckets = BUCKETS

    def batches(self) -> Iterator[dict[int, list[list[pa.RecordBatch]]]]:
        """Yield what is new at each entry, batch by batch, by the number of the entry."""
        while True:
            files = [entry.rows for entry in self.entries]
            new = [next((path for path in each.paths if each.known(path) not in self.taken), None) for each in files]
            if not any(new):
                return
            self.taken |= {each.known(path) for each, path in zip(files, new, strict=True) if path is not None}
            yield {number: entry.rows.tasks(path) for number, (entry, path) in enumerate(zip(self.entries, new, strict=True))}

    def run(self, batch: dict[int, list[list[pa.RecordBatch]]], exchange: Exchange) -> list[Path]:
        made: list[staged.Entry] = []
        wires = list(staged.wires(self.stages, self.result, STAGE, self.to_files))
        for number, (stage, wire) in enumerate(zip(self.stages, wires, strict=True)):
            made.append(staged.Entry(self._stage(number, stage, batch, made, exchange, wire)))
        files = [path for inlet in self.result for path in self._files(inlet, batch, made, exchange, wires)]
        return [Path(os.fsdecode(path)) for path in files]

    def _files(self, inlet: staged.Inlet, batch: Any, made: Any, exchange: Exchange, wires: Sequence[Wire]) -> Iterator[bytes]:
        if inlet.stage is not None and wires[inlet.stage].main_blobs is not None:
            emitted = made[inlet.stage].rows
            yield from emitted.filter(pc.equal(emitted["relation"], STAGE))["blob"].to_pylist()
            return
        for task, parts in self._arriving(inlet, batch, made, exchange):
            for written in staged.WriteResult(inlet.rows, self.to_files, parts)(iter(task)):
                yield from written.column("file").to_pylist()

    def _arriving(self, inlet: staged.Inlet, batch: dict[int, Any], made: Sequence[staged.Entry], exchange: Exchange) -> Any:
        partition = 0
        for entry in staged.places(self.entries, made, inlet):
            tasks = [entry.rows.to_batches()] if inlet.stage is not None else batch[self.entries.index(entry)]
            for task in tasks:
                exchange.partition = partition
                yield task, entry.parts
                partition += 1

    def _stage(self, number: int, stage: staged.Stage, batch: Any, made: Any, exchange: Exchange, wire: Wire) -> pa.Table:
        buckets: defaultdict[int, list[pa.Table]] = defaultdict(list)
        for inlets in stage.arriving:
            inputs = [(inlet.rows, inlet.input) for inlet in inlets]
            for task, come in self._arriving(inlets[0], batch, made, exchange):
                for spread in staged.Spread(inputs, stage.hash, self.buckets, come)(iter(task)):
                    for bucket, blob in zip(*spread.columns, strict=True):
                        buckets[bucket.as_py()].append(unpack(blob.as_py()))
        parts = []
        for bucket, tables in buckets.items():
            output = stage.make_engine().run(self.stores[number, bucket], tables, Clock(0, 0))
            parts += [(STAGE if which == MAIN else "", blob) for which, blob in wire.packed(output.tables)]
        return pa.table({"relation": [name for name, _ in parts], "blob": pa.array([b for _, b in parts], pa.binary())})


@dataclass
class Checkpoint:
    """What a query has taken: it outlives the session, as that of Spark does."""

    stores: defaultdict[tuple[int, int], MemoryBlobStore] = field(default_factory=lambda: defaultdict(MemoryBlobStore))
    taken: set[str] = field(default_factory=set)
    number: int = 0
    buckets: int = BUCKETS

    def rescale(self, count: int) -> None:
        """Spread the state of all stages over so many buckets."""
        stores: defaultdict[tuple[int, int], MemoryBlobStore] = defaultdict(MemoryBlobStore)
        for stage in sorted({stage for stage, _ in self.stores}):
            old = [self.stores[stage, bucket] for bucket in bucket_ids(self.buckets)]
            new = rescaled(old, count, places_of=places_of)
            for number, (bucket, store) in enumerate(zip(bucket_ids(count), new, strict=True)):
                assert (found := problems(store, number, count, places_of)) == [], found
                stores[stage, bucket] = store
        self.stores, self.buckets = stores, count


CHECKPOINTS: defaultdict[str, Checkpoint] = defaultdict(Checkpoint)
"""By the name of the view's folder, which may be moved."""


class Queries(ViewQueries):
    """In the place of the queries of a session; the files are those of a session with Spark."""

    def __init__(self, spark: object, store: str, pending: PendingChanges, ingest) -> None:
        self._pending, self._ingest = pending, ingest
        self._folder = Path(mkdtemp(prefix="windowpane-test-") if store == ":memory:" else f"{store}.streams")
        self._sharing: set[str] = set()
        self._tables: dict[str, tuple[Files, set[Path]]] = {}
        self._flows: dict[str, tuple[InProcess, LogWriter, Callable[[], None]]] = {}
        self.is_remote = False

    def change_sets(self, name: str, spark: object) -> Files:
        return Files(self.inbox(name), is_shared=name in self._sharing)

    def is_running(self, name: str) -> bool:
        return name in self._flows

    def start_view(self, name: str, changes, writer, take) -> None:
        if name not in self._flows:
            self._flows[name] = changes(None), writer, take

    def start_table(self, name: str, rows) -> None:
        self._tables.setdefault(name, (rows(None), set()))

    def finish(self, name: str, *, is_endless: bool = False) -> None:
        if name in self._tables:
            files, taken = self._tables[name]
            for path in files.paths:
                if path not in taken:
                    self._ingest(name, pq.read_table(path), len(taken))
                    taken.add(path)
            return
        held = CHECKPOINTS[self.inbox(name).parent.name]
        self._finish_view(held, *self._flows[name])

    def _finish_view(self, held: Checkpoint, flow: InProcess, writer: LogWriter, take: Callable[[], None]) -> None:
        """Run batches; one that fails leaves the checkpoint as it was, and is run again. A server commits before it is taken."""
        while True:
            flow.stores, flow.taken, flow.buckets = deepcopy(held.stores), set(held.taken), held.buckets
            batch = next(flow.batches(), None)
            if batch is None:
                return
            writer.begin(held.number, NO_SPARK)
            writer.run(flow.run(batch, writer.exchange), held.number)
            if not self.is_remote:
                take()
            held.stores, held.taken, held.number = flow.stores, flow.taken, held.number + 1

    def drop(self, name: str) -> None:
        self._flows.pop(name, None)

    def close(self) -> None:
        pass


NO_SPARK: Any = object()
"""Stands in for a session that nothing is asked of."""


@contextmanager
def on_connect() -> Iterator[None]:
    """Let sessions be those of Spark Connect."""
    made = Queries.__init__

    def remote(self: Queries, *given) -> None:
        made(self, *given)
        self.is_remote = True

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Queries, "__init__", remote)
        yield


def run_in_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let sessions with a Spark run in this process; what queries took before is forgotten."""
    CHECKPOINTS.clear()
    monkeypatch.setattr(spark_runner, "warn_of_leaking_sockets", lambda spark: None)  # it has no version
    monkeypatch.setattr(view_batches, "ViewQueries", Queries)
    monkeypatch.setattr(view_streams, "groups_below", lambda node, read, tables, runs=None: SpreadPlan(runs or node))
    monkeypatch.setattr(
        staged, "staged", lambda entries, stages, result, name, to_files: InProcess(entries, stages, result, to_files)
    )
    monkeypatch.setattr(batch_query, "BatchExchange", Exchange)
    monkeypatch.setattr(batch_query, "written_files", lambda rows: rows)  # they are written already
    monkeypatch.setattr(arrow_rows, "read_columns", lambda rows, columns: replace(rows, columns=tuple(columns)))
    monkeypatch.setattr(connectors, "numbered", lambda rows, columns, name: replace(rows, columns=tuple(columns), partition=name))
    monkeypatch.setattr(Ingest, "rows", lambda self, info, spark: Files(Path(info.options["path"])))


@pytest.fixture
def spread_session(monkeypatch: pytest.MonkeyPatch) -> Iterator[Session]:
    """A session whose views are spread over buckets."""
    run_in_process(monkeypatch)
    with Session(spark=NO_SPARK) as session:
        yield session
