"""Rows as they arrive at one bucket, for the benchmarks of engines without Spark around them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from windowpane.engines.protocol import Clock
from windowpane.hidden_columns import PARTITION, POSITION, TIME

SECOND = 1_000_000


def batches(rows: int, keys: int, number_of_batches: int) -> Iterator[tuple[pa.Table, Clock]]:
    """Yield batches of 10 s of event time with 2 s of disorder: text keys ``k``, numbers ``v``, and ``price`` from 0 to 1."""
    random = np.random.default_rng(7)
    names = pa.array([f"bidder {number}" for number in range(keys)])
    for number in range(number_of_batches):
        times = number * 10 * SECOND + np.arange(rows) * (10 * SECOND) // rows - random.integers(0, 2 * SECOND, rows)
        columns = {
            "k": names.take(pa.array(random.integers(0, keys, rows))),
            "v": pa.array(random.integers(0, 10_000, rows)),
            "price": pa.array(random.random(rows)),
            TIME: pa.array(times),
            PARTITION: pa.array(np.zeros(rows, np.int32)),
            POSITION: pa.array(np.arange(rows)),
        }
        yield pa.table(columns), Clock(number * 10 * SECOND - 2 * SECOND, number * 10 * SECOND)
