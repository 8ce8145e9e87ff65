"""Rows that are made up: each by its number alone, so that any range of them is the same whenever it is made.

Row n happens ``every`` behind row n - 1, but for spells in which none does. It arrives in that order; its event time is put back
by up to ``disorder``, and that of a share ``late`` by ``lateness`` more. Keys are drawn by Zipf's law with exponent ``skew``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf

import numpy as np
import pyarrow as pa

from windowpane.errors import InvalidSpecError
from windowpane.windowing.times import format_micros

BLOCK = 1 << 12  # So many rows are drawn by one generator
COLUMNS = pa.schema(
    [
        ("key", pa.string()),
        ("at", pa.timestamp("us", "UTC")),
        ("value", pa.int64()),
        ("number", pa.int64()),
        ("partition", pa.int32()),
    ]
)
_VALUES = 1_000
_LAST = 253_402_300_799_999_999  # The last microsecond of the year 9999, beyond which Python and Spark have no instants


@dataclass(frozen=True)
class Generated:
    keys: int  # how many keys there are
    skew: float  # the exponent of Zipf's law; 0 draws all alike
    every: int  # microseconds between two rows
    disorder: int  # microseconds by which rows are put back at most
    late: float  # the share of rows that are put back further
    lateness: int  # by so many microseconds
    active: int  # microseconds of rows before a spell without, 0 for no spells
    idle: int  # microseconds of such a spell
    start: int  # the time of the first row, in microseconds since 1970
    partitions: int  # row n is of partition n modulo these
    seed: int

    def __post_init__(self) -> None:
        for name in ("keys", "partitions", "seed"):
            if not isinstance(getattr(self, name), int):
                raise InvalidSpecError(f"generate({name}={getattr(self, name)!r}): it is a whole number.")
        for name in ("keys", "every", "partitions"):
            if getattr(self, name) < 1:
                raise InvalidSpecError(f"generate({name}={getattr(self, name)!r}): it is positive.")
        for name in ("disorder", "lateness", "skew"):
            if not 0 <= getattr(self, name) < inf:
                raise InvalidSpecError(f"generate({name}={getattr(self, name)!r}): it cannot be negative, or without end.")
        if 0 < self.late <= 1 and not self.lateness:
            raise InvalidSpecError(f"generate(late={self.late!r}): lateness= says by how much those rows are put back.")
        if not 0 <= self.late <= 1:
            raise InvalidSpecError(f"generate(late={self.late!r}): it is a share of the rows, from 0 to 1.")
        if (self.active > 0) != (self.idle > 0):
            raise InvalidSpecError("generate(idle=...): it is two durations, ('1 hour', '10 minutes'): with rows, and without.")

    def rows(self, start: int, end: int) -> Iterator[pa.Table]:
        """Yield the rows with the numbers ``[start, end)``.

        Raises:
            InvalidSpecError: the last one would be behind the year 9999.
        """
        passed = end * self.every
        if self.start + passed + (passed // self.active * self.idle if self.idle else 0) > _LAST:
            raise InvalidSpecError(
                f"generate(every={format_micros(self.every)!r}): row {end} would be behind the year 9999. Make fewer rows, or "
                "let them follow each other faster."
            )
        weights = np.arange(1, self.keys + 1, dtype=np.float64) ** -self.skew
        bounds = np.cumsum(weights / weights.sum())
        for block in range(start // BLOCK, -(-end // BLOCK)):
            first = block * BLOCK
            yield self._block(block, bounds).slice(max(start - first, 0), min(end - first, BLOCK) - max(start - first, 0))

    def _block(self, block: int, bounds: np.ndarray) -> pa.Table:
        drawn = np.random.Generator(np.random.Philox(key=[self.seed & (2**64 - 1), block]))
        number = np.arange(block * BLOCK, (block + 1) * BLOCK, dtype=np.int64)
        key = np.minimum(np.searchsorted(bounds, drawn.random(BLOCK), side="right"), self.keys - 1)
        back = (drawn.random(BLOCK) * (self.disorder + 1)).astype(np.int64)
        back += np.where(drawn.random(BLOCK) < self.late, self.lateness, 0)
        value = drawn.integers(0, _VALUES, BLOCK)
        passed = number * self.every
        if self.idle:
            passed += passed // self.active * self.idle
        columns = [
            pa.array([f"k{each}" for each in key.tolist()], pa.string()),
            pa.array(self.start + passed - back, pa.int64()).cast(COLUMNS.field("at").type),
            pa.array(value, pa.int64()),
            pa.array(number, pa.int64()),
            pa.array((number % self.partitions).astype(np.int32)),
        ]
        return pa.table(columns, schema=COLUMNS)
