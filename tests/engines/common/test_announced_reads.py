"""Engines say what they are about to read: a store that is far away has one trip for it, not one a blob."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

import windowpane as wp
from tests.engines.columnar_programs import columnar_engine, program_of, table_of
from verify.fuzz.windowed_streams import SmallBatch as Batch
from windowpane.engines.over.program import Emit, OverProgram
from windowpane.engines.protocol import Clock
from windowpane.engines.slices.engine import SlicesEngine
from windowpane.hidden_columns import TIME
from windowpane.state.memory import MemoryBlobStore
from windowpane.windowing.over.spec import OrderColumn, OverCall, OverSpec
from windowpane.windowing.over.types import output_schema
from windowpane.windowing.times import MIN


class FarStore(MemoryBlobStore):
    """Counts its trips: one for each announcement, and one for each blob that was not announced."""

    def __init__(self):
        super().__init__()
        self.trips, self._at_hand = 0, set()

    def prefetch(self, keys):
        missing = set(keys) - self._at_hand
        self.trips += bool(missing)
        self._at_hand |= missing

    def get(self, key):
        self.prefetch([key])
        self._at_hand.remove(key)
        return super().get(key)


def test_the_slices_of_all_windows_that_fire_are_one_trip():
    program = program_of(wp.SlidingEventTimeWindows.of("40 microseconds", "1 microsecond"))
    store = FarStore()
    rows = tuple(("a", 0, time) for time in range(40))
    SlicesEngine(program).run(store, [table_of(Batch(-1, 0, rows))], Clock(-1, 0))
    store.trips = 0
    output = SlicesEngine(program).run(store, [], Clock(39, 0))
    assert output.counters.firings == 40
    assert store.reads > 40
    assert store.trips < 10


def test_the_pages_of_random_inserts_are_a_few_trips():
    size = 20_000
    columns = pa.schema([("key", pa.int64()), ("t", pa.int64()), ("id", pa.int64())])
    call = OverCall("lag", ("id",))
    spec = OverSpec(("key",), (OrderColumn("t", nulls_first=False),), ("id",), (call,))
    program = OverProgram(spec, columns, output_schema(spec, columns, ["before"]), Emit.UPDATE, None)
    store, engine = FarStore(), columnar_engine(program)

    def insert(times: np.ndarray, first: int) -> None:
        ids = np.arange(first, first + len(times))
        table = pa.table([pa.array(np.zeros(len(times), np.int64)), pa.array(times), pa.array(ids)], schema=columns)
        engine.run(store, [table.append_column(TIME, pa.nulls(len(times), pa.int64()))], Clock(MIN, 0))

    insert(np.arange(size) * 10, 0)
    store.trips = store.reads = 0
    insert(np.arange(0, size, 500) * 10 + 5, size)
    assert store.reads > 30
    assert store.trips < 12
