"""Sorted rows with a column of every type that aggregates take, for tests of kernels."""

import random
from decimal import Decimal

import numpy as np
import pyarrow as pa

COLUMNS = pa.schema(
    [
        ("t", pa.int64()),
        ("ok", pa.bool_()),
        ("i", pa.int32()),
        ("x", pa.float64()),
        ("f", pa.float32()),
        ("d", pa.decimal128(12, 3)),
        ("w", pa.decimal128(38, 4)),
        ("s", pa.string()),
        ("b", pa.bool_()),
        ("u", pa.duration("us")),
    ]
)


def random_rows(rng: random.Random, size: int) -> pa.Table:
    """Return rows in the order of column ``t``, with NULLs elsewhere."""
    columns = [pa.array([_value(rng, name) for _ in range(size)], COLUMNS.field(name).type) for name in COLUMNS.names[1:]]
    return pa.table([pa.array(sorted(rng.randint(0, size // 3) for _ in range(size)), pa.int64()), *columns], schema=COLUMNS)


def starts_at(size: int, *places: int) -> np.ndarray:
    """Return where segments start."""
    starts = np.zeros(size, np.bool_)
    starts[[0, *places]] = True
    return starts


def _value(rng: random.Random, name: str) -> object:
    value = rng.choice([rng.randint(-5, 5), rng.randint(-5000, 5000)])
    made = {
        "i": value,
        "x": rng.choice([value / 7, 1e300, float("inf"), float("nan"), -0.0, 0.0, 0.1]),
        "f": value / 4,
        "d": Decimal(value) / 1000,
        "w": Decimal(value) * 10**28 / 10000,
        "s": rng.choice(["", "a", "b", "é", "zz"]),
        "b": rng.random() < 0.5,
        "ok": rng.random() < 0.7,
        "u": value * 1_000_003,
    }
    return None if rng.random() < 0.2 else made[name]
