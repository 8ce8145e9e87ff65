"""windowpane's engine for OVER on window close, without Spark: the batch in which the watermark releases all rows at once."""

from __future__ import annotations

import statistics
import time

import pyarrow as pa
import pyarrow.parquet as pq

from bench.programs import Task
from bench.systems.task_folder import read_task, write_figures
from windowpane.engines.over.close import OverCloseEngine
from windowpane.engines.over.program import Emit, OverProgram
from windowpane.engines.protocol import Clock
from windowpane.hidden_columns import PARTITION, POSITION, TIME
from windowpane.state.memory import MemoryBlobStore
from windowpane.windowing.frames import CURRENT_ROW, Frame, preceding
from windowpane.windowing.over.spec import OrderColumn, OverCall, OverSpec
from windowpane.windowing.times import MAX, MIN

TIMES = 5


def program(columns: pa.Schema) -> OverProgram:
    frame = Frame.rows(preceding(10), CURRENT_ROW)
    calls = (
        OverCall("sum", ("price",), frame),
        OverCall("max", ("price",), frame),
        OverCall("count", (), frame),
        OverCall("lag", ("price",)),
        OverCall("row_number"),
    )
    spec = OverSpec(("k",), (OrderColumn("ts", nulls_first=True),), ("id",), calls)
    outputs = pa.schema([(name, pa.int64()) for name in "abcde"])
    return OverProgram(spec, columns, outputs, mode=Emit.CLOSE, time_column="ts", append_only=True)


def main() -> None:
    task: Task = read_task()
    bids, times = pq.read_table(list(task.files)), []
    count = pa.array(range(bids.num_rows), pa.int64())
    bids = bids.append_column("id", count)
    engine = OverCloseEngine(program(bids.schema))
    rows = bids.append_column(TIME, bids["ts"].cast(pa.int64())).append_column(POSITION, count)
    rows = rows.append_column(PARTITION, pa.array([0] * bids.num_rows, pa.int32()))
    for _ in range(TIMES):
        store = MemoryBlobStore()
        engine.run(store, [rows], Clock(MIN, 0))
        begun = time.monotonic()
        released = engine.run(store, [], Clock(MAX, 0))
        times.append(time.monotonic() - begun)
        assert sum(table.num_rows for _, table in released.tables) == bids.num_rows
    write_figures(task, batch_s=statistics.median(times), rows_per_s=task.rows / statistics.median(times))


if __name__ == "__main__":
    main()
