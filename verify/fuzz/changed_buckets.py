"""A program of windows on buckets that are opened anew in each batch, so that it may be another one in the next."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import pyarrow as pa

from verify.fuzz.comparison import difference
from verify.fuzz.faults import Given
from verify.fuzz.rescaling import of_bucket
from verify.fuzz.windowed_streams import Batch
from windowpane.engines.beginning import Past, begun
from windowpane.engines.program import MAIN, Program
from windowpane.engines.protocol import BucketOutput, Clock
from windowpane.hidden_columns import TIME
from windowpane.planning.changing import Held
from windowpane.planning.engines import make_engine
from windowpane.planning.rescaling.buckets import rescaled
from windowpane.state.memory import MemoryBlobStore
from windowpane.windowing.times import MIN

Rows = list[dict[str, Any]]


class Buckets:
    """A program on some buckets, opened anew in each batch."""

    def __init__(self, program: Program, count: int = 1) -> None:
        self.program, self.stores = program, [MemoryBlobStore() for _ in range(count)]

    def run(self, batch: Batch) -> Rows:
        """Return the results of a batch."""
        clock = Clock(batch.watermark, batch.processing_time)
        return self._results(lambda store, parts: make_engine(self.program).run(store, parts, clock), batch.parts)

    def run_again(self, batch: Batch, draw: Random) -> tuple[Rows, bool]:
        """Return the results of a batch, and whether they are the same when it is run again, as sometimes it is."""
        before = [each.snapshot() for each in self.stores]
        got = self.run(batch)
        if draw.random() >= 0.3:
            return got, True
        for store, snapshot in zip(self.stores, before, strict=True):
            store.restore(snapshot)
        return got, difference(got, self.run(batch)) is None

    def begin(self, past: Sequence[pa.Table], cut: int) -> Rows:
        """Begin with the rows of a history."""
        end = Past.below(cut)
        return self._results(lambda store, parts: begun(make_engine(self.program), store, parts, end), past)

    def rescale(self, count: int) -> None:
        """Spread the state over another number of buckets."""
        self.stores = list(rescaled(self.stores, count))

    def _results(self, run: Callable[[MemoryBlobStore, list[pa.Table]], BucketOutput], parts: Sequence[pa.Table]) -> Rows:
        types = {field.name: field.type for field in self.program.value_types}
        given = Given([_cast(part, types) for part in parts], Clock(MIN, MIN))
        outputs = [
            run(store, of_bucket(self.program, given, number, len(self.stores))) for number, store in enumerate(self.stores)
        ]
        tables = [table for output in outputs for number, table in output.tables if number == MAIN]
        return [row for table in tables for row in table.to_pylist()]


def _cast(rows: pa.Table, types: dict[str, pa.DataType]) -> pa.Table:
    return rows.cast(pa.schema([field.with_type(types.get(field.name, field.type)) for field in rows.schema]))


def times_of(stream: Sequence[Batch]) -> list[int]:
    """Return the times of all rows that have one."""
    return [time for batch in stream for part in batch.parts for time in part[TIME].to_pylist() if time is not None]


def held_of(stores: Sequence[MemoryBlobStore], batches: Sequence[Batch]) -> Held | None:
    """Return what the headers of buckets say after some batches."""
    times = times_of(batches)
    headers = [
        (name, blob) for store in stores for name in store if name.endswith("header") and (blob := store.get(name)) is not None
    ]
    return Held.of(headers, batches[-1].watermark, max(times, default=None))
