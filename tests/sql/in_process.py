"""Sessions whose views run in stages on buckets, as on Spark, in this process: no JVM, the same letters, stages and engines."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import mkdtemp

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from windowpane.engines.program import MAIN
from windowpane.engines.protocol import Clock
from windowpane.spark.queries import staged
from windowpane.spark.stages.blobs import pack, unpack
from windowpane.sql import Session
from windowpane.sql.on_spark import upkeep
from windowpane.sql.on_spark.stages import STAGE
from windowpane.state.memory import MemoryBlobStore

BUCKETS = 3


class InProcess:
    """Stands for a DataFrame of letters: runs what is made of it on one letter after another."""

    def __init__(self) -> None:
        self.stages: Sequence[staged.Stage] = ()
        self.result: Sequence[staged.Inlet] = ()
        self.stores: defaultdict[tuple[int, int], MemoryBlobStore] = defaultdict(MemoryBlobStore)

    def run(self, letter: pa.Table) -> pa.Table:
        made = [letter]
        for number, stage in enumerate(self.stages):
            made.append(self._stage(number, stage, made))
        blobs = [b for inlet in self.result for b in staged.Leave(inlet.rows)(_source(made, inlet).to_batches())]
        return pa.Table.from_batches(blobs, pa.schema([("blob", pa.binary())]))

    def _stage(self, number: int, stage: staged.Stage, made: list[pa.Table]) -> pa.Table:
        buckets: defaultdict[int, list[pa.Table]] = defaultdict(list)
        for inlet in stage.inlets:
            for batch in staged.Spread(inlet.rows, inlet.input, stage.hash, BUCKETS)(_source(made, inlet).to_batches()):
                for bucket, blob in zip(*batch.columns, strict=True):
                    buckets[bucket.as_py()].append(unpack(blob.as_py()))
        parts = []
        for bucket, tables in buckets.items():
            output = stage.make_engine().run(self.stores[number, bucket], tables, Clock(0, 0))
            parts += [(STAGE if which == MAIN else "", pack(table)) for which, table in output.tables]
        return pa.table({"relation": [name for name, _ in parts], "blob": pa.array([b for _, b in parts], pa.binary())})


def _source(made: list[pa.Table], inlet: staged.Inlet) -> pa.Table:
    return made[0] if inlet.stage is None else made[inlet.stage + 1]


class Queries:
    """In the place of the queries of a session."""

    def __init__(self, spark: object, store: str, mail: object, answer, ingest) -> None:
        self._folder, self._answer = Path(mkdtemp(prefix="windowpane-test-")), answer
        self._flows: dict[str, InProcess] = {}
        self._batches: defaultdict[str, int] = defaultdict(int)

    def tidy(self) -> None:
        pass

    def inbox(self, name: str) -> Path:
        inbox = self._folder / name
        inbox.mkdir(exist_ok=True)
        return inbox

    def start_view(self, name: str, made) -> None:
        if name not in self._flows:
            self._flows[name] = InProcess()
            made(self._flows[name])

    def finish(self, name: str, *, is_endless: bool = False) -> None:
        letters = sorted(self.inbox(name).glob("*.parquet"), key=lambda file: int(file.stem))
        self._answer(name, self._flows[name].run(pq.read_table(letters[-1])), self._batches[name])
        self._batches[name] += 1

    def drop(self, name: str) -> None:
        self._flows.pop(name, None)

    def close(self) -> None:
        pass


def _staged(letters: InProcess, stages, result, stage_name: str) -> InProcess:
    letters.stages, letters.result = stages, result
    return letters


@pytest.fixture
def spread_session(monkeypatch: pytest.MonkeyPatch) -> Iterator[Session]:
    """A session whose views are spread over buckets."""
    monkeypatch.setattr(upkeep, "ViewQueries", Queries)
    monkeypatch.setattr(staged, "staged", _staged)
    with Session(spark=object()) as session:
        yield session
