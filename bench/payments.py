"""Payments by card, the input of the benchmarks of rolling features and of early results."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.batches import FIRST_FILE, put_in_place

SECOND = 1_000_000


def write_batches(folder: Path, rows: int, keys: int, batches: int, seconds: int, first: int = 0) -> None:
    """Write a file a batch, numbered from ``first`` on: some seconds of event time, in disorder."""
    draw = np.random.default_rng(7 + first)
    cards = pa.array([f"card-{number:032}" for number in range(keys)])
    for number in range(first, first + batches):
        start = (FIRST_FILE + number * seconds) * SECOND
        times = start + draw.integers(0, seconds * SECOND, rows)
        chosen = cards.take(pa.array(draw.integers(0, keys, rows)))
        amounts, ids = draw.integers(0, 10**6, rows), np.arange(number * rows, (number + 1) * rows)
        table = pa.table({"card": chosen, "at": pa.array(times, pa.timestamp("us", "UTC")), "amount": amounts, "id": ids})
        path = folder / f"{number:03}.parquet"
        pq.write_table(table, path)
        put_in_place(path, number)
