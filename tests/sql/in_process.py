"""Sessions whose views run in stages on buckets, as on Spark, in this process: no JVM; the same letters, stages and engines.

A source is a folder of Parquet files. A batch has the oldest letter that is left, and one file of each source, in two tasks.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from windowpane.engines.program import MAIN
from windowpane.engines.protocol import Clock
from windowpane.spark.queries import batch_query, staged
from windowpane.spark.sources import arrow_rows, connectors
from windowpane.spark.stages.blobs import pack, unpack
from windowpane.sql import Session
from windowpane.sql.on_spark import upkeep
from windowpane.sql.on_spark.change_log import ChangeLog
from windowpane.sql.on_spark.ingest import Ingest
from windowpane.sql.on_spark.stages import STAGE
from windowpane.state.memory import MemoryBlobStore

BUCKETS, TASKS = 3, 2


@dataclass(frozen=True)
class Files:
    """Stands for the DataFrame of a source, or of letters: the files of a folder, one a batch."""

    folder: Path
    columns: tuple[str, ...] | None = None
    partition: str | None = None
    sparkSession: object = None  # noqa: N815 - Spark's name

    @property
    def paths(self) -> list[Path]:
        return sorted(self.folder.glob("*.parquet"), key=lambda path: int(path.stem))

    def tasks(self, path: Path | None) -> list[list[pa.RecordBatch]]:
        """Return the rows of a file as tasks get them: those of a source in several, those of a letter in one."""
        if path is None:
            return []
        table = pq.read_table(path, columns=None if self.columns is None else list(self.columns))
        tasks = 1 if self.columns is None else TASKS
        if self.partition is not None:
            table = table.append_column(self.partition, pa.array([n % tasks for n in range(table.num_rows)]))
        return [table.take(pa.array(range(task, table.num_rows, tasks))).to_batches() for task in range(tasks)]


class Exchange:
    """Stands for a ``BatchExchange``."""

    def __init__(self, spark: object) -> None:
        self._told: str | None = None
        self._reports: dict[Any, Any] = {}
        self.partition = 0

    def tell(self, said: str) -> None:
        self._told, self._reports = said, {}

    def told(self) -> str | None:
        return self._told

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

    def __post_init__(self) -> None:
        self.stores: defaultdict[tuple[int, int], MemoryBlobStore] = defaultdict(MemoryBlobStore)
        self.taken: set[Path] = set()

    def batches(self) -> Iterator[dict[int, list[list[pa.RecordBatch]]]]:
        """Yield what is new at each entry, batch by batch, by the number of the entry."""
        while True:
            new = [next((path for path in entry.rows.paths if path not in self.taken), None) for entry in self.entries]
            if not any(new):
                return
            self.taken |= {path for path in new if path is not None}
            yield {number: entry.rows.tasks(path) for number, (entry, path) in enumerate(zip(self.entries, new, strict=True))}

    def run(self, batch: dict[int, list[list[pa.RecordBatch]]], exchange: Exchange) -> pa.Table:
        made: list[staged.Entry] = []
        for number, stage in enumerate(self.stages):
            made.append(staged.Entry(self._stage(number, stage, batch, made, exchange)))
        blobs = [
            each
            for inlet in self.result
            for task, parts in self._arriving(inlet, batch, made, exchange)
            for each in staged.Leave(inlet.rows, parts)(iter(task))
        ]
        return pa.Table.from_batches(blobs, pa.schema([("blob", pa.binary())]))

    def _arriving(self, inlet: staged.Inlet, batch: dict[int, Any], made: Sequence[staged.Entry], exchange: Exchange) -> Any:
        partition = 0
        for entry in staged.places(self.entries, made, inlet):
            tasks = [entry.rows.to_batches()] if inlet.stage is not None else batch[self.entries.index(entry)]
            for task in tasks:
                exchange.partition = partition
                yield task, entry.parts
                partition += 1

    def _stage(self, number: int, stage: staged.Stage, batch: Any, made: Any, exchange: Exchange) -> pa.Table:
        buckets: defaultdict[int, list[pa.Table]] = defaultdict(list)
        for inlet in stage.inlets:
            for task, come in self._arriving(inlet, batch, made, exchange):
                for spread in staged.Spread(inlet.rows, inlet.input, stage.hash, BUCKETS, come)(iter(task)):
                    for bucket, blob in zip(*spread.columns, strict=True):
                        buckets[bucket.as_py()].append(unpack(blob.as_py()))
        parts = []
        for bucket, tables in buckets.items():
            output = stage.make_engine().run(self.stores[number, bucket], tables, Clock(0, 0))
            parts += [(STAGE if which == MAIN else "", pack(table)) for which, table in output.tables]
        return pa.table({"relation": [name for name, _ in parts], "blob": pa.array([b for _, b in parts], pa.binary())})


class Queries:
    """In the place of the queries of a session."""

    def __init__(self, spark: object, store: str, mail: object, answer, ingest) -> None:
        self._folder, self._ingest = Path(mkdtemp(prefix="windowpane-test-")), ingest
        self._tables: dict[str, tuple[Files, set[Path]]] = {}
        self._flows: dict[str, tuple[InProcess, Callable[[pa.Table, int], None], Callable[[int], None], Exchange]] = {}
        self._batches: defaultdict[str, int] = defaultdict(int)

    def tidy(self) -> None:
        pass

    def inbox(self, name: str) -> Path:
        inbox = self._folder / name
        inbox.mkdir(exist_ok=True)
        return inbox

    def received(self, name: str) -> Path:
        return self._folder / f"{name}-received"

    def change_log(self, name: str) -> ChangeLog:
        return ChangeLog(self._folder / f"{name}-changes")

    def letters(self, name: str, spark: object) -> Files:
        return Files(self.inbox(name))

    def start_spread(self, name: str, changes, take, begin) -> None:
        if name not in self._flows:
            flow = changes(None)
            self._flows[name] = flow, take, begin, flow.entries[0].parts.exchange

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
        flow, take, begin, exchange = self._flows[name]
        for batch in flow.batches():
            begin(self._batches[name])
            take(flow.run(batch, exchange), self._batches[name])
            self._batches[name] += 1

    def drop(self, name: str) -> None:
        self._flows.pop(name, None)

    def close(self) -> None:
        pass


def _written(rows: pa.Table, folder: Path) -> None:
    folder.mkdir(parents=True)
    pq.write_table(rows, folder / "part-0.parquet")


def run_in_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let sessions with a Spark run in this process."""
    monkeypatch.setattr(upkeep, "ViewQueries", Queries)
    monkeypatch.setattr(staged, "staged", lambda entries, stages, result, stage_name: InProcess(entries, stages, result))
    monkeypatch.setattr(batch_query, "BatchExchange", Exchange)
    monkeypatch.setattr(batch_query, "write_parquet", _written)
    monkeypatch.setattr(arrow_rows, "read_columns", lambda rows, columns: replace(rows, columns=tuple(columns)))
    monkeypatch.setattr(connectors, "numbered", lambda rows, columns, name: replace(rows, columns=tuple(columns), partition=name))
    monkeypatch.setattr(Ingest, "rows", lambda self, info, spark: Files(Path(info.options["path"])))


@pytest.fixture
def spread_session(monkeypatch: pytest.MonkeyPatch) -> Iterator[Session]:
    """A session whose views are spread over buckets."""
    run_in_process(monkeypatch)
    with Session(spark=object()) as session:
        yield session
